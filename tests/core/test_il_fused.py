"""The multiply-add of ``cypresskit.il.fused`` rounds once, as C's ``fma`` does; so does the one in
the site's Python, for which WebAssembly has no instruction.
"""

import ctypes
import ctypes.util

import numpy as np
import pytest
from numba import njit
from sampling import seeded

from cypresskit.il.fused import multiply_add
from tools.bench_page import missing_math


@njit(error_model="numpy")
def in_the_sites_python(a, b, c):
    result = np.empty_like(c)
    for n in range(c.size):
        result[0, n] = missing_math.fma(a[0, n], b[0, n], c[0, n])
    return result


def differences(operands, one, other):
    """The operands whose results differ in their bits; all NaNs are alike."""
    word = np.dtype(f"u{one.itemsize}")
    differs = (one.view(word) != other.view(word)) & ~(np.isnan(one) & np.isnan(other))
    return [*zip(*(x[differs] for x in operands))]


def numbers(rng, kind, count):
    """Random numbers: any bits, any exponent, whole numbers, numbers near 1, and special ones."""
    info = np.finfo(kind)
    word = np.dtype(f"u{info.bits // 8}")
    exponents = rng.integers(info.minexp - info.nmant - 2, info.maxexp + 1, count)
    special = [0.0, np.inf, np.nan, info.smallest_normal, info.smallest_subnormal, info.max, 1.0]
    with np.errstate(over="ignore"):
        choices = [
            rng.integers(0, np.iinfo(word).max, count, word, endpoint=True).view(kind),
            np.ldexp(rng.standard_normal(count), exponents).astype(kind),
            rng.integers(-4, 5, count).astype(kind),
            rng.standard_normal(count).astype(kind),
            (rng.choice(special, count) * rng.choice([-1.0, 1.0], count)).astype(kind),
        ]
    return np.choose(rng.integers(0, len(choices), count), choices)


def brought_below(limit, values):
    """With an exponent below a limit, on both sides."""
    mantissas, exponents = np.frexp(values)
    return np.ldexp(mantissas, (exponents + limit) % (2 * limit) - limit)


def operands(rng, kind, count, limit):
    """Random a, b and c, of which many nearly or wholly cancel: what is left of a product then
    counts most.
    """
    with np.errstate(all="ignore"):
        drawn = (numbers(rng, kind, count)[np.newaxis] for _ in range(3))
        a, b, c = (brought_below(limit, values) for values in drawn)
        off = 1 + rng.integers(-3, 4, c.shape) * np.finfo(kind).eps
        c = np.where(rng.random(c.shape) < 0.4, (-(a * b) * off).astype(kind), c)
    return [a, b, c]


def of_c(kind, values):
    """C's ``fma`` of each element."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = library.fmaf if kind is np.float32 else library.fma
    function.restype = ctypes.c_float if kind is np.float32 else ctypes.c_double
    function.argtypes = [function.restype] * 3
    rows = zip(*(x.ravel().tolist() for x in values))
    return np.array([[function(*row) for row in rows]], kind)


ANY = 2000  # more than each exponent


@seeded(2)
@pytest.mark.parametrize(
    ("function", "kind", "limit"),
    [
        (multiply_add, np.float32, ANY),
        (multiply_add, np.float64, ANY),
        (in_the_sites_python, np.float64, 400),
    ],
)
def test_a_multiply_add_is_rounded_once(function, kind, limit, seed):
    """In the site's Python, far from the limits of the exponent."""
    values = operands(np.random.default_rng(seed), kind, 20_000, limit)
    expected, got = of_c(kind, values), function(*values)
    assert differences(values, expected, got) == []
    assert 0.01 < np.isnan(expected).mean() < 0.2 and (expected == 0).mean() > 0.01
