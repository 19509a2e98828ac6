"""The table of sentences: each is used, and says what its note holds."""

import re
from pathlib import Path

import pytest

import cypresskit
from cypresskit.diagnosis.notes import ABOUT, SENTENCES, Lines, Note, note

PACKAGE = Path(cypresskit.__file__).parent
CODE = "".join(
    path.read_text(encoding="utf-8")
    for room in ("diagnosis", "editing")
    for path in (PACKAGE / room).glob("*.py")
    if path.name != "notes.py"
)


def test_each_sentence_is_of_one_kind_that_is_found_somewhere():
    assert len(ABOUT) == sum(map(len, SENTENCES.values()))
    unused = [kind for kind in ABOUT if kind and f'"{kind}"' not in CODE]
    assert not unused


@pytest.mark.parametrize("kind", [kind for kind in ABOUT if kind])
def test_an_optional_part_is_said_if_all_that_it_names_is_there(kind):
    sentence = SENTENCES[ABOUT[kind]][kind]
    optional = re.findall(r"\[(.*?)\]", sentence)
    names = {*re.findall(r"{(\w+)", sentence)}
    numbers = {name for name in names if re.search(rf"{{{name}:\w*g}}", sentence)}
    values: dict[str, object] = {name: Lines([7]) for name in names - {"lines"}}
    values = {n: 7 if n in numbers else v for n, v in values.items() if not n.isdigit()}
    lines = range(31, 34)
    whole = note(kind, *lines, **values).text
    assert (
        whole.endswith(".") and not re.search(r"[\[\]{}]", whole) and whole[0] == whole[0].upper()
    )
    parted = {name for part in optional for name in re.findall(r"{([a-z_]+)", part)}
    for name in parted - {"lines"}:
        left = note(kind, *lines, **values | {name: ""}).text
        assert len(left) < len(whole), (name, left)


def test_other_terms_lines_and_a_missing_term_are_said_beside_it():
    reads = note("reads", 3, element="A[0, 1]", wanted="A[0, 0]")
    assert reads.text == "Line 3 reads A[0, 1] in place of A[0, 0]."
    told = Note(**vars(reads) | {"more": 1, "yours": 9, "alike": (4, 5), "term": "term k = 2"})
    assert told.text == (
        "Term k = 2 is missing: line 3 reads A[0, 1] in place of A[0, 0]: look at your line 9,"
        " which leads there. The same fault affects 1 more term."
        " The same mistake is in lines 4 and 5."
    )
    assert Note().text == ""
