"""`cypresskit marks`: from submitted notebooks, tables for a course system and feedback pages."""

import argparse
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from secrets import token_hex

from cypresskit.cli.command import CommandError, command, jobs, option, whole
from cypresskit.saving import other_files, save_file
from cypresskit.tables import one_line

STORE = ".judged.json"


@command(
    "marks",
    "mark submitted notebooks",
    "SUBMITTED has a folder for each student, as Moodle unpacks them. MARKS gets marks.csv,"
    " explanations.csv, guesses.csv, moodle.csv, gradebook.csv, and a page of feedback for each"
    " student. Enter points for sentences into explanations.csv, and run it again. Answers run in"
    " bare processes, on Linux under bubblewrap (bwrap) if that is installed. What was judged"
    " before isn't judged again.",
    option("submitted", metavar="SUBMITTED", type=Path, help="a folder with students' folders"),
    option("marks", metavar="MARKS", type=Path, help="the folder for tables and feedback"),
    jobs("students", "one for each core", most=256),
    option(
        "--sample",
        type=whole(1, 100),
        default=100,
        metavar="PERCENT",
        help="of the sentences, which are to be read and counted (default 100)",
    ),
    option("--hide-names", action="store_true", help="no names beside the sentences"),
    option(
        "--seed",
        default="",
        metavar="TEXT",
        help="what checks' numbers are drawn from (default: kept in MARKS/seed.txt)",
    ),
    option(
        "--own-numbers",
        action="store_true",
        help="the lessons were handed out with own numbers (see `cypresskit handout --help`)",
    ),
    example="cypresskit marks submitted marks --jobs 8 --hide-names",
)
def marks(args: argparse.Namespace) -> None:
    """Judge, add up, and write."""
    from cypresskit.isolated.process import sandboxed
    from cypresskit.marks import course, gradebook, judging, submissions
    from cypresskit.teach.check import own_seed

    try:
        students = submissions.students(args.submitted)
    except OSError as error:
        raise CommandError(f"can't read {args.submitted}: {error.strerror or error}") from None
    if not students:
        raise CommandError(f"{args.submitted} has no folder of a student")
    (args.marks / "feedback").mkdir(parents=True, exist_ok=True)
    sheet = args.marks / "explanations.csv"
    try:
        stored = gradebook.stored_rows(sheet)
    except gradebook.UnreadableSheet as error:
        raise CommandError(str(error)) from None
    if not sandboxed():
        print(
            "cypresskit marks: bubblewrap (bwrap) isn't installed or doesn't work here, so answers"
            " run with your rights: see docs/teaching.md",
            file=sys.stderr,
        )
    seed = args.seed or class_seed(args.marks / "seed.txt")
    class_ = gradebook.Class(course.lessons(), share=args.sample / 100, seed=seed)
    class_.points = {
        row[gradebook.KEY]: row[gradebook.RUBRIC]
        for row in stored
        if row[gradebook.RUBRIC] is not None
    }
    verdicts = read_verdicts(args.marks / STORE)
    kept: dict[str, list] = {}
    jobs = args.jobs or os.cpu_count() or 1
    families: Queue = Queue()
    for _ in range(jobs):
        families.put(judging.judging_family())

    def judged(student) -> tuple:
        family = families.get()
        try:
            numbers = own_seed(seed, student.id) if args.own_numbers else f"{seed} {student.id}"
            return student_work(student, class_.asked, numbers, verdicts, family)
        finally:
            families.put(family)

    with ThreadPoolExecutor(jobs) as pool:
        for student, (works, lasting, notes) in zip(students, pool.map(judged, students)):
            class_.works[student.id] = student, works
            kept |= lasting
            for note in notes:
                print(note, file=sys.stderr)
            parts = [f"{p.lesson.name}: {class_.mark(p)[0]:g}" for p in class_.parts(student)]
            print("; ".join([student.name, *parts]), flush=True)
    while not families.empty():
        families.get().end()
    handed = {row[gradebook.KEY] for row in gradebook.explanations(class_)}
    lost = [
        row
        for row in stored
        if row[gradebook.KEY] not in handed and row[gradebook.RUBRIC] is not None
    ]
    faults = gradebook.write_all(class_, args.marks, lost, args.hide_names)
    save_file(args.marks / STORE, json.dumps(kept))
    report(class_, sheet, faults)


