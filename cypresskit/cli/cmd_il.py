"""`cypresskit il`: the reference of the language."""

import argparse

from cypresskit.cli.command import CommandError, command, option


@command(
    "il",
    "tell what an instruction, a register or a modifier of IL does",
    "Without a NAME: all names. What is told comes from the tables that assemble and run programs.",
    option("name", metavar="NAME", nargs="?", help="such as mad, vAbsTid or _sat"),
    option("--markdown", action="store_true", help="print the whole reference as Markdown: docs/il.md"),
    example="cypresskit il ubit_extract",
)
def il(args: argparse.Namespace) -> None:
    """Print an entry of the reference, all names, or the page."""
    from cypresskit.il import OPCODES, reference

    if args.markdown:
        print(reference.page(), end="")
    elif args.name is None:
        print("\n".join([*OPCODES, *reference.REGISTERS, *reference.MODIFIERS]))
    else:
        try:
            print(reference.describe(args.name))
        except ValueError as error:
            raise CommandError(str(error)) from None
