"""The instruction table, ``opcodes.txt``: every IL opcode, once.

The parser reads what operands an opcode takes, the compiler which VLIW slots may hold it, and
`cypresskit il` prints it, with what it means, as documentation. Sources: the IL specification
v2.4 for meanings; AMD's Evergreen instruction set, chapters 4 and 9, and the APP guide, table 4.14,
for slots. Float to integer is the exception: FLT_TO_INT runs in x y z w on Evergreen, in t on the
chips before it, as the open r600 driver's two tables of operations have it; the APP guide counts
conversions of either direction alike.

Types are one letter: ``f`` float32, ``i`` int32, ``u`` uint32, ``d`` float64 in a pair of
components, ``b`` 32 bits of any kind; a quote behind a source's letter says that its bits are
passed on as they are. Slots are the VLIW slots an operation may use: ``xyzwt`` any, ``xyzw`` not t,
``t`` only t, ``x`` only x, ``pair`` two slots (xy or zw), ``quad`` all of x y z w; ``mov`` two, as
a ``mov`` of two components; a dash means that the compiler expands it into several operations.

An operation that is made of others has these in its row, as the body of a macro: the assembler
writes them in its place (``macros``).
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Relations between two numbers, each with the one that holds with these exchanged.
RELATIONS = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "ge": "le", "gt": "lt"}


@dataclass(frozen=True)
class Opcode:
    """A row: ``types`` has the result's type, then one letter per source ("fff": float = op(float,
    float)).

    ``kind`` is "alu", "fetch", "lds", "flow", "fence", "macro", "function", "declaration" or
    "end"; ``example``: lines of IL, or "" where the operands tell them; ``parts``: the lines of IL
    that the assembler writes in its place, on ``in0``, ``in1``, ... and ``out0``, component by
    component (of divisions: where `_zeroop` asks for ``{zeroop}``); ``flow``: the role in control
    flow ("loop", "if", "else", "endif", "endloop", "break", "continue"); ``vector``: not done
    component by component (dp4, doubles, fetches); ``flops``: floating-point operations per result;
    ``passed``: the sources whose bits are passed on, to the result or to memory; ``relation``: what
    a comparison tests, a branch against 0; ``store`` and ``words``: whether an LDS access stores,
    and how many words at most; ``across``: how many components a dot product sums; ``controls``:
    what may stand in brackets or behind the name, in the order in which one writes it; ``needs``:
    those that must. ``hardware``: the chip's operation that does the same (ISA 9), if there is one.
    Told where a pass makes use of it: that the operands may change places (``commutes``), and which
    second one is ``neutral``: leaves the first as it is. ``same``: another opcode that computes the
    same.
    """

    name: str
    kind: str
    types: str
    slots: str
    meaning: str
    example: str = ""
    parts: tuple[str, ...] = ()
    flow: str = ""
    vector: bool = False
    flops: int = 0
    passed: tuple[int, ...] = ()
    relation: str = ""
    store: bool = False
    words: int = 0
    across: int = 0
    controls: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    hardware: str = ""
    commutes: bool = False
    neutral: int | None = None
    same: str = ""

    @property
    def result(self) -> str:
        """The result's type letter, or ``-`` if nothing is written."""
        return self.types[0] if self.types else "-"

    @property
    def sources(self) -> str:
        return self.types[1:]

    def float_modifiers(self, n: int) -> bool:
        """Whether source ``n`` is modified as a float (abs, bias, ...); integers can only be
        negated.
        """
        return self.sources[n] == "f" or n in self.passed

    @property
    def double(self) -> bool:
        return "d" in self.types

    @property
    def copies(self) -> bool:
        """Whether the result is a source's bits."""
        return self.kind == "alu" and bool(self.passed)


OPCODES: dict[str, Opcode] = {}


def _read(file: Path) -> None:
    """Read rows of a name, types, slots and facts by name, and after bars the meaning, an example,
    and what the operation is made of; ``!`` marks a control that must be there. ``#`` begins a
    comment; a line that begins with a bar belongs to the row above it.
    """
    kind = ""
    for row in re.findall(r"^[^#\n].*(?:\n +\|.*)*", file.read_text(encoding="utf-8"), re.M):
        head, *texts = (part.strip() for part in row.split("|"))
        if not texts:
            kind = head.strip(":")
            continue
        name, *words = head.split()
        facts: dict[str, Any] = dict(word.split("=") for word in words if "=" in word)
        types, slots = (*(word for word in words if "=" not in word), "-", "-")[:2]
        letters = re.findall("[a-z-]'?", types)
        controls = facts.pop("controls").split(",") if "controls" in facts else []
        OPCODES[name] = Opcode(
            name,
            kind,
            types.replace("'", "") if types != "-" else "",
            slots,
            texts[0],
            texts[1] if texts[1:] else "",
            tuple(part for cell in texts[2:] for part in cell.split(" \\n ")),
            vector="d" in types or kind in ("fetch", "lds") or "across" in facts,
            passed=tuple(n for n, letter in enumerate(letters[1:]) if "'" in letter),
            store=bool(facts.pop("store", False)),
            commutes=bool(facts.pop("commutes", False)),
            neutral=int(facts.pop("neutral"), 0) if "neutral" in facts else None,
            controls=tuple(c.strip("!") for c in controls),
            needs=tuple(c.strip("!") for c in controls if "!" in c),
            **facts | {fact: int(facts.get(fact, 0)) for fact in ("flops", "words", "across")},
        )


_read(Path(__file__).with_name("opcodes.txt"))


def opcode_in(text: str) -> str:
    """The longest opcode that text begins with, with or without controls; "" if there is none."""
    parts = re.split(r"\W", text, maxsplit=1)[0].lower().split("_")
    # No name has more than five parts
    names = ("_".join(parts[:n]) for n in range(min(len(parts), 5), 0, -1))
    return next((name for name in names if name in OPCODES), "")
