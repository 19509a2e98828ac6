"""Arrays of double-doubles: each number is the sum of two float64, with about 32 digits.

``DD`` holds an array of (high, low) pairs, the layout that the kernels read. The high part is the
number rounded to float64, so |low| is at most half a unit in the last place of high. ``ck.gemm``
multiplies them, on the simulated chip. Conversion from and to fractions is exact, so whatever else
is to be computed can be computed with these.
"""

from collections.abc import Callable
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from cypresskit.machine.arguments import check_unmasked


class DD:
    """An array of double-doubles.

    Parameters
    ----------
    values
        A DD, an array, or nested lists of floats, fractions, or integers of any size; each is
        rounded once.

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
    __array_ufunc__ = None  # lets this class handle `array == dd`
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

    def __eq__(self, other: object) -> Any:
        """Compare element by element; return bool, in an array if there are several elements."""
        return np.all(self.pairs == DD(other).pairs, axis=-1)

    def fractions(self) -> Any:
        """Return the exact values: an object array of ``Fraction``, or one ``Fraction``."""
        if not self.shape:
            return _exact_sum(self.pairs)
        result = np.empty(self.shape, object)
        for at in np.ndindex(self.shape):
            result[at] = _exact_sum(self.pairs[at])
        return result

    def __repr__(self) -> str:
        return f"DD(high = {self.hi}, low = {self.lo})"


def _exact_sum(pair: np.ndarray) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1])


def _rounded(value: Any) -> tuple[float, float]:
    """Return (high, low) of a number: its value in float64, and the remainder."""
    if isinstance(value, (float, np.floating)) and not isinstance(value, np.longdouble):
        return float(value), 0.0
    exact = _exact(value)
    try:
        high = float(exact)
    except OverflowError:
        raise OverflowError(
            "a number is too large for a double-double, which ends at 2^1024, 1.8e308"
        ) from None
    return high, float(exact - Fraction(high))


def _exact(value: Any) -> Fraction:
    with suppress(ValueError, TypeError):
        if isinstance(value, np.floating):
            return Fraction(*value.as_integer_ratio())
        if not isinstance(value, str):
            return Fraction(int(value) if isinstance(value, np.integer) else value)
    raise TypeError(
        f"{value!r} is no number that a double-double can be made of: try a float, or a Fraction,"
        " such as Fraction('0.1')"
    )
