"""Scheduling: ops into clauses and bundles, block by block, the innermost loops first.

A block becomes a list of ``Step``s: fetch clauses, ALU clauses of bundles, stores. Fetches go as early as their
addresses and the register budget allow; ALU ops follow in list order, the longest chain of dependents first, then the
order of the IL, and among equals the op that needs the fewest new read ports (``bundles`` does the placing).

The scheduler also decides the channel of every web it meets, since a slot writes its own channel: a sum carried by a
loop goes where the first bundle that reads it wants it, and what a fetch brings is spread over the channels, so that
words read together come from different banks. A loop's budget of registers starts from what the order of the IL needs
and grows only while the bundles are more than 5 % above their lower bound; code outside loops lives on what its loops
need.
"""

from collections import Counter
from itertools import permutations

from cypresskit.compiler.bundles import WORST, Crowd, Draft, Packing, Step
from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import FETCHES, STORES, Block, Function, Op, Value, liveness, refuse
from cypresskit.compiler.isa import T
from cypresskit.compiler.ties import part
from cypresskit.compiler.webs import Web, possible
from cypresskit.devices import Device

WINDOW = 64  # ready ops that are looked at for a bundle
TRIES = ((0, WINDOW), (0, 40), (0, 100), (2, WINDOW))  # registers more, window
GOAL = 1.05
MARGIN = 10  # outside loops one register in so many is left free, so that whole registers are found for fetches


def schedule(function: Function, device: Device) -> tuple[dict[Block, list[Step]], dict[str, int]]:
    """Clauses and bundles for every block; decides the webs' channels. Also the registers that the innermost loop needs
    in the order of the IL, as ``{"registers": n}``.

    A double operation whose words all ended up in one bank fits no bundle: it then gets copies to read, and all begins
    anew. Raises ``CompileError`` if that does not help.
    """
    webs = {r.web: r.web.channel for block in function.blocks for op in block.ops for r in op.results}
    webs |= {phi.web: phi.web.channel for block in function.blocks for phi in block.phis}
    parted: set[Op] = set()
    while True:
        try:
            return _attempt(function, device)
        except _Stuck as stuck:
            op = stuck.op
            if op in parted or op.row is None or op.row.kind != "double":
                what = f"no bundle of this chip can hold {op.name} here"
                raise refuse(function.program, op.at, what) from None
            parted.add(op)
            for web, channel in webs.items():
                web.channel = channel
            part(stuck.block, op)


class _Stuck(Exception):
    """An op that goes into no bundle, and its block."""

    def __init__(self, block: Block, op: Op):
        super().__init__(op.name)
        self.block, self.op = block, op


