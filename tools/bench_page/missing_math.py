"""The functions that WebAssembly has no instruction for, in Python that numba compiles.

A fused multiply-add is rounded once. It is computed from the exact errors of a product and of sums
(S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Numbers near the
limits of the exponent are first moved near 1, and the result back.
"""

import numpy as np
from numba import njit

SPLIT = 134217729.0  # 2^27 + 1: splits a double into two halves whose products are exact
SMALL, LARGE = 2.0**-900, 2.0**900  # between which no error overflows or is lost
NORMAL = -1022  # the exponent of the smallest number with all bits
FAR = 120  # an exponent: what is that far from the other number only decides how it is rounded
native = njit(error_model="numpy", _nrt=False)


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
    product = a * b
    rest = error_of_product(a, b, product)
    high = c + rest
    low = error_of_sum(c, rest, high)
    total = product + high
    return total, odd_sum(low, error_of_sum(product, high, total))


@native
def error_of_sum(a, b, total):
    """Return a + b - total, exactly."""
    second = total - a
    first = total - second
    return (a - first) + (b - second)


@native
def error_of_product(a, b, product):
    """Return a * b - product, exactly."""
    big = a * SPLIT
    a_high = big - (big - a)
    a_low = a - a_high
    big = b * SPLIT
    b_high = big - (big - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


@native
def odd_sum(a, b):
    """Return a + b, rounded to the neighbor with an odd last bit unless it is exact."""
    total = a + b
    error = error_of_sum(a, b, total)
    bits = np.float64(total).view(np.int64)
    if bits & 1 or not (error > 0.0 or error < 0.0):
        return total
    away = (error > 0.0) == (total > 0.0)
    return np.int64(bits + (1 if away else -1)).view(np.float64)


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
        moved = beside + result
        rest = odd_sum(error_of_sum(beside, result, moved), error_of_sum(total, rest, result))
        result = (moved + rest) - beside or beside * 0.0
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
