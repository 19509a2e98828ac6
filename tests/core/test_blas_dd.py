"""Double-doubles: exact conversions."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cypresskit.blas import to_fractions, to_pairs

parts = st.floats(-1e90, 1e90).map(lambda x: x if abs(x) > 1e-90 else 0.0)
numbers = st.builds(lambda x, y: Fraction(x) + Fraction(x * y * 2.0**-53), parts, st.floats(-1, 1))


@given(numbers, numbers)
def test_there_and_back_exactly(x, y):
    pairs = to_pairs([x, y])
    assert to_fractions(pairs).tolist() == [x, y]
    assert np.array_equal(to_pairs(to_fractions(pairs)), pairs)


@given(st.fractions())
def test_made_of_fractions_rounded_once(x):
    high = float(x)
    assert to_pairs(x).tolist() == [high, float(x - Fraction(high))]


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
    assert to_fractions(to_pairs(value)) == exact
