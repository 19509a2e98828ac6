"""Provenance: the algebra of the sums that a value is followed back to."""

from fractions import Fraction
from math import prod

from hypothesis import given
from hypothesis import strategies as st

from cypresskit.machine.provenance import (
    Amount,
    Factor,
    FormalSum,
    Key,
    MemoryWord,
    _product,
    _sum,
    _times,
)

STEP = 9
numbers = st.integers(-3, 3)
words = st.builds(MemoryWord, st.just("texture"), st.just(0), numbers, st.just(0), st.just(0))
keys = st.builds(
    lambda read: Key(tuple(sorted(Factor(word, step) for word, step in read)), -1),
    st.lists(st.tuples(words, st.integers(0, 1)), min_size=1, max_size=2),
)
sums = st.builds(
    lambda plain, terms: FormalSum(float(plain), {k: Amount(float(n)) for k, n in terms.items()}),
    numbers,
    st.dictionaries(keys, numbers, max_size=4),
)


def value(formal: FormalSum) -> Fraction:
    """The number that a sum stands for, where the word at x holds 2 x + 5."""
    terms = (
        Fraction(amount.times) * prod(2 * factor.word.x + 5 for factor in key.factors)
        for key, amount in formal.terms.items()
    )
    return Fraction(formal.plain) + sum(terms)


@given(sums, sums, numbers)
def test_sums_and_products_stand_for_those_of_their_numbers(left, right, factor):
    assert value(_sum(left, right)) == value(left) + value(right)
    assert value(_product(left, right, STEP)) == value(left) * value(right)
    assert value(_times(left, float(factor))) == value(left) * factor
