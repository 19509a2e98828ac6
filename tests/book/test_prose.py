"""Every number with a unit in the lessons' prose is one that the lesson computes.

It is looked up in the outputs of its own notebook, in the published figures, in the H200's record,
and last in ``tests/prose.toml``, which says how the others are computed, or who states them.
"""

import ast
import json
import random
import re
import tomllib
from dataclasses import replace
from functools import cache

import nbformat
import numpy as np
import pytest
from answers.l12 import loop_tested_last
from conftest import ROOT, by_day

import cypresskit as ck
from cypresskit import published
from cypresskit.editing.steps import reference_kernel, starter_text
from cypresskit.host.rates import kernel_rate
from cypresskit.teach.l02_why_blocks.checks import simulate_block
from cypresskit.teach.l06_double_double import checks as double_double
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.teach.l13_what_is_left.checks import gain
from cypresskit.teach.l14_build_the_clock.checks import right_rows, right_steps
from cypresskit.teach.l14_build_the_clock.choose import Clock
from cypresskit.timing import simulate
from cypresskit.today import figures, record
from tools import book

UNITS = (
    "Gflop/s Tflop/s TB/s GB/s GB MB KB bytes % clocks? µs ms ns s seconds bundles? registers?"
    " wavefronts? words? times digits bits flops? workgroups? work-items? fetches lines? warps"
    " turns engines? instructions operations banks numbers additions GHz slots megabytes"
).replace(" ", "|")
NUMBER = re.compile(
    r"(?<![\w.,$/\[])(\d[\d,]*(?:\.\d+)?)(?:\s+(?:a|more|of|to|in|different)\b)?"
    rf"\s+(?:[a-z-]+\s+)?(?:{UNITS})(?![a-z])"
)
PLAIN = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
TABLE = tomllib.loads((ROOT / "tests/prose.toml").read_text(encoding="utf-8"))
KNOWN = {
    "ck": ck,
    "simulate_block": simulate_block,
    "gain": gain,
    "simulate": simulate,
    "figures": figures,
}
KNOWN |= {
    "double_double": double_double,
    "np": np,
    "replace": replace,
    "generate_kernel": contest.generate_kernel,
    "loop_tested_last": loop_tested_last,
}


def idle(report) -> np.ndarray:
    """For each clock of engine 0, whether no wavefront computes."""
    alone = np.ones(int(max(event.end for event in report.timeline)), bool)
    for event in report.timeline:
        if event.kind == "ALU":
            alone[int(event.start) : int(event.end)] = False
    return alone


KNOWN |= {"own": Clock(right_steps, right_rows), "idle": idle}
KNOWN |= {"step_kernel": reference_kernel, "starter_text": starter_text, "kernel_rate": kernel_rate}
KNOWN |= {"eight_banks": replace(ck.HD5870, texture_banks=8)}
SOURCES = book.sources(ROOT / "notebooks")
NOTEBOOKS = "", "solutions"  # what students get, and the solved one
each_lesson = pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)


def numbers(text: str) -> set[float]:
    """All numbers in a text."""
    return {float(found.replace(",", "")) for found in PLAIN.findall(text)}


@cache
def texts(stem: str, folder: str = "") -> list[str]:
    """The texts of a saved notebook's outputs."""
    notebook = nbformat.read(ROOT / "notebooks" / folder / f"{stem}.ipynb", as_version=4)
    found = []
    for cell in notebook.cells:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            found += [output.get("text", ""), data.get("text/plain", "")]
            found.append(data.get("text/markdown", ""))
    return [text for text in found if text]


@cache
def printed(stem: str, folder: str) -> set[float]:
    """The numbers in the outputs of one of a lesson's notebooks, the published ones, and the
    record's.
    """
    sources = [*texts(stem, folder), json.dumps(published.figures()), json.dumps(record())]
    return set().union(*map(numbers, sources))


def prose(path) -> str:
    """A lesson's text without code; formulas and quoted code stay."""
    cells = [cell.source for cell in book.read(path).cells if cell.cell_type == "markdown"]
    return re.sub(r"(?s)```.*?```", "", "\n".join(cells))


