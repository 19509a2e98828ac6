"""The multiply-add of ``cypresskit.il.fused`` rounds once, as C's ``fma`` does."""

import ctypes
import ctypes.util

import numpy as np
import pytest
from same_bits import differences
from sampling import seeded

from cypresskit.il.fused import multiply_add


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


def operands(rng, kind, count):
    """Random a, b and c, of which many nearly or wholly cancel: what is left of a product then
    counts most.
    """
    with np.errstate(all="ignore"):
        a, b, c = (numbers(rng, kind, count)[np.newaxis] for _ in range(3))
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


@seeded(2)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_multiply_add_is_rounded_once(kind, seed):
    values = operands(np.random.default_rng(seed), kind, 20_000)
    expected, got = of_c(kind, values), multiply_add(*values)
    assert differences(values, expected, got) == []
    assert 0.01 < np.isnan(expected).mean() < 0.2 and (expected == 0).mean() > 0.01
