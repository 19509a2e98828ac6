"""Lesson 00: the checks of its exercises: the peak, half of the peak."""

import numpy as np

from cypresskit.devices import HD5850, HD5870, HD5970
from cypresskit.isolated import Other
from cypresskit.teach.check import (
    Verdict,
    exercise,
    require,
    type_with_article,
)
from cypresskit.teach.formula import formula_exercise
from cypresskit.timing.simulate import simulate


def mistakes_in_peak(e, p, u, g):
    """Return what each mistake gives."""
    units = e * p * u
    return {
        "a multiply-add is two operations.": units * g,
        "a thread processor has several units, and each of them works.": 2 * e * p * g,
        "10^9 is in GHz and in Gflop/s already.": 2e9 * units * g,
        "10^9 is in GHz and in Gflop/s already, and a multiply-add is two operations.": (
            1e9 * units * g
        ),
        "0.85 is the clock of one of these chips: use `clock_ghz`.": 2 * units * 0.85,
        "not every chip here has 5 units: use `units`.": 2 * e * p * 5 * g,
        "each unit of an engine's thread processors works: how many are there?": 2 * e * u * g,
        "this is one engine: how many has the chip?": 2 * p * u * g,
        "this is one thread processor: how many has an engine, and how many engines are there?": (
            2 * u * g
        ),
        "these are the units. What does each of them do per second?": units,
        "an engine *has* thread processors, and these have units: multiply.": 2 * (e + p + u) * g,
        "the clock is in clocks per second: multiply by it.": 2 * units / g,
        "10^9 is in GHz and in Gflop/s already: no other power of 10 is needed.": (2e6 * units * g),
        "a multiply-add is two operations; the 2 is there twice.": 4 * units * g,
        "this is in Tflop/s. Return Gflop/s.": 2 * units * g / 1000,
        "that counts the units: how many times a second does each of them work?": 2 * units,
    }


@formula_exercise(
    [
        (b.simd_engines, b.thread_processors, b.processing_elements, b.clock_ghz)
        for b in (HD5870, HD5970, HD5850)
    ]
    + [(1, 1, 1, 0.85)],
    mistakes_in_peak,
    "how many units has the chip in all, and how many flops does each do per second?",
    " Gflop/s",
)
def check_peak(e, p, u, g):
    """Exercise 1: ``peak(engines, processors, units, clock_ghz)`` in Gflop/s."""
    return 2 * e * p * u * g


@exercise
def check_half(half: float) -> Verdict:
    """Exercise 2: the smallest multiple of 128 at which the model's ``sgemm_tn`` reaches half of
    the peak.
    """
    step = 128
    whole = isinstance(half, int | np.integer) and not isinstance(half, bool)
    message = f"half is {half!r}" + f", of type {type(half).__name__}" * (not whole)
    if isinstance(half, Other):
        message = f"half is {type_with_article(half)}"
    multiple = whole and half >= step and half % step == 0
    if whole and half >= step:
        message = f"{half} is no multiple of {step}"
    hint = f"it should be a whole number, a positive multiple of {step}."
    if isinstance(half, float) and half % step == 0:
        hint = "write a whole number without a point: `int(half)`."
    require(multiple, f"{message}.", hint)
    require(half <= 4096, f"N = {half} is larger than it has to be.", "look between 512 and 4096.")

    def percent(n: int) -> float:
        return simulate("sgemm_tn", n).percent if n else 0.0

    before = percent(int(half) - step)
    share = percent(int(half))
    hint = "larger matrices give the chip more to do."
    require(share >= 50, f"At N = {half} it reaches {share:.1f} % of the peak.", hint)
    message = (
        f"N = {half} reaches {share:.1f} %, but N = {half - step} reaches {before:.1f} % already."
    )
    require(before < 50, message, "go down in steps of 128.")
    return Verdict(
        True,
        f"N = {half} reaches {share:.1f} % of the peak, N = {half - step} only {before:.1f} %.",
    )
