"""Random programs: all engines agree on them. `make fuzz` tries new ones."""

import ctypes
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import seeds

import cypresskit as ck
from cypresskit.machine.checks import check
from tools.fuzz.engines import STEPS, Wrong, agree
from tools.fuzz.guards import FLUSH, PAGE, guarded_bytes
from tools.fuzz.law import timed
from tools.fuzz.programs import random_program

ROOT = Path(__file__).parents[2]
#: Findings after which engines may differ: races, and faults that hide a race on the same address.
OPEN = {"race", "uninitialised", "unaligned"}
SILENT = {"race", "barrier", "uninitialised", "store outside", "endless loop"}


@pytest.mark.parametrize("seed", seeds(6))
def test_all_engines_agree_on_a_valid_program(seed):
    """In which the checks find nothing of what its grammar rules out."""
    rng = random.Random(seed)
    text, launch = random_program(rng, statements=rng.choice((5, 15, 30)))
    program = ck.assemble(text)
    findings = check(program, **launch)
    assert not SILENT & {finding.kind for finding in findings}, findings
    agree(program, launch)


@pytest.mark.parametrize("seed", seeds(2))
def test_all_engines_agree_on_a_damaged_program_or_it_is_refused(seed):
    rng = random.Random(seed)
    text, launch = random_program(rng, statements=rng.choice((5, 15)))
    try:
        program = ck.assemble(damaged(rng, text))
        findings = check(program, **launch, max_instructions=STEPS)
    except (ck.KernelError, ValueError, TypeError) as error:  # ILError is a ValueError
        assert str(error)
        return
    agree(program, launch, defined=not OPEN & {finding.kind for finding in findings})


def damaged(rng: random.Random, text: str) -> str:
    """A text with one to three lines changed."""
    lines = text.split("\n")
    for _ in range(rng.randint(1, 3)):
        place = rng.randrange(1, len(lines))
        line, other = lines[place], rng.choice(lines)
        column = rng.randrange(len(line) + 1)
        digit = re.sub("[0-9]", rng.choice("0123456789"), line[column:], count=1)
        mixed = [line[:column] + digit], [line[:column] + line[column + 1 :]]
        lines[place : place + 1] = rng.choice(([], [line, other], [other], *mixed))
        if len(lines) < 2:
            break
    return "\n".join(lines)


@pytest.mark.parametrize("seed", seeds(2))
def test_the_report_of_any_launch_obeys_the_law(seed):
    timed(random.Random(seed))


#: Work-items in step all come to line 6 first; one at a time, the first comes to line 9.
TWO_ENDLESS_LOOPS = """il_cs_2_0
dcl_num_thread_per_group 64
dcl_literal l0, 32, 0, 0, 0
ige r0.x, vTidInGrpFlat.x, l0.x
if_logicalnz r0.x
whileloop
endloop
endif
whileloop
endloop
end"""
STORE = """il_cs_2_0
dcl_num_thread_per_group 64
dcl_literal l0, {}, 0, 0, 0
iadd r0.x, vAbsTidFlat.x, l0.x
mov g[r0.x], r0.xxxx
end"""


def test_engines_may_stop_in_different_endless_loops():
    agree(ck.assemble(TWO_ENDLESS_LOOPS), {"domain": 64})


@pytest.mark.parametrize(
    "first, said", [(0, r"g\[3, 0\]: 0x3 interpreted, 0x4 compiled"), (1, "ends with 5")]
)
def test_engines_that_differ_in_a_bit_or_in_a_line_are_wrong(monkeypatch, first, said):
    def launch(*arguments, engine, **others):
        try:
            counts = right(*arguments, engine=engine, **others)
        except ck.KernelError as error:
            error.line += engine == "compiled"
            raise
        others["global_memory"][3, 0] += engine == "compiled"
        return counts

    right = ck.launch
    monkeypatch.setattr(ck, "launch", launch)
    with pytest.raises(Wrong, match=said):
        agree(
            ck.assemble(STORE.format(first)),
            {"domain": 64, "global_memory": np.zeros((64, 4), np.uint32)},
        )


@pytest.mark.skipif(sys.platform != "linux", reason="needs guard pages")
@pytest.mark.parametrize("size", [1, PAGE + 64])
@pytest.mark.parametrize("flush", FLUSH)
def test_one_byte_outside_of_guarded_memory_ends_the_process(flush, size):
    array = guarded_bytes(size, flush)
    for inside in (0, size - 1):
        ctypes.string_at(array.ctypes.data + inside, 1)
    outside = -1 if flush == "begin" else size
    program = (
        "import ctypes; from tools.fuzz.guards import guarded_bytes;"
        f" array = guarded_bytes({size}, {flush!r});"
        f" ctypes.string_at(array.ctypes.data + {outside}, 1)"
    )
    ended = subprocess.run([sys.executable, "-c", program], cwd=ROOT)
    assert ended.returncode == -signal.SIGSEGV
