"""Make double-doubles of exact numbers, and exact numbers of double-doubles.

A double-double is the sum of two float64, with about 32 digits. An array of them has a last axis
(high, low), as the kernels read it. The high part is the number rounded to float64, so abs(low) is
at most half a unit in the last place of high. Left out: arithmetic, which ``ck.gemm`` does on the
simulated chip.
"""

from fractions import Fraction
from typing import Any

import numpy as np

from cypresskit.devices import plain
from cypresskit.il.errors import shorten
from cypresskit.machine.arguments import check_unmasked


def to_pairs(values: Any) -> np.ndarray:
    """Return numbers as double-doubles, each rounded once.

    Parameters
    ----------
    values
        An array, nested lists, or one number: floats, fractions, integers of any size.

    Returns
    -------
    float64 of their shape, with a last axis (high, low).

    Raises
    ------
    TypeError
        For a masked array, and for a value that isn't a number.
    ValueError
        For a number that is infinite, NaN or too large.
    """
    check_unmasked(values, "values")
    array = np.array(values, object)
    pairs = np.zeros((*array.shape, 2))
    for at in np.ndindex(array.shape):
        pairs[at] = _pair(plain(array[at]))
    return pairs


def _pair(number: Any) -> tuple[float, float]:
    """Return a number as (high, low)."""
    if not hasattr(number, "as_integer_ratio"):
        raise TypeError(f"values are numbers, such as Fraction(1, 10), not {shorten(number)}")
    try:
        exact = Fraction(*number.as_integer_ratio())
        high = float(exact)
    except (ValueError, OverflowError):
        limit = f"at most {np.finfo(float).max:.1e}".replace("+", "")
        raise ValueError(f"a double-double is finite, and {limit}, not {shorten(number)}") from None
    return high, float(exact - Fraction(high))


def to_fractions(pairs: np.ndarray) -> np.ndarray:
    """Return the exact values of double-doubles, as an object array of ``Fraction``."""
    exact = np.vectorize(Fraction, otypes=[object])(pairs)
    sums: np.ndarray = exact[..., 0] + exact[..., 1]
    return sums
