"""`cypresskit handout`: lessons for a class, without solutions."""

import argparse
import csv
import os
from pathlib import Path

from cypresskit.cli.cmd_marks import class_seed
from cypresskit.cli.command import CommandError, command, option


@command(
    "handout",
    "write lessons for a class, without solutions",
    "Writes the lessons whose numbers are given, without their folded solutions, and a glossary,"
    " into FOLDER. With a roster, a CSV file with a column `id`, each student gets a folder of"
    " that name and own numbers in the exercises of formulas: judge them with `cypresskit marks"
    " --own-numbers --seed`, and the text in FOLDER/seed.txt. Don't hand out seed.txt.",
    option("lessons", metavar="NN", nargs="+", help="numbers of lessons, such as 07 09 11"),
    option("--to", type=Path, required=True, metavar="FOLDER", help="where they are written"),
    option("--roster", type=Path, metavar="FILE", help="a CSV file with a column `id`"),
    example="cypresskit handout 07 09 11 --to week3 --roster class.csv",
)
def handout(args: argparse.Namespace) -> None:
    """Write the lessons."""
    from cypresskit.marks import course
    from cypresskit.marks.handout import hand_out

    chosen = []
    for number in args.lessons:
        notebooks = sorted(course.folder().glob(f"{number}_*.ipynb")) if number.isdecimal() else []
        if not notebooks:
            raise CommandError(f"there is no lesson {number}: give numbers such as 07")
        chosen += notebooks
    if not args.roster:
        hand_out(chosen, args.to)
        print(f"{len(chosen)} lessons and the glossary are in {args.to}")
        return
    students = roster(args.roster)
    args.to.mkdir(parents=True, exist_ok=True)
    seed = class_seed(args.to / "seed.txt")
    for student in students:
        hand_out(chosen, args.to / student, student, seed)
    print(f"{len(chosen)} lessons for each of {len(students)} students are in {args.to}")


def roster(file: Path) -> list[str]:
    """The ids in a roster. Raises ``CommandError`` for one that can't be a folder's name."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"can't read {file}: {error}") from None
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.DictReader(text.splitlines(), delimiter=delimiter)
    if "id" not in (rows.fieldnames or ()):
        raise CommandError(f"{file} has no column `id`")
    students = [(row["id"] or "").strip() for row in rows]
    for student in students:
        plain = student.isprintable() and os.path.basename(student) == student
        if not plain or student in ("", ".", "..") or len(student.encode()) > 100:
            raise CommandError(f"{file}: the id {student!r} can't be the name of a folder")
    if len(set(students)) < len(students):
        raise CommandError(f"{file} has an id twice")
    return students
