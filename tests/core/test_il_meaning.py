"""The arithmetic, against exact fractions: one rounding, subnormals flushed, one NaN."""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sampling import ROWS

from cypresskit.il import OPCODES
from cypresskit.il.meaning import MEANING, NAN, NAN64

FLOAT = st.one_of(
    st.floats(width=32),
    st.integers(0, 2**32 - 1).map(lambda bits: float(np.uint32(bits).view(np.float32))),
    st.floats(-(2.0**-100), 2.0**-100, width=32),
    st.sampled_from([2.0**-126, -(2.0**-126), 2.0**-63, 1 + 2.0**-23, 2.0**127, 1 - 2.0**-24]),
)


def bits(value):
    return np.array([value], np.float32).view(np.uint32)


def nearest(exact, digits, lowest):
    """``exact`` rounded to nearest even with ``digits`` bits and no exponent below ``lowest``."""
    if not exact:
        return exact
    exponent = (
        abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    )  # this or one less
    exponent = max(lowest, exponent - (abs(exact) < Fraction(2) ** exponent))
    unit = Fraction(2) ** (exponent - digits + 1)
    return round(exact / unit) * unit


def single(exact, sign):
    """What the chip gives for an exact value: rounded to 24 bits, flushed below 2^-126, infinite
    beyond the range.
    """
    rounded = nearest(exact, 24, -10_000)
    if abs(rounded) < Fraction(2) ** -126:
        return math.copysign(0.0, sign if not exact else exact)
    return (
        math.copysign(math.inf, rounded) if abs(rounded) >= Fraction(2) ** 128 else float(rounded)
    )


FINITE, NUMBER = FLOAT.filter(math.isfinite), FLOAT.filter(lambda x: not math.isnan(x))


def flush(x):
    return math.copysign(0.0, x) if abs(x) < 2.0**-126 else x


def same(got, want):
    if got.dtype == np.uint64:
        return got[0] == (NAN64 if math.isnan(want) else np.float64(want).view(np.uint64))
    return got[0] == (NAN if math.isnan(want) else bits(want)[0])


def multiply_add(a, b, c):
    return a * b + c


SINGLE = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}
SINGLE |= {"mad": multiply_add, "fma": multiply_add, "rcp": lambda a: 1 / a}


@given(FINITE, FINITE, FINITE)
@example(
    2.0**-75 * (1 + 2.0**-15), -(2.0**-76) * (1 - 2.0**-15), 2.0**-126
)  # a hair above what is flushed
@example(
    2.0**-75 * (1 + 2.0**-12), -(2.0**-76) * (1 - 2.0**-12 + 2.0**-24), 2.0**-126
)  # and one below
@example(0.0, -0.0, 1.0)
@example(-1.0, 0.0, 1.0)
@settings(max_examples=400)
def test_single_arithmetic_rounds_once_and_flushes(a, b, c):
    for op, exact in SINGLE.items():
        given_ = (a, b, c)[: len(OPCODES[op].sources)]
        numbers = [flush(x) for x in given_]
        with np.errstate(all="ignore"):
            got = MEANING[op](*map(bits, given_))
            double = exact(*map(np.float64, numbers))  # infinite, or none, if divided by 0
        is_number = np.isfinite(double)
        want = single(exact(*map(Fraction, numbers)), double) if is_number else double
        assert same(got, want), op


@given(*[st.floats(allow_nan=False, allow_infinity=False)] * 3)
@settings(max_examples=300)
@example(-0.0, 1.0, -0.0)
def test_double_fused_multiply_add_rounds_once(a, b, c):
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    words = (np.array([v]).view(np.uint64) for v in (a, b, c))
    rounded = nearest(abs(exact), 53, -1022)
    size = float(rounded) if rounded < Fraction(2) ** 1024 else math.inf
    sign = exact / abs(exact) if exact else a * b + c
    assert same(MEANING["dmad"](*words), math.copysign(size, sign))


OF_NAN = {"add": 2, "mul": 2, "mad": 3, "min": 2, "flr": 1, "dadd": 2, "dmad": 3}


@pytest.mark.parametrize(("name", "count"), OF_NAN.items())
def test_every_nan_that_arithmetic_makes_is_the_same(name, count):
    odd = (
        np.array([0xFFF8000000000123], np.uint64)
        if name[0] == "d"
        else np.array([0xFFC00123], np.uint32)
    )
    assert same(MEANING[name](*[odd] * count), math.nan)
    assert MEANING["mov"](np.array([0xFFC00123], np.uint32))[0] == 0xFFC00123, (
        "a move keeps the bits"
    )


@pytest.mark.parametrize(("op", "value", "whole"), ROWS["test_il_meaning"]["truncated"])
def test_conversions_to_integers_truncate_and_clamp(op, value, whole):
    assert MEANING[op](bits(value))[0] == np.uint32(whole & 0xFFFFFFFF)


WORD = st.one_of(
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 31, 32, 2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**32 - 1]),
)


def to_signed(word):
    return word - (word >> 31 << 32)


