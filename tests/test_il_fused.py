"""The multiply-add of ``cypresskit.il.fused``, and numpy's for where there is no LLVM."""

import ctypes
import ctypes.util
import math
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


def operands(rng: np.random.Generator, kind: type, count: int) -> list[np.ndarray]:
    """Random a, b and c, of which many nearly or wholly cancel: what is left of a product then
    counts most.
    """
    with np.errstate(all="ignore"):
        a, b, c = (numbers(rng, kind, count)[np.newaxis] for _ in range(3))
        off = 1 + rng.integers(-3, 4, c.shape) * np.finfo(kind).eps
        c = np.where(rng.random(c.shape) < 0.4, (-(a * b) * off).astype(kind), c)
    return [a, b, c]


def differences(operands: list[np.ndarray], one: np.ndarray, other: np.ndarray) -> list[tuple]:
    """The operands whose results differ in their bits; all NaNs are alike."""
    word = np.dtype(f"u{one.itemsize}")
    differs = (one.view(word) != other.view(word)) & ~(np.isnan(one) & np.isnan(other))
    return [*zip(*(x[differs] for x in operands))]


@pytest.fixture(autouse=True)
def fma(monkeypatch):
    """C's ``fma`` where Python has none, with the errors of Python's."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    library.fma.argtypes = [ctypes.c_double] * 3
    library.fma.restype = ctypes.c_double

    def checked(*values: float) -> float:
        result = library.fma(*values)
        if math.isnan(result) and not any(map(math.isnan, values)):
            raise ValueError("invalid operation in fma")
        if math.isinf(result) and all(map(math.isfinite, values)):
            raise OverflowError("overflow in fma")
        return result

    if not hasattr(math, "fma"):
        monkeypatch.setattr(math, "fma", checked, raising=False)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numpy_and_llvm_round_alike(kind, seed):
    values = operands(np.random.default_rng(seed), kind, 20_000)
    expected, got = (form.multiply_add(*values)[0] for form in (fused, fused_in_numpy))
    assert differences(values, expected, got) == []
    assert 0.01 < np.isnan(expected).mean() < 0.2 and (expected == 0).mean() > 0.01


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numpy_and_llvm_ask_for_the_same_second_looks(kind):
    rng = np.random.default_rng(0)
    second_looks = set()
    for _ in range(3_000):
        values = [numbers(rng, kind, 1)[np.newaxis] for _ in range(3)]
        expected, got = (form.multiply_add(*values)[1] for form in (fused, fused_in_numpy))
        assert expected == got, values
        second_looks.add(expected)
    assert second_looks == {False, True}
