"""Building bundles: which ops can issue together.

``Packer`` puts one op after the other into a bundle, if its slots are free and constants, literals, read ports, the
clause's room and the register budget (``pressure``) allow it. A result's channel is decided by the slot that it goes
into, an operand's, if it is still open, by which is the emptiest.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import BasicBlock, Op, Word
from cypresskit.compiler.isa import T, slot_operands
from cypresskit.compiler.ports import Constants, Ports, Unit, constants_of, unit
from cypresskit.compiler.pressure import Pressure

WORST = 7  # slots of the largest bundle: five ops, two literal pairs


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


class Packer:
    """Fills one bundle after the other. ``open``: numbers of the ops that are still to be placed; ``queue``: LDS reads
    whose words have not been taken yet; ``tested``: whether the test that ends the block is placed; ``t_first``:
    whether x y z w are wanted for doubles, and t is the place for others; ``room``: slots left in the ``clause``."""

    def __init__(self, problem: Problem, budget: int, named: bool = False):
        self.problem, self.pressure = problem, Pressure(problem, budget, named)
        self.open = set(range(len(problem.ops)))
        self.queue: list[Op] = []
        self.tested = self.t_first = False
        self.clause = ClausePlan("ALU")
        self.room = 0

    def place(self, draft: Draft, op: Op) -> bool:
        if draft.holds("GROUP_BARRIER") or (op.name == "GROUP_BARRIER" and draft.slots):
            return False
        if op.popped:
            return self.place_pop(draft, op)
        if op.row.predicate and not self.may_test(draft):
            return False
        reading = op.name.startswith("LDS_READ")
        if reading:
            words = 2 * (len(self.queue) + 1)
            if self.room < 48 + 2 * words or len(self.pressure.live) + words > 4 * self.pressure.budget:
                return False
        needed = constants_of([op])
        for slots, channel in self.ways(op, draft.free):
            if self.try_slots(draft, op, needed, slots, channel):
                if reading:
                    self.queue.append(op)
                return True
        return False

    def may_test(self, draft: Draft) -> bool:
        """A test closes the clause that it stands in: all that is left must fit in."""
        if len(self.open) > self.room:
            return False
        left = [self.problem.ops[n] for n in self.open]
        size = draft.size + sum(op.row.width + constants_of([op]).size for op in left)
        return size <= self.room and len(self.clause.windows | constants_of(left).windows) <= 2

    def ways(self, op: Op, free: list[int]) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """Slots, and the channel of the result, in the order in which they are to be tried."""
        options, kind = self.pressure.preferred(op.results[0].vreg) if op.results else [0, 1, 2, 3], op.row.slots
        if kind == "x":
            yield from [((0,), None)] if 0 in free else []
        elif op.row.width > 1:
            for c in options:
                slots = (0, 1, 2, 3) if kind == "quad" else (c, c + 1)
                if set(slots) <= set(free):
                    yield slots, c
        else:
            vector = [((c,), c) for c in options if c in free and kind != "t"]
            scalar = [((T,), c) for c in options if T in free and kind != "vector"]
            yield from scalar + vector if self.t_first else vector + scalar

    def try_slots(self, draft: Draft, op: Op, needed: Constants, slots: tuple[int, ...], channel: int | None) -> bool:
        """Put an op into given slots if the constants, the registers and the ports allow it."""
        held, windows = draft.constants, self.clause.windows | needed.windows
        both = Constants(held.literals | needed.literals, held.pairs | needed.pairs, windows)
        constants = sum(not s.value.located for s in op.srcs)
        if not both.fit or (slots[0] == T and constants > 2) or len(draft.slots) + len(slots) + both.size > self.room:
            return False
        pressure = self.pressure
        state = pressure.state([word.vreg for word in (*op.located, *op.results)])
        if pressure.place_results(op, channel):
            for word in op.located:
                if word not in draft.forwards:
                    pressure.settle(word.vreg)
            units, placed = _units(draft, op, slots, channel, constants)
            if draft.ports.fit(units):
                draft.slots.update((p.slot, p) for p in placed)
                draft.constants, self.clause.windows = both, windows
                self.tested = self.tested or op.row.predicate
                pressure.read(op)
                for r in op.results:
                    pressure.write(r)
                return True
        pressure.undo(state)
        return False

    def place_pop(self, draft: Draft, op: Op) -> bool:
        """MOVs out of the LDS queue, all words of one read in one bundle."""
        if not self.queue or op.popped is not self.queue[0] or draft.holds("LDS_POP"):
            return False
        free, pressure = draft.free, self.pressure
        if len(free) < len(op.results) or draft.size + len(op.results) > self.room:
            return False
        state = pressure.state([r.vreg for r in op.results])
        ways: list[tuple[int, int]] = []
        for r in op.results:
            options = pressure.preferred(r.vreg)
            way = next(((s, c) for s, c in [(c, c) for c in options] + [(T, c) for c in options] if s in free), None)
            full = way and pressure.count[way[1]] + 1 > pressure.limit and r.vreg not in pressure.live
            if way is None or (full and len(self.queue) < 2):
                pressure.undo(state)
                return False
            free.remove(way[0])
            ways.append(way)
            pressure.settle(r.vreg, way[1])
        for n, (slot, channel) in enumerate(ways):
            draft.slots[slot] = Placed(op, slot, n, (), -1, channel)
            pressure.write(op.results[n])
        self.queue.pop(0)
        return True

    def new_reads(self, draft: Draft, op: Op) -> int:
        """Read ports that the bundle does not use yet."""
        banks = draft.ports.banks
        vregs = [word.vreg for word in op.located if word not in draft.forwards]
        return sum(vreg.channel is None or vreg not in banks[vreg.channel] for vreg in vregs)


def _units(
    draft: Draft, op: Op, slots: tuple[int, ...], channel: int | None, constants: int
) -> tuple[list[Unit], list[Placed]]:
    """The op's parts, slot by slot, and the reads they need: x, y and z of a four-slot double read the same."""
    units: list[Unit] = []
    placed: list[Placed] = []
    start = len(draft.ports.units)
    for place, slot in enumerate(slots):
        operands = slot_operands(op.row, len(op.srcs), place)
        if not place or op.row.slots != "quad" or place == 3:
            words = [op.srcs[k].value for k in operands]
            forwarded = tuple(n for n, word in enumerate(words) if word in draft.forwards)
            held = [word.located and word not in draft.forwards for word in words]
            reads = [(word.vreg.channel, word.vreg) if in_ else None for word, in_ in zip(words, held)]
            units.append(unit(reads, slot == T, constants, forwarded))
        placed.append(Placed(op, slot, place, operands, start + len(units) - 1, channel))
    return units, placed
