"""Exercises on formulas: when two numbers count as the same."""

import math
import random
from math import gcd

import pytest
from sampling import from_rows, seeded

from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.formula import Formula, draw_case, formula_exercise, is_equal


@seeded(2)
def test_numbers_match_that_are_shown_alike_in_six_digits(seed):
    rng = random.Random(seed)
    for _ in range(100):
        right = rng.uniform(1, 2) * 10.0 ** rng.randrange(-6, 12)
        near, other = (
            right * (1 + rng.uniform(-1, 1) * 1e-5),
            right * rng.choice([1 - 2e-5, 1 + 2e-5]),
        )
        assert is_equal(near, right) or f"{near:.6g}" != f"{right:.6g}"
        assert not is_equal(other, right)


def test_a_whole_number_matches_only_itself():
    assert is_equal(2_000_000.4, 2_000_000)
    assert not is_equal(2_000_001, 2_000_000)


@seeded(5)
def test_a_random_case_is_like_those_that_are_shown(seed):
    rng = random.Random(seed)
    step = rng.choice([1, 7, 64])
    whole = [step * rng.randrange(1, 100) for _ in range(3)]
    real = [rng.uniform(-5, 5) for _ in range(3)]
    cases = [draw_case(list(zip(whole, real, [12] * 3))) for _ in range(20)]
    for number, share, same in cases:
        assert min(whole) <= number <= max(whole) and number % gcd(*whole) == 0
        assert min(real) <= share <= max(real) and same == 12
    assert all(len(set(column)) > 1 for column in list(zip(*cases))[:2])


def no_mistakes(*_):
    return {}


def formula(right, *cases):
    return Formula(right, "f", cases, no_mistakes, "think.", "", lambda: cases[0])


def hint(right, wrong, *cases):
    return formula(right, *cases).judged(wrong).hint


@seeded(5)
def test_a_constant_factor_is_told(seed):
    """Whatever the formula."""
    rng = random.Random(seed)
    cases = [tuple(rng.randint(2, 50) for _ in range(3)) for _ in range(4)]
    powers = [rng.choice((-2, -1, 1, 2)) for _ in range(3)]
    times = rng.choice((0.001, 0.25, 2, 1e9))

    def right(*case):
        return math.prod(number ** float(power) for number, power in zip(case, powers))

    assert f"each result is {times:.6g} times" in hint(right, lambda *x: times * right(*x), *cases)
    assert hint(right, lambda a, b, c: a + b - c, *cases).startswith("think.")


@from_rows
@pytest.mark.parametrize("right", ["a * b / c", "c * a / b", "a + b - c"])
def test_a_result_of_a_wrong_kind_is_told_its_kind_alone(wrong, kind, right):
    """Its value is right: no change of the formula is told to be one."""
    cell = f"f = lambda a, b, c: {wrong.format(right)}"
    made = eval(f"lambda a, b, c: {right}")
    check = formula_exercise([(6, 3, 2), (4, 8, 3)], no_mistakes, "think.", name="f")(made)
    verdict = check(AnswerSource([cell], "f"))
    assert f"returns {kind}, not a number" in verdict.message
    assert "`" not in verdict.hint and "hink." not in verdict.hint
