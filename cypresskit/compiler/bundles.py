"""Building bundles: which ops can issue together, and what registers that takes.

``Pressure`` counts, per channel, the webs alive as the schedule goes on, and decides channels: where a slot writes, or
the least crowded one. ``Packing`` puts one op after the other into a bundle, if its slots are free and constants,
literals, read ports, the clause's room and the register budget allow it.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from cypresskit.compiler.dependences import WIDTH, Problem
from cypresskit.compiler.ir import Op, Src, Value
from cypresskit.compiler.isa import INLINE, T, slot_operands
from cypresskit.compiler.ports import Ports, Unit, unit
from cypresskit.compiler.webs import Web, choices, decide

SIGN = 0x80000000
WORST = 7  # slots of the largest bundle: five ops, two literal pairs
SLACK = 2  # registers that short-lived results may take beyond the budget: clause temporaries will hold them


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
    def result(self) -> Value | None:
        """The value that this slot computes: of a four-slot double the two slots of the web's channels have one."""
        op = self.op
        if op.row is not None and op.row.slots == "quad":
            return op.results[self.slot % 2] if self.slot // 2 == op.results[0].web.channel // 2 else None
        return op.results[self.place] if self.place < len(op.results) else None


@dataclass(eq=False)
class Draft:
    """A bundle being built, and after that as it stands. ``forwards``: values that PV and PS hold while it runs."""

    forwards: dict[Value, tuple[str, int]]
    slots: dict[int, Placed] = field(default_factory=dict)
    ports: Ports = field(default_factory=Ports)
    literals: set[int] = field(default_factory=set)
    pairs: set[tuple[int, int, int]] = field(default_factory=set)

    @property
    def size(self) -> int:
        """64-bit slots of the clause that it takes."""
        return len(self.slots) + (len(self.literals) + 1) // 2

    def holds(self, name: str) -> bool:
        """Whether an op of that name is in it."""
        return any(p.op.name == name for p in self.slots.values())


@dataclass(eq=False)
class Step:
    """A clause or a store: ``kind`` "ALU" with ``bundles``, "TEX" with ``ops``, or "STORE" with one op. ``windows`` of
    constants and ``slots`` of an ALU clause so far."""

    kind: str
    bundles: list[Draft] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    windows: set = field(default_factory=set)
    slots: int = 0


@dataclass(eq=False)
class Crowd:
    """A scheduled block through which webs live whose channel is still open: how full its channels are."""

    peak: list[int]


class Pressure:
    """Webs alive at the present point of a block, and the channels decided in this attempt at it."""

    def __init__(self, problem: Problem, budget: int):
        self.problem, self.budget = problem, budget
        self.left = Counter(problem.uses)
        self.live: set[Web] = set(problem.live_in)
        webs = {s.value.web for op in problem.ops for s in op.srcs if s.value.located}
        webs |= {r.web for op in problem.ops for r in op.results}
        self.saved = {w: w.channel for w in webs | {w.twin for w in webs if w.twin is not None}}
        self.decided = dict(self.saved)
        through = problem.live_in & problem.live_out - self.saved.keys()
        self.unseen = sum(w.channel is None for w in through) // 4  # registers for webs that only live through
        self.count = [sum(w.channel == c for w in self.live) for c in range(4)]
        self.peak = list(self.count)
        self.added: Counter = Counter()

    @property
    def limit(self) -> int:
        """Registers that the webs of decided channels may fill."""
        return self.budget - self.unseen

    def restore(self) -> None:
        """Take the attempt's decisions back, but remember them."""
        self.decided = {w: w.channel for w in self.saved}
        for web, channel in self.saved.items():
            web.channel = channel

    def commit(self) -> None:
        """Make the channels that the attempt decided the webs' own."""
        for web, channel in self.decided.items():
            if web.channel is None and channel is not None:
                for crowd in self.problem.crowds.get(web, ()):
                    crowd.peak[channel] += 1
            web.channel = channel

    def crowding(self, web: Web, channel: int) -> int:
        """How much fuller than others the channel is in the blocks already scheduled that the web lives through."""
        crowds = self.problem.crowds.get(web)
        if not crowds:
            return 0
        return max(crowd.peak[channel] + self.added[id(crowd), channel] - min(crowd.peak) for crowd in crowds)

    def note(self, web: Web, channel: int, change: int) -> None:
        """A web's channel was decided, or is taken back."""
        for crowd in self.problem.crowds.get(web, ()):
            self.added[id(crowd), channel] += change

    def preferred(self, web: Web) -> list[int]:
        """Channels that a web may take, the emptiest first."""
        options = choices(web)
        if len(options) > 1:
            full = self.peak if web in self.problem.live_in else self.count
            options.sort(key=lambda c: (self.crowding(web, c), full[c], self.count[c], c))
        return options

    def settle(self, web: Web, channel: int | None = None) -> None:
        """Decide a web's channel, the least crowded one if none is given."""
        if web.channel is not None:
            return
        if channel is None:
            channel = min(choices(web), key=lambda c: (self.crowding(web, c), self.peak[c], c))
        twin = web.twin if web.twin is not None and web.twin.channel is None else None
        decide(web, channel)
        for w, c in ((web, channel), (twin, channel ^ 1)):
            if w is not None:
                self.note(w, c, 1)
                if w in self.live:
                    self.count[c] += 1
                    self.peak[c] = max(self.peak[c] + (w in self.problem.live_in), self.count[c])

    def die(self, op: Op) -> None:
        """Count an op's reads; webs whose last one it was die."""
        for key, web in self.problem.reads(op).items():
            self.left[key] -= 1
            if not self.left[key] and web in self.live:
                self.live.discard(web)
                if web.channel is not None:
                    self.count[web.channel] -= 1

    def born(self, value: Value) -> None:
        """A result comes to life, if anybody reads it."""
        web = value.web
        if web not in self.live and self.problem.uses[value]:
            self.live.add(web)
            if web.channel is not None:
                self.count[web.channel] += 1
                self.peak[web.channel] = max(self.peak[web.channel], self.count[web.channel])

    def growth(self, op: Op) -> int:
        """Words of registers that an op adds, less those it frees."""
        freed = sum(self.left[key] == 1 for key in self.problem.reads(op))
        return sum(1 for r in op.results if self.problem.uses[r]) - freed


