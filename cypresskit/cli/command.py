"""Define commands: each module ``cmd_...`` adds its commands with ``@command``."""

import argparse
import textwrap
from collections.abc import Callable
from typing import Any

import cypresskit

Option = tuple[tuple[str, ...], dict[str, Any]]  # what argparse's ``add_argument`` is given


class CommandError(Exception):
    """An error that the user can correct. Its text is shown without a traceback."""


PARSER = argparse.ArgumentParser(
    prog="cypresskit",
    description=(
        "Simulate AMD's Cypress GPU (Radeon HD 5870) and learn fast matrix multiplication on it."
    ),
    epilog="Start with `cypresskit lab`. `cypresskit COMMAND --help` explains a command.",
)
PARSER.add_argument("--version", action="version", version=f"cypresskit {cypresskit.__version__}")
COMMANDS = PARSER.add_subparsers(dest="command", metavar="COMMAND", required=True)


def command(
    name: str, summary: str, more: str, *options: Option, example: str = ""
) -> Callable[[Callable], Callable]:
    """Return a decorator that adds a command. The decorated function takes the parsed arguments.

    Parameters
    ----------
    name
        The command.
    summary
        A line of help, without capital and period.
    more
        Further help, in sentences.
    options
        Its options and arguments.
    example
        A command line.
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
    """Return an option or argument; the parameters are those of argparse's ``add_argument``."""
    return names, how
