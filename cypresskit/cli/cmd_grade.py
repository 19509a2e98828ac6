"""`cypresskit grade`: grade submitted notebooks; write tables, and a page for each student."""

import argparse
import sys
from collections import Counter
from functools import partial
from pathlib import Path

from cypresskit.cli.command import CommandError, command
from cypresskit.files.received import printable_name
from cypresskit.tables import listed, one_line, quantity

NO_SANDBOX = (
    "bubblewrap (bwrap) isn't installed or doesn't work here, or this processor is neither an"
    " x86-64 nor an Arm. Without the sandbox, answers run with your rights: they could read the"
    " solutions, change these grades, or delete your files. Install it (on Ubuntu 24.04, also load"
    " AppArmor's profile bwrap-userns-restrict), or grade in a virtual machine with --no-sandbox;"
    " every page then says so. See Grading in docs/teaching.md."
)
UNKNOWN = (
    "it has neither the title nor a check of a lesson. Its first cell has to begin with its title,"
    " such as `# 09 The bus`"
)


@command(
    "grade",
    "grade submitted notebooks",
    "SUBMITTED is a notebook, or has a folder or a file for each student, as Moodle and Canvas"
    " deliver them. GRADES gets grades.csv, with a row for each student; review.html, a page on"
    " which you read all that students wrote, and decide on points and remarks; moodle.csv or"
    " canvas.csv, to import there; and feedback, a folder with a page for each student. Save the"
    " decisions of review.html in GRADES, as decisions.csv, at any time, and run the command again."
    " Answers run in bare processes under bubblewrap (bwrap).",
    {
        "submitted": {"metavar": "SUBMITTED", "type": Path, "help": "the submissions"},
        "grades": {"metavar": "GRADES", "type": Path, "help": "the folder for tables and feedback"},
        "--lessons": {
            "nargs": "+",
            "default": (),
            "metavar": "NN",
            "help": "lessons that count, such as 05 07; by default all that any student submitted",
        },
        "--exercises": {
            "nargs": "+",
            "default": (),
            "metavar": "NN.N",
            "help": "exercises that count in their lessons, such as 05.1 05.3; by default all",
        },
        "--no-sandbox": {
            "action": "store_true",
            "help": "run answers with your own rights; every page says so",
        },
    },
    "cypresskit grade submitted grades",
)
def grade(args: argparse.Namespace) -> None:
    """Judge the answers, and write tables and pages."""
    from cypresskit.grading import decisions, gradebook, judging, review, submissions
    from cypresskit.isolated.process import find_sandbox, map_with_servers
    from cypresskit.timing import simulate

    try:
        lessons, due = select_lessons(args)
        students, left_out = submissions.find_students(args.submitted)
    except NotADirectoryError:
        raise CommandError(f"{args.submitted} is a file: unpack it into a folder") from None
    except OSError as error:
        raise CommandError(f"can't read {args.submitted}: {error.strerror or error}") from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    if not students:
        raise CommandError(f"{args.submitted} has no submissions")
    sandbox = None if args.no_sandbox else find_sandbox()
    if not sandbox and not args.no_sandbox:
        raise CommandError(NO_SANDBOX)
    records = gradebook.CourseRecords(
        lessons, decisions=open_folder(args.grades), sandboxed=bool(sandbox), due=due
    )
    if sandbox:
        simulate("sgemm_tn", 256)  # compiled here, since there nothing can be kept
    judge = partial(student_work, lessons, sandbox)
    for student, works in zip(students, map_with_servers(judge, students, judging.MODULES)):
        records.works.append((student, works))
        parts = [f"{s.lesson.name}: {records.grade(s)[0]:g}" for s in records.submissions(student)]
        outcome = gradebook.describe_outcome(student, parts)
        print(f"{student.name}; {outcome}", flush=True)
    faults = []
    try:  # the teacher may have decided more while answers were judged
        records.decisions = decisions.read_decisions(args.grades)
    except ValueError as error:
        faults.append(f"{error}; the decisions of before count")
    faults += review.write_all(records, args.grades)
    if left_out:
        print(f"Skipped hidden files: {', '.join(left_out)}", file=sys.stderr)
    tell_what_counts(records)
    tell_what_waits(records, args.grades)
    tell_what_is_not_imported([student for student, _ in records.works])
    if faults:
        raise CommandError("\n".join(faults))


def select_lessons(args: argparse.Namespace) -> tuple[dict, tuple[str, ...]]:
    """Return the lessons that may be submitted, with the exercises that count, and the stems of
    those that count for all students, if any are named.

    Raises
    ------
    ValueError
        If a lesson or an exercise doesn't exist, or contradicts another option.
    """
    from cypresskit.grading import course

    exercises, numbers = (
        " ".join(given).replace(",", " ").split() for given in (args.exercises, args.lessons)
    )
    for name in exercises if numbers else ():
        if name.split(".")[0] not in numbers:
            raise ValueError(f"--exercises {name}: its lesson isn't in --lessons")
    numbers = [*dict.fromkeys(numbers or (name.split(".")[0] for name in exercises))]
    due = tuple(path.stem for path in course.select_notebooks(numbers))
    lessons = course.select_exercises(course.read_lessons(), exercises)
    return {stem: lesson for stem, lesson in lessons.items() if not due or stem in due}, due


