"""The functions that WebAssembly has no instruction for, in Python that numba compiles.

A fused multiply-add is rounded once. It is computed with the exact sums and products of
``cypresskit.il.fused``. Numbers near the limits of the exponent are first moved near 1, and the
result back.
"""

import numpy as np
from numba import njit
from numba.extending import register_jitable

from cypresskit.il import fused
from cypresskit.il.fused import sum_to_odd, two_product, two_sum

SMALL, LARGE = 2.0**-900, 2.0**900  # between which no error overflows or is lost
NORMAL = -1022  # the exponent of the smallest number with all bits
FAR = 120  # an exponent: what is that far from the other number only decides how it is rounded
OPTIONS = {"error_model": "numpy", "_nrt": False}
native = njit(**OPTIONS)
for part in (fused._halves, sum_to_odd, two_product, two_sum):
    register_jitable(**OPTIONS)(part)


@native
def fmaxf(a, b):
    """Return the greater float, or the one that is a number."""
    return a if a > b or b != b else b


@native
def fminf(a, b):
    """Return the lesser float, or the one that is a number."""
    return a if a < b or b != b else b


@native
def fma(a, b, c):
    """Return a * b + c of doubles."""
    product = a * b
    if a == 0.0 or b == 0.0 or not (abs(product) < np.inf or abs(a) < np.inf > abs(b)):
        return product + c  # exact, infinite or not a number
    if not abs(c) < np.inf:
        return c
    usual = SMALL < abs(product) < LARGE and abs(a) < LARGE and abs(b) < LARGE
    if not usual or not (c == 0.0 or SMALL < abs(c) < LARGE):
        return near_limits(a, b, c)
    total, rest = exact(a, b, c)
    return total + rest


@native
def exact(a, b, c):
    """Return a * b + c as a double and what it lacks, rounded to odd."""
    product, rest = two_product(a, b)
    high, low = two_sum(c, rest)
    total, more = two_sum(product, high)
    return total, sum_to_odd(low, more)


@native
def near_limits(a, b, c):
    """Return a * b + c of finite doubles, of which a and b aren't 0."""
    a, a_at = unpacked(a)
    b, b_at = unpacked(b)
    at = a_at + b_at  # of all, from here
    if c != 0.0:
        c, c_at = unpacked(c)
        at = max(at, c_at - FAR)
        c *= power(max(c_at - at, -FAR))
    total, rest = exact(a, b, c)
    result = total + rest
    if at < NORMAL - 2 * FAR:
        return result * 0.0
    if at < NORMAL + 2 * FAR and 0.0 < abs(result) < power(NORMAL - at):
        # Beside this number, a double's last bit is the last of the result.
        beside = power(NORMAL - at) if result > 0.0 else -power(NORMAL - at)
        result, lost = two_sum(total, rest)
        moved, more = two_sum(beside, result)
        result = (moved + sum_to_odd(more, lost)) - beside or beside * 0.0
    half = at >> 1
    return result * power(half) * power(at - half)


@native
def unpacked(number):
    """Return a double other than 0 as one from 1 to 2, with its sign, and its exponent."""
    lifted = abs(number) < 2.0**NORMAL
    bits = np.float64(number * 2.0**64 if lifted else number).view(np.int64)
    exponent = ((bits >> 52) & 0x7FF) - 1023
    return np.int64(bits - (exponent << 52)).view(np.float64), exponent - (64 if lifted else 0)


@native
def power(exponent):
    """Return a power of two that is a normal number."""
    return np.int64((exponent + 1023) << 52).view(np.float64)
