"""A launch of a CUDA kernel: its grid, its blocks, and where its arguments are in memory."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

PARAMETERS = 0x210  # the first byte of the arguments in the constant bank
ALIGNMENT = 512  # bytes to which arrays in memory are aligned
FIRST_BYTE = 1 << 20  # of memory
MAX_BYTES = 1 << 32  # of all arrays


@dataclass(frozen=True, eq=False)
class GridLaunch:
    """A launch.

    Attributes
    ----------
    name, names, source
        The kernel's name, those of its arguments, and its file.
    grid, threads
        The blocks of the launch, and the threads of a block: (x, y, z).
    arguments
        Numbers, and arrays, of which only shape, dtype and strides matter.
    shared
        Bytes of shared memory that the launch requests.
    """

    name: str
    names: tuple[str, ...]
    source: str
    grid: tuple[int, int, int]
    threads: tuple[int, int, int]
    arguments: Sequence[Any]
    shared: int = 0

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The first byte of each argument in memory, and the one after it; (0, 0) for a number."""
        found = []
        begin = FIRST_BYTE
        for argument in self.arguments:
            end = begin + bytes_of(argument)
            found.append((begin, end) if is_array(argument) else (0, 0))
            begin = -(-end // ALIGNMENT) * ALIGNMENT
        if begin > MAX_BYTES:
            raise ValueError(f"the arrays of {self.name} have more than 4 GB")
        return found

    @cached_property
    def constants(self) -> dict[int, int]:
        """Words of the constant bank, by byte: sizes of the launch, and the arguments."""
        words = dict(zip(range(0, 24, 4), (*self.threads, *self.grid)))
        at = PARAMETERS
        for argument, (begin, _) in zip(self.arguments, self.bounds):
            for value, size in _parameters(argument, begin):
                at = -(-at // size) * size
                for part in range(-(-size // 4)):
                    words[at + 4 * part] = value >> 32 * part & 0xFFFFFFFF
                at += size
        return words

    def array_at(self, line: int, addresses: np.ndarray, size: int) -> int:
        """Return the number of the argument to which all bytes belong. Raises ``ValueError``."""
        lowest = int(addresses.min())
        highest = int(addresses.max()) + size
        for number, (begin, end) in enumerate(self.bounds):
            if begin <= lowest < end:
                if highest <= end:
                    return number
                break
        raise ValueError(
            f"line {line} of {self.name}: a thread accesses an element outside its array: guard it"
            " with an `if`"
        )


def is_array(argument: Any) -> bool:
    return bool(getattr(argument, "shape", ()))


def strides_of(array: Any) -> tuple[int, ...]:
    """Return an array's strides in bytes, in C order unless it has some."""
    item = np.dtype(array.dtype).itemsize
    in_order = tuple(item * math.prod(array.shape[n + 1 :]) for n in range(len(array.shape)))
    return tuple(getattr(array, "strides", None) or in_order)


def bytes_of(argument: Any) -> int:
    """Return how many bytes an array spans; 0 for a number."""
    if not is_array(argument):
        return 0
    spans = [stride * (n - 1) for stride, n in zip(strides_of(argument), argument.shape)]
    return sum(map(abs, spans)) + np.dtype(argument.dtype).itemsize


def _parameters(argument: Any, begin: int) -> list[tuple[int, int]]:
    """Return the words that numba passes for an argument, with their bytes."""
    if is_array(argument):
        item = np.dtype(argument.dtype).itemsize
        spans = [s * (n - 1) for s, n in zip(strides_of(argument), argument.shape)]
        data = begin - sum(span for span in spans if span < 0)
        count = math.prod(argument.shape)
        return [
            (int(n), 8) for n in (0, 0, count, item, data, *argument.shape, *strides_of(argument))
        ]
    if isinstance(argument, bool | np.bool_):
        return [(int(argument), 1)]
    if isinstance(argument, int | np.integer):
        return [(int(argument), getattr(argument, "itemsize", 8))]
    return [(0, getattr(argument, "itemsize", 8))]  # a real number: its value doesn't matter
