"""The arithmetic, against exact fractions: one rounding, subnormals flushed, one NaN."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cypresskit.machine.numerics import MEANING, NAN, NAN64, fused, modified, scaled

FLOAT = st.one_of(
    st.floats(width=32),
    st.integers(0, 2**32 - 1).map(lambda bits: float(np.uint32(bits).view(np.float32))),
    st.floats(-(2.0**-100), 2.0**-100, width=32),
    st.sampled_from([2.0**-126, -(2.0**-126), 2.0**-63, 1 + 2.0**-23, 2.0**127, 1 - 2.0**-24]),
)


def bits(value: float) -> np.ndarray:
    return np.array([value], np.float32).view(np.uint32)


def nearest(exact: Fraction, digits: int, lowest: int) -> Fraction:
    """``exact`` rounded to nearest even with ``digits`` bits and no exponent below ``lowest``."""
    if not exact:
        return exact
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()  # this or one less
    if abs(exact) < Fraction(2) ** exponent:
        exponent -= 1
    exponent = max(lowest, exponent)
    unit = Fraction(2) ** (exponent - digits + 1)
    return round(exact / unit) * unit


def single(exact: Fraction, sign: float) -> float:
    """What the chip gives for an exact value: rounded to 24 bits, flushed below 2^-126, infinite beyond the range."""
    rounded = nearest(exact, 24, -10_000)
    if abs(rounded) < Fraction(2) ** -126:
        return math.copysign(0.0, sign if not exact else exact)
    return math.copysign(math.inf, rounded) if abs(rounded) >= Fraction(2) ** 128 else float(rounded)


def flush(x: float) -> float:
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def same(got: np.ndarray, want: float) -> bool:
    return got[0] == (NAN if math.isnan(want) else bits(want)[0])


@given(FLOAT, FLOAT, FLOAT)
@settings(max_examples=500, deadline=None)
def test_single_arithmetic_rounds_once_and_flushes(a, b, c):
    x, y, z = flush(a), flush(b), flush(c)
    with np.errstate(all="ignore"):
        got = {op: MEANING[op](bits(a), bits(b)) for op in ("add", "sub", "mul", "div")}
        got["mad"] = MEANING["mad"](bits(a), bits(b), bits(c))
    if not all(map(math.isfinite, (x, y, z))):
        return
    fx, fy, fz = Fraction(x), Fraction(y), Fraction(z)
    assert same(got["add"], single(fx + fy, x + y))
    assert same(got["sub"], single(fx - fy, x - y))
    assert same(got["mul"], single(fx * fy, x * y))
    zero = math.copysign(0.0, x) * math.copysign(1.0, y) + z if not fx * fy else 0.0  # products that cancel give +0
    assert same(got["mad"], single(fx * fy + fz, zero))
    if y:
        assert same(got["div"], single(fx / fy, math.copysign(1, x) * math.copysign(1, y)))


@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 3)
@settings(max_examples=300, deadline=None)
def test_double_fused_multiply_add_rounds_once(a, b, c):
    exact = nearest(Fraction(a) * Fraction(b) + Fraction(c), 53, -1022)
    got = fused(*(np.array([v]) for v in (a, b, c)))[0]
    if abs(exact) >= Fraction(2) ** 1024:
        assert math.isinf(got)
    else:
        assert Fraction(got) == exact


def test_the_fused_product_differs_from_two_roundings():
    x = np.float32(1 + 2.0**-12)
    got = MEANING["mad"](bits(x), bits(x), bits(-1.0)).view(np.float32)[0]
    assert got == np.float32(2.0**-11 + 2.0**-24)
    assert got != np.float32(x * x) - np.float32(1)


@pytest.mark.parametrize("op", ["add", "mul", "mad", "min", "flr", "dadd", "dmad"])
def test_every_nan_that_arithmetic_makes_is_the_same(op):
    count = MEANING_ARITY[op]
    if op.startswith("d"):
        odd = np.array([0xFFF8000000000123], np.uint64)
        assert MEANING[op](*[odd] * count)[0] == NAN64
    else:
        odd = np.array([0xFFC00123], np.uint32)
        assert MEANING[op](*[odd] * count)[0] == NAN
    assert MEANING["mov"](np.array([0xFFC00123], np.uint32))[0] == 0xFFC00123, "a move keeps the bits"


MEANING_ARITY = {"add": 2, "mul": 2, "mad": 3, "min": 2, "flr": 1, "dadd": 2, "dmad": 3}


@pytest.mark.parametrize(
    ("op", "value", "want"),
    [
        ("ftoi", -2.7, -2),
        ("ftoi", 3e9, 2**31 - 1),
        ("ftoi", -3e9, -(2**31)),
        ("ftoi", math.nan, 0),
        ("ftou", -1.0, 0),
        ("ftou", 3e9, 3_000_000_000),
        ("ftou", math.inf, 2**32 - 1),
    ],
)
def test_conversions_to_integers_truncate_and_clamp(op, value, want):
    assert MEANING[op](bits(value))[0] == np.uint32(want & 0xFFFFFFFF)


@pytest.mark.parametrize(("a", "b"), [(7, 3), (2**32 - 1, 2), (5, 0), (0, 0), (2**31, 2**31 - 1)])
def test_unsigned_division_gives_all_ones_for_a_zero_divisor(a, b):
    words = [np.array([v], np.uint32) for v in (a, b)]
    assert MEANING["udiv"](*words)[0] == (a // b if b else 2**32 - 1)
    assert MEANING["umod"](*words)[0] == (a % b if b else 2**32 - 1)


def test_shifts_use_five_bits_and_ishr_keeps_the_sign():
    minus, by = np.array([0x80000000], np.uint32), np.array([33], np.uint32)
    assert MEANING["ishr"](minus, by)[0] == 0xC0000000
    assert MEANING["ushr"](minus, by)[0] == 0x40000000
    assert MEANING["ishl"](np.array([3], np.uint32), by)[0] == 6


def test_frc_counts_from_the_floor_also_below_zero():
    assert MEANING["frc"](bits(-1.75)).view(np.float32)[0] == 0.25


def test_result_scale_and_saturation():
    assert scaled(bits(3.0), 0.25, False).view(np.float32)[0] == 0.75
    assert [scaled(bits(v), 1.0, True).view(np.float32)[0] for v in (-1.0, 0.5, 7.0, math.nan)] == [0.0, 0.5, 1.0, 0.0]


def test_source_modifiers_apply_in_the_specified_order():
    from cypresskit.il import Register, Source

    every = Source(Register("r", 0), negate="x", abs=True, invert=True, bias=True, x2=True)
    got = modified(bits(0.25), every, True).view(np.float32)[0]
    assert got == -abs(2 * ((1 - 0.25) - 0.5))
