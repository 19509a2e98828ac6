"""What WebAssembly has no instruction for, in the site's Python, gives the bits that it should."""

import numpy as np
from numba import njit
from same_bits import differences
from sampling import seeded

from cypresskit.il.fused import multiply_add
from tools.bench_page import missing_math
from tools.bench_page.missing_math import LARGE, SMALL


@seeded(1)
def test_fused_multiply_adds_are_rounded_once(seed):
    """Of any bits, and where the sum nearly cancels the product; near the limits of the exponent,
    twice.
    """

    @njit(error_model="numpy")
    def loop(a, b, c, result):
        for n in range(len(a)):
            result[n] = missing_math.fma(a[n], b[n], c[n])

    rng = np.random.default_rng(seed)
    a, b, c = (rng.integers(0, 2**64, 60_000, np.uint64).view(np.float64) for _ in range(3))
    with np.errstate(all="ignore"):
        a[:20_000] = np.ldexp(a[:20_000] % 1, rng.integers(-40, 40, 20_000))
        scale = rng.integers(-1022 - 60, 1024, 40_000)
        b[:40_000] = np.ldexp(1 + rng.random(40_000), scale - np.frexp(a[:40_000])[1])
        near = -(a * b) * np.ldexp(1, rng.integers(-3, 60, 60_000))
        c[:40_000] = np.where(rng.random(60_000) < 0.5, near, np.nextafter(near, 0))[:40_000]
    result = np.empty_like(a)
    loop(a, b, c, result)
    (once,) = multiply_add(a[None], b[None], c[None])
    with np.errstate(all="ignore"):
        product = a * b
        sizes = np.abs([a, b, product, c])
        is_usual = (sizes < LARGE).all(0) & (sizes[2] > SMALL) & ((c == 0) | (sizes[3] > SMALL))
        expected = np.where(is_usual, once, product + c)
    assert is_usual.sum() > 15_000
    assert differences((a, b, c), expected, result) == []
