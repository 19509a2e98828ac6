"""The table of commands: each module named ``cmd_`` adds its own with ``@command``."""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

Action = Callable[[argparse.Namespace], int | None]  # returns the exit status; None counts as 0
Option = tuple[tuple[str, ...], dict[str, Any]]  # what argparse's ``add_argument`` is given


class CommandError(Exception):
    """A mistake that the user can mend; its text is all that is shown."""


@dataclass(frozen=True)
class Command:
    """A row of the table: the function to run, its text in `--help`, and its options."""

    action: Action
    summary: str
    more: str
    options: tuple[Option, ...]
    example: str


COMMANDS: dict[str, Command] = {}


def command(name: str, summary: str, more: str, *options: Option, example: str = "") -> Callable[[Action], Action]:
    """A decorator that adds a function to the table of commands."""

    def register(action: Action) -> Action:
        COMMANDS[name] = Command(action, summary, more, options, example)
        return action

    return register


def option(*names: str, **how: Any) -> Option:
    """An option or argument, as argparse's ``add_argument`` takes it."""
    return names, how


def style_option() -> Option:
    """`--style`, the compiler's style."""
    words = "compile as AMD's compiler did (default), or the fastest code"
    return option("--style", choices=("amd", "best"), default="amd", help=words)


def whole(least: int, most: int) -> Callable[[str], int]:
    """A ``type`` for argparse: whole numbers from ``least`` to ``most``."""

    def number(text: str) -> int:
        if not (text.isdecimal() and len(text) <= len(str(most)) and least <= int(text) <= most):
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} to {most:,}")
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
    """The text with characters that would move a terminal's cursor escaped; file names may hold any."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)
