"""The `cypresskit` command: the package from a shell.

Each module named ``cmd_`` adds a few commands to the table in ``command``. It imports compiler, timing model and
lessons only when it needs them, so that `--help` answers at once. A mistake in what was typed, in a file or in a kernel
is reported in a few lines on standard error, without a traceback. The exit status is then 1, or 2 if the command line
itself made no sense. Left out: everything with a picture, which is in the notebooks.
"""

import argparse
import io
import os
import sys
import textwrap
from collections.abc import Sequence

import cypresskit
from cypresskit.cli import cmd_card, cmd_contest, cmd_lab, cmd_time
from cypresskit.cli.command import COMMANDS, CommandError, printable

__all__ = ["main"]

_MODULES = (cmd_card, cmd_contest, cmd_lab, cmd_time)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command in `argv` (default: the shell's) and return its exit status."""
    args = _arguments(argv)
    try:
        _check_output()
        status = COMMANDS[args.command].action(args) or 0
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # who reads, `head` say, has seen enough
        _discard_output()
        return 0
    except KeyboardInterrupt:
        return 130
    except CommandError as error:
        message = str(error)
    except MemoryError as error:
        message = f"this computer's memory is too small: {error}"
    except OSError as error:  # of most files the commands know more
        where = f"use {error.filename}"
        if error.filename is None:  # it is of what was printed
            where = "write to standard output"
            _discard_output()
        message = f"can't {where}: {error.strerror or error}"
    print(f"cypresskit {args.command}: {printable(message)}", file=sys.stderr)
    return 1


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    """The parsed command line. The process ends here if the line makes no sense or asks for help."""
    parser = _parser()
    args, others = parser.parse_known_args(argv)
    if args.command == "lab":
        args.options = others
    elif others:
        parser.error(f"{args.command} doesn't know {' '.join(others)}: see `cypresskit {args.command} --help`")
    return args


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="cypresskit",
        description="Simulate AMD's Cypress GPU (Radeon HD 5870) and learn fast matrix multiplication on it.",
        epilog="Start with `cypresskit lab`. `cypresskit COMMAND --help` tells more about one command.",
    )
    parser.add_argument("--version", action="version", version=f"cypresskit {cypresskit.__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, command in sorted(COMMANDS.items()):
        sub = commands.add_parser(
            name,
            help=command.summary,
            description=textwrap.fill(f"{command.summary[0].upper()}{command.summary[1:]}. {command.more}", 78),
            epilog=f"example:\n  {command.example}" if command.example else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        for names, how in command.options:
            sub.add_argument(*names, **how)
    return parser


def _check_output() -> None:
    if sys.stdout is None:
        raise CommandError("standard output is closed: send it to /dev/null if nobody needs to read it")
    if isinstance(sys.stdout, io.TextIOWrapper):  # a kernel's comments may hold what a terminal doesn't know
        sys.stdout.reconfigure(errors="backslashreplace")


def _discard_output() -> None:
    """Send output that is still buffered to nowhere; Python would try to print it once more when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
