"""What lessons say is so: each number with a unit, and each cause.

``facts.toml`` has, for each lesson, sentences or parts of them (``says``), each with one of

- ``gives``: an expression with the numbers that it names;
- ``counted``: an expression that is true. What is said follows by counting or arithmetic;
- ``with``, ``without``, ``base``: an experiment on a cause. The size of the effect, its size if the
  cause alone is removed, and where there is no effect. At least three fifths must go;
- ``defined``: who defines, documents or states it;
- ``guess``: why this cause can't be removed alone. The lesson says that it is a guess.

``fact_values.py`` has what the expressions name. A number with a unit that is in none of these
stands in an output of the lesson, in the published figures, or in the record of a current GPU.
"""

import ast
import json
import re
import tomllib
from functools import cache

import nbformat
import numpy as np
from fact_values import KNOWN
from lesson_sources import each_lesson
from repository import ROOT
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit import published
from cypresskit.today import record
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
FACTS = tomllib.loads((ROOT / "tests/facts.toml").read_text())
ENTRIES = [(lesson, entry) for lesson, entries in FACTS.items() for entry in entries]
NOTEBOOKS = "", "solutions"  # what students get, and the solved one
REMAINS = 0.4  # the share of an effect that may be left without its cause
NOTICED = 0.01  # an effect is at least this share of the size


def prose(path):
    """A lesson's text without code; formulas and quoted code stay."""
    cells = [cell.source for cell in book.read(path).cells if cell.cell_type == "markdown"]
    return " ".join(re.sub(r"(?s)```.*?```", "", "\n\n".join(cells)).split())


def numbers(text):
    """All numbers in a text."""
    return {float(found.replace(",", "")) for found in PLAIN.findall(text)}


@cache
def read_printed(stem, folder):
    """The numbers in the outputs of one of a lesson's notebooks, the published ones, and the
    record's.
    """
    notebook = nbformat.read(ROOT / "notebooks" / folder / f"{stem}.ipynb", as_version=4)
    texts = [json.dumps(published.figures()), json.dumps(record())]
    for output in (each for cell in notebook.cells for each in cell.get("outputs", ())):
        data = output.get("data", {})
        texts += [output.get("text", ""), data.get("text/plain", "")]
        texts.append(data.get("text/markdown", ""))
    return set().union(*map(numbers, texts))


def is_written_as(value, text):
    """Whether ``text`` is ``value`` rounded to as many places as it has."""
    places = len(text.partition(".")[2])
    return round(value, places) == float(text.replace(",", ""))


@each_lesson
def test_every_number_with_a_unit_comes_from_somewhere(path):
    text = prose(path)
    said = [entry["says"] for entry in FACTS.get(path.stem[:2], ())]
    spans = [m.span() for phrase in said for m in re.finditer(re.escape(phrase), text)]
    missing = []
    for match in NUMBER.finditer(text):
        start, end = match.span(1)
        is_a_fact = any(first <= start and end <= last for first, last in spans)
        is_printed = all(
            any(is_written_as(value, match[1]) for value in read_printed(path.stem, folder))
            for folder in NOTEBOOKS
        )
        if not is_a_fact and not is_printed:
            missing.append(text[max(start - 40, 0) : match.end() + 20])
    assert not missing, "print it in the lesson, or say in tests/facts.toml how it is computed"


@each_lesson
def test_the_lesson_says_what_the_table_says_of_it(path):
    text = prose(path)
    lost = [e["says"] for e in FACTS.get(path.stem[:2], ()) if e["says"] not in text]
    assert not lost


def sizes(expression):
    """The sizes, above those of a block, that an expression simulates."""
    calls = [node for node in ast.walk(ast.parse(expression)) if isinstance(node, ast.Call)]
    calls = [call for call in calls if ast.unparse(call.func).endswith("simulate")]
    given = [each for call in calls for each in call.args[1:2]]
    given += [word.value for call in calls for word in call.keywords if word.arg in ("m", "n", "k")]
    values = [each.value for each in given if isinstance(each, ast.Constant)]
    return {value for value in values if value > 16}


@each_lesson
def test_a_number_names_its_size(path):
    """A launch of another N than the workbook's 2048 is stated in the section of its number."""
    entries = [e for e in FACTS.get(path.stem[:2], ()) if "gives" in e]
    for section in re.split(r"\n(?=## )", path.read_text()):
        section = " ".join(section.split())
        stated = numbers(section.replace(",", ""))
        for entry in (e for e in entries if e["says"] in section):
            assert sizes(entry["gives"]) <= {*stated, 2048}, entry["says"]


def is_code(name):
    """Whether a field of an entry is an expression."""
    return name in ("gives", "counted", "with", "without", "base")


@drawn_by_day(("lesson", "entry"), ENTRIES, 40, ids=[f"{n}-{e['says'][:40]}" for n, e in ENTRIES])
def test_what_a_lesson_says_is_so(lesson, entry):
    (kind,) = {"gives", "counted", "without", "defined", "guess"} & entry.keys()
    found = {name: eval(text, dict(KNOWN)) for name, text in entry.items() if is_code(name)}
    if kind == "gives":
        written = PLAIN.findall(entry["says"])
        for value, said in zip(np.atleast_1d(found["gives"]), written):
            size = float(said.replace(",", ""))
            assert is_written_as(value, said) or abs(value - size) < 0.01 * size, (said, value)
    elif kind == "counted":
        assert found["counted"] is True
    elif kind == "without":
        effect, without, base = map(float, (found["with"], found["without"], found["base"]))
        assert abs(effect - base) > NOTICED * max(abs(effect), abs(base)), (effect, base)
        left = (without - base) / (effect - base)
        assert left <= REMAINS, f"{left:.0%} of the effect are left: {effect}, {without}, {base}"
    else:
        assert len(entry[kind]) > 3, "who says so, or why it is a guess"


MODEL = (ROOT / "docs/model.md").read_text()


def test_the_model_page_has_what_both_compilers_make():
    rows = re.findall(r"(?m)^\| (s\w+) \| (\d+ / \d+) \| (\d+ / \d+) \| (\d+ / \d+) \|$", MODEL)
    assert len(rows) > 4
    for name, *stated in rows:
        both = [ck.compile(name, by=by).stats() for by in ("cypresskit", "llvm")]
        fields = "bundles_per_iteration", "gprs", "tex_clauses"
        assert stated == [f"{getattr(both[0], f)} / {getattr(both[1], f)}" for f in fields], name


def test_the_model_page_has_all_bundles_of_llvm_s():
    single = [name for name, kernel in ck.kernels.items() if kernel.precision == "single"]
    controls = [c for name in single for c in ck.compile(name, by="llvm").controls]
    bundles = sum(len(control.bundles) for control in controls)
    assert f"All {bundles:,} bundles of the catalog's {len(single)} kernels" in MODEL


def test_the_model_page_has_the_speeds_by_both_compilers():
    theirs, ours = (
        ck.simulate(ck.compile("sgemm_tn", by=by), 2048).gflops for by in ("llvm", "cypresskit")
    )
    speeds = f"{theirs:,.0f} Gflop/s by LLVM and {ours:,.0f} by ours (modeled)"
    assert f"does {speeds}, {100 * theirs / ours:.0f} %" in MODEL


def test_the_model_page_shows_the_two_compilers_as_they_are_drawn():
    still = (ROOT / "docs/pictures/compilers.svg").read_text()
    assert still == ck.draw.compilers("sgemm_tn").to_svg(is_whole=True), "record it anew"
