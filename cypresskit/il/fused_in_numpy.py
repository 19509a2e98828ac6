"""Compute fused multiply-adds without LLVM.

Single precision is computed in double precision and rounded to odd, so that the final rounding is
the only one that counts (Boldo and Melquiond). Double precision calls ``math.fma`` per element,
which Python has from 3.13 on.
"""

import math
from typing import Any

import numpy as np

MIN_NORMAL = np.float32(2.0**-126)


@np.errstate(all="ignore")
def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, bool]:
    """Compute a * b + c with one rounding.

    Returns
    -------
    result
        The numbers.
    is_special
        Whether the caller has to compute some elements by other means, as in ``fused``.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float64:
        result = np.vectorize(_fused, otypes=[np.float64])(a, b, c)
        return result, not np.isfinite(result).all()

    product = a.astype(np.float64) * b  # exact
    result = _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
    normal = np.isfinite(result) & ((result == 0) | (np.abs(result) > MIN_NORMAL))
    for operand in (a, b, c):
        normal &= (operand == 0) | (np.abs(operand) >= MIN_NORMAL)
    return result, not normal.all()


def two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """Return s = a + b in float64, and the rounding error e: s + e = a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def _fused(a: float, b: float, c: float) -> float:
    try:
        return math.fma(a, b, c)  # type: ignore[attr-defined]  # 3.13
    except (OverflowError, ValueError):  # the result is infinite or NaN
        return a * b + c


def _sum_to_odd(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Add. An inexact sum becomes the neighboring number whose last bit is 1."""
    total, lost = two_sum(x, y)
    bits = total.view(np.int64)
    away_from_zero = np.where((lost > 0) == (total > 0), 1, -1)
    even = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    return np.where(even, bits + away_from_zero, bits).view(np.float64)
