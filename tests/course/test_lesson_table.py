"""The tables of lessons: what stands under what, and that both forms have the same values."""

import random
import re
from html import unescape

from sampling import seeded

import cypresskit as ck


def cells(html, tag):
    return [unescape(text) for text in re.findall(rf"<{tag}[^>]*>(.*?)</{tag}>", html)]


def random_rows(seed):
    rng = random.Random(seed)
    size = 10 ** rng.uniform(-6, 6)
    kinds = [lambda: rng.uniform(-size, size), lambda: rng.randint(0, 9999)]
    kinds += [lambda: rng.choice(["text", "<b>", "a & b"]), lambda: None]
    columns = rng.choices(kinds, k=rng.randint(1, 5))
    return [[f"row {n}", *(make() for make in columns)] for n in range(rng.randint(1, 7))]


@seeded(30)
def test_a_number_stands_under_a_number_and_is_what_was_given(seed):
    """To three digits of its column's largest, in text and HTML."""
    rows = random_rows(seed)
    made = ck.Table([f"head {n}" for n in range(len(rows[0]))], rows)
    _, *lines = str(made).splitlines()
    shown = cells(made._repr_html_(), "td")
    for n, row in enumerate(rows):
        written = shown[n * len(row) : (n + 1) * len(row)]
        assert lines[n].split() == " ".join(written).split()
        for value, text, column in zip(row, written, zip(*rows)):
            if not isinstance(value, int | float):
                assert text == ("" if value is None else value)
                continue
            most = max(map(abs, column))
            assert abs(float(text.replace(",", "")) - value) <= 0.005001 * most
    for n in range(1, len(rows[0])):
        texts = [shown[n + len(rows[0]) * row] for row in range(len(rows))]
        if isinstance(rows[0][n], int | float):
            assert len({len(text.partition(".")[2]) for text in texts}) == 1


def test_a_function_is_called_for_each_combination():
    calls = []

    def speed(n, kernel):
        calls.append((n, kernel))
        return {"Gflop/s": n * len(kernel), "share, %": 12.5}

    made = ck.table(speed, n=[1, 2], kernel=["a", "bb"], bold="bb", note="Look at bb.")
    assert calls == [(1, "a"), (1, "bb"), (2, "a"), (2, "bb")]
    assert str(made).splitlines() == [
        "n  kernel  Gflop/s  share, %",
        "1  a             1      12.5",
        "1  bb            2      12.5",
        "2  a             2      12.5",
        "2  bb            4      12.5",
        "Look at bb.",
    ]
    assert made._repr_html_().count('<tr style="font-weight: 600">') == 2


def test_numbers_alone_fill_a_grid_with_the_last_parameter_across():
    made = ck.table(lambda a, b: a * b / 3, a=[1, 2], b=[10, 2000])
    assert str(made).splitlines() == [
        "a  b = 10  b = 2000",
        "1       3       667",
        "2       7     1,333",
    ]
