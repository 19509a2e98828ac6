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
from typing import NamedTuple, Self

from cypresskit.compiler.block_problem import Pressure, Problem
from cypresskit.compiler.ir import Op, Word
from cypresskit.compiler.isa import T
from cypresskit.compiler.ports import ClausePlan, Constants, Draft, Placed, constants_of, parts_of
from cypresskit.compiler.register_channels import possible

WORST = 7  # slots of the largest bundle: five ops, two literal pairs
#: Bundles of a clause's room that stay free beside one for each LDS read that is still queued: the
#: one that is being filled, and one more.
SPARE_BUNDLES = 2
DRAIN = 48  # slots that a clause must have free before it reads the LDS: room to empty the queue
ChannelChoice = list[tuple[Word, int]]  # words and their channels


class SlotChoice(NamedTuple):
    """Slots of a bundle for an op, and the channel of its result."""

    slots: tuple[int, ...]
    channel: int | None


class NoBundle(Exception):
    """No bundle can hold an op, whatever registers it is given. ``args``: its block, and the op."""


class BlockScheduler:
    """One attempt at a block: ``plans``, and the ``pressure`` that they cause, whose decisions
    ``commit`` makes final. Ops go by their number in ``ops``.

    - ``open``: ops that are still to be placed; ``bundled``: ops that go into bundles;
    - ``waits[n]``: how many open ops op n waits for; those in the open bundle count until it closes
      if n must come ``later``; ``ready``: open ops that wait for none;
    - ``places``: where words are read, by which ``read_together`` counts the channels; ``alone``:
      the clashes of each word of a fetch in each channel;
    - ``held[n]``: how many of those that op n waits for are fetches or stores, or held themselves;
    - ``queue``: LDS reads whose words have not been taken yet;
    - ``tested``: whether the test that ends the block is placed;
    - ``t_first``: whether x y z w are wanted for doubles, so that others try t first;
    - ``draft``: the open bundle; ``clause``: the open ALU clause; ``room``: its free slots.
    """

    def __init__(self, problem: Problem, budget: int, named: bool = False):
        self.problem = problem
        self.ops = problem.ops
        self.pressure = Pressure(problem, budget, named)
        self.open = set(range(len(self.ops)))
        self.queue: list[Op] = []
        self.tested = self.t_first = False
        self.plans: list[ClausePlan] = []
        self.waits = list(map(len, problem.before))
        self.ready = [n for n, count in enumerate(self.waits) if not count]
        self.bundled = {n for n, op in enumerate(self.ops) if not (op.fetches or op.stores)}
        self.held = self._held()
        self.places: dict[Word, Iterable] = {}
        self.read_together: Counter = Counter()
        self.alone: dict[tuple[Word, int], int] = {}
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

    def cost(self, choice: ChannelChoice) -> tuple:
        """The sort key of a choice of channels for a fetch's results: the smallest is taken."""
        raise NotImplementedError

    def _held(self) -> list[int]:
        """For each op, how many that it waits for are fetches, stores, or arithmetic that itself
        waits for one.
        """
        held = [0] * len(self.ops)
        left = list(self.waits)
        done = [n for n, count in enumerate(left) if not count]
        for n in done:
            holds = n not in self.bundled or held[n] > 0
            for m in self.problem.after[n]:
                held[m] += holds
                left[m] -= 1
                if not left[m]:
                    done.append(m)
        return held

    def _let_go(self, n: int) -> None:
        """Fetch or store ``n`` is scheduled: nothing is held by it any more."""
        stack = [n]
        while stack:
            for m in self.problem.after[stack.pop()]:
                self.held[m] -= 1
                if not self.held[m] and m in self.bundled:
                    stack.append(m)

    def ancestors(self, n: int, known: set[int] | None = None) -> set[int]:
        """The arithmetic, not scheduled yet, that op ``n`` waits for, which nothing holds; but
        for what is ``known`` with all that it waits for.
        """
        known = known or set()
        needed: set[int] = set()
        stack = [n] if self.waits[n] else []
        while stack:
            for m in self.problem.before[stack.pop()]:
                if m in self.open and m not in needed and m not in known:
                    needed.add(m)
                    stack.append(m)
        return needed

    def fetch(self, batch: list[int]) -> None:
        """Schedule fetches, in as many clauses as they need."""
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
        used = [r for r in op.results if self.problem.uses[r]]
        choices = [list(zip(used, order)) for order in permutations(range(4), len(used))]
        choices = [choice for choice in choices if possible({r.vreg: c for r, c in choice})]
        self.alone = {(r, c): self.clashes_alone(r, c) for r in used for c in range(4)}
        for r, c in min(choices, key=self.cost, default=[]):
            self.pressure.settle(r.vreg, c)
            self.read_together.update((place, c) for place in self.places.get(r, ()))

    def clashes(self, choice: ChannelChoice) -> int:
        """How often words that are read together would come from the same bank."""
        return sum(self.alone[r, c] for r, c in choice)

    def clashes_alone(self, r: Word, c: int) -> int:
        """How often a word in channel ``c`` and others would come from the same bank."""
        return sum(self.read_together[place, c] for place in self.places.get(r, ()))

    def finish(self, n: int) -> None:
        """Mark op ``n`` as scheduled: what waited for it may go, if need be in a later bundle."""
        self.open.discard(n)
        self.ready.remove(n)
        if n not in self.bundled:
            self._let_go(n)
        for m, later in self.problem.after[n].items():
            if later and n in self.bundled:
                self.later.append(m)
            else:
                self.release(m)

    def release(self, m: int) -> None:
        """Let op ``m`` wait for one op less."""
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
        reads_lds = op.name.startswith("LDS_READ")
        if reads_lds and not self.may_read_lds():
            return False
        if op.row.predicate and not self.may_test():
            return False

        needed = constants_of([op])
        result = op.results[0] if op.results else None
        for choice in self.slot_choices(op, result, self.draft.free):
            if self.try_slots(op, needed, choice):
                if reads_lds:
                    self.queue.append(op)
                return True
        return False

    def may_read_lds(self) -> bool:
        """Whether the clause and the registers have room for the words of one LDS read more."""
        words = 2 * (len(self.queue) + 1)
        has_slots = self.room >= DRAIN + 2 * words
        return has_slots and words <= self.pressure.free_words

    def may_test(self) -> bool:
        """Whether a test may be placed now: it ends its clause, so all the rest of the block must
        fit in.
        """
        left = [self.problem.ops[n] for n in self.open]
        size = self.draft.size + sum(op.row.width + constants_of([op]).size for op in left)
        windows = self.clause.windows | constants_of(left).windows
        return size <= self.room and len(windows) <= 2

    def slot_choices(self, op: Op, result: Word | None, free: list[int]) -> Iterator[SlotChoice]:
        """The slots that an op may take and the channel of its result, in the order in which they
        are to be tried.
        """
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
            vector = [SlotChoice((c,), c) for c in channels if c in free and kind != "t"]
            scalar = [SlotChoice((T,), c) for c in channels if T in free and kind != "vector"]
            yield from scalar + vector if self.t_first else vector + scalar

    def try_slots(self, op: Op, needed: Constants, choice: SlotChoice) -> bool:
        """Put an op with the constants that it needs into given slots. Returns False, with nothing
        changed, if something forbids it.
        """
        draft, pressure, slots = self.draft, self.pressure, choice.slots
        constants = sum(not s.value.located for s in op.srcs)
        if slots[0] == T and constants > 2:
            return False
        together = Constants(
            draft.constants.literals | needed.literals,
            draft.constants.pairs | needed.pairs,
            self.clause.windows | needed.windows,
        )
        if not together.fit or len(draft.slots) + len(slots) + together.size > self.room:
            return False

        before = pressure.state()
        if pressure.place_results(op, choice.channel):
            for word in op.located:
                if word not in draft.forwards:
                    pressure.settle(word.vreg)
            reading, placed = parts_of(draft, op, slots, constants)
            if draft.ports.fit(reading):
                draft.slots |= {p.slot: p for p in placed}
                draft.constants = together
                self.clause.windows = together.windows
                self.tested = self.tested or op.row.predicate
                pressure.issue(op)
                return True
        pressure.undo(before)
        return False

    def place_pop(self, op: Op) -> bool:
        """Put the MOVs that empty the LDS queue of one read into the bundle. Returns False if not
        all of them fit.
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
            pressure.settle(r.vreg, choice.channel)
        self.draft.slots |= {p.slot: p for p in placed}
        pressure.issue(op)
        self.queue.pop(0)
        return True

    def new_reads(self, op: Op) -> int:
        """How many read ports an op would take that the bundle doesn't use yet."""
        banks = self.draft.ports.banks
        forwards = self.draft.forwards
        vregs = [word.vreg for word in op.located if word not in forwards]
        return sum(vreg.channel is None or vreg not in banks[vreg.channel] for vreg in vregs)

    def open_clause(self) -> None:
        """Begin an ALU clause, with constants of its own."""
        self.clause = ClausePlan("ALU")
        self.open_bundle({})

    def open_bundle(self, forwards: dict[Word, tuple[str, int]]) -> None:
        """Begin a bundle, for which PV and PS hold ``forwards``."""
        self.draft = Draft(forwards)
        self.later: list[int] = []
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
