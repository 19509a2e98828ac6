"""Put arrays between guard pages, so that an access out of range ends the process.

Between ``guarded()`` and its end, every array that compiled code may access is between two pages
that can't be read or written: textures, outputs, global memory, constants, LDS, and the engine's
scratch memory. A page is larger than most arrays, so an array touches only one guard, at its end or
at its beginning. Memory that the engine allocates is filled with a number that no result should
contain.

Windows has no such pages; there, tests run without.
"""

import ctypes
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np

from cypresskit.machine import compiled
from cypresskit.machine.compiled import execute
from cypresskit.machine.counters import LaunchCounters
from cypresskit.machine.launch import Launch

PAGE = mmap.PAGESIZE
NO_ACCESS = 0  # PROT_NONE
POISON = 0x5F  # bytes of it are a float of 1.6e19
FLUSH = ("end", "begin")


def guarded_bytes(size: int, flush: str) -> np.ndarray:
    """Return poisoned bytes (uint8) between two guard pages.

    Their ``flush`` "end" or "begin" touches a guard. The memory lives as long as the array.
    """
    pages = max(1, -(-size // PAGE))
    memory = mmap.mmap(-1, (pages + 2) * PAGE)
    room = np.frombuffer(memory, np.uint8)
    start = PAGE if flush == "begin" else (pages + 1) * PAGE - size
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for guard in (0, (pages + 1) * PAGE):
        if protect(room.ctypes.data + guard, PAGE, NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect refused a guard page")
    found = room[start : start + size]
    found.fill(POISON)
    return found


def guarded_copy(array: np.ndarray, flush: str) -> np.ndarray:
    """Return a copy of an array between guard pages."""
    copy = guarded_bytes(array.nbytes, flush).view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@contextmanager
def guarded(flush: str) -> Iterator[None]:
    """Make the compiled engine run all launches on arrays between guard pages."""
    if sys.platform == "win32":
        yield
        return

    def aligned(size: int) -> np.ndarray:
        return guarded_bytes(size, flush).view(np.int64)

    with (
        patch.object(compiled, "run", partial(_run, compiled.run, flush)),
        patch.object(execute, "aligned", aligned),
    ):
        yield


def _run(run, flush: str, launch: Launch, batches=None) -> LaunchCounters | None:
    """Call ``run`` with guarded copies of a launch's arrays, and copy the results back."""
    if not launch.shape.items:
        return run(launch, batches)
    outputs = {
        n: replace(surface, words=guarded_copy(surface.words, flush))
        for n, surface in launch.outputs.items()
    }
    textures = {
        n: replace(surface, words=guarded_copy(surface.words, flush))
        for n, surface in launch.textures.items()
    }
    memory = guarded_copy(launch.memory, flush)
    shape = copy(launch.shape)
    constants = {n: guarded_copy(words, flush) for n, words in shape.constants.items()}
    object.__setattr__(shape, "constants", constants)  # a new shape would copy them once more
    between = replace(launch, shape=shape, textures=textures, outputs=outputs, memory=memory)
    try:
        return run(between, batches)
    finally:
        for n, surface in launch.outputs.items():
            surface.words[...] = outputs[n].words
        launch.memory[...] = memory
