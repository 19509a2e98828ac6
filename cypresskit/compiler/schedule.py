"""List scheduling, for the best code: fetches as early as their addresses and the register budget allow; ALU ops with
the longest chain of dependents first, then in the order of the IL, and among equals the op that needs the fewest new
read ports.

A sum carried by a loop goes where the first bundle that reads it wants it. What a loop's registers are limited to, and
which limits are tried, says ``search``.
"""

from collections import Counter

from cypresskit.compiler.blocks import WORST, BlockScheduler, NoBundle, Way
from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import Op

WINDOW = 64  # ready ops that are looked at for a bundle


class ListScheduler(BlockScheduler):
    """One attempt at a block with a budget of registers."""

    def __init__(self, problem: Problem, budget: int):
        super().__init__(problem, budget)
        self.fetches = [n for n, op in enumerate(self.ops) if op.fetches]
        highest: Counter = Counter()  # of the readers of a word
        for op, height in zip(self.ops, problem.height):
            for src in op.srcs:
                highest[src.value] = max(height, highest[src.value])
        self.places = {word: [height] for word, height in highest.items()}
        # Doubles fill x y z w and leave t: while there are some, single-slot ops wait for a t beside one.
        self.wide = {n for n, op in enumerate(self.ops) if op.row.width > 1}

    def advance(self) -> None:
        """The next fetch clause, bundle or stores, or one register more if nothing goes."""
        batch, urgent = self.next_fetches()
        if batch and not urgent and not self.queue:
            self.fetch(batch)
        elif self.bundle(urgent):
            return
        elif self.queue or self.tested:  # the clause must be finished: exceed the budget
            self.raise_budget()
        elif stores := [n for n in sorted(self.ready) if self.ops[n].stores]:
            for n in stores:
                self.apart("STORE", [n])
        elif batch and not self.waits[batch[0]]:
            self.fetch(batch[:1])
        elif self.clause.slots:
            self.open_clause()
        else:
            self.raise_budget()

    def raise_budget(self) -> None:
        self.pressure.budget += 1
        if self.pressure.budget > 4 * self.problem.device.gpr_limit:
            doubles = [self.ops[n] for n in self.ready if n in self.bundled and self.ops[n].name.endswith("_64")]
            raise NoBundle(self.problem.block, (doubles or [self.ops[min(self.open)]])[0])

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in the order of the IL, as many as registers allow; and the ALU ops that they
        wait for."""
        self.fetches = waiting = [n for n in self.fetches if n in self.open]
        if not waiting:
            return [], set()
        room = [self.pressure.limit - c for c in self.pressure.count]
        total = 4 * self.pressure.budget - len(self.pressure.live)
        batch: list[int] = []
        urgent: set[int] = set()
        for n in waiting:
            needs = self.ancestors(n)
            if needs is None:
                continue
            words = sum(r.vreg not in self.pressure.live for r in self.ops[n].results if self.problem.uses[r])
            total -= words
            if total < 0 or sum(r > 0 for r in room) < words or len(batch) == self.problem.device.tex_clause_fetches:
                break
            if words == 4:
                room = [r - 1 for r in room]
            batch.append(n)
            urgent |= needs
        if not batch and self.bundled.isdisjoint(self.ready):
            batch = [n for n in waiting if not self.waits[n]][:1]
        return batch, urgent

    def cost(self, op: Op, way: Way) -> tuple:
        """Full channels first, then clashing banks."""
        return (
            sum(self.pressure.excess(r.vreg, c) for r, c in way),
            self.clashes(way),
            sum(self.pressure.count[c] for _, c in way) if len(way) < 4 else 0,
            sum(op.results.index(r) != c for r, c in way),
        )

    def bundle(self, urgent: set[int]) -> bool:
        """Build one bundle; False if no op would go in."""
        if self.bundled.isdisjoint(self.ready):
            return False
        if self.room < WORST and not (self.queue or self.tested):
            self.open_clause()
        while len(self.draft.slots) < 5:
            n = self.pick(urgent)
            if n is None:
                break
            self.finish(n)
        if not self.draft.slots:
            return False
        self.close_bundle()
        return True

    def pick(self, urgent: set[int]) -> int | None:
        """The next op for the bundle, placed in it."""
        wide, height = self.wide, self.problem.height
        ready = [n for n in self.ready if n in self.bundled]
        if self.queue and self.room < WORST * (len(self.queue) + 2):  # the clause must empty the queue
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"]
        self.t_first = not wide.isdisjoint(self.open)
        if len(self.pressure.live) > 4 * self.pressure.budget - 4:
            growth = self.pressure.growth
            ready.sort(key=lambda n: (n not in urgent, growth(self.ops[n]), n not in wide, -height[n], n))
        else:
            ready.sort(key=lambda n: (n not in urgent, n not in wide, -height[n], n))
            if self.draft.slots and ready:
                top = height[ready[0]]
                ready = ready[:WINDOW]
                reads = self.new_reads
                ready.sort(key=lambda n: (n not in urgent, n not in wide, top - height[n] > 1, reads(self.ops[n])))
        return next((n for n in ready[:WINDOW] if self.place(self.ops[n])), None)
