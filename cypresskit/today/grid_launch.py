"""A launch of a CUDA kernel: its grid, its blocks, and where its arguments are in memory."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import isfunction
from typing import Any

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.il.errors import shorten

PARAMETERS = 0x210 // 4  # the first word of the arguments in the constant bank
ALIGNMENT = 512  # bytes to which arrays in memory are aligned
FIRST_BYTE = 1 << 20  # of memory
MAX_BYTES = 1 << 32  # of all arrays
MAX_THREADS = 1024  # of a block

Sizes = tuple[int, int, int]


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
        Numbers, and arrays, of which only shape and dtype matter.
    """

    name: str
    names: tuple[str, ...]
    source: str
    grid: Sizes
    threads: Sizes
    arguments: tuple[Any, ...]

    @property
    def blocks(self) -> int:
        """The blocks of the launch."""
        return math.prod(self.grid)

    @property
    def group(self) -> int:
        """The threads of a block."""
        return math.prod(self.threads)

    @cached_property
    def bounds(self) -> list[tuple[int, int]]:
        """The first byte of each argument in memory, and the one after it."""
        found = []
        begin = FIRST_BYTE
        for argument in self.arguments:
            end = begin + getattr(argument, "nbytes", 0)
            found.append((begin, end))
            begin = -(-end // ALIGNMENT) * ALIGNMENT
        if begin > MAX_BYTES:
            raise ValueError(f"the arrays of {self.name} have more than 4 GB")
        return found

    @cached_property
    def constants(self) -> dict[int, int]:
        """Words of the constant bank, by number: sizes of the launch, and the arguments."""
        words = dict(enumerate((*self.threads, *self.grid)))
        passed = [
            value
            for argument, (begin, _) in zip(self.arguments, self.bounds)
            for value in _parameters(argument, begin)
        ]
        halves = (half & 0xFFFFFFFF for value in passed for half in (value, value >> 32))
        return words | dict(enumerate(halves, PARAMETERS))

    def array_at(self, line: int, first: int, last: int) -> int:
        """Return the number of the argument that has these bytes. Raises ``ValueError``."""
        for number, (begin, end) in enumerate(self.bounds):
            if begin <= first and last <= end:
                return number
        raise ValueError(
            f"line {line} of {self.name}: a thread accesses an element outside its array: guard it"
            " with an `if`"
        )


def _parameters(argument: Any, begin: int) -> Iterator[int]:
    """Yield the words of 64 bits that numba passes for an argument."""
    if isinstance(argument, float):
        yield 0  # its value doesn't matter
    elif isinstance(argument, int):
        yield argument
    else:
        size = argument.itemsize
        strides = (size * math.prod(argument.shape[n + 1 :]) for n in range(argument.ndim))
        yield from (0, 0, argument.size, size, begin, *argument.shape, *strides)


def launch_of(kernel: Any, grid: Any, threads: Any, arguments: tuple) -> GridLaunch:
    """Return a launch of a kernel. Raises ``ValueError`` for one that CUDA rejects."""
    function = function_of(kernel)
    if not isfunction(function):
        raise TypeError(
            f"{shorten(kernel)} is no kernel: pass the function below @cuda.jit, then its grid and"
            " threads"
        )
    written = function.__code__
    names = written.co_varnames[: written.co_argcount]
    if len(names) != len(arguments):
        raise TypeError(f"{function.__name__} takes {len(names)} arguments, not {len(arguments)}")
    launch = GridLaunch(
        name=function.__name__,
        names=names,
        source=written.co_filename,
        grid=_sizes("grid", grid),
        threads=_sizes("threads", threads),
        arguments=tuple(map(without_elements, arguments)),
    )
    if launch.group > MAX_THREADS:
        raise ValueError(f"a block has at most {MAX_THREADS:,} threads, not {launch.group:,}")
    return launch


def function_of(kernel: Any) -> Any:
    """Return the Python function of a kernel; anything else as it is."""
    return getattr(kernel, "py_func", kernel)


def without_elements(argument: Any) -> Any:
    """Return an array of the same shape and dtype, with no memory for its elements; or a number as
    it is.
    """
    if type(argument) in (int, float):
        return argument
    dtype = np.dtype(getattr(argument, "dtype", object))
    is_in_order = not isinstance(argument, np.ndarray) or argument.flags.c_contiguous
    if dtype not in (np.float32, np.float64) or not argument.shape or not is_in_order:
        raise TypeError(
            f"{shorten(argument)} is no argument of a matrix product: pass arrays of float32 or"
            " float64 in C order, and numbers as int or float"
        )
    return np.broadcast_to(np.empty((), dtype), argument.shape)


def _sizes(name: str, given: Any) -> Sizes:
    """Return ``grid`` or ``threads`` as (x, y, z). Raises ``ValueError``."""
    sizes = tuple(given) if isinstance(given, tuple | list) else (given,)
    if not all(map(is_whole, sizes)) or not 1 <= len(sizes) <= 3:
        found = shorten(given)
        raise ValueError(f"{name} must be one to three whole numbers from 1 on, not {found}")
    x, y, z = (*map(int, sizes), 1, 1)[:3]
    return x, y, z
