"""Machine code made ahead: what a lesson runs first is compiled by then."""

import subprocess
import sys
from itertools import islice

import pytest

import cypresskit as ck
from cypresskit.kernels import ahead
from cypresskit.kernels.generated import block_kernel
from cypresskit.machine.fast import jit


def test_the_catalogue_and_the_blocks_of_the_climb_are_compiled_ahead():
    programs = {*ahead.programs()}
    assert {kernel.program for kernel in ck.kernels.values()} < programs
    assert {block_kernel(side, side).program for side in (1, 2, 4, 8)} < programs


def test_what_was_compiled_ahead_is_not_compiled_again(tmp_path, monkeypatch):
    monkeypatch.setattr(jit, "FOLDER", tmp_path)
    tmp_path.chmod(0o700)
    few = [*islice(ahead.programs(), 3)]
    monkeypatch.setattr(ahead, "programs", lambda: few)
    monkeypatch.setattr(ahead.os, "nice", lambda by: None)
    jit._compiled.cache_clear()
    ahead.compile_ahead()
    jit._compiled.cache_clear()
    monkeypatch.setattr(jit, "object_code", lambda *_: pytest.fail("compiled again"))
    for program in few:
        jit.compiled(program)


def test_it_is_a_module_that_runs():
    words = [sys.executable, "-P", "-m", "cypresskit.kernels.ahead"]
    subprocess.run(words, check=True, timeout=300)