def is_written_as(value: float, text: str) -> bool:
    """Whether ``text`` is ``value`` rounded to as many places as it has."""
    places = len(text.partition(".")[2])
    return round(value, places) == float(text.replace(",", ""))


def unexplained(text: str, stem: str) -> list[str]:
    """The numbers with a unit that neither an output nor the table gives."""
    table = TABLE.get(stem, {})
    spans = []
    for phrase in (*table.get("computed", {}), *table.get("stated", {})):
        pattern = r"\s+".join(map(re.escape, phrase.split()))
        spans += [match.span() for match in re.finditer(pattern, text)]
    missing = []
    for match in NUMBER.finditer(text):
        start, end = match.span(1)
        if any(first <= start and end <= last for first, last in spans):
            continue
        if not all(
            any(is_written_as(value, match[1]) for value in printed(stem, folder))
            for folder in NOTEBOOKS
        ):
            missing.append(" ".join(text[max(start - 40, 0) : match.end() + 20].split()))
    return missing


@each_lesson
def test_every_number_with_a_unit_comes_from_somewhere(path):
    missing = unexplained(prose(path), path.stem)
    assert not missing, "print it in the lesson, or say in tests/prose.toml how it is computed"


@pytest.mark.parametrize(
    ("stem", "phrase"),
    by_day(
        ((stem, phrase) for stem, table in TABLE.items() for phrase in table.get("computed", {})),
        6,
    ),
)
def test_what_the_table_computes_is_what_the_lesson_says(stem, phrase):
    values = eval(TABLE[stem]["computed"][phrase], dict(KNOWN))
    for value, said in zip(np.atleast_1d(values), PLAIN.findall(phrase)):
        size = float(said.replace(",", ""))
        assert is_written_as(value, said) or abs(value - size) < 0.01 * size, (phrase, value)


@pytest.mark.parametrize("stem", TABLE)
def test_a_number_names_its_size(stem):
    """A launch of another N than the workbook's 2048 is stated in the section of its number."""
    (path,) = (path for path in SOURCES if path.stem == stem)
    sections = re.split(r"\n(?=## )", path.read_text(encoding="utf-8"))
    for phrase, expression in TABLE[stem].get("computed", {}).items():
        words = re.compile(r"\s+".join(map(re.escape, phrase.split())))
        for section in filter(words.search, sections):
            stated = numbers(section.replace(",", ""))
            assert sizes(expression) <= {*stated, 2048}, phrase


def sizes(expression: str) -> set[int]:
    """The sizes, above those of a block, that an expression simulates."""
    calls = [node for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if ast.unparse(call.func).endswith("simulate")]
    given = [each for call in calls for each in call.args[1:2]]
    given += [word.value for call in calls for word in call.keywords if word.arg in ("m", "n", "k")]
    values = [each.value for each in given if isinstance(each, ast.Constant)]
    return {value for value in values if value > 16}


@each_lesson
def test_the_table_has_no_phrase_that_the_lesson_lost(path):
    text = " ".join(prose(path).split())
    table = TABLE.get(path.stem, {})
    phrases = [*table.get("computed", {}), *table.get("stated", {})]
    assert [phrase for phrase in phrases if phrase not in text] == []


def planted(text: str, chance: random.Random) -> tuple[str, str]:
    """A text with one of its longer numbers made wrong, and that number as it was."""
    matches = [m for m in NUMBER.finditer(text) if len(m[1].strip("0").replace(".", "")) > 2]
    match = chance.choice(matches)
    places = len(match[1].partition(".")[2])
    value = float(match[1].replace(",", ""))
    wrong = value * chance.choice((0.8, 0.9, 1.1, 1.3)) + 10**-places
    return text[: match.start(1)] + f"{wrong:.{places}f}" + text[match.end(1) :], match[1]


def test_a_planted_number_is_found():
    chance = random.Random(42)
    found, tried = 0, 0
    for path in SOURCES:
        text = prose(path)
        before = unexplained(text, path.stem)
        if not any(len(m[1].strip("0").replace(".", "")) > 2 for m in NUMBER.finditer(text)):
            continue
        for _ in range(10):
            wrong, _ = planted(text, chance)
            found += len(unexplained(wrong, path.stem)) > len(before)
            tried += 1
    assert found > 0.85 * tried, f"{found} of {tried}"
