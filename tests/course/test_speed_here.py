"""A reader's own kernel for CUDA, timed on a GPU that stands in for one."""

import re
from time import sleep

import numba
import numpy as np
import pytest

from cypresskit.teach.l13_what_is_left import checks as lesson


class Gpu:
    """A CUDA GPU's place in numba. Its kernels compile where numpy still has a certain name."""

    name: str | bytes = "Sky"

    def __getattr__(self, name):
        return lambda *arguments: self

    def jit(self, kernel):
        return self

    def to_device(self, array):
        return array

    def __getitem__(self, configuration):
        assert hasattr(np, "row_stack")
        return self.run


def measure(monkeypatch, run):
    gpu = Gpu()
    gpu.run = run
    monkeypatch.setattr(numba, "cuda", gpu, raising=False)
    monkeypatch.delattr(np, "row_stack", raising=False)  # as numpy 2.5
    return lesson.speed_here(lambda a, b: numba.cuda.jit(print)[1, 1](a, b))


@pytest.mark.parametrize("name", ["Sky", b"Sky"])
def test_a_kernel_is_timed_on_a_gpu_of_this_computer(name, monkeypatch):
    monkeypatch.setattr(Gpu, "name", name)
    assert re.fullmatch(
        r"[\d,]+ Gflop/s on Sky, measured just now", measure(monkeypatch, lambda a, b: sleep(0.001))
    )


def test_a_gpu_that_fails_is_told(monkeypatch):
    def run(a, b):
        raise MemoryError("no room")

    assert measure(monkeypatch, run) == "Your kernel wasn't timed. MemoryError: no room"
