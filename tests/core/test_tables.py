"""Tables as text: what a spreadsheet reads must be data, never a formula."""

import csv
import random
from io import StringIO

import pytest
from sampling import from_rows, seeded

from cypresskit.tables import as_csv, duration, markdown, quantity, ranged

RISKY = "=+-@\uff1d\uff0b\uff0d\uff20"  # and the wide ones, which some spreadsheets take as well


@seeded(2)
@pytest.mark.parametrize("ends", ",;\t")
def test_random_texts_come_back_and_none_begins_a_formula(ends, seed):
    """Whatever a spreadsheet takes for the end of a cell."""
    rng = random.Random(seed)
    for _ in range(300):
        text = "".join(rng.choices("=+-@\uff1d '\",;\n\r\tabc1", k=rng.randrange(1, 8)))
        written = as_csv([{"id": "x", "text": text, "number": -1.5}])
        lines = StringIO(written.replace("\r", "\n"))
        cells = [cell for row in csv.reader(lines, delimiter=ends) for cell in row]
        assert not [cell for cell in cells if cell.strip()[:1] in {*RISKY} and cell != "-1.5"]
        (row,) = csv.DictReader(StringIO(written, newline=""))
        assert row["text"].replace("'", "") == text.replace("'", "")
        assert row["number"] == "-1.5"


@pytest.mark.parametrize("count, words", [(0, "0 lines"), (1, "1 line"), (1200, "1,200 lines")])
def test_a_quantity_has_its_plural(count, words):
    assert quantity(count, "line") == words


@from_rows
def test_a_duration_has_the_unit_that_suits(seconds, words):
    assert duration(seconds) == words


@pytest.mark.parametrize(
    "numbers, words",
    [([3], "3"), ([3, 4], "3 and 4"), ([3, 4, 5], "3 to 5"), ([1, 3, 5], "1, 3 and 5")],
)
def test_numbers_that_follow_each_other_are_a_range(numbers, words):
    assert ranged(numbers) == words


def test_a_table_in_markdown():
    assert markdown(("n", "x"), [(1, 2.5)]) == "| n | x |\n|---|---|\n| 1 | 2.5 |"
