"""Compute with double-double arrays: each number is the sum of two float64, with about 32 digits.

``DD`` holds an array of (high, low) pairs, the layout that the kernels read. The high part is the
number rounded to float64, so |low| is at most half a unit in the last place of high. Arithmetic
runs on the host, with the algorithms of the double-double kernels (Knuth's two-sum; Dekker's
product; Hida, Li and Bailey's sum, relative error 2^-105). Conversion from and to fractions is
exact. Overflow and NaN give the same as in float64, with a low part of 0 (in the kernels, overflow
gives NaN).

Not covered: division, functions, comparison by size, assignment to elements.
"""

from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from cypresskit.il.fused import two_product, two_sum
from cypresskit.machine.arguments import check_unmasked

DIGITS = 32  # decimal digits that any double-double represents
#: Powers of ten beyond which numbers in text are too large, or 0.
LARGEST_EXPONENT = 400
LEAST_EXPONENT = -1200


def fast_two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return ``two_sum`` for |a| >= |b| (Dekker)."""
    s = a + b
    return s, b - (s - a)


class DD:
    """An array of double-doubles.

    Parameters
    ----------
    values
        A DD, an array, or nested lists of floats, integers of any size, fractions, decimals, or
        strings such as "0.1" or "1/3"; each is rounded once. ``DD(high) + low`` makes one of pairs.

    Attributes
    ----------
    pairs
        float64 of the array's shape plus a last axis (high, low).

    Raises
    ------
    TypeError
        For a value that isn't a number.
    """

    pairs: np.ndarray
    __matmul__: Callable[["DD", "DD"], "DD"]  # set by ``blas.gemm``
    __array_ufunc__ = None  # lets this class handle `array + dd`
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, values: object) -> None:
        if isinstance(values, DD):
            self.pairs = values.pairs.copy()
            return
        check_unmasked(values, "values")
        array = values if isinstance(values, np.ndarray) else np.array(values, dtype=object)
        self.pairs = np.zeros((*array.shape, 2))
        if array.dtype.kind == "f" and array.dtype.itemsize <= 8:
            self.pairs[..., 0] = array
        else:
            for at in np.ndindex(array.shape):
                self.pairs[at] = _rounded(array[at])

    @classmethod
    def _of(cls, parts: Any, ends: Any) -> "DD":
        """Return the DD of pairs (high, low), with ``ends`` where high isn't finite."""
        high, low = parts
        finite = np.isfinite(high)
        return cls.wrap(
            np.stack([np.where(finite, high, ends), np.where(finite, low, 0.0)], axis=-1)
        )

    @classmethod
    def wrap(cls, pairs: np.ndarray) -> "DD":
        """Return a DD of an array (..., 2) of normalized pairs, without copying it."""
        result = cls.__new__(cls)
        result.pairs = pairs
        return result

    # The array

    @property
    def hi(self) -> np.ndarray:
        """High parts: the numbers rounded to float64."""
        return self.pairs[..., 0]

    @property
    def lo(self) -> np.ndarray:
        """Low parts."""
        return self.pairs[..., 1]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pairs.shape[:-1]

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def T(self) -> "DD":
        """A view with the axes reversed."""
        return DD.wrap(self.pairs.transpose(*range(self.ndim)[::-1], self.ndim))

    def reshape(self, *shape: int) -> "DD":
        return DD.wrap(self.pairs.reshape(*shape, 2))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a single double-double has no length")
        return len(self.pairs)

    def __getitem__(self, index: Any) -> "DD":
        index = index if isinstance(index, tuple) else (index,)
        if not any(part is Ellipsis for part in index):
            index = (*index, ...)
        return DD.wrap(self.pairs[(*index, slice(None))])

    # Arithmetic

    def __neg__(self) -> "DD":
        return DD.wrap(-self.pairs)

    def __add__(self, other: object) -> "DD":
        other = _dd(other)
        plain = self.hi + other.hi  # warns like numpy
        with np.errstate(all="ignore"):
            s, e = two_sum(self.hi, other.hi)
            t, f = two_sum(self.lo, other.lo)
            s, e = fast_two_sum(s, e + t)
            return DD._of(fast_two_sum(s, e + f), plain)

    def __mul__(self, other: object) -> "DD":
        other = _dd(other)
        plain = self.hi * other.hi
        with np.errstate(all="ignore"):
            p, e = two_product(self.hi, other.hi)
            return DD._of(fast_two_sum(p, e + (self.hi * other.lo + self.lo * other.hi)), plain)

    def __sub__(self, other: object) -> "DD":
        return self + -_dd(other)

    def __rsub__(self, other: object) -> "DD":
        return _dd(other) - self

    __radd__, __rmul__ = __add__, __mul__

    def __eq__(self, other: object) -> Any:
        """Compare element by element; return bool, in an array if there are several elements."""
        try:
            return np.all(self.pairs == _dd(other).pairs, axis=-1)
        except TypeError:
            return NotImplemented

    def __ne__(self, other: object) -> Any:
        return np.logical_not(self == other)

    # Conversion

    def __float__(self) -> float:
        return float(self.hi)

    def fractions(self) -> Any:
        """Return the exact values: an object array of ``Fraction``, or one ``Fraction``."""
        return self._each(lambda pair: Fraction(pair[0]) + Fraction(pair[1]))

    def text(self, digits: int = DIGITS) -> Any:
        """Return the values as decimal text of ``digits`` digits: an object array, or a string."""
        return self._each(lambda pair: _decimal(pair, digits))

    def _each(self, convert: Callable[..., Any]) -> Any:
        if not self.shape:
            return convert(self.pairs)
        result = np.empty(self.shape, object)
        for at in np.ndindex(self.shape):
            result[at] = convert(self.pairs[at])
        return result

    def __str__(self) -> str:
        texts = self.text()
        if not self.shape:
            return str(texts)
        return np.array2string(texts, formatter={"all": str}, max_line_width=120)

    def __repr__(self) -> str:
        return f"DD({self})"


