"""Answers to all exercises: for each check, right ones, and wrong ones with the words that the
verdict must say.

lNN.toml has those of lesson NN, a table for each check: ``kind``, of answer; ``form``, how an
answer is made of a line, which stands in the place of ``_``, in a function's body or an expression
(a line that begins with ``=`` is the whole answer); the ``right`` lines; and the ``wrong`` ones,
each with the words that its verdict ``says``. What a line names is in lNN.py, in the lesson's
module, or one of ``ck``, ``math``, ``np``, ``re`` and ``replace``.

To each kind is added what is wrong whatever is asked: a text, a function, one that gives a number,
a value.
"""

import linecache
import math
import re
import tomllib
from dataclasses import replace
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

import cypresskit as ck
from cypresskit.teach.answer_source import AnswerSource
from tools.book import read, solved, student

HERE = Path(__file__).parent
LESSONS = [path.stem for path in sorted(HERE.glob("l*.toml"))]
IMPORTS = "import math\nimport re\nfrom dataclasses import replace\nimport numpy as np\n"
ROOT = HERE.parents[1]


@cache
def given(lesson, name, solution=False):
    """The IL text ``name`` of a lesson, as the student finds it or with its solution."""
    cells = (solved if solution else student)(read(ROOT / f"notebooks/source/{lesson}.md")).cells
    return next(
        cell.source.split("'''")[1] for cell in cells if cell.source.startswith(f"{name} = '''")
    )


@cache
def planted():
    """{check: ([right, ...], [(wrong, [words, ...]), ...])}, of every lesson."""
    answers = {}
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

            def made(line, form=table["form"], place=place, names=names):
                return _made(form, line, f"{place}: {line}", names)

            right = [made(line) for line in table["right"]]
            wrong = [(made(row["answer"]), row["says"]) for row in table["wrong"]]
            answers[names[check]] = right, wrong + ALWAYS_WRONG[table["kind"]]
    return answers


def _made(form, answer, place, names):
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
ALWAYS_WRONG = {"value": [], "text": TEXTS, "function": FUNCTIONS, "number": NUMBERS + FUNCTIONS}
