"""Write the reference of IL as a page of Markdown: ``python -m tools.il_page > docs/il.md``."""

from cypresskit.il import OPCODES, Opcode, reference
from cypresskit.il.unsupported import UNSUPPORTED


def _example(op: Opcode) -> str:
    """Return lines of IL that use the opcode."""
    if op.example:
        return op.example.replace(" \\n ", "\n")
    name = op.name
    dest = {"-": [], "d": ["r0.xy"]}.get(op.result, ["r0"])
    sources = [f"r{n + 1}{'.xy' if t == 'd' else ''}" for n, t in enumerate(op.sources)]
    if op.kind == "lds":
        name = f"{name}_id(0)"
        sources = [f"{source}.x" for source in sources]
    if "relop" in op.controls:
        name += "_relop(lt)"
    if op.store and op.words > 1:
        dest = ["mem.xy"]
    line = f"{name} {', '.join([*dest, *sources])}".strip()
    if op.flow == "if":
        return f"{line}\nendif"
    if op.flow:
        return f"whileloop\nbreak_logicalz r3.x\n{line}\nendloop"
    return line


def _in_table(lines: str) -> str:
    """Return lines of IL for a cell of a Markdown table."""
    return "<br>".join(f"`{line}`" for line in lines.splitlines())


def page() -> str:
    """Return the whole reference as Markdown."""
    parts = [
        "# The language: cypresskit's subset of AMD's IL",
        '<!-- A tool writes this page: see CONTRIBUTING.md, "a new opcode". -->',
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
        shown = []
        for op in OPCODES.values():
            if op.kind == kind:
                name, *facts = reference.entry(op)
                shown.append(f"| `{name}` | {' | '.join(facts)} | {_in_table(_example(op))} |")
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