class Packing(Pressure):
    """Filling one bundle after the other. ``open``: numbers of the ops that are still to be placed."""

    def __init__(self, problem: Problem, budget: int):
        super().__init__(problem, budget)
        self.ops = problem.ops
        self.open = set(range(len(self.ops)))
        self.queue: list[Op] = []  # LDS reads whose words have not been taken yet
        self.tested = False  # whether the test that ends the block is placed
        self.keep_vector = False  # whether x y z w are wanted for doubles, and t is the place for others
        self.step = Step("ALU")
        self.room = 0

    def place(self, draft: Draft, op: Op) -> bool:
        """Try to put an op into the bundle."""
        if draft.holds("GROUP_BARRIER") or (op.name == "GROUP_BARRIER" and draft.slots):
            return False
        if op.name == "LDS_POP":
            return self.place_pop(draft, op)
        if op.row.predicate and not self.may_test(draft):
            return False
        reading = op.name.startswith("LDS_READ")
        if reading:
            words = 2 * (len(self.queue) + 1)
            if self.room < 48 + 2 * words or len(self.live) + words > 4 * self.budget:
                return False
        for slots, channel in self.ways(op, [s for s in range(5) if s not in draft.slots]):
            if self.try_slots(draft, op, slots, channel):
                if reading:
                    self.queue.append(op)
                return True
        return False

    def may_test(self, draft: Draft) -> bool:
        """A test closes the clause that it stands in: all that is left must fit in."""
        if len(self.open) > self.room:
            return False
        left = [self.ops[n] for n in self.open]
        return draft.size + sum(map(_most_slots, left)) <= self.room and len(self.step.windows | _windows(left)) <= 2

    def ways(self, op: Op, free: list[int]) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """Slots, and the channel of the result, in the order in which they are to be tried."""
        kind = op.row.slots
        options = self.preferred(op.results[0].web) if op.results else [0, 1, 2, 3]
        if kind == "quad":
            if len([s for s in free if s < 4]) == 4:
                for c in options:
                    yield (0, 1, 2, 3), c
        elif kind == "pair":
            for c in options:
                if c in free and c + 1 in free:
                    yield (c, c + 1), c
        elif kind == "x":
            if 0 in free:
                yield (0,), None
        else:
            vector = [((c,), c) for c in options if c in free and kind != "t"]
            scalar = [((T,), c) for c in options if T in free and kind != "vector"]
            yield from scalar + vector if self.keep_vector else vector + scalar

    def try_slots(self, draft: Draft, op: Op, slots: tuple[int, ...], channel: int | None) -> bool:
        """Put an op into given slots if the constants, the registers and the ports allow it."""
        literals = draft.literals | {b for b in (literal(op, n, s) for n, s in enumerate(op.srcs)) if b is not None}
        pairs = draft.pairs | {(s.value.place[0], s.value.place[1], s.value.place[2] // 2) for s in _buffered(op)}
        windows = self.step.windows | _windows([op])
        constants = sum(not s.value.located for s in op.srcs)
        if len(literals) > 4 or len(pairs) > 2 or len(windows) > 2 or (slots[0] == T and constants > 2):
            return False
        if len(draft.slots) + len(slots) + (len(literals) + 1) // 2 > self.room:
            return False
        webs = [s.value.web for s in op.srcs if s.value.located] + [r.web for r in op.results]
        saved = [(w, w.channel) for w in webs + [w.twin for w in webs if w.twin is not None]]
        counts = list(self.count), list(self.peak)
        if self.take_registers(op, channel):
            for s in op.srcs:
                if s.value.located and s.value not in draft.forwards:
                    self.settle(s.value.web)
            units, placed = self.units(draft, op, slots, channel, constants)
            if draft.ports.fit(units):
                draft.slots.update((p.slot, p) for p in placed)
                draft.literals, draft.pairs = literals, pairs
                self.step.windows |= windows
                self.tested = self.tested or op.row.predicate
                self.die(op)
                for r in op.results:
                    self.born(r)
                return True
        self.undo(saved, counts)
        return False

    def undo(self, saved: list[tuple[Web, int | None]], counts: tuple[list[int], list[int]]) -> None:
        """Take back the channels decided for an op that did not go in."""
        for web, channel in saved:
            if web.channel is not None and channel is None:
                self.note(web, web.channel, -1)
            web.channel = channel
        self.count, self.peak = counts

    def take_registers(self, op: Op, channel: int | None) -> bool:
        """Decide the results' channels; False if a channel's registers are used up."""
        dying = [0, 0, 0, 0]
        for key, web in self.problem.reads(op).items() if op.results else ():
            if self.left[key] == 1 and web in self.live and web.channel is not None:
                dying[web.channel] += 1
        for n, r in enumerate(op.results):
            web = r.web
            c = web.channel if web.channel is not None else (channel or 0) + n
            if not self.problem.uses[r]:
                continue
            if web in self.live:
                if web.channel is None and self.peak[c] + 1 > self.limit:
                    return False
                continue
            local = r not in self.problem.leaving and len(web.values) == 1 and web.cohort is None
            if self.count[c] - dying[c] + 1 > self.limit + (SLACK if local else 0):
                return False
        for n, r in enumerate(op.results):
            self.settle(r.web, (channel or 0) + n)
        return True

    @staticmethod
    def units(draft: Draft, op: Op, slots, channel: int | None, constants: int) -> tuple[list[Unit], list[Placed]]:
        """The op's parts, slot by slot, and the reads they need: x, y and z of a four-slot double read the same."""
        units: list[Unit] = []
        placed: list[Placed] = []
        start = len(draft.ports.units)
        for place, slot in enumerate(slots):
            operands = slot_operands(op.row, len(op.srcs), place)
            if not place or op.row.slots != "quad" or place == 3:
                reads: list = []
                forwarded = []
                for n, k in enumerate(operands):
                    value = op.srcs[k].value
                    if value in draft.forwards:
                        forwarded.append(n)
                    held = value.located and value not in draft.forwards
                    reads.append((value.web.channel, value.web) if held else None)
                units.append(unit(reads, slot == T, constants, tuple(forwarded)))
            placed.append(Placed(op, slot, place, operands, start + len(units) - 1, channel))
        return units, placed

    def place_pop(self, draft: Draft, op: Op) -> bool:
        """MOVs out of the LDS queue, all words of one read in one bundle."""
        if not self.queue or op.info["read"] is not self.queue[0] or draft.holds("LDS_POP"):
            return False
        free = [s for s in range(5) if s not in draft.slots]
        if len(free) < len(op.results) or draft.size + len(op.results) > self.room:
            return False
        counts, saved = (list(self.count), list(self.peak)), [(r.web, r.web.channel) for r in op.results]
        ways: list[tuple[int, int]] = []
        for r in op.results:
            options = self.preferred(r.web)
            way = next(((s, c) for s, c in [(c, c) for c in options] + [(T, c) for c in options] if s in free), None)
            full = way and self.count[way[1]] + 1 > self.limit and r.web not in self.live
            if way is None or (full and len(self.queue) < 2):
                self.undo(saved, counts)
                return False
            free.remove(way[0])
            ways.append(way)
            self.settle(r.web, way[1])
        for n, (slot, channel) in enumerate(ways):
            draft.slots[slot] = Placed(op, slot, n, (), -1, channel)
            self.born(op.results[n])
        self.queue.pop(0)
        return True


def literal(op: Op, n: int, src: Src) -> int | None:
    """The literal dword that an operand needs: none for inline constants, with a negate where floats allow it."""
    bits = src.value.bits
    if src.value.kind != "const" or bits in INLINE:
        return None
    floats = op.row is not None and (op.row.kind == "float" or (op.row.kind == "double" and n % 2 == 1))
    return None if floats and bits ^ SIGN in (0x3F800000, 0x3F000000, 0) else bits


def _most_slots(op: Op) -> int:
    """Slots of a clause that an arithmetic op takes if it shares no literals."""
    literals = {literal(op, n, s) for n, s in enumerate(op.srcs)} - {None}
    return WIDTH[op.row.slots] + (len(literals) + 1) // 2


def _buffered(op: Op) -> list[Src]:
    """Operands in constant buffers."""
    return [s for s in op.srcs if s.value.kind == "constant"]


def _windows(ops: list[Op]) -> set[tuple[int, int]]:
    """Windows of 32 constants that ops read: (buffer, number)."""
    return {(s.value.place[0], s.value.place[1] // 32) for op in ops for s in _buffered(op)}
