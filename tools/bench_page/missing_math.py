"""The functions that WebAssembly has no instruction for, in Python that numba compiles.

A fused multiply-add is rounded once. Its usual case is computed from the exact errors of a product
and of sums (S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", 2008). Near
the limits of the exponent it is computed in integers of 128 bits, as two of 64.
"""

import numpy as np

SPLIT = 134217729.0  # 2^27 + 1: splits a double into two halves whose products are exact
SMALL, LARGE = 2.0**-900, 2.0**900  # between which no error overflows or is lost
HALF = np.uint64(32)
LOW = np.uint64(0xFFFFFFFF)
ZERO, ONE = np.uint64(0), np.uint64(1)
TOP = np.uint64(1 << 61)  # where numbers of 128 bits begin: there is room for a carry
SIGN = np.uint64(1 << 63)
FRACTION = np.uint64((1 << 52) - 1)
HIDDEN = np.uint64(1 << 52)
INFINITY = np.uint64(0x7FF << 52)


def fmaxf(a, b):
    """Return the greater float, or the one that is a number."""
    return a if a > b or b != b else b


def fminf(a, b):
    """Return the lesser float, or the one that is a number."""
    return a if a < b or b != b else b


def fmaf(a, b, c):
    """Return a * b + c of floats. The product is exact, and the sum is rounded to odd before it is
    rounded to a float.
    """
    product, third = np.float64(a) * np.float64(b), np.float64(c)
    total = product + third
    return np.float32(to_odd(total, error_of_sum(product, third, total)))


def fma(a, b, c):
    """Return a * b + c of doubles."""
    product = a * b
    if a == 0.0 or b == 0.0 or not (abs(product) < np.inf or abs(a) < np.inf > abs(b)):
        return product + c  # exact, infinite or not a number
    if not abs(c) < np.inf:
        return c
    usual = SMALL < abs(product) < LARGE and abs(a) < LARGE and abs(b) < LARGE
    if not usual or not (c == 0.0 or SMALL < abs(c) < LARGE):
        return in_integers(a, b, c)
    rest = error_of_product(a, b, product)
    high = c + rest
    low = error_of_sum(c, rest, high)
    total = product + high
    left = error_of_sum(product, high, total)
    odd = low + left
    return total + to_odd(odd, error_of_sum(low, left, odd))


def error_of_sum(a, b, total):
    """Return a + b - total, exactly."""
    second = total - a
    first = total - second
    return (a - first) + (b - second)


def error_of_product(a, b, product):
    """Return a * b - product, exactly."""
    big = a * SPLIT
    a_high = big - (big - a)
    a_low = a - a_high
    big = b * SPLIT
    b_high = big - (big - b)
    b_low = b - b_high
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def to_odd(total, error):
    """Return total + error, rounded to the neighbor with an odd last bit unless it is exact."""
    bits = np.float64(total).view(np.int64)
    if bits & 1 or not (error > 0.0 or error < 0.0):
        return total
    away = (error > 0.0) == (total > 0.0)
    return np.int64(bits + (1 if away else -1)).view(np.float64)


def in_integers(a, b, c):
    """Return a * b + c of finite doubles, of which a and b aren't 0."""
    a_bits, b_bits, c_bits = (
        np.float64(a).view(np.uint64),
        np.float64(b).view(np.uint64),
        np.float64(c).view(np.uint64),
    )
    negative, other = (a_bits ^ b_bits) & SIGN, c_bits & SIGN
    first, first_at = unpacked(a_bits)
    second, second_at = unpacked(b_bits)
    high, low = product_of(first, second)
    high, low, at = raised(high, low, first_at + second_at)
    if c != 0.0:
        third, third_at = unpacked(c_bits)
        c_high, c_low, c_at = raised(ZERO, third, third_at)
        if c_at > at or (c_at == at and (c_high, c_low) > (high, low)):
            high, c_high, low, c_low = c_high, high, c_low, low
            at, c_at, negative, other = c_at, at, other, negative
        c_high, c_low = lowered(c_high, c_low, at - c_at)
        if negative == other:
            low += c_low
            high += c_high + (ONE if low < c_low else ZERO)
        else:
            borrow = ONE if low < c_low else ZERO
            low -= c_low
            high -= c_high + borrow
        if high == ZERO and low == ZERO:
            return 0.0
        high, low, at = raised(high, low, at)
    # The number is high:low * 2**at, where high has its first bit at 61: 125 bits below.
    exponent = at + 125
    cut = np.int64(9)  # bits of `high` below a double's 53
    if exponent < -1022:
        cut += -1022 - exponent
    if cut > 63:
        high, low = lowered(high, low, cut - 63)
        cut = np.int64(63)
    left = high & ((ONE << np.uint64(cut)) - ONE)
    half = ONE << np.uint64(cut - 1)
    kept = high >> np.uint64(cut)
    if left > half or (left == half and (low != ZERO or kept & ONE)):
        kept += ONE
    if exponent >= -1022:
        if exponent > 1023:
            return np.uint64(negative | INFINITY).view(np.float64)
        kept += np.uint64(exponent + 1022) << np.uint64(52)  # the hidden bit adds one
    return np.uint64(negative | kept).view(np.float64)


def unpacked(bits):
    """Return a double as an integer and the exponent of its last bit."""
    exponent = np.int64((bits >> np.uint64(52)) & np.uint64(0x7FF))
    fraction = bits & FRACTION
    if exponent == 0:
        return fraction, np.int64(-1074)
    return fraction | HIDDEN, exponent - 1075


def product_of(a, b):
    """Return the product of two integers below 2**53, in two halves."""
    a_high, a_low, b_high, b_low = a >> HALF, a & LOW, b >> HALF, b & LOW
    middle = a_high * b_low + ((a_low * b_low) >> HALF)
    across = a_low * b_high + (middle & LOW)
    high = a_high * b_high + (middle >> HALF) + (across >> HALF)
    return high, (across << HALF) | ((a_low * b_low) & LOW)


def raised(high, low, at):
    """Shift a number other than 0 to the left until its first bit is at 61 of ``high``."""
    while high < TOP:
        high = (high << ONE) | (low >> np.uint64(63))
        low <<= ONE
        at -= 1
    if high >= TOP << ONE:
        low = (low >> ONE) | (low & ONE) | (high << np.uint64(63))
        high >>= ONE
        at += 1
    return high, low, at


def lowered(high, low, by):
    """Shift a number to the right; its last bit says whether any bit was lost."""
    lost = ZERO
    while by > 0 and (high or low):
        lost |= low & ONE
        low = (low >> ONE) | (high << np.uint64(63))
        high >>= ONE
        by -= 1
    return high, low | lost
