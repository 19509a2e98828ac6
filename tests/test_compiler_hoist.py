"""Loop-invariant code motion, on loops made by hand: what moves, what must stay, and the bits that come out."""

import random
import sys
from functools import partial
from itertools import count

import numpy as np
import pytest
from conftest import TEXTURE, pixel
from test_compiler import same_bits

import cypresskit as ck
from cypresskit.compiler import compile as compile_
from cypresskit.compiler import search
from cypresskit.compiler.legality import check
from tools.fuzz.programs import random_program

compile = partial(compile_, style="best")  # AMD's is tested in test_compiler_amd

HEAD = [TEXTURE.format(0, "2d,unnorm"), "dcl_output_generic o0", "dcl_cb cb0[1]", "dcl_literal l0, 0, 1, 3, 7",
        "ftoi r0, vWinCoord0", "imad r0.z, r0.y, l0.w, r0.x", "mov r5, l0.x", "mov r1.x, l0.x"]  # fmt: skip
LOOP = """whileloop
    ige r1.y, r1.x, cb0[0].w
    break_logicalnz r1.y
    {body}
    iadd r1.x, r1.x, l0.y
endloop"""


def program(body: str, start: str = "", end: str = "", loop: str = LOOP):
    return pixel(*HEAD, start, loop.replace("{body}", body), end, "mov o0, r5")


def names(controls) -> list[str]:
    """Operations and fetches."""
    return [o.name for c in controls for o in (*c.operations, *c.fetches)]


def bits_stay(kernel, turns: int = 3) -> bool:
    """Whether the compiled kernel is legal and computes what the IL does; two elements of ``g`` a work-item."""
    rng = np.random.default_rng(5)
    constants = np.concatenate([rng.integers(2, 9, 3), [turns]]).astype(np.int32).view(np.uint32)
    arguments = {
        "domain": (7, 3),
        "inputs": {0: rng.standard_normal((4, 9, 4)).astype(np.float32)},
        "constants": {0: constants[np.newaxis]},
        "outputs": {0: np.zeros((3, 7, 4), np.float32)},
        "global_memory": rng.standard_normal((64, 4)).astype(np.float32),
    }
    code = compile(kernel)
    return check(code) == [] and same_bits(kernel, arguments, code)


CONDITION = "iand r3.x, r1.x, l0.y\nif_logicalnz r3.x\n"
FETCH = "itof r2.xy, r0\nsample_resource(0)_sampler(0) r3, r2.xy00\n"
INVARIANT = {  # what must not be in the loop, and its body
    "LSHL_INT": "imad r2.x, r0.y, cb0[0].x, r0.x\nishl r2.x, r2.x, cb0[0].y\nixor r5.x, r5.x, r2.x",
    "RECIP_UINT": "udiv r2.x, r0.z, cb0[0].x\niadd r5.x, r5.x, r2.x\niadd r5.y, r5.x, r1.x",
    "DIV_64": "ddiv r2.xy, l0.yz, r0.xy\ndadd r5.xy, r5.xy, r2.xy",
    "RECIP_UINT behind a condition": CONDITION + "udiv r2.x, r0.z, cb0[0].x\niadd r5.x, r5.x, r2.x\nendif",
    "SAMPLE": f"{FETCH}add r5, r5, r3",
    "MEM_READ": "mov r3, g[r0.z]\nadd r5, r5, r3",
}


@pytest.mark.parametrize("turns", [0, 1, 3])
@pytest.mark.parametrize("what", INVARIANT)
def test_what_stays_the_same_is_computed_before_the_loop(what, turns):
    kernel, gone = program(INVARIANT[what]), what.split()[0]
    code = compile(kernel)
    assert gone in names(code.controls) and gone not in names(code.main_loop)
    assert bits_stay(kernel, turns)


STAYING = {  # what must stay in the loop, and its body
    "MEM_READ that the loop writes": "mov r3, g[r0.z]\nadd r5, r5, r3\nadd r3, r3, r3\nmov g[r0.z], r3",
    "SAMPLE behind a condition": f"{CONDITION}{FETCH}add r5, r5, r3\nendif",
    "MULHI_UINT of the counter": "udiv r2.x, r1.x, cb0[0].x\nudiv r2.x, r2.x, r1.x\niadd r5.x, r5.x, r2.x",
}


@pytest.mark.parametrize("what", STAYING)
def test_what_the_loop_changes_or_may_not_do_stays(what):
    kernel = program(STAYING[what])
    assert what.split()[0] in names(compile(kernel).main_loop)
    assert bits_stay(kernel)


def test_a_divisor_that_stays_gives_its_reciprocal_before_the_loop():
    found = names(compile(program("udiv r2.x, r1.x, cb0[0].x\niadd r5.x, r5.x, r2.x")).main_loop)
    assert "RECIP_UINT" not in found and "MULHI_UINT" in found


def test_invariants_leave_both_of_nested_loops():
    inner = """mov r1.z, l0.x
    whileloop
        ige r1.w, r1.z, l0.z
        break_logicalnz r1.w
        udiv r2.x, r0.z, cb0[0].x
        umod r2.y, r1.x, cb0[0].y
        iadd r5.xy, r5, r2
        iadd r1.z, r1.z, l0.y
    endloop"""
    kernel = program(inner)
    code = compile(kernel)
    assert "RECIP_UINT" not in names(code.main_loop)
    depth = {o.line: c.depth for c in code.controls for o in c.operations if o.name == "MULHI_UINT"}
    lines = {i.opcode: i.line for i in kernel.body}
    assert (depth[lines["udiv"]], depth[lines["umod"]]) == (0, 1)
    assert bits_stay(kernel)


def test_a_loop_that_tests_in_its_middle():
    text = "whileloop\nudiv r2.x, r0.z, cb0[0].x\niadd r5.x, r5.x, r2.x\niadd r1.x, r1.x, l0.y\nmov g[r0.z], r5\n"
    text += "ige r1.y, r1.x, cb0[0].w\nbreak_logicalnz r1.y\niadd r5.y, r5.y, r2.x\nendloop"
    kernel = program("", loop=text)
    assert "RECIP_UINT" not in names(compile(kernel).main_loop)
    assert bits_stay(kernel)


def test_registers_are_not_given_for_little():
    """Forty sums of two invariants each, in a loop that uses most of its slots otherwise: they are added anew."""
    sums = "\n".join(f"add r4, r{10 + n}, r{20 + n}\nmad r{30 + n}, r4, r4, r{30 + n}\n" for n in range(10))
    work = "\n".join(f"mad r{30 + n % 10}, r{30 + n % 10}, r5, r{30 + (n + 3) % 10}" for n in range(120))
    start = "\n".join(f"mov r{n}, g[r0.z+{n}]" for n in range(10, 40))
    total = "\n".join(f"add r5, r5, r{n}" for n in range(10, 40))
    code = compile(program(sums + work, start=start, end=total))
    assert names(code.main_loop).count("ADD") == 40


def test_every_choice_of_what_moves_keeps_the_bits(monkeypatch):
    """Random programs with all that can move moved, whether it pays or not."""
    monkeypatch.setattr(sys.modules["cypresskit.compiler.hoist"], "REGISTER", -1e9)
    later = count()
    monkeypatch.setattr(search, "clocks", lambda code: -next(later))  # what is tried later is better
    for seed in range(12):
        text, arguments = random_program(random.Random(seed))
        kernel = ck.assemble(text)
        code = compile(kernel)
        assert check(code) == [] and same_bits(kernel, arguments, code), seed
