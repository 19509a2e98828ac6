"""A sum, digit by digit: its digits are those of exact arithmetic and of the real kernels."""

from fractions import Fraction
from functools import cache

import numpy as np
from pages import frames, view

import cypresskit as ck
from cypresskit.blas import to_fractions, to_pairs

FORMATS = {"single": np.float32, "double": np.float64, "double-double": None}
HIGH, LOW = 8, -31  # the first and the last place that the sums of this element have


@cache
def sums(n: int = 8, row: int = 2, column: int = 4) -> dict[str, list[Fraction]]:
    """Partial sums of an element of Hilbert's matrix times its inverse, exactly and as computed."""
    a, b = ck.teach.double_double.hilbert(n)
    parts = {"exact": [sum(map(Fraction, a[row, :k] * b[:k, column])) for k in range(1, n + 1)]}
    for name, dtype in FORMATS.items():
        x, y = (to_pairs(m) if dtype is None else m.astype(dtype) for m in (a, b))
        parts[name] = []
        for k in range(1, n + 1):
            c = ck.gemm(x[:, :k], y[:k])
            found = c[row, column]
            parts[name].append(to_fractions(found) if dtype is None else Fraction(float(found)))
    return parts


def test_digits_end_where_the_bits_of_a_format_do():
    """The last digit is the last that a unit in the last place reaches, the picture's last, or
    where a smaller error begins; and right ones are those of the exact sum.
    """
    player = view("digits")
    for name, bits in (("single", 24), ("double", 53), ("double-double", 106)):
        state = frames(player, f"digits {name}", "shade")
        for frame, value in enumerate(sums()[name]):
            if not value:
                continue
            unit = 2.0 ** (np.floor(np.log2(abs(float(value)))) + 1 - bits)
            last = HIGH - np.flatnonzero(state[frame]).max()
            cut = last == LOW
            error = abs(value - sums()["exact"][frame])
            unit = min(unit, float(error) or unit)
            assert cut or 10.0**last <= unit < 10.0 ** (last + 1)
            shown = frames(player, f"digit {name}", "value")[frame]
            exact = sums()["exact"][frame]
            for place in np.flatnonzero(state[frame] == 1):
                assert shown[place] == abs(exact) // Fraction(10) ** (HIGH - int(place)) % 10
            wrong = np.flatnonzero(state[frame] == 2)
            assert (len(wrong) > 0) == (error > 0)
            assert not error or 1 <= error / Fraction(10) ** (HIGH - int(wrong[0])) < 10
