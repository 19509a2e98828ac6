"""Build a bundle: check which operands it can read, through its read ports and as constants.

A bundle reads registers in three cycles. In each cycle, every channel's bank delivers one
register's word, to all slots that read it. A slot's bank swizzle says in which cycle it reads each
operand; t has four swizzles of its own and loses a cycle to each constant that it reads (ISA 4.7).
``Ports.fit`` searches for swizzles: first for the new slots in the free ports, then for all slots
from scratch.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from cypresskit.compiler.ir import BasicBlock, Op, Src, Word
from cypresskit.compiler.isa import INLINE, SCALAR_SWIZZLES, VECTOR_SWIZZLES, T, slot_operands
from cypresskit.il.bits import HALF, ONE, SIGN

CYCLES = 3  # in which a bundle reads


class SlotReads(NamedTuple):
    """The register reads of one slot.

    Attributes
    ----------
    reads
        For each operand its channel and word, or None if it needs no port.
    options
        The bank swizzles allowed, each with the cycle in which it reads each operand; of those that
        read these operands in the same cycles, one.
    """

    reads: tuple
    options: tuple


def find_slot_reads(
    reads: list, scalar: bool, constants: int = 0, forwarded: tuple[int, ...] = ()
) -> SlotReads:
    """Return the reads of a slot. t loses a cycle to each of its ``constants``, and takes the
    operands numbered in ``forwarded`` from PV or PS.
    """
    if len(reads) > 1 and reads[0] is not None and reads[0] == reads[1] and not scalar:
        reads = [reads[0], None, *reads[2:]]
    held = tuple(n for n, read in enumerate(reads) if read is not None)
    return SlotReads(tuple(reads), _find_options(scalar, held, constants * scalar, forwarded))


@cache
def _find_options(
    scalar: bool, held: tuple[int, ...], constants: int, forwarded: tuple[int, ...]
) -> tuple:
    """Return the ``options`` of a slot that reads the operands ``held`` through ports."""
    options: dict[tuple[int, ...], tuple[str, tuple[int, ...]]] = {}
    for name, cycles in (SCALAR_SWIZZLES if scalar else VECTOR_SWIZZLES).items():
        if all(cycles[n] >= constants for n in (*held, *forwarded)):
            options.setdefault(tuple(cycles[n] for n in held), (name, cycles))
    return tuple(options.values())


class Ports:
    """The read ports of a bundle.

    Attributes
    ----------
    slots, swizzles
        The slots placed so far and their bank swizzles.
    table
        The word that each port reads (cycle x channel).
    """

    def __init__(self) -> None:
        self.slots: list[SlotReads] = []
        self.swizzles: list[str] = []
        self.table: list = [None] * 12

    def fit(self, new: list[SlotReads]) -> bool:
        """Add the reads of new slots and return True; change nothing and return False if no bank
        swizzles allow all reads.
        """
        slots = self.slots + new
        banks = Counter(channel for channel, _ in {r for s in slots for r in s.reads if r})
        if max(banks.values(), default=0) > CYCLES:  # saves most of the searches that fail
            return False
        chosen = [""] * len(new)
        if _search(new, 0, self.table, chosen):
            self.slots += new
            self.swizzles += chosen
            return True
        old = len(self.slots)
        order = sorted(
            range(len(slots)), key=lambda n: (-sum(r is not None for r in slots[n].reads), n < old)
        )
        chosen = [""] * len(slots)
        table = [None] * 12
        if _search([slots[n] for n in order], 0, table, chosen):
            self.slots, self.table = slots, table
            self.swizzles = [name for _, name in sorted(zip(order, chosen))]
            return True
        return False


def _search(slots: list[SlotReads], n: int, table: list, chosen: list[str]) -> bool:
    """Find swizzles for the slots from ``n`` on, by backtracking. Return whether there are any."""
    if n == len(slots):
        return True
    reads, options = slots[n]
    for name, cycles in options:
        taken = []
        for cycle, read in zip(cycles, reads):
            if read is None:
                continue
            cell = 4 * cycle + read[0]
            held = table[cell]
            if held is None:
                table[cell] = read[1]
                taken.append(cell)
            elif held is not read[1]:
                break
        else:
            if _search(slots, n + 1, table, chosen):
                chosen[n] = name
                return True
        for cell in taken:
            table[cell] = None
    return False


class Constants(NamedTuple):
    """Constants that operands need.

    Attributes
    ----------
    literals
        Bit patterns.
    pairs
        Pairs of channels in constant buffers: (buffer, element, half).
    windows
        The windows of 32 elements that these are in: (buffer, number).
    """

    literals: set[int]
    pairs: set[tuple[int, int, int]]
    windows: set[tuple[int, int]]

    @property
    def is_encodable(self) -> bool:
        """Whether a bundle can hold them, and the clause their windows."""
        return len(self.literals) <= 4 and len(self.pairs) <= 2 and len(self.windows) <= 2

    @property
    def size(self) -> int:
        """64-bit slots of the clause that the literals take."""
        return (len(self.literals) + 1) // 2


def find_constants(ops: Iterable[Op]) -> Constants:
    """Return the constants that the operands of ``ops`` need."""
    constants = Constants(set(), set(), set())
    for op in ops:
        for n, src in enumerate(op.srcs):
            if src.value.kind == "constant":
                buffer, element, channel = src.value.place
                constants.pairs.add((buffer, element, channel // 2))
                constants.windows.add((buffer, element // 32))
            elif needs_literal(op, n, src):
                constants.literals.add(src.value.bits)
    return constants


def needs_literal(op: Op, n: int, src: Src) -> bool:
    """Return whether an operand is a constant that isn't inline, nor, where floats allow it, the
    negative of an inline one.
    """
    if src.value.kind != "const" or src.value.bits in INLINE:
        return False
    return not (op.takes_float(n) and src.value.bits ^ SIGN in (ONE, HALF, 0))


@dataclass(eq=False, slots=True)
class Placed:
    """An op's part in one slot.

    Attributes
    ----------
    op, slot, place
        The op, the slot, and its place among the op's slots.
    operands
        Indices into ``op.srcs``.
    port_reads
        Number of its reads in ``Draft.ports``; -1 if it has none.
    """

    op: Op
    slot: int
    place: int
    operands: tuple[int, ...]
    port_reads: int

    @property
    def result(self) -> Word | None:
        """The word that this slot computes. Of a four-slot double two slots do, in the channels of
        its destination.
        """
        op = self.op
        if op.row.slots == "quad":
            computes = self.slot // 2 == (op.results[0].vreg.channel or 0) // 2
            return op.results[self.slot % 2] if computes else None
        return op.results[self.place] if self.place < len(op.results) else None


@dataclass(eq=False)
class Draft:
    """A bundle, while it is built and afterwards.

    Attributes
    ----------
    forwards
        Words that PV and PS hold while it runs, and where.
    slots
        The parts placed, by slot.
    ports, constants
        What its operands occupy.
    """

    forwards: dict[Word, tuple[str, int]]
    slots: dict[int, Placed] = field(default_factory=dict)
    ports: Ports = field(default_factory=Ports)
    constants: Constants = field(default_factory=lambda: find_constants(()))

    @property
    def size(self) -> int:
        """64-bit slots of the clause that it takes."""
        return len(self.slots) + self.constants.size

    @property
    def free(self) -> list[int]:
        """The free slots."""
        return [s for s in range(5) if s not in self.slots]

    @property
    def results(self) -> dict[Word, tuple[str, int]]:
        """The words that the next bundle of the clause finds in PV and PS, and where."""
        made = {p.result: ("ps", 0) if p.slot == T else ("pv", p.slot) for p in self.slots.values()}
        return {word: place for word, place in made.items() if word is not None}

    def holds(self, name: str) -> bool:
        """Return whether it holds an operation ``name``."""
        return any(p.op.name == name for p in self.slots.values())


@dataclass(eq=False)
class ClausePlan:
    """A clause or a store.

    Attributes
    ----------
    kind
        "ALU" with ``bundles``, "TEX" with ``ops``, or "STORE" with one op.
    windows, slots
        Constant windows and slots of an ALU clause so far.
    """

    kind: str
    bundles: list[Draft] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    windows: set[tuple[int, int]] = field(default_factory=set)
    slots: int = 0


Plans = dict[BasicBlock, list[ClausePlan]]  # clauses and stores of every block


def find_parts(
    draft: Draft, op: Op, slots: tuple[int, ...], constants: int
) -> tuple[list[SlotReads], list[Placed]]:
    """Return the register reads of each slot that an op fills, and its parts there. The x, y and z
    of a four-slot double read the same, so they count once.
    """
    reading: list[SlotReads] = []
    placed: list[Placed] = []
    for place, slot in enumerate(slots):
        operands = slot_operands(op.row, len(op.srcs), place)
        if op.row.slots != "quad" or place in (0, 3):
            words = [op.srcs[k].value for k in operands]
            forwarded = tuple(n for n, word in enumerate(words) if word in draft.forwards)
            reads = [
                (word.vreg.channel, word.vreg)
                if word.has_register and word not in draft.forwards
                else None
                for word in words
            ]
            reading.append(find_slot_reads(reads, slot == T, constants, forwarded))
        placed.append(Placed(op, slot, place, operands, len(draft.ports.slots) + len(reading) - 1))
    return reading, placed
