"""Double-double arrays: exact conversions, and arithmetic against exact fractions."""

import itertools
import operator
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cypresskit as ck

EPS = Fraction(2) ** -104
parts = st.floats(-1e90, 1e90).map(lambda x: x if abs(x) > 1e-90 else 0.0)
numbers = st.builds(lambda hi, lo: ck.DD(hi) + ck.DD(hi * lo * 2.0**-53), parts, st.floats(-1, 1))


@given(numbers, numbers)
def test_arithmetic_is_within_a_few_units_of_2_to_the_minus_106(a, b):
    x, y = a.fractions(), b.fractions()
    assert abs((a + b).fractions() - (x + y)) <= EPS * abs(x + y)
    assert abs((a - b).fractions() - (x - y)) <= EPS * abs(x - y)
    assert abs((a * b).fractions() - x * y) <= EPS * abs(x * y)
    assert (-a).fractions() == -x
    assert ((a == b), (a == a)) == (x == y, True)


@given(numbers)
def test_there_and_back_exactly(a):
    exact = a.fractions()
    assert ck.DD(exact) == a
    assert ck.DD(a.text(40)).text() == a.text()


@given(st.fractions())
def test_made_of_fractions_rounded_once(x):
    got = ck.DD(x)
    high = float(x)
    assert (float(got.hi), float(got.lo)) == (high, float(x - Fraction(high)))


@pytest.mark.parametrize(
    ("value", "exact"),
    [
        (10**30 + 1, Fraction(10**30 + 1)),
        (np.int64(2**62 + 1), Fraction(2**62 + 1)),
        (np.float32(0.1), Fraction(float(np.float32(0.1)))),
        (Decimal("0.5"), Fraction(1, 2)),
        ("-2.5e3", Fraction(-2500)),
        ("7/8", Fraction(7, 8)),
        (True, Fraction(1)),
    ],
)
def test_what_it_is_made_of(value, exact):
    assert ck.DD(value).fractions() == exact


def test_text_has_as_many_digits_as_are_wanted():
    assert str(ck.DD("1/3")) == "0.33333333333333333333333333333333"
    assert str(ck.DD([[1, "0.1"]])) == "[[1 0.1]]"
    assert ck.DD("9.9999").text(3) == "10"
    assert ck.DD("123.456").text(4) == "123.5"
    assert repr(ck.DD("-2e-40")) == "DD(-2E-40)"
    assert str(ck.DD(np.inf)) == "inf"


SHAPE = (3, 1, 4)
indices = st.one_of(
    arrays.basic_indices(SHAPE, allow_newaxis=True, allow_ellipsis=True),
    arrays.integer_array_indices(SHAPE),
    arrays.arrays(bool, SHAPE),
    arrays.arrays(bool, SHAPE[:1]),
    st.tuples(st.just(...), arrays.arrays(np.int64, 2, elements=st.integers(-4, 3))),
)


@given(indices)
def test_an_index_picks_as_it_does_of_numpys_arrays(index):
    high = np.arange(1.0, 13.0).reshape(SHAPE)
    picked = (ck.DD(high) + ck.DD(high * 2.0**-60))[index]
    assert np.array_equal(picked.hi, high[index])
    assert np.array_equal(picked.lo, high[index] * 2.0**-60)
    assert picked.shape == high[index].shape


ODD = [0.0, 1.0, -3.0, 1.7e308, -1.7e308, 2.0**1000, np.inf, -np.inf, np.nan]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("operate", [operator.add, operator.sub, operator.mul])
def test_infinities_and_nan_are_those_of_float64(operate):
    """The low part is 0 there; where float64's result is finite, so are both parts."""
    for a, b in itertools.product(ODD, ODD):
        plain = operate(np.float64(a), np.float64(b))
        got = operate(ck.DD(a), ck.DD(b))
        assert got.hi == plain or (np.isnan(plain) and np.isnan(got.hi)), (
            f"{a} and {b}: {got}, not {plain}"
        )
        assert np.isfinite(got.lo), f"{a} and {b}: low part {got.lo}"


def test_text_of_any_exponent_is_taken_without_writing_it_out():
    rng = random.Random(3)
    for _ in range(200):
        digits = rng.choice(["1", "9.75", "0", "-3.125"])
        exponent = rng.choice([rng.randint(-400, 307), rng.randint(-(10**8), 10**8)])
        text = f"{digits}e{exponent}"
        if digits != "0" and exponent > 307:
            with pytest.raises(OverflowError, match="too large for a double-double"):
                ck.DD(text)
        else:
            assert float(ck.DD(text)) == float(text), text


def test_a_masked_array_is_rejected():
    with pytest.raises(TypeError, match=r"can't see the mask.*filled"):
        ck.DD(np.ma.masked_array([1.0, 2.0], [1, 0]))
