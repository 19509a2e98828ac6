"""Knuth's two-sum, step by step, in powers of two. Left out: infinities and NaN."""

from fractions import Fraction

from cypresskit.lesson_table import Table


def two_sums(*pairs: tuple[float, float]) -> Table:
    """Tabulate Knuth's two-sum of each pair (a, b): a row for each step, every set bit as its power
    of two.
    """
    columns = [_steps(a, b) for a, b in pairs]
    rows = [[step, *(powers(column[step]) for column in columns)] for step in columns[0]]
    return Table(["step", *(f"{a:.3g} + {b:.3g}" for a, b in pairs)], rows)


def powers(number: float) -> str:
    """Return a number as its set bits: 2^1 + 2^0 for 3."""
    exact = Fraction(number)
    lowest = 1 - exact.denominator.bit_length()
    bits = f"{abs(exact.numerator):b}"
    powers_of_two = [lowest + len(bits) - 1 - n for n, bit in enumerate(bits) if bit == "1"]
    sign = "-" if number < 0 else ""
    return sign + f" {sign or '+'} ".join(f"2^{power}" for power in powers_of_two) or "0"


def _steps(a: float, b: float) -> dict[str, float]:
    s = a + b
    t = s - a
    steps = {"a": a, "b": b, "s = a + b": s, "t = s - a": t, "s - t": s - t}
    steps |= {"a - (s - t)": a - (s - t), "b - t": b - t}
    return steps | {"e, the sum of both": steps["a - (s - t)"] + steps["b - t"]}
