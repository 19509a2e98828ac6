"""``numba.cuda`` in the reader's browser, for lesson 14: Python runs a launch's threads, one after
another. So they can't wait for each other, or share memory.
"""

from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

AXES = "xyz"
LACKS = "this page runs CUDA kernels without numba, so there is no cuda.{}: install the workbook"
threadIdx, blockIdx, blockDim, gridDim = (SimpleNamespace() for _ in range(4))
local = SimpleNamespace(array=np.empty)


def __getattr__(name: str) -> Any:
    raise AttributeError(LACKS.format(name))


def _lacks(name: str, *_: Any, **__: Any) -> None:
    raise RuntimeError(LACKS.format(name))


#: Functions of ``numba.cuda`` that a page lacks: a call says so.
REPLACED = "device_array device_array_like pinned_array stream synchronize to_device".split()
globals().update({name: partial(_lacks, name) for name in REPLACED})


def grid(axes: int) -> Any:
    """Return the thread's position in the launch."""
    at = (*(vars(blockIdx)[x] * vars(blockDim)[x] + vars(threadIdx)[x] for x in AXES[:axes]),)
    return at if axes > 1 else at[0]


class Kernel:
    """A kernel: ``kernel[grid, threads](...)`` runs it."""

    def __init__(self, function: Callable) -> None:
        self.py_func = function

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        return partial(self._launch, *configuration[:2])

    def _launch(self, blocks: Any, threads: Any, *arguments: Any) -> None:
        sizes = [(*np.atleast_1d(size), 1, 1)[:3] for size in (blocks, threads)]
        for holder, size in zip((gridDim, blockDim), sizes):
            vars(holder).update(zip(AXES, map(int, size)))
        for block in np.ndindex(*sizes[0]):
            vars(blockIdx).update(zip(AXES, block))
            for thread in np.ndindex(*sizes[1]):
                vars(threadIdx).update(zip(AXES, thread))
                self.py_func(*arguments)


def jit(given: Any = None, *, device: bool = False, **_: Any) -> Any:
    """Make a kernel of a function, or with ``device`` a function that kernels call."""
    if not callable(given):
        return partial(jit, device=device)
    return given if device else Kernel(given)
