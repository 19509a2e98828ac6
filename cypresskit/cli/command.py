"""Define commands: each module ``cmd_...`` adds its commands with ``@command``."""

import argparse
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import cypresskit


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
    name: str, summary: str, more: str, options: Mapping[str, dict[str, Any]], example: str
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
        Its options and arguments: the parameters of argparse's ``add_argument`` by name.
    example
        A command line.
    """
    sub = COMMANDS.add_parser(
        name,
        help=summary,
        description=textwrap.fill(f"{summary[0].upper()}{summary[1:]}. {more}", 78),
        epilog=f"example:\n  {example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for option, how in options.items():
        sub.add_argument(option, **how)

    def register(action: Callable) -> Callable:
        sub.set_defaults(action=action)
        return action

    return register
