"""Exercises on formulas: when two numbers count as the same."""

import random

from cypresskit.teach.formula import _same


def test_numbers_match_if_they_agree_to_six_digits():
    rng = random.Random(11)
    for _ in range(200):
        right = rng.uniform(1, 10) * 10.0 ** rng.randrange(-6, 12)
        sign = rng.choice((-1, 1))
        assert _same(right * (1 + sign * 4e-6), right)
        assert not _same(right * (1 + sign * 6e-6), right), "differs in the sixth digit"


def test_a_whole_number_matches_only_itself():
    assert _same(2_000_000.4, 2_000_000)
    assert not _same(2_000_001, 2_000_000)
