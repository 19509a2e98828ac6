"""Answers to all exercises: for each check, right ones, and wrong ones with the words that the
verdict must say.

lNN.toml has those of lesson NN, a table for each check: ``kind``, of answer (a "formula", another
"function", a "product", which is a function that launches a kernel, a "text", which is launched, or
a "value"); ``form``, how an answer is made of a line, which stands in the place of ``_``, in a
function's body or an expression (a line that begins with ``=`` is the whole answer); the ``right``
lines; and the ``wrong`` ones, each with the words that its verdict ``says``. What a line names is
in lNN.py, in the lesson's module, or one of ``ck``, ``math``, ``np``, ``re`` and ``replace``.

To each kind is added what is wrong whatever is asked.
"""

import linecache
import math
import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from repository import ROOT

import cypresskit as ck
from cypresskit.teach.answer_source import AnswerSource
from tools.book import read, student

HERE = Path(__file__).parent
LESSONS = [path.stem for path in sorted(HERE.glob("l*.toml"))]
IMPORTS = "import math\nimport re\nfrom dataclasses import replace\nimport numpy as np\n"


class Planted(NamedTuple):
    """The answers to a check."""

    lesson: str  # as in LESSONS
    kind: str
    right: list[Any]
    wrong: list[tuple[Any, list[str]]]  # each with the words that its verdict must say


@cache
def read_given(lesson, name):
    """The IL text ``name`` of a lesson, as the student finds it."""
    cells = student(read(ROOT / f"notebooks/source/{lesson}.md")).cells
    return next(
        cell.source.split("'''")[1] for cell in cells if cell.source.startswith(f"{name} = '''")
    )


@cache
def read_planted():
    """What is planted for each check of every lesson."""
    checks = {}
    for stem in LESSONS:
        path = HERE / f"{stem}.toml"
        names = {"ck": ck, "math": math, "np": np, "re": re, "replace": replace}
        (lesson,) = (ROOT / "cypresskit/teach").glob(f"{stem}_*/")
        names |= vars(import_module(f"cypresskit.teach.{lesson.name}.checks"))
        names["source"] = IMPORTS
        if path.with_suffix(".py").exists():
            names["source"] += path.with_suffix(".py").read_text(encoding="utf-8")
            names |= vars(import_module(f"answers.{stem}"))
        names["__name__"] = "answers"

        for check, table in tomllib.loads(path.read_text(encoding="utf-8")).items():
            place = f"{path.name}, {check}"

            def make(line, form=table["form"], place=place, names=names):
                return _make(form, line, f"{place}: {line}", names)

            right = [make(line) for line in table["right"]]
            wrong = [(make(row["answer"]), row["says"]) for row in table["wrong"]]
            wrong += ALWAYS_WRONG[table["kind"]]
            checks[names[check]] = Planted(stem, table["kind"], right, wrong)
    return checks


def of_kinds(*kinds):
    """The checks whose answers are of these kinds."""
    return [check for check, row in read_planted().items() if row.kind in kinds]


def _make(form, answer, place, names):
    """What a line of a table stands for."""
    is_function = form.startswith("def ")
    text = answer[1:].strip() if answer[0] == "=" else answer.join(re.split(r"\b_\b", form))
    if is_function:
        text = form.removesuffix("_") + f"\n    {answer}"
    lines = f"{text}\n{names['source']}".splitlines(keepends=True)
    linecache.cache[place] = len(text), None, lines, place  # where checks look for its source
    if not is_function:
        value = eval(compile(text, place, "eval"), names)
        is_builtin = callable(value) and not hasattr(value, "__code__")
        return AnswerSource([*lines[1:], f"it = {text}"], "it") if is_builtin else value
    exec(compile(text, place, "exec"), names)
    return names[re.match(r"def (\w+)", form)[1]]


def raises(*_):
    raise ZeroDivisionError("of course")


TEXTS = [("", [""]), ("hello", [""]), (None, ["None, not text"]), (4, ["an int, not text"])]
FUNCTIONS = [
    *(
        (it, [f"is of type {type(it).__name__}, not a function", "Keep the line"])
        for it in (None, 42, "f")
    ),
    (raises, ["ZeroDivisionError: of course"]),
    (lambda *_: 10**5000, [""]),
]
NUMBERS = [
    (lambda *_: None, ["returns nothing", "`return` is missing, or has nothing to return"]),
    (lambda *_: "x", ["returns a text, not a number"]),
    (lambda: 1.0, ["TypeError"]),
    (lambda a, b, c, d, e: 1.0, ["TypeError", "missing"]),
    (lambda *_: 0.0, ["it should be"]),
    (lambda *_: math.inf, ["it should be"]),
    (lambda *_: math.nan, ["it should be"]),
]
ALWAYS_WRONG = {
    "value": TEXTS[1:2],
    "text": TEXTS,
    "function": FUNCTIONS,
    "product": FUNCTIONS,
    "formula": NUMBERS + FUNCTIONS,
}