def _attempt(function: Function, device: Device) -> tuple[dict[Block, list[Step]], dict[str, int]]:
    blocks = list(function.blocks)
    live_in, live_out = liveness(blocks)
    done: dict[Block, list[Step]] = {}
    crowds: dict[Web, list[Crowd]] = {}
    floor, need = 1, 0
    for block in sorted(blocks, key=lambda b: -b.depth):
        entering = live_in[block] | {phi.web for phi in block.phis}
        problem = Problem(function, block, entering, live_out[block], device, crowds)
        if block.depth == 0:
            run = _Run(problem, max(floor - floor // MARGIN, problem.source_need))
            run.go()
        else:
            run = _best(problem, floor)
        done[block] = run.steps
        run.commit()
        floor = max(floor, run.budget)
        if block.depth == max(b.depth for b in blocks):
            need = max(need, problem.source_need)
        crowd = Crowd(run.peak)
        for web in entering & live_out[block]:
            if web.channel is None:
                crowds.setdefault(web, []).append(crowd)
    return done, {"registers": need}


def _best(problem: Problem, floor: int) -> "_Run":
    """The smallest budget whose bundles come within 5 % of the bound, or the best compromise."""
    start = max(floor, problem.source_need)
    best, cost = None, 0.0
    for extra, window in TRIES:
        run = _Run(problem, start + extra, window)
        run.go()
        new = run.bundles * (1 + 0.01 * run.budget)
        if best is None or new < cost:
            best, cost = run, new
        if best.bundles <= max(GOAL * problem.bound, problem.chain() + 1):
            break
    assert best is not None
    return best


class _Run(Packing):
    """One attempt at a block with a budget of registers."""

    def __init__(self, problem: Problem, budget: int, window: int = WINDOW):
        super().__init__(problem, budget)
        self.window = window
        self.steps: list[Step] = []
        self.waits = list(problem.waits)
        self.before: list[list[int]] = [[] for _ in self.ops]
        for m, edges in enumerate(problem.after):
            for n, _ in edges:
                self.before[n].append(m)
        self.ready = [n for n in range(len(self.ops)) if not self.waits[n]]
        self.order = [(-problem.height[n], n) for n in range(len(self.ops))]
        self.fetches = [n for n, op in enumerate(self.ops) if op.name in FETCHES]
        self.forwards: dict[Value, tuple[str, int]] = {}
        # Doubles fill x y z w and leave t: while there are enough of them, single-slot ops wait for a t beside one.
        self.wide = {n for n, op in enumerate(self.ops) if op.row is not None and op.row.slots in ("pair", "quad")}
        self.wide_left = len(self.wide)
        self.company: Counter = Counter()  # fetched words by (height of their first reader, channel)
        self.bundles = 0

    def go(self) -> None:
        """Schedule the whole block."""
        while self.open:
            self.advance()
        self.restore()
        self.steps = [step for step in self.steps if step.bundles or step.ops]

    def advance(self) -> None:
        """The next fetch clause, bundle or stores, or one register more if nothing goes."""
        batch, urgent = self.next_fetches()
        if batch and not urgent and not self.queue:
            self.fetch(batch)
        elif self.bundle(urgent):
            return
        elif self.queue or self.tested:  # what must be done in this clause is, whatever it costs in registers
            self.raise_budget()
        elif self.store():
            return
        elif batch and not self.waits[batch[0]]:
            self.fetch(batch[:1])
        elif self.steps and self.steps[-1].kind == "ALU" and self.steps[-1].slots:
            self.steps.append(Step("ALU"))  # a fresh clause, with its own constants
            self.forwards = {}
        else:
            self.raise_budget()

    def raise_budget(self) -> None:
        self.budget += 1
        if self.budget > 4 * self.problem.device.gpr_limit:
            doubles = [self.ops[n] for n in self.ready if self.alu(n) and self.ops[n].name.endswith("_64")]
            raise _Stuck(self.problem.block, (doubles or [self.ops[min(self.open)]])[0])

    def finish(self, n: int) -> None:
        """A fetch or store is done: what waited for it may go."""
        self.open.discard(n)
        self.ready.remove(n)
        for m, _ in self.problem.after[n]:
            self.release(m)

    def release(self, m: int) -> None:
        self.waits[m] -= 1
        if not self.waits[m]:
            self.ready.append(m)

    # Fetches and stores

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in the order of the IL, as many as registers allow; and the ALU ops that they
        wait for."""
        self.fetches = waiting = [n for n in self.fetches if n in self.open]
        if not waiting:
            return [], set()
        room = [self.limit - c for c in self.count]
        total = 4 * self.budget - len(self.live)
        cohorts = {w.cohort for w in self.live if w.cohort is not None and len(w.cohort.webs) > 2}
        loose = sum(w.cohort not in cohorts for w in self.live) - sum(4 - len(c.webs) for c in cohorts)
        whole = self.budget - len(cohorts) - -(-loose // 4)  # registers of which all channels are free, at best
        batch: list[int] = []
        urgent: set[int] = set()
        for n in waiting:
            needs = self.ancestors(n)
            if needs is None:
                continue
            words = sum(1 for r in self.ops[n].results if self.problem.uses[r] and r.web not in self.live)
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
                if m in self.open and m not in found:
                    if not self.alu(m):
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def alu(self, n: int) -> bool:
        return self.ops[n].name not in FETCHES and self.ops[n].name not in STORES

    def fetch(self, batch: list[int]) -> None:
        """A fetch clause."""
        step = Step("TEX")
        self.steps.append(step)
        self.forwards = {}
        for n in batch:
            if self.waits[n]:
                break
            op = self.ops[n]
            self.read_registers(op)
            wanted = [r for r in op.results if self.problem.uses[r]]
            self.spread(op, wanted)
            for r in wanted:
                self.born(r)
            step.ops.append(op)
            self.finish(n)

    def read_registers(self, op: Op) -> None:
        for s in op.srcs:
            if s.value.located:
                self.settle(s.value.web)
        self.die(op)

    def spread(self, op: Op, wanted: list[Value]) -> None:
        """Channels for a fetch's results: what is read at the same time should come from different banks."""
        height = self.problem.first_use
        best, lowest = None, None
        for order in permutations(range(4), len(wanted)):
            wish = {r.web: c for r, c in zip(wanted, order)}
            if any(w.channel not in (None, c) for w, c in wish.items()) or not possible(wish):
                continue
            cost = (
                sum(self.crowding(w, c) for w, c in wish.items()),
                sum(self.company[height[r], c] for r, c in zip(wanted, order)),
                sum(self.count[c] for c in order) if len(wanted) < 4 else 0,
                sum(op.results.index(r) != c for r, c in zip(wanted, order)),
            )
            if lowest is None or cost < lowest:
                best, lowest = order, cost
        for r, c in zip(wanted, best or ()):
            self.settle(r.web, c)
            self.company[height[r], c] += 1

    def store(self) -> bool:
        """Do the stores that are ready; whether there were any."""
        stores = [n for n in sorted(self.ready) if self.ops[n].name in STORES]
        for n in stores:
            self.read_registers(self.ops[n])
            self.steps.append(Step("STORE", ops=[self.ops[n]]))
            self.finish(n)
        self.forwards = {}
        return bool(stores)

    # Bundles

    def bundle(self, urgent: set[int]) -> bool:
        """Build one bundle; False if no op would go in."""
        if not any(self.alu(n) for n in self.ready):
            return False
        limit = self.problem.device.alu_clause_slots
        goes_on = bool(self.steps) and self.steps[-1].kind == "ALU"
        if not goes_on or (self.steps[-1].slots + WORST > limit and not (self.queue or self.tested)):
            self.step, self.forwards, goes_on = Step("ALU"), {}, False
        else:
            self.step = self.steps[-1]
        self.room = limit - self.step.slots
        draft = Draft(self.forwards)
        later: list[int] = []
        while len(draft.slots) < 5:
            n = self.pick(draft, urgent)
            if n is None:
                break
            self.open.discard(n)
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
            self.steps.append(self.step)
        self.step.bundles.append(draft)
        self.step.slots += draft.size
        self.bundles += 1
        self.forwards = {
            p.result: ("ps", 0) if p.slot == T else ("pv", p.slot) for p in draft.slots.values() if p.result is not None
        }
        return True

    def pick(self, draft: Draft, urgent: set[int]) -> int | None:
        """The next op for the bundle, placed in it."""
        ready = [n for n in self.ready if self.alu(n)]
        if self.queue and self.room < WORST * (len(self.queue) + 2):  # the rest of the clause is for the LDS queue
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"]
        self.keep_vector = 2 * self.wide_left >= len(self.open)
        wide = self.wide if self.keep_vector else set()
        if len(self.live) > 4 * self.budget - 4:
            ready.sort(key=lambda n: (n not in urgent, self.growth(self.ops[n]), n not in wide, self.order[n]))
        else:
            ready.sort(key=lambda n: (n not in urgent, n not in wide, self.order[n]))
            if draft.slots and ready:
                height = self.problem.height
                top = height[ready[0]]
                ready = ready[: self.window]
                ports = {n: self.new_ports(draft, self.ops[n]) for n in ready}
                ready.sort(key=lambda n: (n not in urgent, n not in wide, top - height[n] > 1, ports[n], self.order[n]))
        return next((n for n in ready[: self.window] if self.place(draft, self.ops[n])), None)

    @staticmethod
    def new_ports(draft: Draft, op: Op) -> int:
        """Reads that the bundle does not do yet."""
        banks = draft.ports.banks
        new = 0
        for s in op.srcs:
            web = s.value.web
            if web is not None and s.value not in draft.forwards:
                new += web.channel is None or web not in banks[web.channel]
        return new