def open_folder(grades: Path) -> dict:
    """Make the folder for tables and pages; return the decisions that the teacher saved in it.

    Raises
    ------
    CommandError
        If the folder has other files, or a table that can't be read.
    """
    from cypresskit.grading import decisions, gradebook

    if gradebook.is_foreign(grades):
        raise CommandError(
            f"{grades} has files that this command didn't write: choose an empty folder, or one"
            " that doesn't exist yet"
        )
    (grades / "feedback").mkdir(parents=True, exist_ok=True)
    try:
        return decisions.read_decisions(grades)
    except ValueError as error:
        raise CommandError(str(error)) from None


def tell_what_counts(records) -> None:
    """Print which students have no grade, and which lessons make up the maximum."""
    if without := [student.name for student, works in records.works if not works]:
        print(f"Without a grade, {len(without)} of {len(records.works)}: {', '.join(without)}")
    submitted = Counter(stem for _, works in records.works for stem in works)
    lessons = [
        f"{records.lessons[stem].name} ({quantity(submitted[stem], 'student')})"
        for stem in records.counted
    ]
    if lessons:
        print(f"The maximum is {records.maximum}, 100 for each lesson: {', '.join(lessons)}")


def tell_what_waits(records, grades: Path) -> None:
    """Print how many explanations wait, and which decisions are on nobody's work."""
    from cypresskit.grading import gradebook

    if waiting := records.waiting():
        page = one_line(str(grades / gradebook.REVIEW))
        have = "has" if waiting == 1 else "have"
        print(
            f"{quantity(waiting, 'explanation')} {have} no points yet: decide in {page}, save the"
            " table beside it, and run this command again"
        )
    known = {
        (submission.student.id, what)
        for submission in records.submissions()
        for each in submission.answers
        for what in (submission.lesson.added_key, each.answer_key, each.why_key)
    }
    if unknown := sorted(records.decisions.keys() - known):
        print(f"Decisions on what wasn't handed in: {', '.join(map(' '.join, unknown))}")


def tell_what_is_not_imported(students: list) -> None:
    """Print which students aren't in the table that Moodle or Canvas imports."""
    from cypresskit.grading import submissions

    systems = {student.system for student in students} - {""}
    strange = [student.name for student in students if not student.system]
    if systems and strange:
        print(f"Not in the table for {systems.pop()}, by their names: {', '.join(strange)}")
    odd = [name for name in strange if not submissions.NAMES[submissions.CANVAS].match(name)]
    if not systems and odd != strange:
        print(f"No table for Canvas, which gives no names such as {', '.join(odd) or 'these'}")


def student_work(lessons: dict, sandbox, student, server) -> dict:
    """Return a student's work by lesson, and add notes on what isn't judged to the student."""
    from cypresskit.grading import course, gradebook, judging, submissions
    from cypresskit.grading.hand_in import HandIn

    hand_ins: dict[str, list] = {}  # by lesson
    tries: list[tuple] = []  # lesson, exercise, attempt
    for notebook in sorted(student.notebooks, key=lambda path: path.with_suffix("")):
        shown = printable_name(notebook)
        try:
            cells, python = submissions.read_notebook(notebook)
        except ValueError as error:
            student.notes.append(f"{shown} wasn't read: {error}")
            continue
        present = course.identify_lessons(cells, course.read_lessons())
        if not (counted := [stem for stem in present if stem in lessons]):
            why = f"it is lesson {present[0][:2]}, which doesn't count" if present else UNKNOWN
            student.notes.append(f"{shown} wasn't read: {why}")
            continue
        stem = counted[0]
        if others := [each[:2] for each in present if each != stem]:
            student.notes.append(
                f"{shown} was read as lesson {stem[:2]} alone, but has parts of {listed(others)}:"
                " hand in a file for each lesson"
            )
        hand_in = HandIn(cells, lessons[stem], shown, python)
        hand_ins.setdefault(stem, []).append(hand_in)
        for exercise in lessons[stem].exercises:
            tries += [(stem, exercise, attempt) for attempt in hand_in.attempts(exercise)]
    attempts = [attempt for _, _, attempt in tries]
    judged: dict[str, list] = {}
    for attempt, verdict in zip(tries, judging.judge_student(attempts, server, sandbox)):
        stem, exercise, _ = attempt
        judged.setdefault(stem, []).append((exercise, verdict))
    return {
        stem: gradebook.combine_answers(lessons[stem], found, judged[stem])
        for stem, found in hand_ins.items()
    }
