"""What variables of a traced CUDA kernel hold: numbers of threads, sizes, unknown data, arrays.

A number that differs by thread is an int64 array with an element for each thread; one that is the
same for all is a Python number. A ``Size`` is one that the compiler doesn't know.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

PRODUCT, SUM, FMA, SLOW = "product", "sum", "multiply-add", "function"
TYPES = "bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
CONVERSIONS = {"int": np.int64, "float": np.float64, "bool": np.bool_}
CONVERSIONS |= {name: getattr(np, name) for name in TYPES}
COMPARISONS = operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne
#: numpy's functions of many threads' numbers for Python's of one, by name.
OF_THREADS: dict[str, Callable] = {
    name: getattr(np, name, None) or getattr(np, "arc" + name[1:], None)  # type: ignore[misc]
    for name in "sqrt exp log sin cos tan floor ceil fabs fmod atan2 hypot asin acos atan".split()
}
OF_THREADS |= {
    "abs": np.abs, "pow": np.power, "min": np.minimum, "max": np.maximum, "log2": np.log2,
    "round": np.round, "trunc": np.trunc, "divmod": np.divmod, "atan2": np.arctan2,
}  # fmt: skip


class Size(int):
    """A size that the compiler doesn't know, and what follows from it."""


@dataclass(eq=False)
class Number:
    """A number of data, which isn't known. ``made`` is the product that it is, and ``turn`` the
    iteration of its making: a product that is added in the same one becomes a multiply-add.
    """

    made: Any = None
    turn: int = -1


@dataclass(eq=False)
class Array:
    """An array of the card's, or of ``shared`` memory, whose bytes begin at ``begin``. Its first
    indices may be ``given`` already, as in ``a[i][j]``.
    """

    name: str
    begin: int
    lengths: tuple[int, ...]
    item: int
    strides: tuple[int, ...]
    shared: bool = False
    given: tuple = ()

    @property
    def end(self) -> int:
        steps = [step * (length - 1) for step, length in zip(self.strides, self.lengths)]
        return self.begin + sum(map(abs, steps)) + self.item

    @property
    def base(self) -> int:
        """Where the element with indices 0 is: strides may be negative."""
        steps = [step * (length - 1) for step, length in zip(self.strides, self.lengths)]
        return self.begin - sum(step for step in steps if step < 0)

    def attribute(self, name: str) -> Any:
        known = int if self.shared else Size
        lengths = self.lengths[len(self.given) :]
        found = {
            "shape": tuple(map(known, lengths)),
            "size": known(math.prod(lengths)),
            "ndim": len(lengths),
        }
        return found[name]


def of_array(name: str, begin: int, like: Any, shared: bool = False) -> Array:
    """The ``Array`` for anything with a shape and a dtype, in C order unless it has strides."""
    lengths = tuple(map(int, like.shape))
    item = int(np.dtype(like.dtype).itemsize)
    in_order = np.cumprod((item, *lengths[:0:-1]))[::-1]
    strides = getattr(like, "strides", None) or in_order
    return Array(name, begin, lengths, item, tuple(map(int, strides)), shared)


@dataclass(eq=False)
class Local:
    """An array in registers: its numbers are the tracer's ``cells``, by this and their indices."""


class Places(NamedTuple):
    """`range`, or a tuple to go through: how often, and the number of an iteration."""

    of: Any = None
    start: Any = 0
    stop: Any = 0
    step: Any = 1

    def at(self, n: int) -> tuple[Any, Any]:
        """The number of iteration ``n``, and whether there is one, of each thread or of all."""
        if self.of is not None:
            return (self.of[n], True) if n < len(self.of) else (None, False)
        number = applied(operator.add, self.start, applied(operator.mul, self.step, n))
        down = isinstance(self.step, int) and self.step < 0
        return number, applied(operator.gt if down else operator.lt, number, self.stop)


@dataclass
class Axes:
    """`cuda.threadIdx` and its like."""

    x: Any
    y: Any
    z: Any = 0


def applied(function: Callable, *given: Any) -> Any:
    """A function of numbers of threads, or sizes; what follows from a size is one."""
    if any(isinstance(one, np.ndarray) for one in given):
        with np.errstate(all="ignore"):
            return np.asarray(function(*given))
    made = function(*(int(one) if isinstance(one, Size) else one for one in given))
    sized = any(isinstance(one, Size) for one in given)
    return Size(made) if sized and isinstance(made, bool | int | np.bool_) else made


def called(function: Callable, given: list) -> Any:
    """A function of Python's, `math`'s or a type's, of numbers that are known. Raises ``KeyError``
    for one that isn't known of many threads' numbers.
    """
    name = named(function)
    if not any(isinstance(one, np.ndarray) for one in given):
        return applied(function if name not in TYPES else getattr(np, name), *given)
    if name in CONVERSIONS:
        return np.asarray(given[0]).astype(CONVERSIONS[name])
    known = OF_THREADS[name]
    with np.errstate(all="ignore"):
        return reduce(known, given) if name in ("min", "max") else known(*given)


def named(function: Any) -> str:
    """Its name; a type of numba's has one, too."""
    return str(getattr(function, "__name__", None) or getattr(function, "name", ""))


def merged(on: np.ndarray, new: Any, old: Any) -> Any:
    """What a variable holds of which the threads that are ``on`` get a new number."""
    if isinstance(new, Number) or isinstance(old, Number):
        return Number()
    if isinstance(new, tuple) and isinstance(old, tuple) and len(new) == len(old):
        parts = [merged(on, one, other) for one, other in zip(new, old)]
        return Places(*parts) if isinstance(new, Places) else tuple(parts)
    known = int | float | np.ndarray | np.generic
    if not (isinstance(new, known) and isinstance(old, known)):
        return new
    if not isinstance(new, np.ndarray) and type(new) is type(old) and new == old:
        return new
    return np.where(on, new, old)


def moved(after: Any, before: Any) -> Any:
    """By what a variable has grown; 0 if it is as it was. Raises ``ValueError`` for a change that
    isn't one of a number.
    """
    if after is before or (isinstance(after, Number) and isinstance(before, Number)):
        return 0
    if isinstance(after, tuple) and isinstance(before, tuple) and len(after) == len(before):
        return tuple(moved(one, other) for one, other in zip(after, before))
    whole = int | np.integer | np.ndarray
    if isinstance(after, whole) and isinstance(before, whole):
        change = np.asarray(after, np.int64) - np.asarray(before, np.int64)
        is_uniform = (change == change.flat[0]).all()
        return int(change.flat[0]) if is_uniform else change
    if type(after) is type(before) and isinstance(after, float | np.floating) and after == before:
        return 0
    if after == before:
        return 0
    raise ValueError("not a number")


def grown(value: Any, by: Any, times: int) -> Any:
    """A variable after so many more iterations that each change it so."""
    if isinstance(by, tuple):
        parts = [grown(one, step, times) for one, step in zip(value, by)]
        return Places(*parts) if isinstance(value, Places) else tuple(parts)
    if isinstance(by, int) and by == 0:
        return value
    return applied(operator.add, value, by * times)
