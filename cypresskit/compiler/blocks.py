"""Scheduling a block: what both styles share.

A block becomes a list of ``ClausePlan``s: fetch clauses, ALU clauses of bundles, stores. Op by op goes into them as
soon as nothing that it waits for is left; which one comes next, the styles decide (``inorder``, ``schedule``).

The scheduler also decides the channel of every virtual register it meets, since a slot writes its own channel; what a
fetch brings is spread over the channels, so that words read together come from different banks.
"""

from collections import Counter
from collections.abc import Iterable
from itertools import permutations

from cypresskit.compiler.constraints import possible
from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import BasicBlock, Op, Word
from cypresskit.compiler.packing import ClausePlan, Draft, Packer

Way = list[tuple[Word, int]]  # words and their channels


class NoBundle(Exception):
    """No bundle can hold ``op``, whatever registers it is given."""

    def __init__(self, block: BasicBlock, op: Op):
        super().__init__(op.name)
        self.block, self.op = block, op


class BlockScheduler:
    """One attempt at a block: ``plans``, and the ``pressure`` that they cause, whose decisions ``commit`` makes final.
    ``waits``: unscheduled ops that each op waits for, those that the present bundle makes ``later`` included; the ops
    of ``bundled`` go into bundles. ``places``: where words are read, by which ``read_together`` counts the channels."""

    def __init__(self, problem: Problem, budget: int, named: bool = False):
        self.problem, self.ops = problem, problem.ops
        self.packer = Packer(problem, budget, named)
        self.pressure = self.packer.pressure
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

    def run(self) -> "BlockScheduler":
        """Schedule the whole block, if that isn't done yet."""
        if self.packer.open:
            while self.packer.open:
                self.advance()
            self.pressure.restore()
        return self

    def advance(self) -> None:
        """The next clause or store, or a part of one."""
        raise NotImplementedError

    def cost(self, op: Op, way: Way) -> tuple:
        """What channels for a fetch's results cost: the least is taken."""
        raise NotImplementedError

    def ancestors(self, n: int) -> set[int] | None:
        """Unscheduled arithmetic that ``n`` waits for, or None if it waits for a fetch or a store."""
        found: set[int] = set()
        stack = [n] if self.waits[n] else []
        while stack:
            for m in self.problem.before[stack.pop()]:
                if m in self.packer.open and m not in found:
                    if m not in self.bundled:
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def fetch(self, batch: list[int]) -> None:
        most = self.problem.device.tex_clause_fetches
        for first in range(0, len(batch), most):
            self.apart("TEX", batch[first : first + most])

    def apart(self, kind: str, batch: list[int]) -> None:
        """What is no bundle: a fetch clause, or a store."""
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
        """Channels for a fetch's results."""
        wanted = [r for r in op.results if self.problem.uses[r]]
        ways = [list(zip(wanted, order)) for order in permutations(range(4), len(wanted))]
        ways = [way for way in ways if possible({r.vreg: c for r, c in way})]
        for r, c in min(ways, key=lambda way: self.cost(op, way), default=[]):
            self.pressure.settle(r.vreg, c)
            self.read_together.update((place, c) for place in self.places.get(r, ()))

    def clashes(self, way: Way) -> int:
        """How often words are read together that would come from the same bank."""
        return sum(self.read_together[place, c] for r, c in way for place in self.places.get(r, ()))

    def finish(self, n: int) -> None:
        """An op is scheduled: what waited for it may go, if need be in a later bundle."""
        self.packer.open.discard(n)
        self.ready.remove(n)
        for m, later in self.problem.after[n]:
            if later and n in self.bundled:
                self.later.append(m)
            else:
                self.release(m)

    def release(self, m: int) -> None:
        self.waits[m] -= 1
        if not self.waits[m]:
            self.ready.append(m)

    def open_clause(self) -> None:
        """A fresh ALU clause, with its own constants."""
        self.packer.clause = ClausePlan("ALU")
        self.open_bundle({})

    def open_bundle(self, forwards: dict[Word, tuple[str, int]]) -> None:
        self.draft, self.later = Draft(forwards), list[int]()
        self.packer.room = self.problem.device.alu_clause_slots - self.packer.clause.slots

    def close_bundle(self) -> None:
        """The bundle is as full as it gets."""
        clause = self.packer.clause
        if not clause.bundles:
            self.plans.append(clause)
        clause.bundles.append(self.draft)
        clause.slots += self.draft.size
        for m in self.later:
            self.release(m)
        self.open_bundle(self.draft.results)
