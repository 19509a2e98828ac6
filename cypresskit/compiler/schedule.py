"""List scheduling, for the best code: fetches as early as their addresses and the register budget
allow; ALU ops with the longest chain of dependents first, then in the order of the IL, and among
equals the op that needs the fewest new read ports.

A sum carried by a loop goes where the first bundle that reads it wants it. What a loop's registers
are limited to, and which limits are tried, says ``search``.
"""

from collections import Counter

from cypresskit.compiler.block_problem import Problem
from cypresskit.compiler.blocks import WORST, BlockScheduler, NoBundle, Way

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
        # Doubles fill x y z w and leave t: while there are some, single-slot ops wait for a t
        # beside one.
        self.wide = {n for n, op in enumerate(self.ops) if op.row.width > 1}

    def advance(self) -> None:
        """Schedule the next fetch clause, bundle or stores, or allow one register more if nothing
        goes.
        """
        batch, urgent = self.next_fetches()
        unfinished = (
            bool(self.queue) or self.tested
        )  # LDS reads to be popped, or a test: the clause can't end here
        stores = [n for n in sorted(self.ready) if self.ops[n].stores]
        if batch and not urgent and not self.queue:
            self.fetch(batch)
        elif self.bundle(urgent):
            pass
        elif unfinished:
            self.raise_budget()
        elif stores:
            for n in stores:
                self.schedule_alone("STORE", [n])
        elif batch and not self.waits[batch[0]]:
            self.fetch(batch[:1])
        elif self.clause.slots:  # a fresh clause may have room for what this one hasn't
            self.open_clause()
        else:
            self.raise_budget()

    def raise_budget(self) -> None:
        self.pressure.budget += 1
        if self.pressure.budget > 4 * self.problem.limits.registers:
            doubles = [
                self.ops[n]
                for n in self.ready
                if n in self.bundled and self.ops[n].name.endswith("_64")
            ]
            raise NoBundle(self.problem.block, (doubles or [self.ops[min(self.open)]])[0])

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in the order of the IL, as many as registers allow; and the
        ALU ops that they wait for.
        """
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
            words = sum(
                r.vreg not in self.pressure.live
                for r in self.ops[n].results
                if self.problem.uses[r]
            )
            total -= words
            if (
                total < 0
                or sum(r > 0 for r in room) < words
                or len(batch) == self.problem.limits.tex_clause_fetches
            ):
                break
            if words == 4:
                room = [r - 1 for r in room]
            batch.append(n)
            urgent |= needs
        if not batch and self.bundled.isdisjoint(self.ready):
            batch = [n for n in waiting if not self.waits[n]][:1]
        return batch, urgent

    def cost(self, way: Way) -> tuple:
        """Fewer clashes of banks, then channels that are less full."""
        return self.clashes(way), sum(self.pressure.count[c] for _, c in way) if len(way) < 4 else 0

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
        """Place the next op in the bundle. Returns its number, or None if none of those that are
        looked at fits.
        """
        ready = [n for n in self.ready if n in self.bundled]
        if self.queue and self.room < WORST * (
            len(self.queue) + 2
        ):  # the clause must empty the queue
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"]
        self.t_first = not self.wide.isdisjoint(self.open)
        if len(self.pressure.live) > 4 * self.pressure.budget - 4:
            order = self.fewest_registers(ready, urgent)
        else:
            order = self.longest_chain(ready, urgent)
            if self.draft.slots and order:
                order = self.fewest_ports(order[:WINDOW], urgent)
        return next((n for n in order[:WINDOW] if self.place(self.ops[n])), None)

    def fewest_registers(self, ready: list[int], urgent: set[int]) -> list[int]:
        """Ready ops, those that free most registers first: for a block that is short of them."""
        growth, height = self.pressure.growth, self.problem.height
        return sorted(
            ready,
            key=lambda n: (n not in urgent, growth(self.ops[n]), n not in self.wide, -height[n], n),
        )

    def longest_chain(self, ready: list[int], urgent: set[int]) -> list[int]:
        """Ready ops in the usual order: doubles first, then those with the longest chain of
        dependents.
        """
        return sorted(
            ready, key=lambda n: (n not in urgent, n not in self.wide, -self.problem.height[n], n)
        )

    def fewest_ports(self, order: list[int], urgent: set[int]) -> list[int]:
        """Ready ops for a bundle that is begun: among those whose chains are at most one shorter
        than the first one's, the ops that need the fewest new read ports first.
        """
        height, top = self.problem.height, self.problem.height[order[0]]

        def key(n: int) -> tuple:
            return (
                n not in urgent,
                n not in self.wide,
                top - height[n] > 1,
                self.new_reads(self.ops[n]),
            )

        return sorted(order, key=key)
