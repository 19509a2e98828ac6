"""`cypresskit grade`: from submitted notebooks, two tables and a page for each student."""

import argparse
import sys
from functools import partial
from pathlib import Path

from cypresskit.cli.command import CommandError, command, option
from cypresskit.files.received import shown_name
from cypresskit.tables import one_line

NO_SANDBOX = (
    "bubblewrap (bwrap) isn't installed or doesn't work here, so answers would run with your"
    " rights: they could read the solutions, change these marks, delete your files. Install it (on"
    " Ubuntu 24.04, load AppArmor's profile bwrap-userns-restrict, too), or mark in a virtual"
    " machine: see docs/teaching.md, Marking. --no-sandbox insists, and every page says so."
)


@command(
    "grade",
    "mark submitted notebooks",
    "SUBMITTED has a folder or a file for each student, as Moodle and Canvas deliver them. MARKS"
    " gets marks.csv, in which everybody and everything handed in is accounted for, questions.csv,"
    " with all sentences, and a page of feedback for each student. Enter points for"
    " sentences into questions.csv, and run it again: files that you have changed otherwise aren't"
    " written over. Answers run in bare processes under bubblewrap (bwrap).",
    option("submitted", metavar="SUBMITTED", type=Path, help="a folder with what was handed in"),
    option("marks", metavar="MARKS", type=Path, help="the folder for tables and feedback"),
    option(
        "--roster",
        type=Path,
        metavar="FILE",
        help="a CSV file of the class, with a column `id` and perhaps `name`",
    ),
    option(
        "--lessons",
        nargs="+",
        default=(),
        metavar="NN",
        help="numbers of the lessons that count; without it, all that anybody handed in",
    ),
    option(
        "--no-sandbox",
        action="store_true",
        help="judge with your own rights: every page says so",
    ),
    example="cypresskit grade submitted marks --roster class.csv",
)
def grade(args: argparse.Namespace) -> None:
    """Judge, add up, and write."""
    from cypresskit.grading import course, gradebook, judging, submissions
    from cypresskit.isolated.process import find_sandbox, map_with_servers

    try:
        due = tuple(path.stem for path in course.numbered(args.lessons))
        students, left_out = submissions.students(args.submitted)
        if args.roster:
            students = submissions.with_roster(students, submissions.roster(args.roster))
    except NotADirectoryError:
        raise CommandError(f"{args.submitted} is a file: unpack it into a folder") from None
    except OSError as error:
        raise CommandError(f"can't read {args.submitted}: {error.strerror or error}") from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not students:
        raise CommandError(f"{args.submitted} has nothing of any student")
    sandbox = None if args.no_sandbox else find_sandbox()
    if not sandbox and not args.no_sandbox:
        raise CommandError(NO_SANDBOX)
    if theirs := gradebook.in_the_way(args.marks, students):
        shown = ", ".join(theirs[:5]) + ", ..." * (len(theirs) > 5)
        raise CommandError(
            f"{args.marks} has files that this command didn't write, or that were changed since,"
            f" and would write over: {shown}. Move them away, or name another folder"
        )
    (args.marks / "feedback").mkdir(parents=True, exist_ok=True)
    sheet = args.marks / gradebook.QUESTIONS
    try:
        stored = gradebook.stored_rows(sheet)
    except ValueError as error:
        raise CommandError(str(error)) from None
    read = [row for row in stored if row[gradebook.KEY] and row[gradebook.RUBRIC] is not None]
    points = {row[gradebook.KEY]: row[gradebook.RUBRIC] for row in read}
    lessons = course.lessons()
    asked = {stem: lesson for stem, lesson in lessons.items() if not due or stem in due}
    records = gradebook.CourseRecords(asked, points=points, sandboxed=bool(sandbox), due=due)
    judge = partial(student_work, records.asked, sandbox)
    for student, works in zip(students, map_with_servers(judge, students, judging.MODULES)):
        records.works.append((student, works))
        parts = [f"{p.lesson.name}: {records.mark(p)[0]:g}" for p in records.parts(student)]
        print(f"{student.name}; {gradebook.describe_outcome(student, parts)}", flush=True)
    faults = gradebook.write_all(records, args.marks, stored)
    report(records, sheet, left_out, faults)


def report(records, sheet: Path, left_out: list[str], faults: list[str]) -> None:
    """Report what was left out, what is left to do, and what failed."""
    from cypresskit.grading import gradebook

    if left_out:
        print(f"Hidden, and left out: {', '.join(left_out)}", file=sys.stderr)
    without = [student.name for student, works in records.works if not works]
    if without:
        print(f"Without marks, {len(without)} of {len(records.works)}: {', '.join(without)}")
    rows = gradebook.explanations(records)
    if waiting := sum(row[gradebook.RUBRIC] is None for row in rows):
        print(
            f"{waiting} explanations wait for their points in {one_line(str(sheet))}: enter them"
            " there, and run this again"
        )
    if faults:
        raise CommandError("\n".join(faults))


def student_work(lessons: dict, sandbox, student, server) -> dict:
    """Return a student's work by lesson; note on the student what isn't judged."""
    from cypresskit.grading import course, gradebook, judging, submissions

    handed: list[tuple[str, list, int]] = []  # lesson, cells, and where its verdicts begin
    parts: dict[str, list] = {}
    attempts: list = []
    for notebook in student.notebooks:
        shown = shown_name(notebook)
        try:
            cells, remark = submissions.read_cells(notebook)
        except ValueError as error:
            student.notes.append(f"not judged: {shown} is no notebook: {error}")
            continue
        if remark:
            student.notes.append(f"{shown}: {remark}")
        stem = course.lesson_of(notebook.name, cells, lessons)
        if stem is None:
            student.notes.append(f"not judged: {shown} is none of the lessons that count")
            continue
        exercises = lessons[stem].exercises
        handed.append((stem, cells, len(attempts)))
        attempts += [judging.attempt(cells, lessons[stem], exercise) for exercise in exercises]
    verdicts = judging.judged(attempts, server, sandbox)
    for stem, cells, begin in handed:
        count = len(lessons[stem].exercises)
        parts.setdefault(stem, []).append((cells, verdicts[begin : begin + count]))
    return {stem: gradebook.combined(lessons[stem], part) for stem, part in parts.items()}
