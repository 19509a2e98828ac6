"""Fused multiply-add by numpy's own sums and products, for where there is no LLVM: single precision
in double precision, rounded to odd (Boldo and Melquiond); double precision by sums and products
whose errors are known; and the few numbers that are too large or too small for that by fractions.
"""

from fractions import Fraction

import numpy as np

LEAST_NORMAL = np.finfo(np.float32).smallest_normal
HIGH = np.float64((1 << 27) + 1)  # a product with it parts a number's leading 26 bits from the rest
SAFE = 2.0**-900, 2.0**900  # products between these have an error that is a normal number


@np.errstate(all="ignore")
def multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, bool]:
    """a * b + c with one rounding, and whether that needs a second look: as
    ``fused.multiply_add``.
    """
    a, b, c = np.broadcast_arrays(a, b, c)
    if a.dtype == np.float64:
        result = _in_double(a, b, c)
        return result, not np.isfinite(result).all()

    product = a.astype(np.float64) * b  # exact
    result = _sum_to_odd(product, c.astype(np.float64)).astype(np.float32)
    normal = np.isfinite(result) & ((result == 0) | (np.abs(result) > LEAST_NORMAL))
    for operand in (a, b, c):
        normal &= (operand == 0) | (np.abs(operand) >= LEAST_NORMAL)
    return result, not normal.all()


def _in_double(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    product = a * b
    lost = _product_error(a, b, product)
    low, low_lost = _sum(c, lost)
    high, high_lost = _sum(product, low)
    result = high + _sum_to_odd(low_lost, high_lost)
    result = np.where(result == 0, product + c, result)  # which has the right sign

    finite = np.isfinite(a) & np.isfinite(b)
    plain = ~finite | (a == 0) | (b == 0)
    result = np.where(plain, product + c, np.where(np.isfinite(c), result, c))
    safe = _is_safe(a, b, product, c, high) & (product != 0)
    for place in np.argwhere(~plain & np.isfinite(c) & ~safe):
        at = tuple(place)
        result[at] = _by_fractions(float(a[at]), float(b[at]), float(c[at]))
    return result


def _is_safe(*numbers: np.ndarray) -> np.ndarray:
    sizes = [np.abs(number) for number in numbers]
    least, most = SAFE
    return np.logical_and.reduce([(size < most) & ((size > least) | (size == 0)) for size in sizes])


def _by_fractions(a: float, b: float, c: float) -> float:
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    try:
        return exact.numerator / exact.denominator  # rounded once
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def _product_error(a: np.ndarray, b: np.ndarray, product: np.ndarray) -> np.ndarray:
    """What a product dropped (Dekker)."""
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(number: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    large = HIGH * number
    high = large - (large - number)
    return high, number - high


def _sum(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A sum, and what it dropped (Knuth)."""
    total = x + y
    back = total - x
    return total, (x - (total - back)) + (y - back)


def _sum_to_odd(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A sum; one that isn't exact is the neighbor whose last bit is 1, so that rounding it again
    rounds once.
    """
    total, lost = _sum(x, y)
    bits = total.view(np.int64)
    farther = np.where((lost > 0) == (total > 0), 1, -1)
    even = np.isfinite(total) & (lost != 0) & (bits & 1 == 0)
    return np.where(even, bits + farther, bits).view(np.float64)
