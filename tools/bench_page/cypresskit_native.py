"""Provide the timing model's native functions where numba can't run: those of
``engine.engine_module``. The host of this Python calls them; they work in Python's memory.

A request to the host is the name of an entry and the address of its block. The reply to an empty
request is all names.
"""

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

try:
    from _host import call as ask_host
except ModuleNotFoundError:  # in a test, which replaces it

    def ask_host(request: bytes) -> bytes:
        return b""


LANES = 8  # as in ``compiled_later``
ENTRIES = frozenset(ask_host(b"").decode().split("\n"))
FUNCTIONS = frozenset(name.partition("(")[0] for name in ENTRIES)


def native(function: Callable) -> Callable:
    """Return the entry of a function, or the function itself if simulations don't call it from
    Python. The entry raises ``ValueError`` for types for which it wasn't compiled.
    """
    name = f"{function.__module__}.{function.__name__}"
    if name not in FUNCTIONS:
        return function

    def call(*arguments) -> None:
        entry = f"{name}({','.join(kinds(arguments))})"
        if entry not in ENTRIES:
            raise ValueError(f"{entry} wasn't compiled: numba met other types when it was")
        block = np.array([*words(arguments)], np.int64)
        ask_host(f"{entry} {address(block)}".encode())

    return call


def part(function: Callable) -> Callable:
    """Return the function unchanged."""
    return function


def place_of(numbers, place, wanted):
    """Return the first place of a number among ``LANES``, or the place after them."""
    for at in range(place, place + LANES):
        if numbers[at] == wanted:
            return at
    return place + LANES


def least(numbers, place):
    """Return the least of ``LANES`` numbers."""
    return numbers[place : place + LANES].min()


def kinds(values) -> Iterator[str]:
    """Yield the types of values: an array's dtype and dimensions, a number's kind."""
    for value in values:
        if isinstance(value, tuple):
            yield from kinds(value)
        elif isinstance(value, np.ndarray):
            if not value.flags.c_contiguous:
                raise ValueError("an array with gaps: native code takes whole ones")
            yield f"{value.dtype.str}{value.ndim}"
        else:
            yield np.asarray(value).dtype.kind


def words(values) -> Iterator[int]:
    """Yield the words of a block: see ``engine``."""
    for value in values:
        if isinstance(value, tuple):
            yield from words(value)
        elif isinstance(value, np.ndarray):
            yield from (address(value), *value.shape, *value.strides)
        elif isinstance(value, float):
            yield int(np.float64(value).view(np.int64))
        else:
            yield int(value)


def address(array: np.ndarray) -> int:
    """Return the address of an array's first number."""
    return array.__array_interface__["data"][0]


def program_key(program: Any) -> str:
    """Return the hash under which the site has a program's compiled code."""
    return hashlib.sha256(f"{program.mode}\n{program.expanded}".encode()).hexdigest()[:24]
