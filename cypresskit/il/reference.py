"""Document IL, entry by entry.

The entries come from the instruction table that parser and engines use, and from
``data/reference.json``.
"""

import json
import re
from importlib.resources import files

from cypresskit.il.opcodes import OPCODES, Opcode, find_opcode

WORDS = json.loads(files("cypresskit.data").joinpath("reference.json").read_text(encoding="utf-8"))
TYPES, SLOTS = WORDS["types"], WORDS["slots"]
#: Names other than opcodes, as they are listed, each with a ``pattern`` for all of its spellings,
#: and its ``text``.
REGISTERS, MODIFIERS, SYNTAX = (WORDS[part] for part in ("registers", "modifiers", "words"))


def entry(op: Opcode) -> list[str]:
    """Return (name, operands, cost, meaning) of an opcode."""
    operands = "; ".join([f"d: {TYPES[r]}" for r in op.result if r in TYPES] + _sources(op))
    cost = "at least 16 clocks per wavefront" if op.kind == "fetch" else "-"
    if op.kind in ("alu", "lds"):
        cost = SLOTS[op.slots]
    return [op.name, operands or "-", cost, op.meaning]


def _sources(op: Opcode) -> list[str]:
    """Return the types of the sources, equal ones together: ["a, b: float", "c: 32 bits"]."""
    names = ["a", "b", "c", "the last"]
    by_type: list[tuple[str, list[str]]] = []
    for name, letter in zip(names, op.sources):
        if by_type and by_type[-1][0] == letter:
            by_type[-1][1].append(name)
        else:
            by_type.append((letter, [name]))
    return [f"{', '.join(together)}: {TYPES[letter]}" for letter, together in by_type]


def find(name: str) -> Opcode | tuple[str, str] | None:
    """Return what a name is: an opcode, with or without controls; or the listed name and the text
    of a register of any number, a modifier, or a word of the syntax. None for other names.
    """
    if name.lower() in OPCODES:
        return OPCODES[name.lower()]
    word = name.strip().lower()
    for table in (REGISTERS, MODIFIERS, SYNTAX):
        for listed, known in table.items():
            if re.fullmatch(known["pattern"], word.lstrip("_") or word):
                return listed, known["text"]
    return OPCODES.get(find_opcode(word))
