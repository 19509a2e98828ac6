"""Write the reference of IL as a page of Markdown: ``python -m tools.il_page > docs/il.md``."""

from cypresskit.il import OPCODES, reference
from cypresskit.il.unsupported import UNSUPPORTED


def _in_table(lines: str) -> str:
    """Return lines of IL for a cell of a Markdown table."""
    return "<br>".join(f"`{line}`" for line in lines.splitlines())


def page() -> str:
    """Return the whole reference as Markdown."""
    parts = [
        "# The language: cypresskit's subset of AMD's IL",
        "Written by `python -m tools.il_page`.",
    ]
    parts.append("\n".join(reference.WORDS["rounding"]))
    kinds = {
        "alu": "Arithmetic",
        "fetch": "Fetches",
        "lds": "Local data share",
        "flow": "Control flow",
    }
    kinds |= {"fence": "Fences", "macro": "Macros", "end": "Ends"}
    kinds |= {"declaration": "Declarations"}
    for kind, title in kinds.items():
        rows = [reference.entry(op) for op in OPCODES.values() if op.kind == kind]
        shown = [
            f"| `{name}` | {operands} | {cost} | {meaning} | {_in_table(lines)} |"
            for name, operands, cost, meaning, lines in rows
        ]
        head = ["| name | operands | issue | meaning | example |", "|---" * 5 + "|"]
        parts += [f"## {title}", "\n".join([*head, *shown])]
    others = {
        "Registers": reference.REGISTERS,
        "Modifiers": reference.MODIFIERS,
        "Other words": reference.SYNTAX,
    }
    for title, table in others.items():
        items = [f"- `{name}`: {known['text']}" for name, known in table.items()]
        parts += [f"## {title}", "\n".join(items)]
    left = [
        f"- {where}, {kind}: {', '.join(f'`{name}`' for name in names)}"
        for where, kind, names in UNSUPPORTED
    ]
    parts += [
        "## Left out",
        "By sections of AMD's specification, version 2.4; a star is any ending.",
    ]
    parts += ["\n".join(left)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    print(page(), end="")
