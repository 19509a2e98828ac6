"""`cypresskit handout`: lessons for a class, without solutions."""

import argparse
from pathlib import Path

from cypresskit.cli.command import CommandError, command, option


@command(
    "handout",
    "write lessons for a class, without solutions",
    "Writes the lessons whose numbers are given, without their folded solutions, and a glossary,"
    " into FOLDER. Nothing that is there is written over.",
    option("lessons", metavar="NN", nargs="+", help="numbers of lessons, such as 07 09 11"),
    option("--to", type=Path, required=True, metavar="FOLDER", help="where they are written"),
    example="cypresskit handout 07 09 11 --to week3",
)
def handout(args: argparse.Namespace) -> None:
    """Write the lessons."""
    from cypresskit.grading import course
    from cypresskit.grading.handout import hand_out

    try:
        chosen = course.numbered(args.lessons)
        hand_out(chosen, args.to)
    except ValueError as error:
        raise CommandError(str(error)) from None
    print(f"{len(chosen)} lessons and the glossary are in {args.to}")
