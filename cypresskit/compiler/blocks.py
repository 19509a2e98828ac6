"""Schedule a block as AMD's compiler did, according to its listings: in program order, without
look-ahead.

A block becomes a list of ``ClausePlan``s: fetch clauses, ALU clauses of bundles, and stores.
Nothing moves across a block's end. The texture fetches of a block are gathered at its beginning,
after the arithmetic that their coordinates need. Reads of global memory are gathered up to the
first use of a result.

A bundle takes operations in program order; the first one that doesn't fit closes it. An operation
fits if its slots are free and if constants, literals, read ports and the clause's remaining slots
allow it. Clauses are filled to their last slot. The test that ends a block is alone in its bundle.

The scheduler also chooses the channel of every virtual register. A word prefers its component in
the IL, so an operation runs in that slot, or else in t; an operand whose channel is open gets the
emptiest. The results of fetches are distributed, so that neighbors in the program read different
banks.

Not modeled: spilling, which AMD's compiler did when registers ran out.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import permutations, takewhile
from typing import NamedTuple

from cypresskit.compiler.block_problem import DependenceGraph, Pressure
from cypresskit.compiler.ir import Op, Word
from cypresskit.compiler.isa import T
from cypresskit.compiler.ports import (
    ClausePlan,
    Constants,
    Draft,
    Placed,
    find_constants,
    find_parts,
)
from cypresskit.compiler.register_channels import can_join

MAX_BUNDLE_SLOTS = 7  # slots of the largest bundle: five ops, two literal pairs
#: Bundles that a clause keeps free in addition to one for each queued LDS read: the one that is
#: being filled, and one more.
SPARE_BUNDLES = 2
DRAIN = 48  # free slots that an LDS read requires in its clause: enough to empty the queue
#: The number of operations after a reader whose operands should come from other banks: those of two
#: vectors, which may share a bundle. Fitted to the published 60 bundles of the 64 x 64 kernel's
#: loop, which no value gives: 6 to 8 give 59, 5 gives 67, 9 gives 62, and more give 61.
NEIGHBOR_OPS = 8
ChannelChoice = list[tuple[Word, int]]  # words and their channels


class SlotChoice(NamedTuple):
    """Slots of a bundle for an op, and the channel of its result."""

    slots: tuple[int, ...]
    channel: int | None


class NoBundle(Exception):
    """No bundle can hold ``op``."""

    def __init__(self, op: Op):
        super().__init__(op)
        self.op = op


class BlockScheduler:
    """Schedules one block. Ops are identified by their index in ``ops``.

    Parameters
    ----------
    graph
        The block's dependence graph.

    Attributes
    ----------
    plans, pressure
        The schedule so far, and its register pressure.
    open
        Ops that are not placed yet.
    bundled, texture_fetches
        Ops that go into bundles, and texture fetches.
    waits, later
        How many open ops each op waits for. An op in ``later`` also waits for those that are in the
        bundle being filled.
    places, read_together
        The places at which each word is read: an operand of ``NEIGHBOR_OPS`` ops in a row is one
        place. And how often each place reads each channel.
    queue, draining
        LDS reads whose words are still queued, and whether they go first because the clause has to
        end.
    draft, clause, room
        The open bundle, the open ALU clause, and its free slots.
    """

    def __init__(self, graph: DependenceGraph):
        self.graph = graph
        self.ops = graph.ops
        self.pressure = Pressure(graph)
        self.open = set(range(len(self.ops)))
        self.queue: list[Op] = []
        self.draining = False
        self.plans: list[ClausePlan] = []
        self.waits = list(map(len, graph.before))
        self.bundled = {n for n, op in enumerate(self.ops) if not (op.is_fetch or op.is_store)}
        self.texture_fetches = [n for n, op in enumerate(self.ops) if op.is_texture_fetch]
        self.places: defaultdict[Word, set[tuple[int, int]]] = defaultdict(set)
        for n, op in enumerate(self.ops):
            for k, src in enumerate(op.srcs):
                self.places[src.value].update((n + d, k) for d in range(NEIGHBOR_OPS))
        self.read_together: Counter = Counter()
        self.open_clause()

    def run(self) -> list[ClausePlan]:
        """Schedule the block: in turn the next fetch clause, all arithmetic up to the next memory
        access, or that access, until no op is open.
        """
        while self.open:
            batch, needs = self.next_fetches()
            if batch:
                self.schedule_arithmetic(sorted(needs))
                self.schedule_fetches(batch)
            elif run := self.next_arithmetic():
                self.schedule_arithmetic(run)
            else:
                self.schedule_memory_access()
        return self.plans

    def held(self) -> set[int]:
        """Return the open ops that wait for a fetch or a store, directly or not."""
        held: set[int] = set()
        for n in sorted(self.open):  # in program order, as no op waits for a later one
            waits_for = (m for m in self.graph.before[n] if m in self.open)
            if any(m not in self.bundled or m in held for m in waits_for):
                held.add(n)
        return held

    # What comes next

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Return the texture fetches that wait for arithmetic only, and that arithmetic."""
        batch: list[int] = []
        needed: set[int] = set()
        held = self.held()
        for n in self.texture_fetches:
            if n in self.open and n not in held:
                batch.append(n)
                needed |= self.ancestors(n, needed)
        return batch, needed

    def next_arithmetic(self) -> list[int]:
        """Return the arithmetic that goes next, in order: up to the next store, or the first use of
        a read of global memory. An instruction's LDS reads precede the ops that pop their words.
        """
        run: list[int] = []
        reads = False
        held = self.held()
        for n in sorted(self.open):
            op = self.ops[n]
            reads |= op.name == "MEM_READ"
            waits = op.is_fetch or n in held
            if op.is_store or (waits and reads and not op.is_fetch):
                break
            if not waits:
                run.append(n)
        return sorted(run, key=lambda n: (self.ops[n].at, self.ops[n].name == "LDS_POP", n))

    def schedule_memory_access(self) -> None:
        """Schedule the next accesses to global memory or outputs. Reads share a clause up to the
        first use of a result.
        """
        ready = sorted(n for n in self.open if not self.waits[n])
        batch = list(takewhile(lambda n: self.ops[n].name == "MEM_READ", ready))
        if batch:
            self.schedule_fetches(batch)
        else:
            self.schedule_alone("STORE", ready[:1])

    def ancestors(self, n: int, known: set[int]) -> set[int]:
        """Return the open arithmetic that op ``n`` waits for and nothing holds, without what is
        already ``known``.
        """
        needed: set[int] = set()
        stack = [n] if self.waits[n] else []
        while stack:
            for m in self.graph.before[stack.pop()]:
                if m in self.open and m not in needed and m not in known:
                    needed.add(m)
                    stack.append(m)
        return needed

    def schedule_fetches(self, batch: list[int]) -> None:
        """Schedule fetches, in as many clauses as they need."""
        most = self.graph.target.tex_clause_fetches
        for first in range(0, len(batch), most):
            self.schedule_alone("TEX", batch[first : first + most])

    def schedule_alone(self, kind: str, batch: list[int]) -> None:
        """Schedule ops outside of bundles: a fetch clause, or a store."""
        plan = ClausePlan(kind, ops=[self.ops[n] for n in batch])
        self.plans.append(plan)
        for n, op in zip(batch, plan.ops):
            for word in op.register_words:
                self.pressure.assign_channel(word.vreg)
            self.pressure.read(op)
            self.assign_fetch_channels(op)
            for r in op.results:
                self.pressure.write(r)
            self.mark_scheduled(n)
        self.open_clause()

    def assign_fetch_channels(self, op: Op) -> None:
        """Choose the channels of a fetch's results: different banks for words that neighbors read,
        then the components in the IL.
        """
        used = [r for r in op.results if self.graph.uses[r]]
        choices = [list(zip(used, order)) for order in permutations(range(4), len(used))]
        choices = [choice for choice in choices if can_join({r.vreg: c for r, c in choice})]
        clashes = {
            (r, c): sum(self.read_together[place, c] for place in self.places[r])
            for r in used
            for c in range(4)
        }

        def cost(choice: ChannelChoice) -> tuple[int, int]:
            moved = sum(r.vreg.home not in (None, c) for r, c in choice)
            return sum(clashes[r, c] for r, c in choice), moved

        for r, c in min(choices, key=cost, default=[]):
            self.pressure.assign_channel(r.vreg, c)
            self.read_together.update((place, c) for place in self.places[r])

    def mark_scheduled(self, n: int) -> None:
        """Mark op ``n`` as scheduled, and release what waited for it."""
        self.open.discard(n)
        for m, later in self.graph.after[n].items():
            if later and n in self.bundled:
                self.later.append(m)
            else:
                self.waits[m] -= 1

    # Bundles

    def schedule_arithmetic(self, run: list[int]) -> None:
        """Put ops into bundles, in order; open bundles and clauses as they fill up."""
        waiting = list(run)
        while waiting:
            n = self.choose_next(waiting)
            if not self.waits[n] and self.try_to_place(self.ops[n]):
                waiting.remove(n)
                self.mark_scheduled(n)
            elif self.draft.slots:
                self.close_bundle()
            elif self.queue and not self.draining:
                self.draining = True  # the clause has to end, and must empty the LDS queue
            elif self.clause.bundles and not self.queue:
                self.open_clause()
            else:
                raise NoBundle(self.ops[n])
        if self.draft.slots:
            self.close_bundle()

    def choose_next(self, waiting: list[int]) -> int:
        """Return the op to try next: the first one, but LDS pops before it if the clause is nearly
        full.
        """
        queue = self.queue
        room = self.room - self.draft.size
        self.draining = bool(queue) and (
            self.draining or room < MAX_BUNDLE_SLOTS * (len(queue) + SPARE_BUNDLES)
        )
        if self.draining:
            return next((n for n in waiting if self.ops[n].name == "LDS_POP"), waiting[0])
        return waiting[0]

    def try_to_place(self, op: Op) -> bool:
        """Put an op into the bundle. Return False, with nothing changed, if it doesn't fit."""
        if self.draft.holds("GROUP_BARRIER") or (op.name == "GROUP_BARRIER" and self.draft.slots):
            return False
        if op.popped:
            return self.try_pop(op)
        reads_lds = op.name.startswith("LDS_READ")
        # Two words of each LDS read have to be popped in this clause, also of this one
        if reads_lds and self.room < DRAIN + 4 * (len(self.queue) + 1):
            return False
        if op.row.is_test and self.draft.slots:
            return False

        needed = find_constants([op])
        result = op.results[0] if op.results else None
        for choice in self.slot_choices(op, result, self.draft.free):
            if self.try_slots(op, needed, choice):
                if reads_lds:
                    self.queue.append(op)
                return True
        return False

    def slot_choices(self, op: Op, result: Word | None, free: list[int]) -> Iterator[SlotChoice]:
        """Yield the slots that an op may take and the channel of its result, the best first."""
        channels = self.pressure.preferred(result.vreg) if result else [0, 1, 2, 3]
        kind = op.row.slots
        if kind == "x":
            if 0 in free:
                yield SlotChoice((0,), None)
        elif op.row.width > 1:
            for c in channels:
                slots = (0, 1, 2, 3) if kind == "quad" else (c, c + 1)
                if set(slots) <= set(free):
                    yield SlotChoice(slots, c)
        else:
            if kind != "t":
                yield from (SlotChoice((c,), c) for c in channels if c in free)
            if kind != "vector" and T in free:
                yield from (SlotChoice((T,), c) for c in channels)

    def try_slots(self, op: Op, needed: Constants, choice: SlotChoice) -> bool:
        """Put an op and its constants into given slots. Return False, with nothing changed, if that
        isn't possible.
        """
        draft, pressure, slots = self.draft, self.pressure, choice.slots
        constants = sum(not s.value.has_register for s in op.srcs)
        if slots[0] == T and constants > 2:
            return False
        together = Constants(
            draft.constants.literals | needed.literals,
            draft.constants.pairs | needed.pairs,
            self.clause.windows | needed.windows,
        )
        if not together.is_encodable or len(draft.slots) + len(slots) + together.size > self.room:
            return False

        before = pressure.state()
        for n, r in enumerate(op.results):
            pressure.assign_channel(r.vreg, (choice.channel or 0) + n)
        for word in op.register_words:
            if word not in draft.forwards:
                pressure.assign_channel(word.vreg)
        reading, placed = find_parts(draft, op, slots, constants)
        if not draft.ports.fit(reading):
            pressure.undo(before)
            return False

        draft.slots |= {p.slot: p for p in placed}
        draft.constants = together
        self.clause.windows = together.windows
        pressure.issue(op)
        return True

    def try_pop(self, op: Op) -> bool:
        """Put the MOVs that empty the LDS queue of one read into the bundle. Return False if they
        don't all fit.
        """
        free = self.draft.free
        pressure = self.pressure
        count = len(op.results)
        if op.popped not in self.queue[:1] or self.draft.holds("LDS_POP"):
            return False
        if len(free) < count or self.draft.size + count > self.room:
            return False

        before = pressure.state()
        placed: list[Placed] = []
        for n, r in enumerate(op.results):
            choice = next(self.slot_choices(op, r, free), None)
            if choice is None:
                pressure.undo(before)
                return False
            slot = choice.slots[0]
            free.remove(slot)
            placed.append(Placed(op, slot, n, (), -1))
            pressure.assign_channel(r.vreg, choice.channel)
        self.draft.slots |= {p.slot: p for p in placed}
        pressure.issue(op)
        self.queue.pop(0)
        return True

    def open_clause(self) -> None:
        """Begin an ALU clause, without constants so far."""
        self.clause = ClausePlan("ALU")
        self.open_bundle({})

    def open_bundle(self, forwards: dict[Word, tuple[str, int]]) -> None:
        """Begin a bundle. PV and PS hold ``forwards``."""
        self.draft = Draft(forwards)
        self.later: list[int] = []
        self.room = self.graph.target.alu_clause_slots - self.clause.slots

    def close_bundle(self) -> None:
        """End the bundle and begin the next one of the clause."""
        clause = self.clause
        if not clause.bundles:
            self.plans.append(clause)
        clause.bundles.append(self.draft)
        clause.slots += self.draft.size
        for m in self.later:
            self.waits[m] -= 1
        self.open_bundle(self.draft.results)
