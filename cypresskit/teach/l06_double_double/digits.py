"""One sum, digit by digit, in three precisions: which digits a format holds, and which are wrong.

The sum is an element of a product, computed by the real kernels, product after product: a partial
sum is the result of a launch with a smaller k. The exact sum is beside it, in decimal places. A
number's places reach from its first digit to the last one that its bits can represent, or to where
its error begins, if that is below. Above its error it has the exact digits, and from there on the
digits of the error. Left out:
the products themselves, and infinite numbers.
"""

from fractions import Fraction
from math import floor, log10
from typing import NamedTuple

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Rows, Sheet, pixels
from cypresskit.teach.l06_double_double.checks import products

FORMATS = {"single": 24, "double": 53, "double-double": 106}  # the bits of each
WIDE, LEFT, RIGHT = 1120, 20, 1110  # the stage, and where the digits begin and end
TOP, ROW, NAME = 30, 72, 20  # where the rows begin, how high one is, and its name above it
DIGIT = 1.5  # widths of a place: the size of a digit that fills it
MOST = 40  # places that are drawn at most
ABSENT, RIGHT_DIGIT, ERROR_DIGIT = range(
    3
)  # a place without a digit, with a right one, with an error's
FILLS = "faint 0.5", "read 0.28", "wrote 0.45"


class Ruler(NamedTuple):
    """Decimal places from left to right, each known by its power of ten."""

    high: int
    low: int

    @property
    def places(self) -> np.ndarray:
        return np.arange(self.high, self.low - 1, -1)

    @property
    def width(self) -> float:
        """Of a place, in pixels."""
        return (RIGHT - LEFT) / len(self.places)

    def x(self, place):
        """Return the middle of a place."""
        return LEFT + (self.high - place + 0.5) * self.width


def digits(a, b, element: tuple[int, int]) -> Player:
    """Return a player of one element of A B, product after product, in each precision.

    Parameters
    ----------
    a, b
        Matrices (m, k) and (k, n) of exact numbers: whole ones or fractions, as object arrays.
    element
        Row and column.

    Examples
    --------
        ck.teach.double_double.digits(a, b, (2, 4))
    """
    a, b = np.asarray(a, object), np.asarray(b, object)
    row, column = element
    exact = np.cumsum([Fraction(x) * Fraction(y) for x, y in zip(a[row], b[:, column])])
    sums = _partial_sums(a, b, row, column)
    ruler = _ruler(exact, sums)
    sheet = Sheet(f"Which digits of C[{row}, {column}] are right?")
    rows = {"exact": exact, **sums}
    label = "A row for each precision, a box for each digit"
    sheet.stage(label, WIDE, TOP + ROW * len(rows) + 8, rows=Rows(LEFT, RIGHT))
    _draw_places(sheet, ruler, len(rows))
    for number, (name, values) in enumerate(rows.items()):
        _draw_row(sheet, name, values, exact, ruler, TOP + ROW * number)
    captions = [_say(n, len(exact), exact[n], sums) for n in range(len(exact))]
    lines = [f"{name}: {float(values[-1]):.3g} at the end" for name, values in rows.items()]
    legend = sheet.legend(
        ("a right digit", FILLS[RIGHT_DIGIT]),
        ("a digit of the error", FILLS[ERROR_DIGIT]),
        ("no bits for this digit", FILLS[ABSENT]),
    )
    last = len(exact) - 1
    return sheet.player(captions, "computed", lines, step="Product", opens=last, below=[legend])


def _partial_sums(a: np.ndarray, b: np.ndarray, row: int, column: int) -> dict[str, np.ndarray]:
    """Return the sum of the first product, of the first two, and so on, exactly as each precision
    has it.
    """
    parts = [products(a[:, :k], b[:k]) for k in range(1, a.shape[1] + 1)]
    return {name: np.array([c[name][row, column] for c in parts]) for name in FORMATS}


def _first(value: Fraction) -> int:
    """Return the power of ten of a number's first digit; 0 for zero."""
    if not value:
        return 0
    power = floor(log10(abs(value)))
    return (
        power + (abs(value) >= Fraction(10) ** (power + 1)) - (abs(value) < Fraction(10) ** power)
    )


def _last(value: Fraction, bits: int, exact: Fraction) -> int:
    """Return the power of ten of the last digit of a number that a format of ``bits`` bits can
    hold; or of its error's first digit, if that is lower.
    """
    ends = [_first(value - exact)] if value != exact else []
    if value:
        power = floor(log10(abs(value)) / log10(2))
        ends.append(floor((power + 1 - bits) * log10(2)))
    return min(ends, default=0)


