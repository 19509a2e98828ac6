"""The command line: each module named ``cmd_`` adds its commands with ``@command``."""

import argparse
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import cypresskit

Option = tuple[tuple[str, ...], dict[str, Any]]  # what argparse's ``add_argument`` is given


class CommandError(Exception):
    """A mistake that the user can mend; its text is all that is shown."""


PARSER = argparse.ArgumentParser(
    prog="cypresskit",
    description=(
        "Simulate AMD's Cypress GPU (Radeon HD 5870) and learn fast matrix multiplication on it."
    ),
    epilog="Start with `cypresskit lab`. `cypresskit COMMAND --help` tells more about one command.",
)
PARSER.add_argument("--version", action="version", version=f"cypresskit {cypresskit.__version__}")
COMMANDS = PARSER.add_subparsers(dest="command", metavar="COMMAND", required=True)


def command(
    name: str, summary: str, more: str, *options: Option, example: str = ""
) -> Callable[[Callable], Callable]:
    """A decorator that adds a command; its function takes the parsed arguments. ``summary`` and
    ``more`` are its help.
    """
    sub = COMMANDS.add_parser(
        name,
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}. {more}", 78),
        epilog=f"example:\n  {example}" if example else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for names, how in options:
        sub.add_argument(*names, **how)

    def register(action: Callable) -> Callable:
        sub.set_defaults(action=action)
        return action

    return register


def option(*names: str, **how: Any) -> Option:
    """An option or argument, as argparse's ``add_argument`` takes it."""
    return names, how


def whole(least: int, most: int) -> Callable[[str], int]:
    """A ``type`` for argparse: whole numbers from ``least`` to ``most``."""

    def number(text: str) -> int:
        if not (text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(
                f"{text!r} is no whole number from {least} to {most:,}"
            )
        return int(text)

    return number


@contextmanager
def user_errors(*kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of these ``kinds`` into a ``CommandError`` with the same text."""
    try:
        yield
    except kinds as error:
        raise CommandError(str(error.args[0] if isinstance(error, KeyError) else error)) from None


def printable(text: str) -> str:
    """The text with characters that would move a terminal's cursor escaped; file names may hold
    any.
    """
    return "".join(
        char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text
    )
