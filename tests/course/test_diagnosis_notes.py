"""A note's sentence says what the note holds."""

import pytest

from cypresskit.diagnosis.notes import SENTENCES, note

SENTENCE = "{lines:read} {matrix}[, and {0} and {1} differ][, in {name}][: {why.clause}]"


@pytest.mark.parametrize(
    ("lines", "values", "said"),
    [
        ([3], {}, "Line 3 reads C."),
        ([3], {"name": "", "why": note("no store")}, "Line 3 reads C: no line stores C."),
        ([3, 5], {"name": "k"}, "Lines 3 and 5 read C, and 3 and 5 differ, in k."),
    ],
)
def test_an_optional_part_is_said_if_all_that_it_names_is_there(lines, values, said, monkeypatch):
    monkeypatch.setitem(SENTENCES, "own", SENTENCE)
    assert note("own", *lines, matrix="C", **values).text == said
