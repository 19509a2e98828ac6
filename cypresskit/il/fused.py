"""Compute fused multiply-adds of numpy arrays, which numpy lacks, from exact sums and products.

An inexact sum is rounded to odd before the last rounding, which is then the only one that counts
(Boldo and Melquiond). Single precision is computed in double precision; double precision with
products and sums in two parts (Dekker, Knuth), or, for numbers near the ends of its range, in
fractions.
"""

import math
from fractions import Fraction
from typing import Any

import numpy as np

SMALL = 2.0**-480  # products of numbers between these two are exact in two parts
LARGE = 2.0**480


@np.errstate(all="ignore")
def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return a * b + c, rounded once. All are float32, or all float64."""
    if a.dtype == np.float32:
        product = a.astype(np.float64) * b  # exact
        single: np.ndarray = sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
        return single
    a, b, c = np.broadcast_arrays(a, b, c)
    product, lost = two_product(a, b)
    low, rest = two_sum(c, lost)
    high, more = two_sum(product, low)
    signed_zero = product + c
    result = np.where(product == 0, signed_zero, high + sum_to_odd(rest, more))
    at_ends = ~(_in_the_middle(a) & _in_the_middle(b) & _in_the_middle(c))
    rows = zip(*(x[at_ends].tolist() for x in (a, b, c)))
    result[at_ends] = [_in_fractions(*row) for row in rows]
    return result


def _in_the_middle(a: np.ndarray) -> np.ndarray:
    size = np.abs(a)
    return (size == 0) | ((size > SMALL) & (size < LARGE))


def _in_fractions(a: float, b: float, c: float) -> float:
    if not (a and b and math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c  # even where a * b alone overflows
    total = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return s = a + b in float64, and the rounding error e: s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: Any, b: Any) -> tuple[Any, Any]:
    """Return p = a b in float64, and the rounding error e: p + e = a b exactly (Dekker).

    It is exact unless a part overflows (beyond 2^996) or underflows.
    """
    p = a * b
    (ah, al), (bh, bl) = _halves(a), _halves(b)
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def _halves(a: Any) -> tuple[Any, Any]:
    t = a * 134217729.0  # 2^27 + 1
    high = t - (t - a)
    return high, a - high


def sum_to_odd(x: Any, y: Any) -> Any:
    """Add. An inexact sum becomes the neighboring number whose last bit is 1."""
    total, lost = two_sum(x, y)
    bits = np.float64(total).view(np.int64)  # so that numba takes it, too, for a browser
    away_from_zero = 2 * ((lost > 0) == (total > 0)) - 1
    even = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    return np.int64(bits + even * away_from_zero).view(np.float64)
