"""The ruler of exponents: what it says is exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from pages import (
    drawn,
    frames,
    view,
)
from said import Rule, Said, assert_held

import cypresskit as ck

PAIRS = ((1.0, 2.0**-60 + 2.0**-70), (0.1, 0.2), (-3.0, 1e17))
FRAMES = 7


def steps(a: float, b: float) -> list[Fraction]:
    """Knuth's two-sum in exact arithmetic, each step rounded to a double."""

    def rounded(exact: Fraction) -> Fraction:
        return Fraction(float(exact))

    a, b = Fraction(a), Fraction(b)
    s = rounded(a + b)
    t = rounded(s - a)
    rest = rounded(s - t)
    lost_a, lost_b = rounded(a - rest), rounded(b - t)
    return [a, b, s, t, rest, lost_a, lost_b, rounded(lost_a + lost_b)]


def rules(pairs=PAIRS) -> dict[str, Rule]:
    def caption(say: Said, shown):
        scene, frame = divmod(say.frame, FRAMES)
        values = steps(*pairs[scene])
        if frame == 0:
            return shown == [float(value) for value in values[:2]]
        assert shown[0] == float(values[frame + 1]), "a double is written with all of its digits"
        numbers = [float(values[frame + 1])]
        if frame == 1 and sum(values[:2]) != values[2]:
            numbers.append(float(sum(values[:2]) - values[2]))
        return numbers

    return {
        r"a = #, b = #: .*": caption,
        r".* is #\..*": caption,
        r"#[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+": lambda *_: [2],
        r"#": lambda say, _: [0] if say.where.startswith("nothing") else [2],
    }


def test_every_number_is_exact():
    player = ck.teach.double_double.exponents(PAIRS)
    assert_held(player, rules())


def test_the_last_step_is_what_the_sum_lost():
    for a, b in PAIRS:
        *_, e = values = steps(a, b)
        assert values[2] + e == Fraction(a) + Fraction(b)


@pytest.mark.parametrize("pair", [(1.0, 1.0), (1e16, 1.0), (1.5, -0.25)])
def test_any_pair_is_exact(pair):
    player = ck.teach.double_double.exponents([pair])
    assert_held(player, rules([pair]))


def test_the_ruler_has_the_bits_of_the_numbers():
    """Lesson 06's question, asked of the picture: which bits of b does the sum lose? Those that e
    has.
    """
    player = view("exponents")
    last = {
        name: sum(count for _, count in player.scenes[: n + 1]) - 1
        for n, (name, _) in enumerate(player.scenes)
    }
    for (_, frame), (a, b) in zip(
        last.items(), ((1.0, 2.0**-60 + 2.0**-70), (0.1, 0.2), (-3.0, 1e17))
    ):
        bits = {
            step: np.isfinite(frames(player, f"bits {step}", "x")[frame]).sum()
            for step in ("a", "b", "e")
        }
        exact = Fraction(a) + Fraction(b) - Fraction(a + b)
        assert bits == {
            n: abs(v).numerator.bit_count()
            for n, v in zip("abe", (Fraction(a), Fraction(b), exact))
        }
    assert (
        "Lost: 8.68e-19" in player.captions[1] and "s + e is a + b, exactly" in player.captions[6]
    )
    x = [
        [v for v in frames(player, f"bits {step}", "x")[6].tolist() if v == v]
        for step in ("b", "e")
    ]
    assert x[0] == x[1] and len(x[0]) == 2, "all of b is lost, and e has it"
    fall = frames(player, "bits e", "y")[[1, 6], 0]
    assert fall[0] == drawn(player, "bits b")["y"][0] < fall[1], "and falls from b's row"


@pytest.mark.parametrize("pair", [*PAIRS, (1.5, 0.0)])
def test_a_and_b_have_all_of_their_53_places(pair):
    player = ck.teach.double_double.exponents([pair])
    for name, number in zip("ab", pair):
        shown = np.isfinite(frames(player, f"format {name}", "x")[0])
        assert shown.sum() == (53 if number else 0)
