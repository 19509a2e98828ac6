"""The little of numpy that the compiler asks for, in plain Python: the compile page has no numpy.

The compiler folds constants with the arithmetic of `cypresskit.il.meaning`, an operation at a
time, on arrays of one item. `Array` computes these: whole numbers wrap around, floats are rounded
to their size, and types are promoted as numpy does. Two axes are known only where a double is put
together from its words. Everything else of numpy is left out.

Rounding twice, to double and then to single precision, is rounding once for a sum, a product, a
quotient and a root (Figueroa 1995): a double has more than twice the digits.
"""

import builtins
import math
import operator
import struct
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

#: Types: their letter for `struct`, and their place among types that promote to one another.
LETTERS = {"?": 0, "i": 1, "I": 1, "q": 2, "Q": 2, "f": 3, "d": 4}
SIZES = {letter: struct.calcsize(f"<{letter}") for letter in LETTERS}

inf = math.inf


class Kind:
    """A type of numbers, such as ``uint32``. Called, it makes a scalar: an array without axes."""

    def __init__(self, letter: str) -> None:
        self.letter = letter

    def __call__(self, value: Any) -> "Array":
        return Array([self.fit(_item(value))], self, ())

    def fit(self, value: Any) -> Any:
        """The number of this type that a result becomes."""
        if self.letter == "?":
            return bool(value)

        if self.letter == "d":
            return float(value)

        if self.letter == "f":
            try:
                return struct.unpack("<f", struct.pack("<f", value))[0]
            except OverflowError:
                return math.copysign(inf, value)

        bits = 8 * SIZES[self.letter]
        wrapped = int(value) & ((1 << bits) - 1)
        signed = self.letter in "iq" and wrapped >> (bits - 1)
        return wrapped - (1 << bits) if signed else wrapped


bool_, int32, uint32, int64, uint64, float32, float64 = map(Kind, "?iIqQfd")
KINDS = {"<u4": uint32, "<u8": uint64}


class generic:
    """What numpy's own scalars would be: the page has none."""


class integer(generic):
    """What numpy's own whole numbers would be."""


class Array:
    """Numbers of a kind, in the order in which numpy keeps them, and their shape."""

    def __init__(self, values: list, kind: Kind, shape: tuple[int, ...]) -> None:
        self.values, self.kind, self.shape = values, kind, shape

    def _with(self, other: Any, operation: Callable, kind: Kind | None = None) -> "Array":
        """An operation of two arrays, or of an array and a number of Python."""
        common = _promoted(self, other)
        left, right, shape = _matched(self, other)
        values = [
            (kind or common).fit(operation(common.fit(a), common.fit(b)))
            for a, b in zip(left, right)
        ]
        return Array(values, kind or common, shape)

    def _each(self, operation: Callable) -> "Array":
        return Array([self.kind.fit(operation(x)) for x in self.values], self.kind, self.shape)

    def __add__(self, other):
        return self._with(other, operator.add)

    def __sub__(self, other):
        return self._with(other, operator.sub)

    def __mul__(self, other):
        return self._with(other, operator.mul)

    def __truediv__(self, other):
        return self._with(other, _quotient)

    def __rtruediv__(self, other):
        return self._with(other, lambda a, b: _quotient(b, a))

    def __floordiv__(self, other):
        return self._with(other, operator.floordiv)

    def __mod__(self, other):
        return self._with(other, operator.mod)

    def __and__(self, other):
        return self._with(other, operator.and_)

    def __or__(self, other):
        return self._with(other, operator.or_)

    def __xor__(self, other):
        return self._with(other, operator.xor)

    def __lshift__(self, other):
        return self._with(other, operator.lshift)

    def __rshift__(self, other):
        return self._with(other, operator.rshift)

    def __invert__(self):
        return self._each(operator.invert)

    def __lt__(self, other):
        return self._with(other, operator.lt, bool_)

    def __le__(self, other):
        return self._with(other, operator.le, bool_)

    def __gt__(self, other):
        return self._with(other, operator.gt, bool_)

    def __ge__(self, other):
        return self._with(other, operator.ge, bool_)

    def __eq__(self, other):
        return self._with(other, operator.eq, bool_)

    def __ne__(self, other):
        return self._with(other, operator.ne, bool_)

    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        (value,) = self.values
        return bool(value)

    def __int__(self) -> int:
        (value,) = self.values
        return int(value)

    def __getitem__(self, place):
        if isinstance(place, tuple):  # [..., 0]: of each row its first
            return Array(self.values[place[1] :: self.shape[-1]], self.kind, self.shape[:-1])
        return Array([self.values[place]], self.kind, ())

    def __setitem__(self, place, value: "Array") -> None:
        self.values[place[1] :: self.shape[-1]] = value.values

    def view(self, kind: "Kind | str") -> "Array":
        """The same bits as numbers of another kind."""
        kind = KINDS[kind] if isinstance(kind, str) else kind
        data = struct.pack(f"<{len(self.values)}{self.kind.letter}", *self.values)
        values = list(struct.unpack(f"<{len(data) // SIZES[kind.letter]}{kind.letter}", data))
        shape = self.shape
        if len(values) != len(self.values):
            shape = *shape[:-1], shape[-1] * len(values) // len(self.values)
        return Array(values, kind, shape)

    def astype(self, kind: Kind) -> "Array":
        return Array([kind.fit(x) for x in self.values], kind, self.shape)

    def all(self) -> bool:
        return all(self.values)

    def any(self) -> bool:
        return builtins.any(self.values)

    def min(self, initial: float) -> "Array":
        """The least item. A NaN wins, as in numpy."""
        wins = next((x for x in self.values if x != x), min([initial, *self.values]))
        return Array([wins], self.kind, ())


