"""Clauses and bundles as they are planned, with words and virtual registers in place of registers."""

from dataclasses import dataclass, field

from cypresskit.compiler.ir import BasicBlock, Op, Word
from cypresskit.compiler.isa import T, slot_operands
from cypresskit.compiler.ports import Constants, Ports, Unit, constants_of, unit


@dataclass(eq=False)
class Placed:
    """An op's part in one slot. ``operands`` index ``op.srcs``; ``unit`` numbers its swizzle in ``Draft.ports``."""

    op: Op
    slot: int
    place: int
    operands: tuple[int, ...]
    unit: int
    channel: int | None = None  # where a result goes that t computes

    @property
    def result(self) -> Word | None:
        """The word that this slot computes: of a four-slot double only the two slots of its channels have one."""
        op = self.op
        if op.row.slots == "quad":
            return op.results[self.slot % 2] if self.slot // 2 == (op.results[0].vreg.channel or 0) // 2 else None
        return op.results[self.place] if self.place < len(op.results) else None


@dataclass(eq=False)
class Draft:
    """A bundle being built, and after that as it stands. ``forwards``: words that PV and PS hold while it runs."""

    forwards: dict[Word, tuple[str, int]]
    slots: dict[int, Placed] = field(default_factory=dict)
    ports: Ports = field(default_factory=Ports)
    constants: Constants = field(default_factory=lambda: constants_of(()))

    @property
    def size(self) -> int:
        """64-bit slots of the clause that it takes."""
        return len(self.slots) + self.constants.size

    @property
    def free(self) -> list[int]:
        return [s for s in range(5) if s not in self.slots]

    @property
    def results(self) -> dict[Word, tuple[str, int]]:
        """What PV and PS hold in the next bundle of the clause."""
        made = {p.result: ("ps", 0) if p.slot == T else ("pv", p.slot) for p in self.slots.values()}
        return {word: place for word, place in made.items() if word is not None}

    def holds(self, name: str) -> bool:
        return any(p.op.name == name for p in self.slots.values())


@dataclass(eq=False)
class ClausePlan:
    """A clause or a store: ``kind`` "ALU" with ``bundles``, "TEX" with ``ops``, or "STORE" with one op. ``windows`` of
    constants and ``slots`` of an ALU clause so far."""

    kind: str
    bundles: list[Draft] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    windows: set[tuple[int, int]] = field(default_factory=set)
    slots: int = 0


Plans = dict[BasicBlock, list[ClausePlan]]  # clauses and stores of every block


def units_of(
    draft: Draft, op: Op, slots: tuple[int, ...], channel: int | None, constants: int
) -> tuple[list[Unit], list[Placed]]:
    """The op's parts, slot by slot, and the reads they need: x, y and z of a four-slot double read the same."""
    units: list[Unit] = []
    placed: list[Placed] = []
    for place, slot in enumerate(slots):
        operands = slot_operands(op.row, len(op.srcs), place)
        if op.row.slots != "quad" or place in (0, 3):
            words = [op.srcs[k].value for k in operands]
            forwarded = [word in draft.forwards for word in words]
            reads = [(w.vreg.channel, w.vreg) if w.located and not pv else None for w, pv in zip(words, forwarded)]
            units.append(unit(reads, slot == T, constants, tuple(n for n, pv in enumerate(forwarded) if pv)))
        placed.append(Placed(op, slot, place, operands, len(draft.ports.units) + len(units) - 1, channel))
    return units, placed
