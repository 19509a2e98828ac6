"""Scheduling as AMD's compiler did it, by the habits that its listings show: program order, and no
looking ahead.

Nothing moves across a block's end. A block's fetches from textures are gathered at its beginning,
behind the arithmetic that their coordinates need; reads of global memory only as far as the first
use of what one brings. Bundles take operations in the order of the program, and the first one that
doesn't fit closes the bundle. A word lies in the component that the IL gives it, so an operation
runs in that slot, or else in t; only what a fetch brings is spread, so that neighbours in the
program read different banks. Clauses are filled to their last slot. The test that ends a block is
alone in its bundle.

Left out: what AMD's compiler did when registers ran out (spilling). Here fewer fetches are gathered
then (``search``).
"""

from collections import defaultdict
from itertools import islice, takewhile

from cypresskit.compiler.block_problem import Problem
from cypresskit.compiler.blocks import (
    SPARE_BUNDLES,
    WORST,
    BlockScheduler,
    ChannelChoice,
    NoBundle,
)
from cypresskit.compiler.ir import Op

# Operations after a reader whose operands should come from other banks: those of two vectors,
# which may share a bundle. Calibrated on the published 60 bundles of the 64 x 64 kernel's loop:
# 6 to 8 give 59, 5 gives 67, 9 gives 62, and more give 61.
NEAR = 8


class InOrderScheduler(BlockScheduler):
    """One block in program order, with at most ``gather`` fetches together. Words that ops read at
    the same operand, no more than ``NEAR`` from each other, are read together.
    """

    def __init__(self, problem: Problem, gather: int):
        super().__init__(problem, problem.ample_budget, named=True)
        self.gather = gather
        self.samples = [n for n, op in enumerate(self.ops) if op.samples]
        self.draining = False
        places: defaultdict = defaultdict(set)
        for n, op in enumerate(self.ops):
            for k, src in enumerate(op.srcs):
                places[src.value].update((n + d, k) for d in range(NEAR))
        self.places = dict(places)

    def advance(self) -> None:
        """Schedule the next fetch clause, or all arithmetic up to the next access to memory, or
        that access.
        """
        batch, needs = self.gathered()
        if batch:
            self.arithmetic(sorted(needs))
            self.fetch(batch)
        elif run := self.until_memory():
            self.arithmetic(run)
        else:
            self.memory()

    def gathered(self) -> tuple[list[int], set[int]]:
        """The fetches from textures that wait for nothing but arithmetic, and that arithmetic."""
        batch: list[int] = []
        needed: set[int] = set()
        fetches = sorted(n for n in self.samples if n in self.open)
        for n in fetches:
            if len(batch) == self.gather:
                break
            if not self.held[n]:
                batch.append(n)
                needed |= self.ancestors(n, needed)
        return batch, needed

    def until_memory(self) -> list[int]:
        """The arithmetic that goes next, in order: up to the next store, or the first use of a read
        of global memory. An instruction's LDS reads go before the ops that pop their words.
        """
        run: list[int] = []
        reads = False
        for n in sorted(self.open):
            op = self.ops[n]
            reads |= op.name == "MEM_READ"
            waits = op.fetches or self.held[n]
            if op.stores or (waits and reads and not op.fetches):
                break
            if not waits:
                run.append(n)
        return sorted(run, key=lambda n: (self.ops[n].at, self.ops[n].name == "LDS_POP", n))

    def memory(self) -> None:
        """Schedule the next accesses to global memory or outputs; reads share a clause up to the
        first use of theirs.
        """
        batch = list(takewhile(lambda n: self.ops[n].name == "MEM_READ", sorted(self.ready)))
        if batch:
            self.fetch(batch)
        else:
            self.schedule_alone("STORE", [min(self.ready)])

    def cost(self, choice: ChannelChoice) -> tuple:
        """Different banks for what neighbours read, then the component that the IL gives each
        word.
        """
        moved = sum(r.vreg.home not in (None, c) for r, c in choice)
        return self.clashes(choice), moved

    def arithmetic(self, run: list[int]) -> None:
        """Put all these ops into bundles, in order, opening bundles and clauses as they fill up."""
        waiting = list(run)
        while waiting:
            n = self.next(waiting)
            if not self.waits[n] and self.fits(self.ops[n]):
                waiting.remove(n)
                self.finish(n)
            elif self.draft.slots:
                self.close_bundle()
            elif self.queue and not self.draining:
                self.draining = True  # the clause has to end, and the LDS queue with it
            elif self.clause.bundles and not self.queue:
                self.open_clause()
            else:
                raise NoBundle(self.problem.block, self.ops[n])
        if self.draft.slots:
            self.close_bundle()

    def next(self, waiting: list[int]) -> int:
        """The op to be tried next: the first, but LDS pops if the clause's room runs out, and a
        test last.
        """
        queue = self.queue
        room = self.room - self.draft.size
        self.draining = bool(queue) and (
            self.draining or room < WORST * (len(queue) + SPARE_BUNDLES)
        )
        if self.draining:
            return next((n for n in waiting if self.ops[n].name == "LDS_POP"), waiting[0])
        first = waiting[:2]
        if not self.draft.slots:  # whatever order the numbers have, somebody can begin
            first = list(islice((n for n in waiting if not self.waits[n]), 2)) or first
        return first[-1] if self.ops[first[0]].row.predicate else first[0]

    def fits(self, op: Op) -> bool:
        """Put an op into the bundle, a test only if it is alone. Returns whether it fits."""
        return not (op.row.predicate and self.draft.slots) and self.place(op)
