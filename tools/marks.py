"""Marks of a class: submitted notebooks to a table for a course system, and a page of verdicts for each student.

    python -m tools.marks submitted --csv marks.csv --feedback feedback

``submitted`` has a folder for each student with their notebooks, however deep; a file's name contains the lesson's, as
in ``09_bus (1).ipynb``, and of two of a lesson the better counts. Notebooks are read as text: no kernel runs them, and
no saved output counts. Each answer is judged in a process of its own (see ``tools.grade``).
"""

import argparse
import csv
import sys
from html import escape
from pathlib import Path

import nbformat

from cypresskit.teach.check import Verdict
from cypresskit.teach.notebook import html
from tools import book
from tools.grade import judge

LESSONS = Path(__file__).parents[1] / "notebooks"
PAGE = '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>{0}</title><body style="max-width: 50em; {1}">{2}'
STYLE = "margin: 2em auto; font: 16px/1.5 sans-serif"


def checks(lesson: Path) -> list[str]:
    """The checks of a lesson's notebook, in order, as its cells call them."""
    cells = nbformat.read(lesson, as_version=4).cells
    return [found[1] for cell in cells if (found := book.CHECK.search(cell.source))]


def marked(notebook: Path, lesson: Path) -> dict[str, Verdict]:
    """The verdict on each exercise of a lesson, from a student's notebook."""
    try:
        cells = nbformat.read(notebook, as_version=4).cells
    except Exception as error:  # what else was handed in under that name
        broken = Verdict(False, f"{notebook.name} is no notebook: {error}", "hand in what JupyterLab saved.")
        return dict.fromkeys(checks(lesson), broken)
    code = [c.source for c in cells if c.cell_type == "code" and not book.CHECK.search(c.source)]
    return {check: judge(code, check) for check in checks(lesson)}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.marks", description="Mark submitted notebooks.")
    parser.add_argument("submitted", type=Path, help="a folder with a folder for each student")
    parser.add_argument("--csv", type=Path, default=Path("marks.csv"), help="the table (default marks.csv)")
    parser.add_argument("--feedback", type=Path, help="a folder for a page of verdicts for each student")
    asked = parser.parse_args(arguments)
    lessons = sorted(LESSONS.glob("[0-9]*.ipynb"))
    students = sorted(path for path in asked.submitted.iterdir() if path.is_dir()) if asked.submitted.is_dir() else []
    if not students:
        print(f"{asked.submitted} has no folder of a student", file=sys.stderr)
        return 1
    table: dict[str, dict[str, Verdict]] = {}
    for student in students:
        row = table[student.name] = {}
        for notebook in sorted(student.rglob("*.ipynb")):
            lesson = next((path for path in lessons if path.stem in notebook.stem), None)
            if ".ipynb_checkpoints" in notebook.parts:
                continue
            if lesson is None:
                print(f"{notebook} is not marked: no lesson's name is in its own", file=sys.stderr)
                continue
            said = marked(notebook, lesson)
            row |= {check: verdict for check, verdict in said.items() if verdict.right or check not in row}
        print(f"{student.name}: {sum(verdict.right for verdict in row.values())} of {len(row)} right", flush=True)
        if asked.feedback:
            asked.feedback.mkdir(parents=True, exist_ok=True)
            told = "".join(f"<h2>{escape(_short(check))}</h2>{html(verdict)}" for check, verdict in row.items())
            page = PAGE.format(escape(student.name), STYLE, f"<h1>{escape(student.name)}</h1>{told}")
            (asked.feedback / f"{student.name}.html").write_text(page, encoding="utf-8")
    exercises = [check for path in lessons for check in checks(path) if any(check in r for r in table.values())]
    with asked.csv.open("w", newline="", encoding="utf-8") as file:
        sheet = csv.writer(file)
        sheet.writerow(["student", *map(_short, exercises), "total"])
        for name, row in table.items():
            points = [int(row[check].right) if check in row else "" for check in exercises]  # empty: not handed in
            total = sum(verdict.right for verdict in row.values())
            sheet.writerow([f"'{name}" if name[0] in "=+-@" else name, *points, total if row else ""])
    return 0


def _short(check: str) -> str:
    """``start_here: peak`` for ``ck.teach.start_here.check_peak(peak)``."""
    module, name = check.split("(")[0].split(".")[-2:]
    return f"{module}: {name.removeprefix('check_')}"


if __name__ == "__main__":
    sys.exit(main())
