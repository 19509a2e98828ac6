"""The table of sentences: each says what its note holds."""

import re

import pytest

from cypresskit.diagnosis.notes import SENTENCES, Lines, note


@pytest.mark.parametrize("kind", SENTENCES)
def test_an_optional_part_is_said_if_all_that_it_names_is_there(kind):
    sentence = SENTENCES[kind]
    optional = re.findall(r"\[(.*?)\]", sentence)
    names = {*re.findall(r"{(\w+)", sentence)}
    numbers = {name for name in names if re.search(rf"{{{name}:\w*g}}", sentence)}
    values: dict[str, object] = {name: Lines([7]) for name in names - {"lines"}}
    values = {n: 7 if n in numbers else v for n, v in values.items() if not n.isdigit()}
    values["why"] = note("no store")
    lines = range(31, 34)
    whole = note(kind, *lines, **values).text
    assert (
        whole.endswith(".") and not re.search(r"[\[\]{}]", whole) and whole[0] == whole[0].upper()
    )
    for part in optional:
        for name in re.findall(r"{(\w+)", part):
            some = lines[: int(name)] if name.isdigit() else lines[:0] if name == "lines" else lines
            left = note(kind, *some, **values | {name: ""} if name in values else values).text
            assert len(left) < len(whole) and not re.search(r"[\[\]{}]", left), (name, left)
