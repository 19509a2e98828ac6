"""Run the package from a shell: the `cypresskit` command.

Each module ``cmd_...`` adds commands (see ``command``). It imports the timing model and the lessons
only when it needs them, so `--help` is fast. An error in the command line, in a file or in a kernel
is reported on standard error without a traceback. The exit status is then 1, or 2 if the command
line is invalid.

Not covered: pictures, which are in the notebooks.
"""

import argparse
import io
import sys
from collections.abc import Sequence

# These modules add their commands when they are imported.
from cypresskit.cli import (  # noqa: F401
    cmd_contest,
    cmd_grade,
    cmd_handout,
    cmd_lab,
)
from cypresskit.cli.command import PARSER, CommandError
from cypresskit.tables import one_line

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in ``argv``, by default the shell's, and return its exit status."""
    args = parse_arguments(argv)
    try:
        if isinstance(sys.stdout, io.TextIOWrapper):
            # A student's name may have characters that the terminal's encoding lacks
            sys.stdout.reconfigure(errors="backslashreplace")
        args.action(args)
        return 0
    except KeyboardInterrupt:
        return 130
    except CommandError as error:
        message = str(error)
    except OSError as error:  # commands turn those of most files into CommandError
        what = f"use {error.filename}" if error.filename else "go on"
        message = f"can't {what}: {error.strerror or error}"
    shown = "\n".join(map(one_line, message.splitlines()))
    print(f"cypresskit {args.command}: {shown}", file=sys.stderr)
    return 1


def parse_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line. Exit if it is invalid, or a request for help."""
    args, others = PARSER.parse_known_args(argv)
    if args.command == "lab":
        args.options = others
    elif others:
        PARSER.error(
            f"{args.command} has no option {' '.join(others)}: see `cypresskit {args.command}"
            " --help`"
        )
    return args
