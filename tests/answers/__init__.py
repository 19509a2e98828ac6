"""Answers to all exercises: for each check, right ones, and wrong ones with the words that the
verdict must say.

lNN.txt has those of lesson NN, by checks. A check's first line says what kind of answer it takes
and how an answer is made of a line, which stands in the place of ``_``: in a function's body, or an
expression; a line that begins with ``=`` is the whole answer. Behind a wrong one stands, after
``;!``, what it is told: words, or several of them with `` | `` between. What a line names is in
lNN.py, in the lesson's module, or one of ``ck``, ``math``, ``np``, ``re`` and ``replace``.

To each kind is added what is wrong whatever is asked: a text, a function, one that gives a number,
a value.
"""

import math
import re
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

import cypresskit as ck
from tools.book import read, solved, student

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


@cache
def given(lesson: str, name: str, solution: bool = False) -> str:
    """The IL text ``name`` of a lesson, as the student finds it or with its solution."""
    cells = (solved if solution else student)(read(ROOT / f"notebooks/source/{lesson}.md")).cells
    return next(
        cell.source.split("'''")[1] for cell in cells if cell.source.startswith(f"{name} = '''")
    )


@cache
def planted() -> dict:
    """{check: ([right, ...], [(wrong, [words, ...]), ...])}, of every lesson."""
    found = {}
    for path in sorted(HERE.glob("l*.txt")):
        names = {"ck": ck, "math": math, "np": np, "re": re, "replace": replace}
        (lesson,) = (ROOT / "cypresskit/teach").glob(f"{path.stem}_*.py")
        names |= vars(import_module(f"cypresskit.teach.{lesson.stem}"))
        if path.with_suffix(".py").exists():
            names |= vars(import_module(f"answers.{path.stem}"))
        names["__name__"] = "answers"
        for part in path.read_text(encoding="utf-8").strip().split("\n\n"):
            head, *lines = part.splitlines()
            check, kind, form = re.fullmatch(r"(\w+) \((\w+)\): (.+)", head).groups()
            right, wrong = found[names[check]] = [], []
            for line in lines:
                answer, told, words = (piece.strip() for piece in line.partition(";!"))
                value = _made(form, answer, f"{path.name}: {line}", names)
                wrong.append((value, words.split(" | "))) if told else right.append(value)
            wrong += ALWAYS_WRONG[kind]
    return found


def _made(form: str, answer: str, place: str, names: dict):
    """What a line of a table stands for."""
    if form.startswith("def "):
        exec(compile(form.removesuffix("_") + f"\n    {answer}", place, "exec"), names)
        return names[re.match(r"def (\w+)", form)[1]]
    text = answer[1:].strip() if answer[0] == "=" else answer.join(re.split(r"\b_\b", form))
    return eval(compile(text, place, "eval"), names)


def raises(*_):
    raise ZeroDivisionError("of course")


TEXTS = [("", [""]), ("hello", [""]), (None, ["None, not text"]), (4, ["an int, not text"])]
FUNCTIONS = [
    *(
        (it, [f"is of type {type(it).__name__}, not a function", "keep the line"])
        for it in (None, 42, "f")
    ),
    (raises, ["ZeroDivisionError: of course"]),
    (lambda *_: 10**5000, [""]),
]
NUMBERS = [
    (lambda *_: None, ["returns nothing", "`return` is missing, or has nothing to return"]),
    (lambda *_: "x", ["returns a text, not a number"]),
    (lambda: 1.0, ["TypeError", "the call was"]),
    (lambda a, b, c, d, e: 1.0, ["TypeError", "missing", "the call was"]),
    *((lambda *_, it=it: it, ["it should be"]) for it in (0.0, math.inf, math.nan)),
]
ALWAYS_WRONG = {"value": [], "text": TEXTS, "function": FUNCTIONS, "number": NUMBERS + FUNCTIONS}
