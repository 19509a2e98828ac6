"""Load the instruction table, ``opcodes.txt``, which defines every IL opcode once.

The parser takes an opcode's operands from it, the compiler the VLIW slots that may hold it, and
`docs/il.md` its documentation. Sources: the IL specification v2.4 for meanings; AMD's
Evergreen instruction set, chapters 4 and 9, and the APP guide, table 4.14, for slots. One
exception: the conversion FLT_TO_INT runs in x y z w on Evergreen and in t on earlier chips,
according to the two operation tables of the open r600 driver; the APP guide treats both directions
alike.

Types
    One letter each: ``f`` float32, ``i`` int32, ``u`` uint32, ``d`` float64 in a pair of
    components, ``b`` 32 bits of any kind. A quote after a source's letter means that its bits are
    passed on unchanged.

Slots
    The VLIW slots that an operation may use: ``xyzwt`` any, ``xyzw`` all but t, ``t`` only t, ``x``
    only x, ``pair`` two slots (xy or zw), ``quad`` all of x y z w. A dash means that the compiler
    expands it into several operations.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Relations between two numbers, each with the one that holds after exchanging them.
RELATIONS = {"lt": "gt", "le": "ge", "eq": "eq", "ne": "ne", "ge": "le", "gt": "lt"}


@dataclass(frozen=True)
class Opcode:
    """One row of the table.

    Attributes
    ----------
    name
        The opcode.
    kind
        "alu", "fetch", "lds", "flow", "fence", "macro", "declaration" or "end".
    types
        The result's type letter, then one per source: "fff" is float = op(float, float).
    slots
        The VLIW slots that may hold it.
    meaning
        What it computes, for the documentation.
    example
        Lines of IL; "" where they follow from the operands.
    flow
        Its role in control flow: "loop", "if", "else", "endif", "endloop" or "break".
    vector
        Whether it is not computed component by component (dp4, doubles, fetches).
    flops
        Floating-point operations per result.
    passed
        The sources whose bits are passed on, to the result or to memory.
    relation
        What a comparison tests; of a branch, against 0.
    store
        Whether an LDS access stores.
    words
        The most words that an LDS access moves.
    across
        The number of components that a dot product sums.
    controls
        The controls that may follow the name, in the order in which they are written.
    needs
        The controls that must be there.
    hardware
        The chip's operation that does the same (ISA 9), if there is one.
    same
        Another opcode that computes the same.
    """

    name: str
    kind: str
    types: str
    slots: str
    meaning: str
    example: str = ""
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
    same: str = ""

    @property
    def result(self) -> str:
        """The result's type letter; ``-`` if nothing is written."""
        return self.types[0] if self.types else "-"

    @property
    def sources(self) -> str:
        """The sources' type letters."""
        return self.types[1:]

    def float_modifiers(self, n: int) -> bool:
        """Return whether source ``n`` is negated by its sign. Integers are by subtraction."""
        return self.sources[n] == "f" or n in self.passed

    @property
    def multiplies(self) -> bool:
        """Whether it multiplies floats or doubles; perhaps it adds the product, too."""
        is_product = "MUL" in self.hardware or "FMA" in self.hardware or self.across > 0
        return is_product and self.result in "fd"

    @property
    def double(self) -> bool:
        """Whether a source or the result is a double."""
        return "d" in self.types


OPCODES: dict[str, Opcode] = {}


def _read(file: Path) -> None:
    """Read the table into ``OPCODES``.

    A row has a name, types, slots and attributes as ``name=value``; then, separated by bars, the
    meaning and perhaps an example. ``!`` indicates a required control. ``#`` begins
    a comment. A line that begins with a bar continues the previous row.
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
            vector="d" in types or kind in ("fetch", "lds") or "across" in facts,
            passed=tuple(n for n, letter in enumerate(letters[1:]) if "'" in letter),
            store=bool(facts.pop("store", False)),
            controls=tuple(c.strip("!") for c in controls),
            needs=tuple(c.strip("!") for c in controls if "!" in c),
            **facts | {fact: int(facts.get(fact, 0)) for fact in ("flops", "words", "across")},
        )


_read(Path(__file__).with_name("opcodes.txt"))


def find_opcode(text: str) -> str:
    """Return the longest opcode with which ``text`` begins; "" if there is none."""
    parts = re.split(r"\W", text, maxsplit=1)[0].lower().split("_")
    # No name has more than five parts
    names = ("_".join(parts[:n]) for n in range(min(len(parts), 5), 0, -1))
    return next((name for name in names if name in OPCODES), "")
