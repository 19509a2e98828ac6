"""Answers to all exercises: for each check, right ones, and wrong ones with the words that the verdict must say.

A module for each lesson has them as ``CHECKS``: {check: ([right, ...], [(wrong, words or several of them), ...])}.
"""

from functools import cache
from pathlib import Path

from tools.book import read, solved, student

LESSONS = Path(__file__).parents[2] / "notebooks/source"


@cache
def given(lesson: str, name: str, solution: bool = False) -> str:
    """The IL text ``name`` of a lesson, as the student finds it or with its solution."""
    cells = (solved if solution else student)(read(LESSONS / f"{lesson}.md")).cells
    return next(cell.source.split("'''")[1] for cell in cells if cell.source.startswith(f"{name} = '''"))
