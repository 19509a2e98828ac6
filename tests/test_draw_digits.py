"""A sum, digit by digit: its digits are those of exact arithmetic and of the real kernels."""

from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from pages import drawn, frames, view
from said import Rule, Said, assert_held

import cypresskit as ck

FORMATS = {"single": np.float32, "double": np.float64, "double-double": None}
HIGH, LOW = 8, -31  # the first and the last place that the sums of this element have
RAISED = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"


@cache
def sums(n: int = 8, row: int = 2, column: int = 4) -> dict[str, list[Fraction]]:
    """Partial sums of an element of Hilbert's matrix times its inverse, exactly and as computed."""
    a, b = ck.teach.double_double.hilbert(n)
    parts = {"exact": [sum(map(Fraction, a[row, :k] * b[:k, column])) for k in range(1, n + 1)]}
    for name, dtype in FORMATS.items():
        x, y = (ck.DD(m) if dtype is None else m.astype(dtype) for m in (a, b))
        parts[name] = []
        for k in range(1, n + 1):
            c = ck.gemm(x[:, :k], y[:k])
            found = c.fractions()[row, column] if dtype is None else Fraction(float(c[row, column]))
            parts[name].append(found)
    return parts


def rules() -> dict[str, Rule]:
    def row(say: Said) -> str:
        return max((n for n in sums() if say.where.endswith(f" {n}")), key=len)

    def digit(say: Said, _):
        """The exact sum's digit, or the error's from where that begins."""
        exact, value = sums()["exact"][say.frame], sums()[row(say)][say.frame]
        places = range(HIGH, HIGH - len(say.data["x"]), -1)
        error = abs(value - exact)
        number = abs(exact) if error < Fraction(10) ** places[say.index] else error
        return [number // Fraction(10) ** places[say.index] % 10]

    def power(say: Said, _):
        """A label above the column of its place."""
        places = drawn(view("digits"), "digits exact")["x"]
        place = HIGH - int(np.argmin(np.abs(np.array(places) - say.cell("x"))))
        return say.text == "10" + str(place).translate(str.maketrans("-0123456789", RAISED))

    def off(say: Said, _):
        return near(say.text, abs(sums()[row(say)][say.frame] - sums()["exact"][say.frame]))

    def caption(say: Said, shown):
        errors = [sums()[name][say.frame] - sums()["exact"][say.frame] for name in FORMATS]
        true = [say.frame + 1, len(sums()["exact"]), sums()["exact"][say.frame]]
        true += [abs(error) for error in errors if error]
        return len(shown) == len(true) and all(
            abs(number - float(part)) <= 0.06 * abs(float(part))
            for number, part in zip(shown, true)
        )

    def near(text: str, true: Fraction) -> bool:
        return abs(float(text) - float(true)) <= 0.06 * float(true)

    return {
        r"#": lambda say, n: off(say, n) if say.where.startswith("off") else digit(say, n),
        rf"#[{RAISED}]+": power,
        r"# of # products\. .*": caption,
        r".*, # bits": lambda say, n: n == [{"s": 24, "d": 53}[say.text[0]]] or n == [106],
    }


def test_every_number_is_a_sums():
    player = view("digits")
    assert_held(player, rules())


def test_the_last_frame_is_what_the_products_are():
    """Summary and result: the caption's errors are those of whole products."""
    a, b = ck.teach.double_double.hilbert(8)
    assert sums()["exact"][-1] == 0
    for name, dtype in (("single", np.float32), ("double", np.float64)):
        c = ck.gemm(a.astype(dtype), b.astype(dtype))[2, 4]
        assert sums()[name][-1] == Fraction(float(c))
        assert f"{name} by {abs(float(c)):.2g}" in view("digits").captions[-1]


def test_digits_end_where_the_bits_of_a_format_do():
    """The last digit is the last that a unit in the last place reaches, or the picture's last."""
    player = view("digits")
    for name, bits in (("single", 24), ("double", 53), ("double-double", 106)):
        state = frames(player, f"digits {name}", "shade")
        for frame, value in enumerate(sums()[name]):
            if not value:
                continue
            unit = 2.0 ** (np.floor(np.log2(abs(float(value)))) + 1 - bits)
            last = HIGH - np.flatnonzero(state[frame]).max()
            cut = last == LOW
            assert cut or 10.0**last <= unit < 10.0 ** (last + 1)


def test_matrices_that_dont_fit_are_rejected():
    a, b = ck.teach.double_double.hilbert(4)
    with pytest.raises(ValueError, match="needs"):
        ck.teach.double_double.digits(a, b[:3], (0, 0))
    with pytest.raises(ValueError, match="isn't in a product"):
        ck.teach.double_double.digits(a, b, (4, 0))
