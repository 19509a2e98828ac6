"""Knuth's two-sum in bits, as text. Left out: infinities and NaN."""

from fractions import Fraction


def two_sum_bits(a: float, b: float) -> str:
    """Show Knuth's two-sum of ``a`` and ``b`` bit by bit, a line for each step. A column is a power
    of two, a 1 is a set bit, and a dot is a 0. Lines end at a double's 53 places or at the last
    column. Signs are left out.
    """
    s = a + b
    t = s - a
    steps = {"a": a, "b": b, "s = a + b": s, "t = s - a": t, "s - t": s - t}
    steps |= {"a - (s - t)": a - (s - t), "b - t": b - t}
    steps["e"] = steps["a - (s - t)"] + steps["b - t"]

    exact = {name: abs(Fraction(value)) for name, value in steps.items()}
    finest = max(number.denominator for number in exact.values())
    numbers = {name: int(number * finest) for name, number in exact.items()}
    width = max(1, *map(int.bit_length, numbers.values()))
    powers = range(width - finest.bit_length(), -finest.bit_length(), -1)
    ruler = "".join(f"2^{power}".ljust(10) for power in powers if power % 10 == 0)
    lines = [f"{a!r} + {b!r}", " " * (14 + powers[0] % 10) + ruler.rstrip()]
    for name, number in numbers.items():
        places = f"{number:b}"[:53].replace("0", ".") if number else "0 (nothing)"
        before = width - number.bit_length() if number else 0
        lines.append(f"{name:14}{' ' * before}{places}")
    return "\n".join(lines)