ndarray = Array


def dtype(kind: Kind) -> Kind:
    return kind


def array(values: list, kind: Kind) -> Array:
    return Array([kind.fit(x) for x in values], kind, (len(values),))


def empty(shape: tuple[int, ...], kind: str) -> Array:
    return Array([0] * math.prod(shape), KINDS[kind], shape)


def full_like(like: Array, value: Any) -> Array:
    return Array([like.kind.fit(_item(value))] * len(like.values), like.kind, like.shape)


def where(condition: Array, yes: Any, no: Any) -> Array:
    kind = _promoted(yes, no)
    count = max(len(_values(x)) for x in (condition, yes, no))
    rows = zip(*(_repeated(x, count) for x in (condition, yes, no)))
    shape = max((getattr(x, "shape", ()) for x in (condition, yes, no)), key=len)
    return Array([kind.fit(y if c else n) for c, y, n in rows], kind, shape)


def errstate(**_options: str) -> nullcontext:
    return nullcontext()


def any(value: Any) -> bool:
    return builtins.any(_values(value))


def clip(x: Array, low: float, high: float) -> Array:
    return x._each(lambda value: min(max(value, low), high))


def isnan(x: Array) -> Array:
    return Array([value != value for value in x.values], bool_, x.shape)


def nextafter(x: Array, towards: float) -> Array:
    return x._each(lambda value: math.nextafter(value, towards))


def bitwise_count(x: Array) -> Array:
    return x._each(int.bit_count)


def multiply_add(a: Array, b: Array, c: Array) -> tuple[Array, bool]:
    """a * b + c in single precision, rounded once, and True: it needs a second look."""
    left, right, shape = _matched(a, b)
    sums = [_fused(*numbers) for numbers in zip(left, right, _repeated(c, len(left)))]
    return Array([float32.fit(x) for x in sums], float32, shape), True


def _fused(a: float, b: float, c: float) -> float:
    """a * b + c of single precision as a double, whose last bit says whether anything was lost: so
    that to round it once more is to round once (round to odd).
    """
    product = a * b  # exact
    total = product + c
    if not math.isfinite(total) or not total:
        return total

    back = total - product
    lost = (product - (total - back)) + (c - back)  # Knuth's sum
    even = not struct.unpack("<Q", struct.pack("<d", total))[0] & 1
    return math.nextafter(total, math.copysign(inf, lost)) if lost and even else total


def _whole(operation: Callable) -> Callable:
    """An operation to whole numbers; infinite ones, NaN and -0 stay."""
    return lambda x: math.copysign(operation(x), x) if math.isfinite(x) else x


def _unary(operation: Callable) -> Callable:
    return lambda x: x._each(operation)


def _binary(operation: Callable, kind: Kind | None = None) -> Callable:
    def apply(a, b):
        a = a if isinstance(a, Array) else _promoted(a, b)(a)
        return a._with(b, operation, kind)

    return apply


def _quotient(a: float, b: float) -> float:
    if b:
        return a / b
    sign = math.copysign(1, a) * math.copysign(1, b)
    return math.nan if a == 0 or a != a else sign * inf


def _extreme(choose: Callable) -> Callable:
    return lambda a, b: a if a != a else b if b != b else choose(a, b)


def _sign(x: float) -> float:
    return x if x == 0 or x != x else math.copysign(1, x)


abs = _unary(math.fabs)
floor = _unary(_whole(math.floor))
ceil = _unary(_whole(math.ceil))
trunc = _unary(_whole(math.trunc))
rint = _unary(_whole(round))
sqrt = _unary(lambda x: math.sqrt(x) if x >= 0 else math.nan)
sign = _unary(_sign)
bitwise_not = _unary(operator.invert)
add, subtract, multiply = map(_binary, (operator.add, operator.sub, operator.mul))
divide = _binary(_quotient)
minimum, maximum = _binary(_extreme(min)), _binary(_extreme(max))
bitwise_and, bitwise_or, bitwise_xor = map(_binary, (operator.and_, operator.or_, operator.xor))
copysign = _binary(math.copysign)
less = _binary(operator.lt, bool_)
less_equal = _binary(operator.le, bool_)
equal = _binary(operator.eq, bool_)
not_equal = _binary(operator.ne, bool_)
greater_equal = _binary(operator.ge, bool_)
greater = _binary(operator.gt, bool_)


def _item(value: Any) -> Any:
    return value.values[0] if isinstance(value, Array) else value


def _values(x: Any) -> list:
    return x.values if isinstance(x, Array) else [x]


def _repeated(x: Any, count: int) -> list:
    values = _values(x)
    return values * count if len(values) == 1 else values


def _matched(a: Any, b: Any) -> tuple[list, list, tuple[int, ...]]:
    count = max(len(_values(a)), len(_values(b)))
    shape = max(getattr(a, "shape", ()), getattr(b, "shape", ()), key=len)
    return _repeated(a, count), _repeated(b, count), shape


def _promoted(a: Any, b: Any) -> Kind:
    """The kind of a result. A number of Python takes the kind of what it meets."""
    kinds = [x.kind for x in (a, b) if isinstance(x, Array)]
    if len(kinds) < 2:
        return kinds[0] if kinds else float64

    first, second = sorted(kinds, key=lambda kind: LETTERS[kind.letter])
    if first.letter == second.letter or LETTERS[first.letter] < LETTERS[second.letter]:
        return float64 if second.letter == "f" and first.letter in "iIqQ" else second
    return int64
