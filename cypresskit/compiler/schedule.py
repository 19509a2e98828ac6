"""List scheduling, for the best code: fetches as early as their addresses and the register budget
allow, and into each bundle the ops that come first in a given order.

One attempt at a block, step by step (``advance``), until no op is open:

1. ``next_fetches`` looks for a batch of fetches that could make a clause now, and for the
   ``urgent`` arithmetic that it waits for. If nothing is urgent, the batch is scheduled.
2. Otherwise a bundle is filled, op by op, with the first of the ``ORDERS``' candidates that fits,
   the urgent ones before all others.
3. If no op goes into a bundle, a store goes, or a single fetch, or a new clause is begun.
4. If nothing goes at all, the block gets one register more.

What holds at each step: an op is placed once all that it waits for is (``blocks``); an ALU clause
doesn't end while words of the LDS are in its queue, nor behind the test that ends the block; no
more than the budget's registers are alive, but for a fetch that would otherwise never go.

None of the three orders is the best for every kernel, so ``search`` tries them all, with several
budgets. A sum carried by a loop goes where the first bundle that reads it wants it.

The laws: code keeps the rules of the hardware (tools/legality.py), gives the bits that IL gives,
and stays as near to its bound of bundles as it was (tests/test_compiler.py).
"""

from collections import Counter
from collections.abc import Callable

from cypresskit.compiler.block_problem import Problem
from cypresskit.compiler.blocks import (
    SPARE_BUNDLES,
    WORST,
    BlockScheduler,
    ChannelChoice,
    NoBundle,
)
from cypresskit.compiler.ir import Op
from cypresskit.compiler.isa import CHANNELS

WINDOW = 64  # ready ops that are looked at for a bundle

#: Sorts the numbers of a scheduler's ready ops, of which some are urgent.
Order = Callable[["ListScheduler", list[int], set[int]], list[int]]


class ListScheduler(BlockScheduler):
    """One attempt at a block with a ``budget`` of registers, in an ``order``.

    ``fetches``: those still open, in the order of the IL. ``doubles``: all double ops. They fill
    x y z w and leave t, so while some are open, single-slot ops wait for a t beside one.
    """

    def __init__(self, problem: Problem, budget: int, order: Order):
        super().__init__(problem, budget)
        self.order = order
        self.fetches = [n for n, op in enumerate(self.ops) if op.fetches]
        self.doubles = {n for n, op in enumerate(self.ops) if op.row.width > 1}

        highest: Counter = Counter()  # the greatest height among the readers of a word
        for op, height in zip(self.ops, problem.height):
            for src in op.srcs:
                highest[src.value] = max(height, highest[src.value])
        self.places = {word: [height] for word, height in highest.items()}

    def advance(self) -> None:
        """Schedule the next fetch clause, bundle or stores, or allow one register more if nothing
        goes.
        """
        batch, urgent = self.next_fetches()
        # LDS reads to be popped, or a test: the clause can't end here
        unfinished = bool(self.queue) or self.tested
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
        """Allow one register more. Raises ``NoBundle`` when no number of them would help."""
        self.pressure.budget += 1
        if self.pressure.budget > self.problem.ample_budget:
            ready = [self.ops[n] for n in self.ready if n in self.bundled]
            doubles = [op for op in ready if op.name.endswith("_64")]
            stuck = doubles[0] if doubles else self.ops[min(self.open)]
            raise NoBundle(self.problem.block, stuck)

    # Fetches

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in the order of the IL, as many as registers allow; and the
        ALU ops that they wait for. If registers allow none and no ALU op is ready either, the first
        fetch that waits for nothing.
        """
        self.fetches = [n for n in self.fetches if n in self.open]
        batch, urgent = self.affordable_fetches()
        stuck = self.bundled.isdisjoint(self.ready)
        if not batch and stuck:
            batch = [n for n in self.fetches if not self.waits[n]][:1]
        return batch, urgent

    def affordable_fetches(self) -> tuple[list[int], set[int]]:
        """The first fetches whose words the budget has room for, and that fit in a clause; and the
        ALU ops that they wait for. A fetch behind another fetch, or a store, is passed over.
        """
        batch: list[int] = []
        urgent: set[int] = set()
        # by channel
        free_registers = [self.pressure.limit - count for count in self.pressure.count]
        free_words = self.pressure.free_words
        for n in self.fetches:
            if self.held[n]:
                continue
            words = self.new_words(self.ops[n])
            free_words -= words
            free_channels = sum(free > 0 for free in free_registers)
            if free_words < 0 or free_channels < words:
                break
            if len(batch) == self.problem.limits.tex_clause_fetches:
                break
            if words == CHANNELS:  # fewer words find room in some channels, which isn't known yet
                free_registers = [free - 1 for free in free_registers]
            batch.append(n)
            urgent |= self.ancestors(n, urgent)
        return batch, urgent

    def new_words(self, op: Op) -> int:
        """How many of an op's results are read, and aren't alive yet."""
        used = [r for r in op.results if self.problem.uses[r]]
        return sum(r.vreg not in self.pressure.live for r in used)

    def cost(self, choice: ChannelChoice) -> tuple:
        """Fewer clashes of banks, then channels that are less full."""
        crowd = 0
        if len(choice) < CHANNELS:  # else they take all channels, whatever their order
            crowd = sum(self.pressure.count[c] for _, c in choice)
        return self.clashes(choice), crowd

    # Bundles

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
        room_to_drain = WORST * (len(self.queue) + SPARE_BUNDLES)
        if self.queue and self.room < room_to_drain:
            # the clause must empty the queue before it ends
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"]
        self.t_first = not self.doubles.isdisjoint(self.open)
        candidates = self.order(self, ready, urgent)[:WINDOW]
        return next((n for n in candidates if self.place(self.ops[n])), None)


# Orders: which of the ready ops is tried first. Those that a fetch clause waits for (``urgent``) go
# before all others, and doubles before single-slot ops, which find room beside them.


def longest_chain(scheduler: ListScheduler, ready: list[int], urgent: set[int]) -> list[int]:
    """The ops with the longest chain of dependents first, then in the order of the IL."""
    height = scheduler.problem.height
    return sorted(ready, key=lambda n: (n not in urgent, n not in scheduler.doubles, -height[n], n))


def fewest_ports(scheduler: ListScheduler, ready: list[int], urgent: set[int]) -> list[int]:
    """For a bundle that is begun: among ops whose chains are at most one shorter than the first
    one's, those first that need the fewest new read ports.
    """
    ready = longest_chain(scheduler, ready, urgent)[:WINDOW]
    if not (ready and scheduler.draft.slots):
        return ready
    height = scheduler.problem.height
    tallest = height[ready[0]]

    def key(n: int) -> tuple:
        short = tallest - height[n] > 1
        ports = scheduler.new_reads(scheduler.ops[n])
        return n not in urgent, n not in scheduler.doubles, short, ports

    return sorted(ready, key=key)


def program_order(scheduler: ListScheduler, ready: list[int], urgent: set[int]) -> list[int]:
    """The order of the IL, in which results are soon used: few registers."""
    return sorted(ready, key=lambda n: (n not in urgent, n not in scheduler.doubles, n))


#: The orders that ``search`` tries.
ORDERS: tuple[Order, ...] = (longest_chain, fewest_ports, program_order)
