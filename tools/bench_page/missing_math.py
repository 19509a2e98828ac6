"""The functions that WebAssembly has no instruction for, in Python that numba compiles.

A fused multiply-add is rounded once. It is computed with the exact sums and products of
``cypresskit.il.fused``. Near the limits of the exponent, where these aren't exact, it is rounded
twice: no lesson has such numbers.
"""

from functools import partial

from numba import njit
from numba.extending import register_jitable

from cypresskit.il import fused
from cypresskit.il.fused import sum_to_odd, two_product, two_sum

SMALL, LARGE = 2.0**-900, 2.0**900  # between which no error overflows or is lost
OPTIONS = {"error_model": "numpy", "_nrt": False}
native = partial(njit, **OPTIONS)
for part in (fused._halves, sum_to_odd, two_product, two_sum):
    register_jitable(**OPTIONS)(part)


@native("f4(f4, f4)")
def fmaxf(a, b):
    """Return the greater float, or the one that is a number."""
    return a if a > b or b != b else b


@native("f4(f4, f4)")
def fminf(a, b):
    """Return the lesser float, or the one that is a number."""
    return a if a < b or b != b else b


@native("f8(f8, f8, f8)")
def fma(a, b, c):
    """Return a * b + c of doubles."""
    product = a * b
    usual = SMALL < abs(product) < LARGE and abs(a) < LARGE and abs(b) < LARGE
    if not usual or not (c == 0.0 or SMALL < abs(c) < LARGE):
        return product + c
    product, rest = two_product(a, b)
    high, low = two_sum(c, rest)
    total, more = two_sum(product, high)
    return total + sum_to_odd(low, more)