def _dd(value: Any) -> DD:
    return value if isinstance(value, DD) else DD(value)


def _rounded(value: Any) -> tuple[float, float]:
    """Return (high, low) of a number or text: its value in float64, and the remainder."""
    if isinstance(value, DD):
        return value.pairs[0], value.pairs[1]
    if isinstance(value, (float, np.floating)) and not isinstance(value, np.longdouble):
        return float(value), 0.0
    if isinstance(value, (str, Decimal)) and (exponent := _exponent(value)) is not None:
        if exponent > LARGEST_EXPONENT:
            raise OverflowError(
                f"about 10^{exponent} is too large for a double-double, which ends at 1.8e308"
            )
        if exponent < LEAST_EXPONENT:
            return 0.0, 0.0
    exact = _exact(value)
    try:
        high = float(exact)
        return high, float(exact - Fraction(high))
    except OverflowError:
        size = exact.numerator.bit_length() - exact.denominator.bit_length()
        raise OverflowError(
            f"about 2^{size} is too large for a double-double, which ends at 2^1024, 1.8e308"
        ) from None


def _exponent(value: str | Decimal) -> int | None:
    """Return the power of ten of a decimal number's first digit; None for other text.

    For 0, it is below ``LEAST_EXPONENT``.
    """
    try:
        number = Decimal(value)
    except ArithmeticError:  # such as "1/3"
        return None
    if not number.is_finite():
        return None
    return number.adjusted() if number else LEAST_EXPONENT - 1


def _exact(value: Any) -> Fraction:
    with suppress(ValueError, TypeError, ZeroDivisionError):
        if isinstance(value, np.floating):
            return Fraction(*value.as_integer_ratio())
        return Fraction(int(value) if isinstance(value, np.integer) else value)
    raise TypeError(
        f"{value!r} is no number that a double-double can be made of: try a float, '0.1', '1/3',"
        " Fraction"
    )


def _decimal(pair: np.ndarray, digits: int) -> str:
    if not np.isfinite(pair).all():
        return str(float(pair[0]))
    with localcontext(prec=digits):  # the sum is rounded once
        value = (Decimal(float(pair[0])) + Decimal(float(pair[1]))).normalize()
    return f"{value:f}" if -5 < value.adjusted() < digits else str(value)
