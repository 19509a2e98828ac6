"""The reference of IL, as one page or one entry, from the tables that parser and engines read and
from ``data/reference.json``.
"""

import json
from importlib.resources import files

from cypresskit.il.left_out import LEFT_OUT, unknown
from cypresskit.il.opcodes import OPCODES, Opcode

WORDS = json.loads(files("cypresskit.data").joinpath("reference.json").read_text(encoding="utf-8"))
TYPES, SLOTS, REGISTERS, MODIFIERS = (
    WORDS[part] for part in ("types", "slots", "registers", "modifiers")
)


def example(op: Opcode) -> str:
    if op.example:
        return op.example.replace(" \\n ", "\n")
    name, dest = op.name, {"-": [], "d": ["r0.xy"]}.get(op.result, ["r0"])
    sources = [f"r{n + 1}{'.xy' if t == 'd' else ''}" for n, t in enumerate(op.sources)]
    if op.kind == "lds":
        name, sources = f"{name}_id(0)", [f"{source}.x" for source in sources]
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


def entry(op: Opcode) -> list[str]:
    """(name, operands, cost, meaning, example) of an opcode."""
    operands = ", ".join(
        [f"to {TYPES[r]}" for r in op.result if r in TYPES] + [TYPES[t] for t in op.sources]
    )
    cost = "16 clocks a wavefront at best" if op.kind == "fetch" else "-"
    if op.kind in ("alu", "lds"):
        cost = SLOTS[op.slots]
    return [op.name, operands or "-", cost, op.meaning, example(op)]


def describe(name: str) -> str:
    """The entry of an opcode, a register or a modifier; ``ValueError`` for a name that isn't in the
    subset.
    """
    for table in (REGISTERS, MODIFIERS):
        if name in table:
            return f"{name}: {table[name]}"
    if name not in OPCODES:
        raise ValueError(unknown(name, OPCODES))
    title, operands, cost, meaning, line = entry(OPCODES[name])
    line = line.replace("\n", "; ")
    return (
        f"{title}\n  operands  {operands}\n  cost      {cost}\n  meaning   {meaning}\n  example  "
        f" {line}"
    )


def page() -> str:
    """The whole reference as Markdown: `docs/il.md`."""
    parts = [
        "# The language: cypresskit's subset of AMD's IL",
        "Written by `cypresskit il --markdown`.",
    ]
    parts.append("\n".join(WORDS["rounding"]))
    kinds = {
        "alu": "Arithmetic",
        "fetch": "Fetches",
        "lds": "Local data share",
        "flow": "Control flow",
    }
    kinds |= {"fence": "Fences", "macro": "Macros", "end": "Ends", "declaration": "Declarations"}
    for kind, title in kinds.items():
        rows = [entry(op) for op in OPCODES.values() if op.kind == kind]
        shown = [
            f"| `{n}` | {o} | {c} | {m} | `{e.replace(chr(10), '; ')}` |" for n, o, c, m, e in rows
        ]
        head = ["| name | operands | cost | meaning | example |", "|---" * 5 + "|"]
        parts += [f"## {title}", "\n".join([*head, *shown])]
    for title, table in (("Registers", REGISTERS), ("Modifiers", MODIFIERS)):
        parts += [f"## {title}", "\n".join(f"- `{name}`: {what}" for name, what in table.items())]
    left = [
        f"- {where}, {kind}: {', '.join(f'`{name}`' for name in names)}"
        for where, kind, names in LEFT_OUT
    ]
    parts += [
        "## Left out",
        "By sections of AMD's specification, version 2.4; a star stands for any ending.",
    ]
    parts += ["\n".join(left)]
    return "\n\n".join(parts) + "\n"
