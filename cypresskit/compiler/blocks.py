"""Scheduling a block: what both styles share.

A block becomes a list of ``ClausePlan``s: fetch clauses, ALU clauses of bundles, stores. Op by op
goes into them as soon as nothing that it waits for is left; which one comes next, the styles decide
(``inorder``, ``schedule``). Into a bundle it goes if its slots are free and constants, literals,
read ports, the clause's room and the register budget (``block_problem``) allow it.

The scheduler also decides the channel of every virtual register it meets: a result's is that of its
slot, an operand's, if it is still open, the emptiest; what a fetch brings is spread so that words
read together come from different banks.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import permutations
from typing import Self

from cypresskit.compiler.block_problem import Pressure, Problem
from cypresskit.compiler.ir import Op, Word
from cypresskit.compiler.isa import T
from cypresskit.compiler.ports import ClausePlan, Constants, Draft, Placed, constants_of, parts_of
from cypresskit.compiler.vregs import possible

WORST = 7  # slots of the largest bundle: five ops, two literal pairs
Way = list[tuple[Word, int]]  # words and their channels


class NoBundle(Exception):
    """No bundle can hold an op, whatever registers it is given. ``args``: its block, and the op."""


class BlockScheduler:
    """One attempt at a block: ``plans``, and the ``pressure`` that they cause, whose decisions
    ``commit`` makes final. ``open``: ops that are still to be placed; ``waits``: those of them that
    each op waits for, what the present bundle makes ``later`` included; the ops of ``bundled`` go
    into bundles. ``places``: where words are read, by which ``read_together`` counts the channels.
    ``queue``: LDS reads whose words have not been taken yet; ``tested``: whether the test that ends
    the block is placed; ``t_first``: whether x y z w are wanted for doubles, and t is the place for
    others; ``room``: slots left in the ``clause``.
    """

    def __init__(self, problem: Problem, budget: int, named: bool = False):
        self.problem, self.ops = problem, problem.ops
        self.pressure = Pressure(problem, budget, named)
        self.open = set(range(len(self.ops)))
        self.queue: list[Op] = []
        self.tested = self.t_first = False
        self.plans: list[ClausePlan] = []
        self.waits = list(map(len, problem.before))
        self.ready = [n for n, count in enumerate(self.waits) if not count]
        self.bundled = {n for n, op in enumerate(self.ops) if not (op.fetches or op.stores)}
        self.places: dict[Word, Iterable] = {}
        self.read_together: Counter = Counter()
        self.open_clause()

    @property
    def bundles(self) -> int:
        return sum(len(plan.bundles) for plan in self.plans)

    def count(self, kind: str) -> int:
        return sum(plan.kind == kind for plan in self.plans)

    def run(self) -> Self:
        """Schedule the whole block."""
        while self.open:
            self.advance()
        self.pressure.restore()
        return self

    def advance(self) -> None:
        """Schedule the next clause or store, or a part of one."""
        raise NotImplementedError

    def cost(self, way: Way) -> tuple:
        """The sort key of a choice of channels for a fetch's results: the smallest is taken."""
        raise NotImplementedError

    def ancestors(self, n: int) -> set[int] | None:
        """The arithmetic, not scheduled yet, that op ``n`` waits for; None if it waits for a fetch
        or a store.
        """
        found: set[int] = set()
        stack = [n] if self.waits[n] else []
        while stack:
            for m in self.problem.before[stack.pop()]:
                if m in self.open and m not in found:
                    if m not in self.bundled:
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def fetch(self, batch: list[int]) -> None:
        most = self.problem.limits.tex_clause_fetches
        for first in range(0, len(batch), most):
            self.schedule_alone("TEX", batch[first : first + most])

    def schedule_alone(self, kind: str, batch: list[int]) -> None:
        """Schedule ops that go into no bundle: a fetch clause, or a store."""
        plan = ClausePlan(kind, ops=[self.ops[n] for n in batch])
        self.plans.append(plan)
        for n, op in zip(batch, plan.ops):
            for word in op.located:
                self.pressure.settle(word.vreg)
            self.pressure.read(op)
            self.spread(op)
            for r in op.results:
                self.pressure.write(r)
            self.finish(n)
        self.open_clause()

    def spread(self, op: Op) -> None:
        """Decide the channels of a fetch's results: those of the least ``cost``."""
        wanted = [r for r in op.results if self.problem.uses[r]]
        ways = [list(zip(wanted, order)) for order in permutations(range(4), len(wanted))]
        ways = [way for way in ways if possible({r.vreg: c for r, c in way})]
        for r, c in min(ways, key=self.cost, default=[]):
            self.pressure.settle(r.vreg, c)
            self.read_together.update((place, c) for place in self.places.get(r, ()))

    def clashes(self, way: Way) -> int:
        """How often words that are read together would come from the same bank, with these
        channels.
        """
        return sum(self.read_together[place, c] for r, c in way for place in self.places.get(r, ()))

    def finish(self, n: int) -> None:
        """Mark op ``n`` as scheduled: what waited for it may go, if need be in a later bundle."""
        self.open.discard(n)
        self.ready.remove(n)
        for m, later in self.problem.after[n].items():
            if later and n in self.bundled:
                self.later.append(m)
            else:
                self.release(m)

    def release(self, m: int) -> None:
        self.waits[m] -= 1
        if not self.waits[m]:
            self.ready.append(m)

    # Bundles

    def place(self, op: Op) -> bool:
        """Put an op into the bundle. Returns False, with nothing changed, if it doesn't fit."""
        if self.draft.holds("GROUP_BARRIER") or (op.name == "GROUP_BARRIER" and self.draft.slots):
            return False
        if op.popped:
            return self.place_pop(op)
        words, queued = 2 * (len(self.queue) + 1), [op] if op.name.startswith("LDS_READ") else []
        if queued and (
            self.room < 48 + 2 * words or len(self.pressure.live) + words > 4 * self.pressure.budget
        ):
            return False
        if op.row.predicate and not self.may_test():
            return False
        needed = constants_of([op])
        ways = self.ways(op, op.results[0] if op.results else None, self.draft.free)
        placed = any(self.try_slots(op, needed, slots, channel) for slots, channel in ways)
        self.queue += queued if placed else []
        return placed

    def may_test(self) -> bool:
        """Whether a test may be placed now: it ends its clause, so all that is left of the block
        must fit in.
        """
        left = [self.problem.ops[n] for n in self.open]
        size = self.draft.size + sum(op.row.width + constants_of([op]).size for op in left)
        return size <= self.room and len(self.clause.windows | constants_of(left).windows) <= 2

    def ways(
        self, op: Op, result: Word | None, free: list[int]
    ) -> Iterator[tuple[tuple[int, ...], int | None]]:
        """The slots that an op may take and the channel of its result, in the order in which they
        are to be tried.
        """
        options, kind = (
            self.pressure.preferred(result.vreg) if result else [0, 1, 2, 3],
            op.row.slots,
        )
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

    def try_slots(
        self, op: Op, needed: Constants, slots: tuple[int, ...], channel: int | None
    ) -> bool:
        """Put an op into given slots. Returns False, with nothing changed, if something forbids
        it.
        """
        draft, pressure = self.draft, self.pressure
        held, windows = draft.constants, self.clause.windows | needed.windows
        both = Constants(held.literals | needed.literals, held.pairs | needed.pairs, windows)
        constants = sum(not s.value.located for s in op.srcs)
        if (
            not both.fit
            or (slots[0] == T and constants > 2)
            or len(draft.slots) + len(slots) + both.size > self.room
        ):
            return False
        state = pressure.state()
        if pressure.place_results(op, channel):
            for word in (word for word in op.located if word not in draft.forwards):
                pressure.settle(word.vreg)
            reading, placed = parts_of(draft, op, slots, constants)
            if draft.ports.fit(reading):
                draft.slots |= {p.slot: p for p in placed}
                draft.constants, self.clause.windows = both, windows
                self.tested = self.tested or op.row.predicate
                pressure.issue(op)
                return True
        pressure.undo(state)
        return False

    def place_pop(self, op: Op) -> bool:
        """Put the MOVs that empty the LDS queue of one read into the bundle. Returns False if not
        all of them fit.
        """
        free, pressure, count = self.draft.free, self.pressure, len(op.results)
        if op.popped not in self.queue[:1] or self.draft.holds("LDS_POP"):
            return False
        if len(free) < count or self.draft.size + count > self.room:
            return False
        state, placed = pressure.state(), list[Placed]()
        for n, r in enumerate(op.results):
            slots, channel = next(self.ways(op, r, free), ((), None))
            if not slots:
                pressure.undo(state)
                return False
            free.remove(slots[0])
            placed.append(Placed(op, slots[0], n, (), -1))
            pressure.settle(r.vreg, channel)
        self.draft.slots |= {p.slot: p for p in placed}
        pressure.issue(op)
        self.queue.pop(0)
        return True

    def new_reads(self, op: Op) -> int:
        """How many read ports an op would take that the bundle doesn't use yet."""
        banks, forwards = self.draft.ports.banks, self.draft.forwards
        vregs = [word.vreg for word in op.located if word not in forwards]
        return sum(vreg.channel is None or vreg not in banks[vreg.channel] for vreg in vregs)

    def open_clause(self) -> None:
        """Begin an ALU clause, with constants of its own."""
        self.clause = ClausePlan("ALU")
        self.open_bundle({})

    def open_bundle(self, forwards: dict[Word, tuple[str, int]]) -> None:
        self.draft, self.later = Draft(forwards), list[int]()
        self.room = self.problem.limits.alu_clause_slots - self.clause.slots

    def close_bundle(self) -> None:
        """End the bundle, and begin the clause's next one."""
        clause = self.clause
        if not clause.bundles:
            self.plans.append(clause)
        clause.bundles.append(self.draft)
        clause.slots += self.draft.size
        for m in self.later:
            self.release(m)
        self.open_bundle(self.draft.results)
