"""Run the package from a shell: the `cypresskit` command.

Each module ``cmd_...`` adds commands (see ``command``). It imports the timing model and the lessons
only when it needs them, so `--help` is fast. An error in the command line, in a file or in a kernel
is reported on standard error without a traceback. The exit status is then 1, or 2 if the command
line is invalid.

Not covered: pictures, which are in the notebooks.
"""

import argparse
import io
import os
import sys
from collections.abc import Sequence

# These modules add their commands when they are imported.
from cypresskit.cli import (  # noqa: F401
    cmd_contest,
    cmd_grade,
    cmd_handout,
    cmd_kernels,
    cmd_lab,
    cmd_time,
)
from cypresskit.cli.command import PARSER, CommandError, escape_controls

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in ``argv``, by default the shell's, and return its exit status."""
    args = _arguments(argv)
    try:
        _check_output()
        args.action(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the reading process, such as `head`, has ended
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except CommandError as error:
        message = str(error)
    except MemoryError as error:
        message = f"this computer's memory is too small: {error}"
    except OSError as error:  # commands turn those of most files into CommandError
        where = f"use {error.filename}"
        if error.filename is None:  # writing to standard output failed
            where = "write to standard output"
            _discard_output()
        message = f"can't {where}: {error.strerror or error}"
    print(f"cypresskit {args.command}: {escape_controls(message)}", file=sys.stderr)
    return 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
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


def _check_output() -> None:
    if sys.stdout is None:
        raise CommandError("standard output is closed: redirect it to /dev/null to discard it")
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A kernel's comments may have characters that the terminal's encoding lacks
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Discard buffered output, which Python would try to print again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