EXACT = {
    "umul_high": lambda a, b: a * b >> 32,
    "iadd": operator.add,
    "isub": operator.sub,
    "inegate": operator.neg,
    "imul": operator.mul,
    "umul": operator.mul,
    "imad": multiply_add,
    "umad": multiply_add,
    "udiv": lambda a, b: a // b if b else -1,
    "umod": lambda a, b: a % b if b else -1,
    "ishl": lambda a, b: a << b % 32,
    "ishr": lambda a, b: to_signed(a) >> b % 32,
    "ushr": lambda a, b: a >> b % 32,
    "and": operator.and_,
    "iand": operator.and_,
    "ior": operator.or_,
    "ixor": operator.xor,
    "inot": operator.invert,
    "imin": lambda a, b: min(to_signed(a), to_signed(b)),
    "imax": lambda a, b: max(to_signed(a), to_signed(b)),
    "umin": min,
    "umax": max,
    "ilt": lambda a, b: -(to_signed(a) < to_signed(b)),
    "ige": lambda a, b: -(to_signed(a) >= to_signed(b)),
    "ieq": lambda a, b: -(a == b),
    "ine": lambda a, b: -(a != b),
    "ult": lambda a, b: -(a < b),
    "uge": lambda a, b: -(a >= b),
    "mov": lambda a: a,
    "cmov_logical": lambda a, b, c: b if a else c,
}


@given(WORD, WORD, WORD)
@settings(max_examples=200)
def test_integer_instructions_are_exact(a, b, c):
    for op, exact in EXACT.items():
        values = (a, b, c)[: len(OPCODES[op].sources)]
        words = [np.array([value], np.uint32) for value in values]
        assert int(MEANING[op](*words)[0]) == exact(*values) % 2**32, op


CONVERTED = {  # what is drawn, its type, and the number that it becomes
    "itof": (WORD, np.uint32, lambda a: single(Fraction(to_signed(a)), 0.0)),
    "utof": (WORD, np.uint32, lambda a: single(Fraction(a), 0.0)),
    "d2f": (st.floats(-(2.0**1000), 2.0**1000), np.float64, lambda a: single(Fraction(a), a)),
    "f2d": (FLOAT, np.float32, flush),
}


@pytest.mark.parametrize("op", CONVERTED)
@given(st.data())
@settings(max_examples=300)
def test_numbers_become_the_nearest_ones(op, data):
    drawn, kind, want = CONVERTED[op]
    value = data.draw(drawn)
    with np.errstate(all="ignore"):
        got = MEANING[op](np.array([value], kind).view(f"u{kind().itemsize}"))
    assert same(got, want(value))


COMPARED = {"lt": operator.lt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}
CHOSEN = {"min": operator.lt, "max": operator.ge}


@given(FLOAT, FLOAT)
@settings(max_examples=500)
def test_floats_compare_as_numbers(a, b):
    x, y = flush(a), flush(b)
    for op, holds in COMPARED.items():
        assert MEANING[op](bits(a), bits(b))[0] == 0xFFFFFFFF * holds(x, y), op


@given(NUMBER, NUMBER)
def test_of_two_numbers_one_is_chosen(a, b):
    x, y = flush(a), flush(b)
    for op, first in CHOSEN.items():
        assert same(MEANING[op](bits(a), bits(b)), x if first(x, y) else y), op


@given(FINITE)
@settings(max_examples=500)
def test_a_fraction_is_what_is_above_the_whole_number(a):
    x, rest = flush(a), MEANING["frc"](bits(a)).view(np.float32)[0]
    assert Fraction(float(rest)) == nearest(Fraction(x) - math.floor(x), 24, -149)


DOUBLE = {"dadd": np.add, "dmul": np.multiply}


@given(*[st.floats()] * 2)
@settings(max_examples=300)
def test_doubles_are_those_of_ieee(a, b):
    x, y = (np.array([v]).view(np.uint64) for v in (a, b))
    with np.errstate(all="ignore"):
        for op, reference in DOUBLE.items():
            assert same(MEANING[op](x, y), reference(np.float64(a), np.float64(b))), op


ROUNDED = {
    "round_nearest": round,
    "round_neginf": math.floor,
    "round_plusinf": math.ceil,
    "round_z": math.trunc,
}
ROUNDED["flr"] = math.floor


@given(FINITE)
@settings(max_examples=500)
def test_whole_numbers_are_rounded_as_their_names_say(a):
    x = flush(a)
    for op, exact in ROUNDED.items():
        got = MEANING[op](bits(a)).view(np.float32)[0]
        assert got == exact(Fraction(x)), op
        assert math.copysign(1, got) == math.copysign(1, x) or got != 0


@given(st.lists(FLOAT, min_size=8, max_size=8))
def test_dot_products_sum_from_the_left_each_step_rounded(values):
    words = np.array(values, np.float32).view(np.uint32).reshape(2, 4, 1)
    with np.errstate(all="ignore"):
        total, *more = (MEANING["mul"](words[0, n], words[1, n]) for n in range(4))
        for product in more:
            total = MEANING["add"](total, product)
        assert MEANING["dp4"](words[0], words[1])[0] == total


def test_no_instruction_is_without_a_reference():
    """What the tests of this file hold against exact numbers."""
    tables = EXACT, SINGLE, CONVERTED, COMPARED, CHOSEN, DOUBLE, ROUNDED
    truncated = [op for op, *_ in ROWS["test_il_meaning"]["truncated"]]
    named = {*itertools.chain(*tables, truncated), *"frc dmad dp4 rcp_vec".split()}
    assert named >= {name for name, op in OPCODES.items() if op.kind == "alu"}
    assert MEANING["rcp_vec"] is MEANING["rcp"]