def _ruler(exact: np.ndarray, sums: dict[str, np.ndarray]) -> Ruler:
    """Return the places that any of the numbers has."""
    numbers = [*exact, *(value for values in sums.values() for value in values)]
    high = max(0, *map(_first, numbers))
    low = min(
        _last(value, FORMATS[name], true)
        for name, values in sums.items()
        for value, true in zip(values, exact)
    )
    return Ruler(high, max(min(0, low), high - MOST + 1))


def _digit(value: Fraction, place: int) -> int:
    return int(abs(value) // Fraction(10) ** place % 10)


def _draw_places(sheet: Sheet, ruler: Ruler, rows: int) -> None:
    """Names of some places above the columns, and the decimal point."""
    named = ruler.places[ruler.places % 5 == 0]
    texts = [f"10{_raised(place)}" for place in named]
    sheet.text(ruler.x(named), 16, texts, "soft", align="center")
    x, y = np.full(rows, ruler.x(-0.5)), TOP + ROW * np.arange(rows) + (NAME + ROW) / 2
    sheet.boxes("point", x, y, pixels(2), ROW - NAME, color="ink")


def _raised(power: int) -> str:
    return str(power).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _draw_row(
    sheet: Sheet, name: str, values: np.ndarray, exact: np.ndarray, ruler: Ruler, y: float
) -> None:
    """Draw a number's digits in each frame, and above them its name and its error."""
    is_exact = name == "exact"
    bits = 0 if is_exact else FORMATS[name]
    head, y = y + NAME / 2, y + (NAME + ROW) / 2
    sheet.text(LEFT, head, name if is_exact else f"{name}, {bits} bits")
    places = ruler.places
    shape = len(values), len(places)
    digit, state = np.full(shape, 10), np.full(shape, ABSENT)
    for frame, (value, true) in enumerate(zip(values, exact)):
        error = value - true
        first = max(0, _first(value), _first(true))
        last = ruler.low if is_exact else _last(value, bits, true)
        for n, place in enumerate(places.tolist()):
            if not last <= place <= first:
                continue
            wrong = bool(error) and place <= _first(error)
            digit[frame, n] = _digit(error if wrong else true, place)
            state[frame, n] = ERROR_DIGIT if wrong else RIGHT_DIGIT
    x = ruler.x(places)
    sheet.boxes(
        f"digits {name}", x, y, ruler.width - 2, ROW - NAME - 6, fill=(FILLS, state), round=3
    )
    names = [*map(str, range(10)), ""]
    fit = DIGIT * ruler.width
    sheet.numbers(f"digit {name}", x, y, digit, names=names, align="center", size=14, fit=fit)
    signs = np.array([value < 0 for value in values]).astype(int)
    sheet.numbers(f"sign {name}", LEFT, y, signs, names=["", "\u2212"], align="right", size=14)
    if not is_exact:
        off = [f"off by {_off(value - true)}" for value, true in zip(values, exact)]
        texts = list(dict.fromkeys(off))
        which = np.array([texts.index(text) for text in off])
        sheet.numbers(f"off {name}", RIGHT, head, which, names=texts, align="right", **HEADING)


def _off(error: Fraction) -> str:
    digits, _, power = f"{abs(float(error)):.2g}".partition("e")
    return f"{digits} x 10{_raised(int(power))}" if power else digits


def _say(n: int, count: int, exact: Fraction, sums: dict[str, np.ndarray]) -> str:
    caption = f"**{n + 1} of {count} products.** The exact sum is {float(exact):,.10g}."
    wrong = [name for name, values in sums.items() if values[n] != exact]
    if not wrong:
        return f"{caption} All three formats have it."
    off = ", ".join(f"{name} by {_off(sums[name][n] - exact)}" for name in wrong)
    caption = f"{caption} Off: {off}."
    coarser = [name for name in sums if name not in wrong and FORMATS[name] < FORMATS[wrong[-1]]]
    if coarser:
        # A factor such as 1/3 is rounded in all formats; only the finest still shows the error.
        names = " and ".join(coarser).capitalize()
        why = "has exactly this number."
        if len(coarser) > 1:
            why = "have exactly this number."
        caption = f"{caption} {names} {why}"
    if n + 1 == count:
        return f"{caption} The rounding errors of the large sums are still in the small one."
    return caption
