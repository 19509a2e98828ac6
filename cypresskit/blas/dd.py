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


def to_pairs(values: Any) -> np.ndarray:
    """Return numbers as double-doubles, each rounded once.

    Parameters
    ----------
    values
        An array, nested lists, or one number: floats, fractions, integers of any size.

    Returns
    -------
    float64 of their shape, with a last axis (high, low).
    """
    array = np.array(values, object)
    pairs = np.zeros((*array.shape, 2))
    for at in np.ndindex(array.shape):
        exact = Fraction(plain(array[at]))
        high = float(exact)
        pairs[at] = high, exact - Fraction(high)
    return pairs


def to_fractions(pairs: np.ndarray) -> np.ndarray:
    """Return the exact values of double-doubles, as an object array of ``Fraction``."""
    exact = np.vectorize(Fraction, otypes=[object])(pairs)
    sums: np.ndarray = exact[..., 0] + exact[..., 1]
    return sums
