"""Marks of a class: from submitted notebooks, tables for a course system and a page of feedback for
each student.

    python -m tools.marks submitted marks

``submitted`` has a folder for each student; Moodle's names of folders and files are understood.
``marks`` gets ``marks.csv``, ``explanations.csv``, ``guesses.csv`` and the folder ``feedback``.
Points entered into ``explanations.csv`` are read by the next run. See docs/teaching.md.
"""

import argparse
import csv
import io
import re
import sys
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from cypresskit.draw.predict import number
from cypresskit.saving import save_file
from cypresskit.tables import as_csv
from cypresskit.teach.notebook import html
from tools.handed_in import Answer, Exercise, Lesson, Work, handed_in, lessons

SHARES = {
    "exercises": 50,
    "guesses": 20,
    "explanations": 30,
}  # per cent; what a lesson lacks doesn't count
FULL = 2  # points for a sentence
RUBRIC = "points: 0 says what the code does, 1 names the cause, 2 says how it leads to the result"
MOODLE = re.compile(r"(.+?)_(\d+)_assignsubmission")
PAGE, LESSON, EXERCISE = re.split(
    "<!-- .* -->\n", Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
)


class Student(NamedTuple):
    """A student, from the folder's name."""

    id: str
    name: str
    folder: str


class Class(NamedTuple):
    """The work of all students, and the points given by hand, by id and exercise."""

    asked: dict[str, Lesson]
    works: dict[Student, dict[str, Work]]
    points: dict[tuple[str, str], float]

    def each(self, *students: Student) -> Iterator[tuple[Student, Lesson, Work]]:
        for student in students or self.works:
            yield from (
                (student, self.asked[stem], work)
                for stem, work in sorted(self.works[student].items())
            )

    def given(self, student: Student, exercise: Exercise, answer: Answer) -> float | None:
        """The points for a sentence, or None if it has none yet."""
        return self.points.get((student.id, exercise.name)) if answer.sentence else 0.0

    def mark(self, student: Student, lesson: Lesson, work: Work) -> tuple[float, str]:
        """The points for a lesson, of 100, and in words where they come from."""
        given = [self.given(student, *pair) or 0 for pair in work.answers.items()]
        right = sum(answer.verdict.right for answer in work.answers.values())
        counts = (
            (right, len(given)),
            (len(work.guesses), len(lesson.truths)),
            (sum(given), FULL * len(given)),
        )
        asked = [
            (name, share, *count)
            for (name, share), count in zip(SHARES.items(), counts)
            if count[1]
        ]
        points = sum(share * earned / most for _, share, earned, most in asked)
        words = "; ".join(
            f"{name}: {earned:g} of {most} ({share} %)" for name, share, earned, most in asked
        )
        return round(100 * points / sum(share for _, share, *_ in asked), 1), words


def marks(class_: Class) -> Iterator[dict]:
    """The rows of ``marks.csv``; lessons not handed in are left out."""
    for student in class_.works:
        points = [class_.mark(*part)[0] for part in class_.each(student)]
        row: dict = {
            "id": student.id,
            "student": student.name,
            "total": round(sum(points), 1) if points else "",
        }
        for _, lesson, work in class_.each(student):
            for exercise, answer in work.answers.items():
                row[exercise.name] = int(answer.verdict.right)
                row[f"{exercise.name}, explanation"] = class_.given(student, exercise, answer)
            row |= {f"{lesson.name}, guesses": len(work.guesses)}
            row |= {f"{lesson.name}, of 100": class_.mark(student, lesson, work)[0]}
        yield row


def explanations(class_: Class) -> list[dict]:
    """The rows of ``explanations.csv``: all answers to a question, then all to the next."""
    wrote = [
        (*pair, owner)
        for owner, _, work in class_.each()
        for pair in work.answers.items()
        if pair[1].sentence
    ]
    return [
        {
            "exercise": exercise.name,
            "question": exercise.why,
            "a good answer": exercise.good,
            "id": owner.id,
            "student": owner.name,
            "sentence": answer.sentence,
            RUBRIC: class_.given(owner, exercise, answer),
        }
        for exercise, answer, owner in sorted(wrote, key=lambda row: row[0])
    ]


def guesses(class_: Class) -> Iterator[dict]:
    """The rows of ``guesses.csv``: each guess as entered and as a number, and its error in per
    cent.
    """
    for owner, lesson, work in class_.each():
        for question, guess in work.guesses.items():
            truth = lesson.truths[question]
            value = number(guess) if isinstance(truth, int | float) else None
            off = (
                None
                if value is None or not truth
                else round(100 * (value / float(str(truth)) - 1), 1)
            )
            row = {
                "id": owner.id,
                "student": owner.name,
                "lesson": lesson.name,
                "question": question,
                "guess": guess,
            }
            yield row | {"number": value, "true value": truth, "off by %": off}


