"""LLVM's code for the same chip: it obeys the rules of bundles that we wrote, and leaves the same
bits. What a live LLVM makes of a kernel differs between its versions, so nothing here counts it.
"""

import copy
import random
import re
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from answer_sources import answers_of_tests
from products import random_matrices
from sampling import drawn_by_day, seeded

import cypresskit as ck
from cypresskit.compiler.llvm import back_end, translated
from cypresskit.compiler.llvm.from_assembly import read
from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.kernels.generated import block_kernel
from cypresskit.machine.launch import prepare
from cypresskit.teach.l03_bundles import checks
from tools.fuzz.programs import random_program
from tools.legality import check
from tools.llvm_code import stored_irs
from tools.run_code import execute

SINGLE_KERNELS = [name for name, kernel in ck.kernels.items() if kernel.precision == "single"]
live = pytest.mark.skipif(not HAS_LLVM, reason="needs llvmlite")

#: Where LLVM breaks a rule of ours, and who is probably wrong.
KNOWN = [
    # LLVM lets any slot do it; Mesa's driver for the chip, whose table of slots is AMD's, only
    # x y z w on Evergreen, as we do.
    r"FLT_TO_INT in slots \[4\]",
    # LLVM folds the sign of a float into operations on integers, which have no such modifier
    # (ISA 4.7.2).
    r"\w+_U?INT can't negate operands|U?INT_TO_FLT can't negate operands",
    # Of two copies in a bundle, one is dead.
    "two slots write the same word",
]


def unknown(code):
    """The violations of the rules, but for the known ones, and what a loop does that isn't its
    IL's. LLVM's copies are of values from anywhere.
    """
    faults = [fault for fault in check(code) if not any(re.search(k, fault) for k in KNOWN)]
    ends = code.program.matching
    for control in code.controls:
        if control.name == "LOOP_START_DX10":
            parts = code.controls[code.controls.index(control) : control.target]
            done = [o for c in parts for o in (*c.operations, *c.fetches) if o.name != "MOV"]
            inside = range(control.at, ends[control.at])
            inner = [c for c in parts if c.name.startswith("LOOP")]
            faults += [f"{o} in {inside}" for o in (*done, *inner) if o.at not in inside]
    return faults


def same_bits(program, arguments, code):
    """Whether code leaves the same bits in all arrays as the IL."""
    il = copy.deepcopy(arguments)
    ck.launch(program, engine="interpreter", **il)
    launch = prepare(program, **copy.deepcopy(arguments))
    execute(code, launch)
    pairs = [(output, launch.outputs[n].words) for n, output in il.get("outputs", {}).items()]
    if il.get("global_memory") is not None:
        pairs.append((np.ascontiguousarray(il["global_memory"]), launch.memory))
    return all(
        np.array_equal(one.reshape(-1).view(np.uint32), other.reshape(-1)) for one, other in pairs
    )


@drawn_by_day("name", SINGLE_KERNELS, 6)
def test_llvms_code_of_the_catalog_is_legal_and_gives_the_same_bits(name, monkeypatch):
    """What is stored for it, without an installed LLVM."""
    monkeypatch.setattr(back_end, "HAS_LLVM", False)
    kernel = ck.kernels[name]
    code = ck.compile(name, by="llvm")
    assert unknown(code) == []
    a, b, c = random_matrices(kernel, 35, 33, 9, np.random.default_rng(7))
    assert same_bits(kernel.program, kernel.arguments(a, b, c, 1.5, 0.5), code)
    products = {i.line for i in kernel.program.body if i.opcode == "mad"}
    made = {o.line for c in code.main_loop for o in c.operations if o.name == "MULADD_IEEE"}
    assert made <= products, "a product has the line that it was written in"


def test_what_is_stored_is_what_the_tool_stores():
    """After a change of the translation or of a kernel: `python -m tools.llvm_code`."""
    assert back_end.stored().keys() == stored_irs().keys()


def refused_line(text):
    """The line that LLVM can't compile, or 0."""
    try:
        ck.compile(text, by="llvm")
    except ck.CompileError as error:
        found = re.search(r":(\d+):", str(error))
        return int(found[1]) if found else 0
    return 0


def compiled(text):
    """LLVM's code of a program without the lines that it can't compile; None if others need these,
    or if LLVM ends its process or has what isn't ours.
    """
    lines = text.splitlines()
    with suppress(ck.ILError, ck.CompileError):
        while refused := refused_line(text := "\n".join(lines)):
            lines[refused - 1] = ""
        return ck.compile(text, by="llvm")
    return None


