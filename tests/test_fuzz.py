"""The fuzzer: it finds nothing, and would find what is wrong."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import cypresskit as ck
from tools import fuzz
from tools.fuzz.children import FORKS, Children, note
from tools.fuzz.engines import Wrong, agree
from tools.fuzz.guards import FLUSH, PAGE, guarded_bytes, guarded_copy

ROOT = Path(__file__).parents[1]
needs_forks = pytest.mark.skipif(not FORKS, reason="needs a fork, which Linux has")


def test_fuzzing_finds_nothing():
    said = []
    assert fuzz.run(3, seed=3, say=said.append) == 0, "\n".join(said)


@needs_forks
@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (lambda rng: 1 / 0, "ZeroDivisionError"),
        (lambda rng: os._exit(3), "process ended with status 3"),
        (lambda rng: ctypes.string_at(0), "process ended with SIGSEGV"),
    ],
)
def test_a_fault_is_reported_with_its_program_and_its_seed(monkeypatch, fault, words):
    def noted(rng):
        note("the program")
        fault(rng)

    monkeypatch.setitem(fuzz.KINDS, "random", noted)
    said = []
    assert fuzz.run(0, 3, say=said.append) == 1
    report, sum_ = said
    assert "`python -m tools.fuzz --seconds 0 --seed 3 --kind 'random'`:\nthe program" in report
    assert words in report and sum_ == "1 random: 1 went wrong"


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


def test_engines_may_stop_in_different_endless_loops():
    agree(ck.assemble(TWO_ENDLESS_LOOPS), {"domain": 64})


def test_an_endless_loop_in_the_wrong_line_is_a_fault(monkeypatch):
    def launch(*arguments, engine, **others):
        try:
            return right(*arguments, engine=engine, **others)
        except ck.KernelError as error:
            error.line += engine == "compiled"
            raise

    right = ck.launch
    monkeypatch.setattr(ck, "launch", launch)
    with pytest.raises(Wrong, match="the interpreter ends with 6, the compiled engine with 10"):
        agree(ck.assemble(TWO_ENDLESS_LOOPS), {"domain": 64})


@needs_forks
def test_the_fuzzer_reports_how_many_programs_went_wrong(monkeypatch):
    said = []
    assert fuzz.run(0, 3, say=said.append) == 0 and said == ["1 random: 0 went wrong"]
    monkeypatch.setattr("tools.fuzz.law.PATIENCE", -1)
    assert fuzz.run(0, 4, say=said.append) == 0
    assert said[1] == "1 timed but too long to be checked: 0 went wrong"


def dawdle(seconds: float) -> str:
    """Take so many seconds by the clock, and hardly any processor time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.27)
        began = time.process_time()
        while time.process_time() < began + 0.03:
            pass
    return "done"


@needs_forks
def test_a_child_may_take_long_while_others_compute():
    with Children(1.0) as children:
        assert children.call(dawdle, 3).result == "done"


@needs_forks
def test_a_child_that_waits_for_ever_is_ended():
    with Children(0.3) as children:
        assert "had not ended" in children.call(signal.pause).fault


@needs_forks
def test_no_child_outlives_its_parent():
    program = """
import os, time
from tools.fuzz.children import Children
with Children(60) as children:
    print(children.call(os.getpid).result, flush=True)
    children.call(time.sleep, 600)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.kill()
    for _ in range(600):
        if not alive(child):
            break
        time.sleep(0.1)
    assert not alive(child)


def alive(pid: int) -> bool:
    """Whether a process is there, and not only its exit status."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def touched(flush: str, size: int, offset: int) -> int:
    """The byte at an offset of guarded memory."""
    array = guarded_bytes(size, flush)
    return ctypes.string_at(array.ctypes.data + offset, 1)[0]


@needs_forks
@pytest.mark.parametrize("size", [1, 16, PAGE, PAGE + 64])
@pytest.mark.parametrize("flush", FLUSH)
def test_one_byte_outside_of_guarded_memory_is_a_fault(flush, size):
    outside = -1 if flush == "begin" else size
    with Children(fuzz.LIMIT) as children:
        for offset in (0, size - 1):
            assert children.call(touched, flush, size, offset).result is not None
        assert "SIGSEGV" in children.call(touched, flush, size, outside).fault


def test_a_guarded_copy_is_equal():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert all(np.array_equal(guarded_copy(array, flush), array) for flush in FLUSH)