def save(path: Path, rows: Iterable[dict]) -> None:
    """Write ``rows`` as a table, the columns of a lesson side by side."""
    text = as_csv(rows, order=lambda name: name[:2] * name[:2].isdigit())
    save_file(path, text.encode("utf-8-sig"))  # without this mark, Excel guesses the encoding


def points(sheet: Path) -> dict[tuple[str, str], float]:
    """The points in an ``explanations.csv``, however a spreadsheet saved it; ``SystemExit`` if
    unreadable.
    """
    raw = sheet.read_bytes() if sheet.exists() else b""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("cp1252", "replace")  # as Excel saves it in Western Europe
    rows = csv.DictReader(
        io.StringIO(text), delimiter=max(",;\t", key=text.partition("\n")[0].count)
    )
    if text.strip() and not {"id", "student", "exercise", RUBRIC} <= set(rows.fieldnames or ()):
        raise SystemExit(f"{sheet} has lost a column: `id`, `student`, `exercise` or `{RUBRIC}`")
    given = {}
    for row in rows:
        entered = (row[RUBRIC] or "").strip()
        value = number(entered)
        if entered and (value is None or not 0 <= value <= FULL):
            where = f"{sheet}, row {rows.line_num} ({row['student']}, {row['exercise']})"
            raise SystemExit(f"{where}: `{entered}` isn't a number of points from 0 to {FULL}")
        if value is not None:
            given[row["id"].removeprefix("'"), row["exercise"]] = value
    return given


def feedback(class_: Class, student: Student) -> str:
    """A student's page: for each lesson the total, the guesses, and a verdict on each exercise."""
    parts, marks = "", []
    for _, lesson, work in class_.each(student):
        points, words = class_.mark(student, lesson, work)
        guessed = [
            f"{q} You said {guess}; it is {lesson.truths[q]}." for q, guess in work.guesses.items()
        ]
        parts += LESSON.format(
            name=escape(lesson.name),
            points=points,
            words=words,
            guesses="<br>".join(map(escape, guessed)),
        )
        parts += "".join(
            _exercise(*pair, class_.given(student, *pair)) for pair in work.answers.items()
        )
        marks.append(points)
    return PAGE.format(
        name=escape(student.name), total=sum(marks), most=100 * len(marks), lessons=parts
    )


def _exercise(exercise: Exercise, answer: Answer, given: float | None) -> str:
    points = (
        "not read yet."
        if given is None
        else f"<b>{given:g} of {FULL} points.</b> A good answer: {{good}}"
    )
    text = exercise._asdict() | answer._asdict()
    return EXERCISE.replace("{points}", points).format(
        **{
            name: html(value) if name == "verdict" else escape(str(value))
            for name, value in text.items()
        }
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.marks", description="Mark submitted notebooks."
    )
    parser.add_argument("submitted", type=Path, help="a folder with a folder for each student")
    parser.add_argument(
        "marks", type=Path, help="the folder for tables and feedback; points in it are read first"
    )
    asked = parser.parse_args(arguments)
    folders = (
        sorted(path for path in asked.submitted.iterdir() if path.is_dir())
        if asked.submitted.is_dir()
        else []
    )
    if not folders:
        raise SystemExit(f"{asked.submitted} has no folder of a student")
    (asked.marks / "feedback").mkdir(parents=True, exist_ok=True)
    sheet = asked.marks / "explanations.csv"
    class_ = Class(lessons(), {}, points(sheet))
    for folder in folders:
        match = MOODLE.match(folder.name)
        name, number_ = match.groups() if match else (folder.name, folder.name)
        student = Student(number_, name, folder.name)
        class_.works[student] = handed_in(folder, class_.asked)
        print(
            student.name,
            *(f"{part[1].name}: {class_.mark(*part)[0]:g}" for part in class_.each(student)),
            sep="; ",
        )
    rows = explanations(class_)
    if lost := class_.points.keys() - {(row["id"], row["exercise"]) for row in rows}:
        owners = ", ".join(sorted({owner for owner, _ in lost}))
        raise SystemExit(
            f"{sheet} has points for what isn't handed in here, by {owners}: no table or page was"
            " written"
        )
    for student in class_.works:
        save_file(asked.marks / "feedback" / f"{student.folder}.html", feedback(class_, student))
    for name, table in (
        ("marks", marks(class_)),
        ("guesses", guesses(class_)),
        ("explanations", rows),
    ):
        save(asked.marks / f"{name}.csv", table)
    if wait := sum(row[RUBRIC] is None for row in rows):
        print(
            f"{wait} explanations wait for their points in {sheet}: enter them there, and run this"
            " again"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