def report(class_, sheet: Path, faults: list[str]) -> None:
    """Say what is left to do, and what failed."""
    from cypresskit.marks import gradebook

    rows = gradebook.explanations(class_)
    if waiting := sum(row[gradebook.RUBRIC] is None for row in rows):
        print(
            f"{waiting} explanations wait for their points in {one_line(str(sheet))}: enter them"
            " there, and run this again"
        )
    broken = [
        (part.student.name, exercise.name, answer.verdict)
        for part in class_.parts()
        for exercise, answer in part.work.answers.items()
        if answer.verdict.broken
    ]
    for name, exercise, verdict in broken[:5]:
        print(f"{name}, {exercise}: {verdict}", file=sys.stderr)
    if broken:
        faults = [f"{len(broken)} answers were not judged, by a fault of the workbook", *faults]
    if faults:
        raise CommandError("\n".join(faults))


def class_seed(file: Path) -> str:
    """The text in ``file``; a new one, which is kept there, if it isn't there."""
    if file.exists():
        return file.read_text(encoding="utf-8", errors="replace").strip()
    seed = token_hex(8)
    save_file(file, seed + "\n")
    return seed


def read_verdicts(file: Path) -> dict[str, list]:
    """The verdicts of the run before, by their keys; none if they can't be read."""
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return stored if isinstance(stored, dict) else {}


def student_work(
    student, lessons: dict, seed: str, stored: dict, family
) -> tuple[dict, dict, list[str]]:
    """(work by lesson, verdicts to keep, notes on what isn't marked) of a student."""
    from cypresskit.marks import course, gradebook, judging, submissions
    from cypresskit.teach.check import Verdict

    notes = [
        f"{one_line(str(path))} is not marked: it is {kind}"
        for folder in student.folders
        for path, kind in other_files(folder)
    ]
    # Lesson, cells, the student's own kernel, and what is wrong with the notebook
    handed: list[tuple[str, list | None, str, str]] = []
    for notebook in (path for folder in student.folders for path in submissions.notebooks(folder)):
        shown = one_line(str(notebook))
        stem = next((stem for stem in lessons if stem in notebook.stem), None)
        if stem is None:
            notes.append(f"{shown} is not marked: no lesson's name is in its own")
            continue
        try:
            kernel = submissions.own_kernel(notebook.parent)
        except ValueError as error:
            kernel = ""
            notes.append(f"{shown} is marked without its kernel: {error}")
        try:
            handed.append((stem, submissions.read_cells(notebook), kernel, ""))
        except ValueError as error:
            handed.append(
                (stem, None, kernel, f"{one_line(notebook.name)} is no notebook: {error}")
            )
            notes.append(f"{shown} can't be marked: {error}")
    tasks = []
    for stem, cells, kernel, _ in handed:
        code = [c["source"] for c in cells or () if c["cell_type"] == "code"]
        code = [source for source in code if not course.CHECK.search(source)]
        tasks += [
            (code, exercise.check, kernel)
            for exercise in lessons[stem].exercises
            if cells is not None
        ]
    verdicts, kept = judging.judged(tasks, seed, stored, family)
    left = iter(verdicts)
    parts: dict[str, list] = {}
    for stem, cells, _, wrong in handed:
        exercises = lessons[stem].exercises
        if cells is None:
            fault = Verdict(False, wrong, "hand in what JupyterLab saved.")
            parts.setdefault(stem, []).append(([], [fault] * len(exercises)))
        else:
            parts.setdefault(stem, []).append((cells, [next(left) for _ in exercises]))
    works = {stem: gradebook.combined(lessons[stem], part) for stem, part in parts.items()}
    return works, kept, notes
