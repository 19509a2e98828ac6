"""The values of variables in a traced CUDA kernel.

- A number that the compiler knows is a Python number.
- A number that it doesn't know, such as the length of an array, is a numpy number if it is the same
  for all threads, and else an array with an element for each thread.
- Data that a kernel loads, and what it computes from them, are a ``Number``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

UNNAMED = "an array"  # in shared memory, until it is assigned to a variable
PRODUCT, SUM, FMA, SLOW = "product", "sum", "multiply-add", "function"
#: Names of types, which convert numbers when they are called.
CONVERSIONS = (
    "bool bool_ int int8 int16 int32 int64 uint8 uint16 uint32 uint64 float float16 float32 float64"
).split()
IN_NUMPY = {"min": "minimum", "max": "maximum"}  # functions that Python names otherwise
ACTUAL = int | float | np.ndarray | np.generic


class Number:
    """A number of data, whose value isn't known."""


class Local:
    """An array in registers. The tracer holds its elements, by this object and their indices."""


class Axes(NamedTuple):
    """`cuda.threadIdx` and its like."""

    x: Any
    y: Any
    z: Any = 0


@dataclass(frozen=True)
class NumberRange:
    """`range`."""

    start: Any
    stop: Any
    step: Any


@dataclass(frozen=True, eq=False)
class Array:
    """An array in the GPU's memory, or in ``shared`` memory.

    ``base`` is the byte at which the element with indices 0 begins: a number, or one for each
    thread if this is a row. ``item`` and ``strides`` are in bytes. The compiler knows the lengths
    in ``shape`` of an array in shared memory.
    """

    name: str
    base: Any
    shape: tuple[Any, ...]
    item: int
    strides: tuple[int, ...]
    shared: bool = False

    @property
    def size(self) -> Any:
        return math.prod(self.shape)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def row(self, index: Any) -> "Array":
        """Return the part with a given first index."""
        base = self.base + self.strides[0] * index
        return replace(self, base=base, shape=self.shape[1:], strides=self.strides[1:])


def place_array(name: str, begin: int, like: Any, shared: bool = False) -> tuple[Array, int]:
    """Place anything with a shape and a dtype at byte ``begin``, in C order unless it has strides.

    Returns the ``Array`` and the byte after it.
    """
    shape: tuple[Any, ...] = tuple(map(int if shared else np.int64, like.shape))
    item = int(np.dtype(like.dtype).itemsize)
    in_order = np.cumprod((item, *shape[:0:-1]))[::-1]
    strides = tuple(map(int, getattr(like, "strides", None) or in_order))
    spans = [stride * (length - 1) for stride, length in zip(strides, shape)]
    base = begin - sum(span for span in spans if span < 0)
    return Array(name, base, shape, item, strides, shared), begin + sum(map(abs, spans)) + item


def is_known(value: Any) -> bool:
    """Return whether the compiler knows a number."""
    return not isinstance(value, np.generic | np.ndarray)


def function_of_threads(function: Callable) -> Callable | None:
    """Return what numpy has for a function of numbers in Python, `math` or numpy; None for
    any other.
    """
    name = name_of(function)
    in_numpy: Callable | None = getattr(np, IN_NUMPY.get(name, name), None)
    return in_numpy if isinstance(in_numpy, np.ufunc) or function is round else None


def call_function(function: Callable, given: list) -> Any:
    """Call a function of Python, `math` or numpy, or a type, with numbers.

    Raises ``KeyError`` for one that isn't known here.
    """
    name = name_of(function)
    known = all(map(is_known, given))
    if name in CONVERSIONS:
        converted = np.asarray(given[0]).astype(name)[()]
        return converted.item() if known else converted
    of_threads = function_of_threads(function)
    if of_threads is None:
        raise KeyError(name)
    if known:
        return function(*given)
    return reduce(of_threads, given) if function in (min, max) else of_threads(*given)


def name_of(function: Any) -> str:
    """Return the name of a function, or of one of numba's types."""
    return str(getattr(function, "__name__", None) or getattr(function, "name", ""))


def merge(mask: np.ndarray, new: Any, old: Any) -> Any:
    """Return the value of a variable that the threads of ``mask`` set."""
    if isinstance(new, Number) or isinstance(old, Number):
        return Number()
    if isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old):
        return tuple(merge(mask, one, other) for one, other in zip(new, old))
    if not (isinstance(new, ACTUAL) and isinstance(old, ACTUAL)):
        return new
    if is_known(new) and type(new) is type(old) and new == old:
        return new
    return np.where(mask, new, old)


def growth(after: Any, before: Any) -> Any:
    """Return by how much a number has grown; 0 for what isn't a number."""
    if all(isinstance(value, ACTUAL) for value in (after, before)):
        return 1 * after - before  # 1 * makes truths numbers
    return 0
