"""Answers to all exercises: for each check, right ones, and wrong ones with the words that the verdict must say.

A module for each lesson has them as ``CHECKS``: {check: ([right, ...], [(wrong, words or several of them), ...])}. The
functions below add what is wrong whatever is asked: a text, a function, one that gives a number.
"""

import math
from functools import cache
from pathlib import Path

from tools.book import read, solved, student

LESSONS = Path(__file__).parents[2] / "notebooks/source"


@cache
def given(lesson: str, name: str, solution: bool = False) -> str:
    """The IL text ``name`` of a lesson, as the student finds it or with its solution."""
    cells = (solved if solution else student)(read(LESSONS / f"{lesson}.md")).cells
    return next(cell.source.split("'''")[1] for cell in cells if cell.source.startswith(f"{name} = '''"))


def text(right, wrong):
    return right, [*wrong, ("", ""), ("hello", ""), (None, "None, not text"), (4, "an int, not text")]


def raises(*_):
    raise ZeroDivisionError("of course")


def function(right, wrong):
    none = [(it, [f"is of type {type(it).__name__}, not a function", "keep the line"]) for it in (None, 42, "f")]
    return right, [*wrong, *none, (raises, "ZeroDivisionError: of course"), (lambda *_: 10**5000, "")]


def number(right, wrong):
    nothing = (lambda *_: None, ["returns nothing", "`return` is missing, or has nothing to return"])
    others = [(lambda *_: "x", "returns a text, not a number"), (lambda: 1.0, ["TypeError", "the call was"])]
    others += [(lambda a, b, c, d, e: 1.0, ["TypeError", "missing", "the call was"])]
    odd = [(lambda *_, it=it: it, "it should be") for it in (0.0, math.inf, math.nan)]
    return function(right, [*wrong, nothing, *others, *odd])
