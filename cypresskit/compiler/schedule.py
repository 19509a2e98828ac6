"""Scheduling: ops into clauses and bundles, block by block, the innermost loops first.

A block becomes a list of ``ClausePlan``s: fetch clauses, ALU clauses of bundles, stores. Fetches go as early as their
addresses and the register budget allow; ALU ops follow in list order, the longest chain of dependents first, then the
order of the IL, and among equals the op that needs the fewest new read ports (``packing`` does the placing).

The scheduler also decides the channel of every virtual register it meets, since a slot writes its own channel: a sum
carried by a loop goes where the first bundle that reads it wants it, and what a fetch brings is spread over the
channels, so that words read together come from different banks. What a loop's registers are limited to, and which
limits are tried, says ``search``.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import permutations

from cypresskit.compiler.constraints import possible
from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import BasicBlock, Function, Op, Word
from cypresskit.compiler.packing import WORST, ClausePlan, Draft, Packer

WINDOW = 64  # ready ops that are looked at for a bundle


@dataclass(eq=False)
class Schedule:
    """A function with the clauses and stores of every block. ``source_gprs``: registers that the innermost loop needs
    in the order of the IL."""

    function: Function
    plans: dict[BasicBlock, list[ClausePlan]]
    source_gprs: int


class NoBundle(Exception):
    """No bundle can hold ``op``, whatever registers it is given."""

    def __init__(self, block: BasicBlock, op: Op):
        super().__init__(op.name)
        self.block, self.op = block, op


class ListScheduler:
    """One attempt at a block with a budget of registers: ``plans``, their ``bundles``, and the ``pressure`` that they
    cause, whose decisions ``commit`` makes final."""

    def __init__(self, problem: Problem, budget: int, window: int = WINDOW):
        self.problem, self.window, self.ops = problem, window, problem.ops
        self.packer = Packer(problem, budget)
        self.pressure = self.packer.pressure
        self.plans: list[ClausePlan] = []
        self.waits = list(problem.waits)
        self.before: list[list[int]] = [[] for _ in self.ops]
        for m, edges in enumerate(problem.after):
            for n, _ in edges:
                self.before[n].append(m)
        self.ready = [n for n in range(len(self.ops)) if not self.waits[n]]
        self.order = [(-problem.height[n], n) for n in range(len(self.ops))]
        self.fetches = [n for n, op in enumerate(self.ops) if op.fetches]
        self.forwards: dict[Word, tuple[str, int]] = {}
        # Doubles fill x y z w and leave t: while there are enough of them, single-slot ops wait for a t beside one.
        self.wide = {n for n, op in enumerate(self.ops) if op.slots in ("pair", "quad")}
        self.wide_left = len(self.wide)
        self.read_together: Counter = Counter()  # fetched words by (height of their first reader, channel)
        self.bundles = 0

    @property
    def fetch_clauses(self) -> list[ClausePlan]:
        return [plan for plan in self.plans if plan.kind == "TEX"]

    def run(self) -> "ListScheduler":
        """Schedule the whole block."""
        while self.packer.open:
            self.advance()
        self.pressure.restore()
        self.plans = [plan for plan in self.plans if plan.bundles or plan.ops]
        return self

    def advance(self) -> None:
        """The next fetch clause, bundle or stores, or one register more if nothing goes."""
        batch, urgent = self.next_fetches()
        if batch and not urgent and not self.packer.queue:
            self.fetch(batch)
        elif self.bundle(urgent):
            return
        elif self.packer.queue or self.packer.tested:  # the clause must be finished: exceed the budget
            self.raise_budget()
        elif self.store():
            return
        elif batch and not self.waits[batch[0]]:
            self.fetch(batch[:1])
        elif self.plans and self.plans[-1].kind == "ALU" and self.plans[-1].slots:
            self.plans.append(ClausePlan("ALU"))  # a fresh clause, with its own constants
            self.forwards = {}
        else:
            self.raise_budget()

    def raise_budget(self) -> None:
        self.pressure.budget += 1
        if self.pressure.budget > 4 * self.problem.device.gpr_limit:
            doubles = [self.ops[n] for n in self.ready if self.alu(n) and self.ops[n].name.endswith("_64")]
            raise NoBundle(self.problem.block, (doubles or [self.ops[min(self.packer.open)]])[0])

    def finish(self, n: int) -> None:
        """A fetch or store is done: what waited for it may go."""
        self.packer.open.discard(n)
        self.ready.remove(n)
        for m, _ in self.problem.after[n]:
            self.release(m)

    def release(self, m: int) -> None:
        self.waits[m] -= 1
        if not self.waits[m]:
            self.ready.append(m)

    def alu(self, n: int) -> bool:
        return not self.ops[n].fetches and not self.ops[n].stores

    # Fetches and stores

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in the order of the IL, as many as registers allow; and the ALU ops that they
        wait for."""
        self.fetches = waiting = [n for n in self.fetches if n in self.packer.open]
        if not waiting:
            return [], set()
        pressure, live = self.pressure, self.pressure.live
        room = [pressure.limit - c for c in pressure.count]
        total = 4 * pressure.budget - len(live)
        groups = {w.group for w in live if w.group is not None and len(w.group.vregs) > 2}
        loose = sum(w.group not in groups for w in live) - sum(4 - len(c.vregs) for c in groups)
        whole = pressure.budget - len(groups) - -(-loose // 4)  # registers of which all channels are free, at best
        batch: list[int] = []
        urgent: set[int] = set()
        for n in waiting:
            needs = self.ancestors(n)
            if needs is None:
                continue
            words = sum(1 for r in self.ops[n].results if self.problem.uses[r] and r.vreg not in live)
            total -= words
            whole -= words > 2
            fits = sum(r > 0 for r in room) >= words and total >= 0 and whole >= 0
            if not fits or len(batch) == self.problem.device.tex_clause_fetches:
                break
            if words == 4:
                room = [r - 1 for r in room]
            batch.append(n)
            urgent |= needs
        if not batch and not any(self.alu(n) for n in self.ready):
            batch = [n for n in waiting if not self.waits[n]][:1]
        return batch, urgent

    def ancestors(self, n: int) -> set[int] | None:
        """Unscheduled ALU ops that ``n`` waits for, or None if it waits for a fetch or a store."""
        found: set[int] = set()
        stack = [n] if self.waits[n] else []
        while stack:
            for m in self.before[stack.pop()]:
                if m in self.packer.open and m not in found:
                    if not self.alu(m):
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def fetch(self, batch: list[int]) -> None:
        """A fetch clause."""
        plan = ClausePlan("TEX")
        self.plans.append(plan)
        self.forwards = {}
        for n in batch:
            if self.waits[n]:
                break
            op = self.ops[n]
            self.read_registers(op)
            wanted = [r for r in op.results if self.problem.uses[r]]
            self.spread(op, wanted)
            for r in wanted:
                self.pressure.write(r)
            plan.ops.append(op)
            self.finish(n)

    def read_registers(self, op: Op) -> None:
        for word in op.located:
            self.pressure.settle(word.vreg)
        self.pressure.read(op)

    def spread(self, op: Op, wanted: list[Word]) -> None:
        """Channels for a fetch's results: what is read at the same time should come from different banks."""
        height, pressure = self.problem.first_use, self.pressure
        best, lowest = None, None
        for order in permutations(range(4), len(wanted)):
            wish = {r.vreg: c for r, c in zip(wanted, order)}
            if any(w.channel not in (None, c) for w, c in wish.items()) or not possible(wish):
                continue
            cost = (
                sum(pressure.excess(w, c) for w, c in wish.items()),
                sum(self.read_together[height[r], c] for r, c in zip(wanted, order)),
                sum(pressure.count[c] for c in order) if len(wanted) < 4 else 0,
                sum(op.results.index(r) != c for r, c in zip(wanted, order)),
            )
            if lowest is None or cost < lowest:
                best, lowest = order, cost
        for r, c in zip(wanted, best or ()):
            pressure.settle(r.vreg, c)
            self.read_together[height[r], c] += 1

    def store(self) -> bool:
        """Do the stores that are ready; whether there were any."""
        stores = [n for n in sorted(self.ready) if self.ops[n].stores]
        for n in stores:
            self.read_registers(self.ops[n])
            self.plans.append(ClausePlan("STORE", ops=[self.ops[n]]))
            self.finish(n)
        self.forwards = {}
        return bool(stores)

    # Bundles

    def bundle(self, urgent: set[int]) -> bool:
        """Build one bundle; False if no op would go in."""
        if not any(self.alu(n) for n in self.ready):
            return False
        packer, limit = self.packer, self.problem.device.alu_clause_slots
        goes_on = bool(self.plans) and self.plans[-1].kind == "ALU"
        if not goes_on or (self.plans[-1].slots + WORST > limit and not (packer.queue or packer.tested)):
            packer.clause, self.forwards, goes_on = ClausePlan("ALU"), {}, False
        else:
            packer.clause = self.plans[-1]
        packer.room = limit - packer.clause.slots
        draft = Draft(self.forwards)
        later: list[int] = []
        while len(draft.slots) < 5:
            n = self.pick(draft, urgent)
            if n is None:
                break
            packer.open.discard(n)
            self.wide_left -= n in self.wide
            self.ready.remove(n)
            for m, bundles in self.problem.after[n]:
                if bundles:
                    later.append(m)
                else:
                    self.release(m)
        if not draft.slots:
            return False
        for m in later:
            self.release(m)
        if not goes_on:
            self.plans.append(packer.clause)
        packer.clause.bundles.append(draft)
        packer.clause.slots += draft.size
        self.bundles += 1
        self.forwards = draft.results
        return True

    def pick(self, draft: Draft, urgent: set[int]) -> int | None:
        """The next op for the bundle, placed in it."""
        packer, order, height = self.packer, self.order, self.problem.height
        ready = [n for n in self.ready if self.alu(n)]
        if packer.queue and packer.room < WORST * (len(packer.queue) + 2):  # the clause must empty the queue
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"]
        packer.t_first = 2 * self.wide_left >= len(packer.open)
        wide = self.wide if packer.t_first else set()
        if len(self.pressure.live) > 4 * self.pressure.budget - 4:
            growth = {n: self.pressure.growth(self.ops[n]) for n in ready}
            ready.sort(key=lambda n: (n not in urgent, growth[n], n not in wide, order[n]))
        else:
            ready.sort(key=lambda n: (n not in urgent, n not in wide, order[n]))
            if draft.slots and ready:
                top = height[ready[0]]
                ready = ready[: self.window]
                reads = {n: packer.new_reads(draft, self.ops[n]) for n in ready}
                ready.sort(key=lambda n: (n not in urgent, n not in wide, top - height[n] > 1, reads[n], order[n]))
        return next((n for n in ready[: self.window] if packer.place(draft, self.ops[n])), None)
