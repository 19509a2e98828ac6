"""docs/own_kernel.md: every block of it runs and prints what the page says, and every line of its
table assembles. Of both pages about IL: what they say of it is so.
"""

import contextlib
import io
import re
import tomllib

import kernel_texts
import pytest
from repository import ROOT

import cypresskit as ck
from cypresskit.il.opcodes import find_opcode

PAGE = (ROOT / "docs/own_kernel.md").read_text()
ROWS = dict(re.findall(r"(?m)^\| (\w[^|]*?) \| (`.+?) \| .+ \|$", PAGE))
TEXTURE = kernel_texts.TEXTURE.format(0)


def test_every_block_of_the_page_prints_what_the_page_says():
    names = {}
    blocks = re.findall(r"```python\n(.*?)```(?:\n```text\n(.*?)```)?", PAGE, re.DOTALL)
    assert len(blocks) >= 6
    for code, shown in blocks:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown or (not shown and "print" in code)
    assert names["report"].clocks > 0


def instructions(cell):
    """The whole lines of IL that a cell of the table shows."""
    shown = re.findall(r"`([^`]+)`", cell)
    return [line for line in shown if find_opcode(line) or line.startswith(("mdef", "mend"))]


@pytest.mark.parametrize("what", [what for what in ROWS if instructions(ROWS[what])])
def test_every_line_of_the_syntax_assembles(what):
    lines = [line for line in instructions(ROWS[what]) if "..." not in line]
    text = "\n".join(lines)
    before = [TEXTURE] * (TEXTURE not in text)
    before += ["dcl_lds_id(0) 1024"] * ("dcl_lds_id" not in text and "lds" in text)
    before += ["dcl_cb cb0[2]"] * ("dcl_cb" not in text)
    pixel = "o0" in text
    header = "il_ps_2_0" if pixel else "il_cs_2_0"
    program = ck.assemble("\n".join([header, *before, *lines, "end"]))
    assert len(program.body) + len(program.declarations) + len(program.macros) >= len(lines)


REFERENCE = (ROOT / "docs/il.md").read_text()
CASES = (ROOT / "tests/cases/il_sentences.toml").read_text()
SENTENCES = tomllib.loads(CASES)


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_the_pages_say_of_il_is_so(sentence):
    for case in SENTENCES[sentence]:
        header, *lines = case.removeprefix("! ").split("; ")
        if not header.startswith("il_"):
            header, lines = "il_cs_2_0", [header, *lines]
        given = [TEXTURE, "dcl_cb cb0[2]", "dcl_literal l0, 1, 2, 3, 4", "mov r0, r1"]
        given += ["dcl_lds_id(0) 64"] * (header == "il_cs_2_0")
        try:
            ck.assemble("\n".join([header, *given, *lines, "end"]))
        except ck.ILError as error:
            assert case.startswith("! "), error
        else:
            assert not case.startswith("! "), case


def test_each_sentence_of_the_pages_about_il_has_a_case():
    listed = REFERENCE.partition("## Registers")[2].partition("## Left out")[0]
    rows = PAGE.partition("## The syntax")[2].splitlines()
    lines = [*re.findall("(?m)^- .*", listed), *rows[4:]]
    lines = [line for line in lines if line.startswith(("- ", "|"))]
    assert len(lines) > 50
    assert [line for line in lines if not any(sentence in line for sentence in SENTENCES)] == []
    said = REFERENCE + " ".join(PAGE.split())
    assert [sentence for sentence in SENTENCES if sentence not in said] == []


def test_the_page_shows_every_part_of_the_syntax():
    assert len(ROWS) > 25
    assert sum(len(instructions(cell)) for cell in ROWS.values()) > 33
