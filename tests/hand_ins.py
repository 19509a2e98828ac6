"""What students hand in, most of it of lesson 09, and the records of a class."""

import csv
import json
import platform
from copy import deepcopy

from cypresskit.grading import course, gradebook, handout, judging
from cypresskit.grading.gradebook import CourseRecords
from cypresskit.grading.submissions import Student
from cypresskit.teach.check import Verdict

PYTHON = platform.python_version().rpartition(".")[0]
LESSONS = course.read_lessons()
BUS = LESSONS["09_bus"]
#: The cells of some lessons as they are handed out, by the stem of their file.
HANDED_OUT = {
    name.partition(".")[0]: course.parse_cells(text.encode())
    for name, text in handout.make_handouts(
        course.select_notebooks(["00", "01", "05", "09"])
    ).items()
    if name[:2].isdigit()
}
GIVEN = HANDED_OUT["09_bus"]
SOLVED = course.parse_cells((course.CHECKOUT / "solutions/09_bus.ipynb").read_bytes())
#: A right answer to the first exercise.
SECONDS = """
def seconds(n, bandwidth, rate):
    return 24 * n**2 / bandwidth + 2 * n**3 / rate
"""


def answer_exercise(cells, number=1, **parts):
    """Return a lesson's cells with other sources of these parts of an exercise."""
    cells = deepcopy(cells)
    for cell in cells:
        entry = course.find_entry(cell)
        if entry.get("exercise") == number:
            cell["source"] = parts.get(entry["part"], cell["source"])
    return cells


def save(path, cells, **more):
    """Write a notebook of these cells, and the folders that it is in."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"cells": cells, **more}, ensure_ascii=False)
    path.write_bytes(text.encode("utf-8", "surrogatepass"))


def work_of(lesson, *hand_ins, right=True):
    """Return the work on a lesson that these notebooks are, all of whose answers get a verdict."""
    judged = [(exercise, Verdict(right, "a message")) for exercise in lesson.exercises]
    return gradebook.combine_answers(lesson, hand_ins, judged)


def class_of(*works, lessons=LESSONS, **options):
    """Return the records of students, who are numbered, with the works of each by lesson."""
    students = [Student(f"{number}", f"S{number}") for number, _ in enumerate(works)]
    return CourseRecords(lessons, [*zip(students, works)], **options)


def pages_of(records):
    """Return the students' pages."""
    return [gradebook.render_page(records, student) for student, _ in records.works]


def rows(path):
    """Return the rows of a table."""
    return list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))


def judge_by(monkeypatch, judge):
    """Judge answers so, and start no process."""

    def judge_student(attempts, *_):
        return [Verdict(judge(attempt), "a message") for attempt in attempts]

    monkeypatch.setattr(judging, "judge_student", judge_student)
    monkeypatch.setattr("cypresskit.isolated.process.find_sandbox", lambda: ["bwrap"])
    monkeypatch.setattr("cypresskit.timing.simulate", lambda *_: None)
