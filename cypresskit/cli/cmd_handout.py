"""`cypresskit handout`: write lessons for a class, without solutions."""

import argparse
from pathlib import Path

from cypresskit.cli.command import CommandError, command
from cypresskit.tables import quantity


@command(
    "handout",
    "write lessons for a class, without solutions",
    "The lessons NN are written to FOLDER without their folded solutions. Files with other contents"
    " are never overwritten.",
    {
        "lessons": {"metavar": "NN", "nargs": "+", "help": "numbers of lessons, such as 07 09 11"},
        "--to": {
            "type": Path,
            "required": True,
            "metavar": "FOLDER",
            "help": "the folder to write to",
        },
    },
    "cypresskit handout 07 09 11 --to week3",
)
def handout(args: argparse.Namespace) -> None:
    """Write the lessons."""
    from cypresskit.grading import course
    from cypresskit.grading.handout import hand_out

    try:
        chosen = course.select_notebooks(args.lessons)
        hand_out(chosen, args.to)
    except ValueError as error:
        raise CommandError(str(error)) from None
    print(f"{quantity(len(chosen), 'lesson')} and the glossary are in {args.to}")
