"""Native functions that numba compiles when Python first calls one.

Importing numba takes 0.2 s, half as long as all else that a lesson imports. Where results are
saved, none is called.
"""

from collections.abc import Callable
from functools import cached_property
from importlib import import_module
from typing import Any

NUMBA = "cypresskit.chip.numba_native"
LANES = 8  # numbers that are compared at once: a vector register of AVX-512, or two of AVX2


class CompiledLater:
    """A native function: what ``numba_native`` has under a ``name``, or makes of ``py_func`` by it.

    Other native functions call it as they call numba's own.
    """

    def __init__(self, name: str, py_func: Callable | None = None) -> None:
        self.name = name
        self.py_func: Any = py_func

    @cached_property
    def compiled(self) -> Any:
        """numba's function."""
        made = getattr(import_module(NUMBA), self.name)
        return made(self.py_func) if self.py_func else made

    @property
    def _numba_type_(self) -> Any:
        return import_module(NUMBA).type_of(self.compiled)

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


def native(function: Callable) -> CompiledLater:
    """Compile ``function`` when Python first calls it."""
    return CompiledLater("native", function)


def part(function: Callable) -> CompiledLater:
    """Compile ``function`` when native code that calls it is compiled."""
    return CompiledLater("part", function)


place_of = CompiledLater("place_of")
least = CompiledLater("least")
