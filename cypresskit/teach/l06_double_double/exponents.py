"""A ruler of exponents that shows where the bits of numbers lie, and Knuth's two-sum on it, step by
step.

Every number is a float64, computed as in lesson 06; a box is one of its bits, over its power of
two. Bits that a sum rounds off are drawn where they would have been. Left out: subnormal numbers.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty, together

PAIRS = ((1.0, 2.0**-60 + 2.0**-70), (0.1, 0.2), (-3.0, 1e17))
TWO_SUM = {
    "a": "a",
    "b": "b",
    "s = a + b": "c",
    "t = s - a": "soft",
    "s - t": "soft",
    "a - (s - t)": "read",
    "b - t": "wrote",
    "e": "alu",
}
FRAMES = len(TWO_SUM) - 1  # a and b come together
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
LEFT, WIDE, TOP, ROW, BITS = 120, 970, 8, 42, 53
WIDTH = LEFT + WIDE + 22  # of the stage
HEIGHT = TOP + ROW * len(TWO_SUM) + 24
MARKED = 60  # exponents for which the ruler's marks are ten apart


def two_sum(a: float, b: float) -> dict[str, float]:
    """Knuth's two-sum, all numbers by name: s is a + b rounded, e what rounding lost; s + e = a + b
    exactly.
    """
    s = a + b
    t = s - a
    lost = {"a - (s - t)": a - (s - t), "b - t": b - t}
    return {
        "a": a,
        "b": b,
        "s = a + b": s,
        "t = s - a": t,
        "s - t": s - t,
        **lost,
        "e": sum(lost.values()),
    }


def exponents(pairs: Sequence[tuple[float, float]] = PAIRS) -> Player:
    """A player of two-sum, a scene for each pair of floats. Raises ``ValueError`` for infinities,
    NaN, and a pair in which no number is normal.
    """
    nonempty(pairs, "two-sum is drawn for pairs of finite numbers", (Sequence, np.ndarray))
    sheet = Sheet("Two-sum on a ruler of exponents")
    sheet.stage("A row for each number, a box for each bit", WIDTH, HEIGHT)
    runs = [two_sum(*map(float, pair)) for pair in pairs]
    if not np.isfinite([list(run.values()) for run in runs]).all():
        raise ValueError(
            f"two-sum is drawn for pairs of finite numbers whose sum is finite, not for {pairs!r}"
        )
    spans = [_span(run) for run in runs]
    high, low = np.repeat(spans, FRAMES, axis=0).T[:, :, np.newaxis]
    wide = WIDE / (high - low + 1)
    apart = -(-int((high - low).max()) // MARKED)
    tens = 10 * np.arange(low.min() // 10, high.max() // 10 + 1, apart)
    x = np.where((low <= tens) & (tens < high), LEFT + (high - tens + 0.5) * wide, np.nan)
    tall = ROW * len(TWO_SUM)
    names = ["2" + str(n).translate(RAISED) for n in tens]
    ruler = sheet.boxes("ruler", x, TOP + tall / 2, 1, tall, ink="line", alpha=0.5, words=names)
    sheet.words("x", TOP + tall + 12, "words", "soft", source=ruler, align="center", size=12)
    for n, (step, ink) in enumerate(TWO_SUM.items()):
        y = TOP + ROW * (n + 0.5)
        sheet.words(LEFT - 8, y, step, ink, align="right", bold=True, size=14)
        come = np.arange(FRAMES)[:, np.newaxis] >= max(n - 1, 0)
        for kind, alpha in (("format", 0.18), ("bits", 1.0)):
            places = []
            for run, (left, right) in zip(runs, spans):
                ones: Sequence[int] = _bits(run[step])
                if kind == "format" and ones:
                    ones = range(max(ones), max(max(ones) - BITS, right - 1), -1)
                xs = LEFT + (left - np.array(ones, float) + 0.5) * WIDE / (left - right + 1)
                # Bits of b that s has lost are seen there first, and fall.
                falls = kind == "bits" and step == "e" and set(ones) <= set(_bits(run["b"]))
                places.append(
                    np.where(come | (falls & (np.arange(FRAMES) > 0))[:, np.newaxis], xs, np.nan)
                )
            x = together(places)
            down = (
                np.where(np.tile(come, (len(runs), 1)), y, TOP + ROW * 1.5) + 0 * x
                if step == "e"
                else y
            )
            size = np.broadcast_to(wide - 0.5, x.shape)
            sheet.boxes(
                f"{kind} {step}", x, down, size, ROW - 14, ink=ink, alpha=alpha, moves=("y",)
            )
        nothing = np.repeat([run[step] == 0 for run in runs], FRAMES) & np.tile(
            come[:, 0], len(runs)
        )
        sheet.numbers(
            f"nothing {step}", LEFT + 4, y, nothing, names=["", "0"], ink=ink, bold=True, size=14
        )
    captions = [_say(run, frame) for run in runs for frame in range(FRAMES)]
    key = sheet.note(
        "Left is large: a box is a bit that is 1, at its power of two; faint, its number's 53"
        " places."
    )
    scenes = [(f"{a:.4g} + {b:.3g}", FRAMES) for a, b in pairs]
    return sheet.player(captions, step="Operation", below=[key], scenes=scenes, seconds=9)


def _span(run: dict[str, float]) -> tuple[int, int]:
    """One more than the largest exponent of any bit in a run, and the smallest exponent of any bit
    or of any of the 53 places of a and b.
    """
    bits = {name: _bits(value) for name, value in run.items()}
    ones = [exponent for exponents in bits.values() for exponent in exponents]
    if not ones:
        raise ValueError("there are no bits to draw: both numbers are 0")
    last_places = [max(bits[name]) - BITS + 1 for name in "ab" if bits[name]]
    return max(ones) + 1, min(*ones, *last_places)


def _bits(value: float) -> list[int]:
    """The exponents of a number's bits that are 1."""
    fraction = abs(Fraction(value))
    low = 1 - fraction.denominator.bit_length()
    number = fraction.numerator
    return [low + n for n in range(number.bit_length()) if number >> n & 1]


def _say(run: dict[str, float], frame: int) -> str:
    if frame == 0:
        return f"a = {run['a']!r}, b = {run['b']!r}: their exponents lie apart."
    step = list(TWO_SUM)[frame + 1]
    exact = Fraction(run["a"]) + Fraction(run["b"]) - Fraction(run["s = a + b"])
    lost = " Nothing is lost." if not exact else f" Lost: {float(exact):.3g}."
    value = f"**{step}** is {run[step]!r}."
    return (
        value
        + (lost if step.startswith("s =") else "")
        + (" s + e is a + b, exactly." if step == "e" else "")
    )
