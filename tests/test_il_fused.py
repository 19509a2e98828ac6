"""The multiply-add of ``cypresskit.il.fused``, and numpy's for where there is no LLVM."""

import subprocess
import sys

import numpy as np
import pytest

from cypresskit.il import fused, fused_in_numpy

FIRST_CALLS = """
import gc, threading
import numpy as np
from cypresskit.il.fused import multiply_add

numbers = np.arange(12.0).reshape(3, 4)
ready, compiled = threading.Barrier(8), threading.Barrier(8)
right = []

def first_call():
    ready.wait()
    multiply_add(numbers, numbers, numbers)
    compiled.wait()
    gc.collect()
    product, _ = multiply_add(numbers, numbers, numbers)
    right.append((product == numbers * numbers + numbers).all())

threads = [threading.Thread(target=first_call) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(right) == 8 and all(right)
"""


def test_first_calls_at_the_same_time_keep_their_code():
    """In a process of its own: code that is gone ends it."""
    ended = subprocess.run([sys.executable, "-c", FIRST_CALLS], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr


def numbers(rng: np.random.Generator, kind: type, count: int) -> np.ndarray:
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


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
@np.errstate(all="ignore")
def test_numpy_and_llvm_round_alike(kind, seed):
    """Sums that cancel nearly or wholly are among them, since what is left of a product then counts
    most.
    """
    rng = np.random.default_rng(seed)
    a, b, c = (numbers(rng, kind, 20_000)[np.newaxis] for _ in range(3))
    off = 1 + rng.integers(-3, 4, c.shape) * np.finfo(kind).eps
    c = np.where(rng.random(c.shape) < 0.4, (-(a * b) * off).astype(kind), c)
    expected, got = (form.multiply_add(a, b, c)[0] for form in (fused, fused_in_numpy))
    word = np.dtype(f"u{np.finfo(kind).bits // 8}")
    differs = (expected.view(word) != got.view(word)) & ~(np.isnan(expected) & np.isnan(got))
    assert [*zip(a[differs], b[differs], c[differs])] == []
    assert 0.01 < np.isnan(expected).mean() < 0.2 and (expected == 0).mean() > 0.01


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numpy_and_llvm_ask_for_the_same_second_looks(kind):
    rng = np.random.default_rng(0)
    second_looks = set()
    for _ in range(3_000):
        operands = [numbers(rng, kind, 1)[np.newaxis] for _ in range(3)]
        expected, got = (form.multiply_add(*operands)[1] for form in (fused, fused_in_numpy))
        assert expected == got, operands
        second_looks.add(expected)
    assert second_looks == {False, True}
