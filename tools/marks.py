"""Marks of a class: submitted notebooks to a table for a course system, and a page of feedback for each student.

    python -m tools.marks submitted --csv marks.csv --feedback feedback

``submitted`` has a folder for each student with their notebooks, however deep; a file's name contains the lesson's, as
in ``09_bus (1).ipynb``, and of two of a lesson the better counts. A folder may be named as Moodle names it
(``Ada Lovelace_4711_assignsubmission_file``): the table then has the name and the id apart. Notebooks are read as text:
no kernel runs them, and no saved output counts. Each answer is judged in a process of its own (see ``tools.grade``).
"""

import argparse
import csv
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

import nbformat

from cypresskit.teach.check import Verdict
from cypresskit.teach.notebook import html
from tools import book
from tools.grade import CHECK, judge

LESSONS = Path(__file__).parents[1] / "notebooks"
MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission")
EXERCISE = re.compile(r"^## Exercise (\d+): (.+)$", re.M)
PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>{name}</title>
<style>:root {{ color-scheme: light dark; }} body {{ max-width: 50em; margin: 2em auto; font: 16px/1.5 sans-serif; }}
pre {{ overflow-x: auto; padding: .5em 1em; border: 1px solid #8888; font-size: 13px; }}
@media (prefers-color-scheme: dark) {{ div > b:first-child {{ color: #ffa95c !important; }} }}</style>
<h1>{name}: {right} of {all} right</h1>{exercises}</html>
"""
PART = """<h2>{exercise}</h2>{verdict}
<details><summary>What you handed in</summary><pre tabindex="0">{code}</pre></details>
"""


class Exercise(NamedTuple):
    """An exercise as the book names it, and its check as the lesson calls it."""

    lesson: str  # as in "09 The bus"
    number: int
    title: str
    check: str

    def __str__(self) -> str:
        return f"{self.lesson}, exercise {self.number}: {self.title}"


class Marked(NamedTuple):
    """What is said of an answer, and the answer's cell as it was handed in."""

    verdict: Verdict
    code: str


def exercises(lesson: Path) -> Iterator[Exercise]:
    """The exercises of a lesson's notebook, in order."""
    cells, title, heading = nbformat.read(lesson, as_version=4).cells, lesson.stem, ("0", lesson.stem)
    for cell in cells:
        if cell.cell_type == "markdown":
            title = next((line[2:] for line in cell.source.splitlines() if line.startswith("# ")), title)
            heading = next(reversed(EXERCISE.findall(cell.source)), heading)
        elif found := book.CHECK.search(cell.source):
            yield Exercise(title, int(heading[0]), heading[1], found[1])


def marked(notebook: Path, lesson: Path) -> dict[Exercise, Marked]:
    """What is said of each exercise of a lesson, from a student's notebook."""
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except Exception as error:  # what else was handed in under that name
        broken = Verdict(False, f"{notebook.name} is no notebook: {error}", "hand in what JupyterLab saved.")
        return dict.fromkeys(exercises(lesson), Marked(broken, ""))
    code = [c.source for c in cells if c.cell_type == "code" and not book.CHECK.search(c.source)]
    return {asked: Marked(judge(code, asked.check), answer(code, asked.check)) for asked in exercises(lesson)}


def answer(code: list[str], check: str) -> str:
    """The last cell that sets what ``check`` is asked about."""
    found = CHECK.search(check)
    sets = re.compile(rf"^(def )?{found[3]} *[=(]" if found else r"\Z.", re.M)
    return next((cell for cell in reversed(code) if sets.search(cell)), "")


def marks_of(student: Path, lessons: list[Path]) -> dict[Exercise, Marked]:
    """A student's marks; says which of their files are no lesson's."""
    row: dict[Exercise, Marked] = {}
    for notebook in sorted(student.rglob("*.ipynb")):
        lesson = next((path for path in lessons if path.stem in notebook.stem), None)
        if ".ipynb_checkpoints" in notebook.parts:
            continue
        if lesson is None:
            print(f"{notebook} is not marked: no lesson's name is in its own", file=sys.stderr)
            continue
        said = marked(notebook, lesson)
        row |= {asked: mark for asked, mark in said.items() if mark.verdict.right or asked not in row}
    return row


def feedback(name: str, row: dict[Exercise, Marked]) -> str:
    """A student's page: the sum, and for each exercise the verdict and the code."""
    parts = [
        PART.format(exercise=escape(str(asked)), verdict=html(mark.verdict), code=escape(mark.code))
        for asked, mark in sorted(row.items())
    ]
    return PAGE.format(name=escape(name), right=points(row), all=len(row), exercises="".join(parts))


def points(row: dict[Exercise, Marked]) -> int:
    return sum(mark.verdict.right for mark in row.values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.marks", description="Mark submitted notebooks.")
    parser.add_argument("submitted", type=Path, help="a folder with a folder for each student")
    parser.add_argument("--csv", type=Path, default=Path("marks.csv"), help="the table (default marks.csv)")
    parser.add_argument("--feedback", type=Path, help="a folder for a page of feedback for each student")
    asked = parser.parse_args(arguments)
    lessons = sorted(LESSONS.glob("[0-9]*.ipynb"))
    students = sorted(path for path in asked.submitted.iterdir() if path.is_dir()) if asked.submitted.is_dir() else []
    if not students:
        print(f"{asked.submitted} has no folder of a student", file=sys.stderr)
        return 1
    table: dict[tuple[str, str], dict[Exercise, Marked]] = {}
    for student in students:
        found = MOODLE.match(student.name)
        name, number = found.groups() if found else (student.name, student.name)
        row = table[number, name] = marks_of(student, lessons)
        print(f"{name}: {points(row)} of {len(row)} right", flush=True)
        if asked.feedback:
            asked.feedback.mkdir(parents=True, exist_ok=True)
            (asked.feedback / f"{student.name}.html").write_text(feedback(name, row), encoding="utf-8")
    columns = sorted({exercise for row in table.values() for exercise in row})
    with asked.csv.open("w", newline="", encoding="utf-8") as file:
        sheet = csv.writer(file)
        sheet.writerow(["id", "student", *columns, "total"])
        for who, row in table.items():
            cells = [int(row[column].verdict.right) if column in row else "" for column in columns]  # "": not handed in
            names = [f"'{name}" if name[0] in "=+-@" else name for name in who]
            sheet.writerow([*names, *cells, points(row) if row else ""])
    return 0


if __name__ == "__main__":
    sys.exit(main())
