"""Double-double arrays: exact conversions."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import cypresskit as ck

parts = st.floats(-1e90, 1e90).map(lambda x: x if abs(x) > 1e-90 else 0.0)
numbers = st.builds(lambda x, y: Fraction(x) + Fraction(x * y * 2.0**-53), parts, st.floats(-1, 1))


@given(numbers, numbers)
def test_there_and_back_exactly(x, y):
    a, b = ck.DD(x), ck.DD(y)
    assert a.fractions() == x
    assert ck.DD(a.fractions()) == a
    assert (a == b) == (x == y)


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
        (True, Fraction(1)),
    ],
)
def test_what_it_is_made_of(value, exact):
    assert ck.DD(value).fractions() == exact


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
    picked = ck.DD.wrap(np.stack([high, high * 2.0**-60], -1))[index]
    assert np.array_equal(picked.hi, high[index])
    assert np.array_equal(picked.lo, high[index] * 2.0**-60)
    assert picked.shape == high[index].shape


def test_a_masked_array_is_rejected():
    with pytest.raises(TypeError, match=r"can't see the mask.*filled"):
        ck.DD(np.ma.masked_array([1.0, 2.0], [1, 0]))
