"""Digits of C = A^T B in single, double and double-double, against exact arithmetic, as k grows.

The numbers are computed by the kernels themselves, on the simulated card, and compared as fractions. Each precision
gets the same matrices rounded to its own format, and its own exact product. The error is taken relative to the sum of
the products' sizes, which is what rounding is bounded by (Higham, 3.1): cancellation is no fault of a precision. Left
out: other transposes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import log10

import numpy as np

from cypresskit.blas import DD, gemm
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet

SIZES = (1, 4, 16, 64, 256, 1024)
KERNELS = {"single": "sgemm_tn", "double": "dgemm_tn", "double-double": "ddgemm_tn_fma"}
BITS = {"single": 24, "double": 53, "double-double": 106}
EXACT = 36.0  # digits drawn for an element without error


@dataclass(frozen=True, eq=False)
class Digits:
    """Correct digits of 64 elements of C for a ``k``: precision to float64 (64,); ``EXACT`` where there is no error."""

    k: int
    of: dict[str, np.ndarray]


def measure(k: int, seed: int = 8) -> Digits:
    """Multiply (k, 8) by (k, 8) matrices of normally distributed numbers in every precision, and exactly."""
    rng = np.random.default_rng(seed)
    high = rng.standard_normal((2, k, 8))
    low = np.spacing(high) / 2 * rng.uniform(-1, 1, high.shape)
    digits = {}
    for precision, kernel in KERNELS.items():
        if precision == "double-double":
            given = [DD.from_pairs(*pair) for pair in zip(high, low)]
        else:
            given = list(high.astype(np.float32 if precision == "single" else np.float64))
        a, b, c = (DD(matrix).fractions() for matrix in (*given, gemm(*given, trans_a=True, kernel=kernel)))
        exact = [sum(x * y for x, y in zip(u, v)) for u in a.T for v in b.T]
        size = [sum(abs(x * y) for x, y in zip(u, v)) for u in a.T for v in b.T]
        digits[precision] = np.array([_digits(f, e, s) for f, e, s in zip(c.ravel(), exact, size)])
    return Digits(k, digits)


def _digits(found: Fraction, exact: Fraction, size: Fraction) -> float:
    error = abs(found - exact) / size
    return min(EXACT, log10(error.denominator) - log10(error.numerator)) if error else EXACT


def accuracy(measured: Sequence[Digits] | Sequence[int] = SIZES) -> Player:
    """A player with a frame for each k: a point for each element of C. ``measured`` comes from ``measure``, or says for
    which k to call it."""
    made = [m if isinstance(m, Digits) else measure(int(m)) for m in measured]
    sheet = Sheet("Digits of single, double and double-double against exact")
    fig = sheet.chart(
        sheet.title, "correct decimal digits", "", height=240, x_range=(0, EXACT + 1), y_range=(2.7, -0.7)
    )
    fig.yaxis.ticker = list(range(3))
    fig.yaxis.major_label_overrides = dict(enumerate(KERNELS))
    fig.ygrid.visible = False
    for row, precision in enumerate(KERNELS):
        values = np.array([m.of[precision] for m in made])
        spread = row + 0.25 * (np.arange(64) % 8 - 3.5) / 3.5
        source = sheet.source(f"digits {precision}", x=values, y=spread)
        drawn = sheet.points(fig, "x", "y", row, size=7, source=source)
        drawn.glyph.fill_alpha = 0.45
        middle = np.median(values, axis=1)[:, np.newaxis]
        lines = sheet.source(f"median {precision}", x=middle, y0=[row - 0.4], y1=[row + 0.4])
        sheet.inks(fig.segment("x", "y0", "x", "y1", source=lines, line_width=3), line_color="ink")
        limit = BITS[precision] * np.log10(2)
        word = fig.segment([limit], [row - 0.45], [limit], [row + 0.45], line_width=1.5, line_dash="dashed")
        sheet.inks(word, line_color="soft")
        sheet.words(fig, [limit + 0.2], [row - 0.53], [f"{BITS[precision]} bits"], "soft", size=11)
    captions = [f"k = {m.k}. " + "\n".join(_said(p, m.of[p]) for p in KERNELS) for m in made]
    text = [sheet.title]
    text += [f"k = {m.k:5}  " + "  ".join(_said(p, m.of[p]).replace("**", "") for p in KERNELS) for m in made]
    note = sheet.note(
        "A point for each of 64 elements of C = A\N{MODIFIER LETTER CAPITAL T}B; a stroke at their median, dashes"
        f" where the format's bits end. {EXACT:.0f} means exact. Digits are counted against the sum of the products'"
        " sizes."
    )
    return sheet.player([fig], captions, "\n".join(text), below=[note], step="k")


def _said(precision: str, digits: np.ndarray) -> str:
    return f"**{precision}**: median {np.median(digits):.1f} digits, worst {digits.min():.1f}"