@live
@seeded(2)
def test_llvms_code_of_random_programs_obeys_our_rules(seed):
    """Their bits aren't compared: LLVM folds constants without flushing, and drops the sign of a
    product with -0.
    """
    rng, code = random.Random(seed), None
    while code is None:
        code = compiled(random_program(rng, "pixel", statements=30)[0])
    assert unknown(code) == []


TWO_LOOPS = """
whileloop
    break_logicalnz l1.x
    add r20.x, r20.x, l0.x
endloop
whileloop
"""


@live
def test_an_infinite_loop_is_one_after_llvm_dropped_another():
    """Which loop LLVM's is, its lines say, not its number."""
    text = ck.kernels["sgemm_naive"].text.replace("\nwhileloop\n", TWO_LOOPS)
    text = text.replace("dcl_literal l0", "dcl_literal l1, 1, 1, 1, 1\ndcl_literal l0")
    text = text.replace("mov r10, l0.z", "mov r10, l0.z\nmov r20, l0.z")
    text = text.replace("add r0.z, r0.z, l0.x", "add r0.z, r0.z, l0.y")
    kernel = ck.load_kernel(text, like="sgemm_naive")
    code = ck.compile(kernel, by="llvm")
    assert unknown(code) == []
    assert [c.name for c in code.controls].count("LOOP_START_DX10") == 1
    with pytest.raises(ck.KernelError, match="has not ended"):
        ck.simulate(code, 64)


def test_a_loop_without_lines_is_refused():
    program = ck.kernels["sgemm_naive"].program
    ir = translated(program, ck.HD5870)
    _, text = back_end.assembly(ir.text, "k")
    with pytest.raises(ck.CompileError, match="a loop whose lines are in no loop of the kernel"):
        read(re.sub(r"(?m)^\t\.loc\t1 \d+", "\t.loc\t1 0", text), ir.unprinted, program)


def test_llvms_process_ends_without_its_parent():
    pytest.importorskip("resource")
    module = "import cypresskit.compiler.llvm.back_end as back_end"
    endless = f"{module}; back_end.SECONDS = 0; back_end.limit_process()\nwhile True: pass"
    done = subprocess.run([sys.executable, "-c", endless], timeout=60)
    assert done.returncode < 0


def sorted_mads(mads):
    """An order whose code isn't stored."""
    return sorted(mads)


REFUSED = [
    ("dgemm_tn", "LLVM's table of this chip has no fused multiply-add of doubles"),
    (block_kernel(24, 20), "LLVM's registers don't suffice, and it can't spill any"),
]


@live
@pytest.mark.parametrize("kernel, says", REFUSED)
def test_what_ends_llvms_process_is_refused_in_a_sentence(kernel, says):
    with pytest.raises(ck.CompileError, match=re.escape(says)):
        ck.compile(kernel, by="llvm")


def test_without_llvm_only_the_catalog_has_its_code(monkeypatch):
    monkeypatch.setattr(back_end, "HAS_LLVM", False)
    monkeypatch.setattr(checks, "HAS_LLVM", False)
    with pytest.raises(ck.CompileError, match="needs an installation"):
        ck.compile(block_kernel(4, 8, 3), by="llvm")
    with answers_of_tests():
        verdict = ck.teach.bundles.check_order_for_llvm(sorted_mads)
    assert str(verdict).startswith("Not judged. ") and "needs an installation" in str(verdict)


def test_an_equal_program_has_code_with_its_own_lines():
    text = ck.kernels["sgemm_naive"].text
    codes = [ck.compile(ck.assemble(t, n), by="llvm") for t, n in ((text, "a"), ("\n" + text, "b"))]
    first, second = ({o.line for c in code.controls for o in c.operations} for code in codes)
    assert second == {line + 1 for line in first}
    assert [code.program.name for code in codes] == ["a", "b"]


def test_a_time_is_of_the_code_that_it_is_asked_for():
    """Not of ours, and on each board."""
    code = ck.compile("sgemm_tn", by="llvm")
    ours, theirs = ck.simulate("sgemm_tn", 256), ck.simulate(code, 256)
    assert theirs.registers == code.gprs != ours.registers
    assert theirs.clocks > ours.clocks
    assert "sgemm_tn by LLVM" in str(theirs)
    assert str(ck.simulate(ck.compile("sgemm_tn"), 256)) == str(ours)
    other = ck.simulate(code, 256, device=ck.HD5850)
    assert other.launch.code.device is ck.HD5850 and other.launch.code.controls == code.controls
