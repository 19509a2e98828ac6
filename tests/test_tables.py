"""Tables as text: what a spreadsheet reads must be data, never a formula."""

import csv
import random
from io import StringIO

import pytest

from cypresskit.tables import as_csv, quantity

RISKY = "=+-@"


@pytest.mark.parametrize("mark", RISKY)
@pytest.mark.parametrize("before", ["", " ", "\t"])
def test_a_formula_in_a_cell_is_written_as_text(mark, before):
    formula = f"{before}{mark}1+2"
    (row,) = csv.DictReader(StringIO(as_csv([{"name": formula}])))
    assert row["name"] == f"'{formula}"


def test_random_texts_come_back_and_none_begins_a_formula():
    rng = random.Random(7)
    for _ in range(500):
        text = "".join(rng.choices("=+-@ '\",;\n\tabc1", k=rng.randrange(1, 8)))
        (row,) = csv.DictReader(StringIO(as_csv([{"text": text, "number": -1.5}])))
        assert row["text"].strip()[:1] not in {*RISKY}
        assert row["text"] in (text, f"'{text}")
        assert row["number"] == "-1.5"


@pytest.mark.parametrize("count, words", [(0, "0 lines"), (1, "1 line"), (1200, "1,200 lines")])
def test_a_quantity_has_its_plural(count, words):
    assert quantity(count, "line") == words
