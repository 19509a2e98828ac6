"""Scheduling: ops into clauses and bundles, block by block, the innermost loops first.

A block becomes a list of ``Step``s: fetch clauses, bundles of ALU clauses, stores. Fetches go as early as their
addresses and the register budget allow; ALU ops follow in list order, the longest chain of dependents first, then the
source order, and among equals the op that needs the fewest new read ports. A bundle takes an op only if its slot, the
read ports, the constants and the clause's room allow it.

The scheduler also decides the channel of every web it meets, since a slot writes its own channel: a sum carried by a loop
goes where the first bundle that reads it wants it. Per channel it counts who is alive and stays within a budget of
registers. A loop's budget starts from what the source order needs and grows only while the bundles are more than 5 % above their
lower bound; code outside loops uses what its loops need anyway.
"""

from collections import Counter
from dataclasses import dataclass, field
from itertools import permutations

from cypresskit.compiler.ir import Block, Function, Op, Value, liveness
from cypresskit.compiler.isa import INLINE, T, slot_operands
from cypresskit.compiler.lower import refuse
from cypresskit.compiler.ports import Ports, Unit, unit
from cypresskit.compiler.webs import Web, choices, decide, possible
from cypresskit.devices import Device

WINDOW = 64  # ready ops that are looked at for a bundle
TRIES = ((0, WINDOW), (0, 40), (0, 100), (1, WINDOW), (2, WINDOW), (4, WINDOW))  # registers more, window
SIGN = 0x80000000
FETCHES = ("SAMPLE", "LD", "MEM_READ")
STORES = ("MEM_WRITE", "EXPORT")
WORST = 7  # slots of the largest bundle: five ops, two literal pairs
MARGIN = 10  # outside loops one register in so many is left free, so that whole registers are found for fetches
SLACK = 2  # registers that short-lived results may take beyond the budget: clause temporaries will hold them
GOAL = 1.05


@dataclass(eq=False)
class Placed:
    """An op's part in one slot. ``operands`` index ``op.srcs``; ``unit`` numbers its swizzle in ``Draft.ports``."""

    op: Op
    slot: int
    place: int
    operands: tuple[int, ...]
    unit: int
    channel: int | None = None  # where a result goes that t computes


@dataclass(eq=False)
class Draft:
    """A bundle being built, and after that as it stands. ``forwards``: values that PV and PS hold while it runs."""

    forwards: dict[Value, tuple[str, int]]
    slots: dict[int, Placed] = field(default_factory=dict)
    ports: Ports = field(default_factory=Ports)
    literals: dict[int, int] = field(default_factory=dict)
    pairs: set = field(default_factory=set)
    pop: Op | None = None

    @property
    def size(self) -> int:
        """64-bit slots of the clause that it takes."""
        return len(self.slots) + (len(self.literals) + 1) // 2


@dataclass(eq=False)
class Step:
    """``kind`` "ALU" with ``bundles``, "TEX" with ``ops``, or "STORE" with one op."""

    kind: str
    bundles: list[Draft] = field(default_factory=list)
    ops: list[Op] = field(default_factory=list)
    windows: set = field(default_factory=set)
    slots: int = 0


def schedule(function: Function, device: Device) -> tuple[dict[Block, list[Step]], dict[str, int]]:
    """Clauses and bundles for every block; decides the webs' channels. Also the registers that the innermost loop needs in
    the order of the IL, as ``{"registers": n}``."""
    blocks = list(function.blocks)
    live_in, live_out = liveness(blocks)
    done: dict[Block, list[Step]] = {}
    crowds: dict[Web, list[_Crowd]] = {}
    floor, need = 1, 0
    deepest = max(b.depth for b in blocks)
    for block in sorted(blocks, key=lambda b: -b.depth):
        entering = live_in[block] | {phi.web for phi in block.phis}
        problem = _Problem(function, block, entering, live_out[block], device, crowds)
        if block.depth == 0:
            run = _Run(problem, max(floor - floor // MARGIN, problem.source_need))
            run.go()
        else:
            run = _best(problem, floor)
        done[block] = run.steps
        run.commit()
        floor = max(floor, run.budget)
        if block.depth == deepest:
            need = max(need, problem.source_need)
        crowd = _Crowd(run.peak, run.budget)
        for web in entering & live_out[block]:
            if web.channel is None:
                crowds.setdefault(web, []).append(crowd)
    return done, {"registers": need}


@dataclass(eq=False)
class _Crowd:
    """A scheduled block through which webs live whose channel is still open: how full its channels are."""

    peak: list[int]
    budget: int


def _best(problem: "_Problem", floor: int) -> "_Run":
    """The smallest budget whose bundles come within 5 % of the bound, or the best compromise."""
    start = max(floor, problem.source_need)
    best, cost = None, 0.0
    for extra, window in TRIES:
        run = _Run(problem, start + extra, window)
        run.go()
        new = run.bundles * (1 + 0.01 * run.budget)
        if best is None or new < cost:
            best, cost = run, new
        if best.bundles <= max(GOAL * problem.bound, problem.bound + 1) or problem.hopeless(best):
            break
    assert best is not None
    return best


class _Problem:
    """What is known of a block before scheduling: dependences, heights, uses."""

    def __init__(self, function: Function, block: Block, live_in: set, live_out: set, device: Device, crowds: dict):
        self.function, self.block, self.device, self.crowds = function, block, device, crowds
        self.ops = block.ops
        self.live_in, self.live_out = live_in, live_out
        self.number = {op: n for n, op in enumerate(self.ops)}
        count = len(self.ops)
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(count)]  # (op, 1 if a later bundle, 0 if the same)
        self.waits = [0] * count
        self.defined = {r for op in self.ops for r in op.results}
        last = {}
        for op in self.ops:
            for r in op.results:
                last[r.web] = r
        self.leaving = {last[w] for w in live_out if w in last}  # values that live on after the block
        self.uses: Counter = Counter()
        for op in self.ops:
            self.uses.update({self.key(s.value) for s in op.srcs if s.value.located})
        self.uses.update(self.leaving)
        self.uses.update(w for w in live_out if w not in last)
        self.edges()
        self.heights()
        self.first_use: dict[Value, int] = {}
        for n, op in enumerate(self.ops):
            for src in op.srcs:
                self.first_use[src.value] = max(self.first_use.get(src.value, 0), self.height[n])
        for value in self.defined:
            self.first_use.setdefault(value, 0)
        self.source_need = self.need()
        self.bound = self.lower_bound()

    def key(self, value: Value):
        """A value, or the web of one that was there before the block."""
        return value if value in self.defined else value.web

    def edges(self) -> None:
        seen: set[tuple[int, int]] = set()

        def edge(a: int, b: int, later: int) -> None:
            if a != b and (a, b) not in seen:
                seen.add((a, b))
                self.after[a].append((b, later))
                self.waits[b] += 1

        maker: dict[Value, int] = {}
        readers: dict[Web, list[int]] = {}
        writer: dict[Web, int] = {}
        memory_reads: list[int] = []
        memory_write: int | None = None
        lds_reads: list[int] = []
        lds_write: int | None = None
        export: int | None = None
        for n, op in enumerate(self.ops):
            for s in op.srcs:
                if s.value in maker:
                    edge(maker[s.value], n, 1)
            for s in op.srcs:
                if s.value.located:
                    readers.setdefault(s.value.web, []).append(n)
            for r in op.results:
                maker[r] = n
                for m in readers.pop(r.web, []):
                    edge(m, n, 0)
                if r.web in writer:
                    edge(writer[r.web], n, 1)
                writer[r.web] = n
            name = op.name
            if name == "LDS_POP":
                edge(self.number[op.info["read"]], n, 1)
            if name in ("MEM_READ", "MEM_WRITE", "GROUP_BARRIER"):
                if memory_write is not None:
                    edge(memory_write, n, 1)
                if name == "MEM_READ":
                    memory_reads.append(n)
                else:
                    for m in memory_reads:
                        edge(m, n, 1)
                    memory_reads, memory_write = [], n
            if name.startswith("LDS_") and name != "LDS_POP" or name == "GROUP_BARRIER":
                if lds_write is not None:
                    edge(lds_write, n, 1)
                if "READ" in name:
                    lds_reads.append(n)
                else:
                    for m in lds_reads:
                        edge(m, n, 1)
                    lds_reads, lds_write = [], n
            if name == "EXPORT":
                if export is not None:
                    edge(export, n, 1)
                export = n
            if op.row is not None and op.row.predicate:
                for m, other in enumerate(self.ops):
                    if m != n and (other.row is None or other.row.kind in ("lds", "sync")):
                        edge(m, n, 1)

    def heights(self) -> None:
        self.height = [1] * len(self.ops)
        for n in range(len(self.ops) - 1, -1, -1):
            self.height[n] = 1 + max((self.height[m] for m, later in self.after[n] if later), default=0)

    def need(self) -> int:
        """Registers that the source order keeps alive at once."""
        live = set(self.live_in)
        left = Counter(self.uses)
        most = len(live)
        for op in self.ops:
            for key in {self.key(s.value) for s in op.srcs if s.value.located}:
                left[key] -= 1
                web = key if isinstance(key, Web) else key.web
                if not left[key]:
                    live.discard(web)
            for r in op.results:
                if self.uses[r]:
                    live.add(r.web)
            most = max(most, len(live))
        return -(-most // 4)

    def lower_bound(self) -> int:
        """Bundles that no schedule can go below."""
        width = {"any": 1, "vector": 1, "t": 1, "x": 1, "pair": 2, "quad": 4}
        slots: Counter = Counter()
        for op in self.ops:
            if op.row is not None:
                slots[op.row.slots] += width[op.row.slots]
            elif op.name == "LDS_POP":
                slots["any"] += len(op.results)
        vector = slots["vector"] + slots["pair"] + slots["quad"]
        total = sum(slots.values())
        return max(-(-total // 5), -(-vector // 4), slots["t"], slots["x"], 0)

    def hopeless(self, run: "_Run") -> bool:
        """Whether the chain of dependences, not the registers, sets the length."""
        alu = [self.height[n] for n, op in enumerate(self.ops) if op.row is not None]
        return run.bundles <= max(alu, default=0) + 1


class _Run:
    """One attempt at a block with a budget of registers."""

    def __init__(self, problem: _Problem, budget: int, window: int = WINDOW):
        self.problem, self.budget, self.window = problem, budget, window
        self.ops, self.key = problem.ops, problem.key
        self.steps: list[Step] = []
        self.waits = list(problem.waits)
        self.left = Counter(problem.uses)
        self.open = set(range(len(self.ops)))
        self.ready: list[int] = [n for n in range(len(self.ops)) if not self.waits[n]]
        self.live: set[Web] = set(problem.live_in)
        self.saved = {w: w.channel for w in self.touched()}
        self.count = [0, 0, 0, 0]
        for web in self.live:
            if web.channel is not None:
                self.count[web.channel] += 1
        self.peak = list(self.count)
        self.clause_of: dict[Value, int] = {}
        self.forwards: dict[Value, tuple[str, int]] = {}
        self.queue: list[Op] = []
        self.tested = False  # whether the test that ends the block is placed
        self.bundles = 0
        self.order = {n: (-problem.height[n], n) for n in self.open}
        self.added: Counter = Counter()
        through = problem.live_in & problem.live_out - self.saved.keys()
        self.unseen = sum(w.channel is None for w in through) // 4  # registers for webs that only live through
        self.company: Counter = Counter()  # fetched words by (height of their first reader, channel)

    @property
    def limit(self) -> int:
        """Registers that the webs of decided channels may fill."""
        return self.budget - self.unseen

    def touched(self) -> set[Web]:
        webs = {s.value.web for op in self.ops for s in op.srcs if s.value.located}
        webs |= {r.web for op in self.ops for r in op.results}
        webs |= {w.twin for w in webs if w.twin is not None}
        return webs

    def restore(self) -> None:
        self.decided = {w: w.channel for w in self.saved}
        for web, channel in self.saved.items():
            web.channel = channel

    def commit(self) -> None:
        """Make the channels that this run decided the webs' own."""
        for web, channel in self.decided.items():
            if web.channel is None and channel is not None:
                for crowd in self.problem.crowds.get(web, ()):
                    crowd.peak[channel] += 1
            web.channel = channel

    # The order of clauses

    def go(self) -> list[Step]:
        """Schedule the whole block."""
        try:
            while self.open:
                self.advance()
        finally:
            self.restore()
        self.steps = [step for step in self.steps if step.bundles or step.ops]
        return self.steps

    def advance(self) -> None:
        batch, urgent = self.next_fetches()
        if batch and not urgent and not self.queue:
            self.fetch(batch)
            return
        if self.bundle(urgent):
            return
        if self.queue or self.tested:  # what must be done in this clause is, whatever it costs in registers
            self.raise_budget()
            return
        if self.store():
            return
        if batch and all(not self.waits[n] for n in batch[:1]):
            self.fetch(batch[:1])
        elif self.steps and self.steps[-1].kind == "ALU" and self.steps[-1].slots:
            self.steps.append(Step("ALU"))  # a fresh clause, with its own constants
            self.forwards = {}
        else:
            self.raise_budget()

    def raise_budget(self) -> None:
        """Nothing goes: allow one register more."""
        self.budget += 1
        if self.budget > 4 * self.problem.device.gpr_limit:
            op = self.ops[min(self.open)]
            raise refuse(self.problem.function.program, op.at, f"no bundle can hold {op.name}")  # type: ignore

    def next_fetches(self) -> tuple[list[int], set[int]]:
        """Fetches for the next clause, in source order, as many as registers allow; and the ALU ops they wait for."""
        waiting = [n for n in sorted(self.open) if self.ops[n].name in FETCHES]
        if not waiting:
            return [], set()
        room = [self.limit - c for c in self.count]
        total = 4 * self.budget - len(self.live)
        batch: list[int] = []
        urgent: set[int] = set()
        for n in waiting:
            needs = self.ancestors(n)
            if needs is None:
                continue
            webs = [r.web for r in self.ops[n].results if self.problem.uses[r] and r.web not in self.live]
            total -= len(webs)
            whole = len(webs) if len(webs) < 4 else 4
            fits = sum(r > 0 for r in room) >= whole and total >= 0
            if not fits or len(batch) == self.problem.device.tex_clause_fetches:
                break
            if len(webs) == 4:
                room = [r - 1 for r in room]
            batch.append(n)
            urgent |= needs
        if not batch and not any(self.alu(n) for n in self.ready):
            first = next((n for n in waiting if self.ancestors(n) is not None), None)
            return ([first] if first is not None and not self.ancestors(first) else []), set()
        return batch, urgent

    def ancestors(self, n: int) -> set[int] | None:
        """Unscheduled ALU ops that ``n`` waits for, or None if it waits for a fetch or a store."""
        if not self.waits[n]:
            return set()
        if not hasattr(self, "before"):
            self.before: list[list[int]] = [[] for _ in self.ops]
            for m, edges in enumerate(self.problem.after):
                for k, _ in edges:
                    self.before[k].append(m)
        found: set[int] = set()
        stack = [n]
        while stack:
            for m in self.before[stack.pop()]:
                if m in self.open and m not in found:
                    if self.ops[m].name in FETCHES or self.ops[m].name in STORES:
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def alu(self, n: int) -> bool:
        return self.ops[n].name not in FETCHES and self.ops[n].name not in STORES

    def fetch(self, batch: list[int]) -> None:
        step = Step("TEX")
        self.steps.append(step)
        self.forwards = {}
        for n in batch:
            if self.waits[n]:
                break
            op = self.ops[n]
            for s in op.srcs:
                if s.value.located:
                    self.settle(s.value.web)
            self.die(op)
            wanted = [r for r in op.results if self.problem.uses[r]]
            self.spread(op, wanted)
            for r in wanted:
                self.born(r)
            step.ops.append(op)
            self.finish([n])

    def spread(self, op: Op, wanted: list[Value]) -> None:
        """Channels for a fetch's results: what is read at the same time should come from different banks."""
        height = self.problem.first_use
        best, lowest = None, None
        for order in permutations(range(4), len(wanted)):
            wish = {r.web: c for r, c in zip(wanted, order)}
            if any(w.channel is not None and w.channel != c for w, c in wish.items()) or not possible(wish):
                continue
            cost = (
                sum(self.crowding(r.web, c) for r, c in zip(wanted, order)),
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
            op = self.ops[n]
            for s in op.srcs:
                if s.value.located:
                    self.settle(s.value.web)
            self.steps.append(Step("STORE", ops=[op]))
            self.die(op)
            self.finish([n])
        self.forwards = {}
        return bool(stores)

    # Lifetimes

    def settle(self, web: Web, channel: int | None = None) -> None:
        """Decide a web's channel, the least crowded one if none is given."""
        if web.channel is not None:
            return
        if channel is None:
            channel = min(choices(web), key=lambda c: (self.crowding(web, c), self.peak[c], c))
        before = web.twin is not None and web.twin.channel is None
        decide(web, channel)
        for w in (web, web.twin) if before else (web,):
            self.note(w, 1)
            if w in self.live:
                self.count[w.channel] += 1
                self.peak[w.channel] = max(self.peak[w.channel] + (w in self.problem.live_in), self.count[w.channel])

    def crowding(self, web: Web, channel: int) -> int:
        """How much fuller than others the channel is in the blocks already scheduled that the web lives through."""
        crowds = self.problem.crowds.get(web)
        if not crowds:
            return 0
        return max(crowd.peak[channel] + self.added[id(crowd), channel] - min(crowd.peak) for crowd in crowds)

    def note(self, web: Web, change: int) -> None:
        """A web's channel was decided, or is taken back."""
        for crowd in self.problem.crowds.get(web, ()):
            self.added[id(crowd), web.channel] += change

    def die(self, op: Op) -> list[Web]:
        """Count an op's reads; the webs whose last one it was die."""
        dead = []
        for key in {self.key(s.value) for s in op.srcs if s.value.located}:
            self.left[key] -= 1
            if not self.left[key]:
                web = key if isinstance(key, Web) else key.web
                if web in self.live:
                    self.live.discard(web)
                    if web.channel is not None:
                        self.count[web.channel] -= 1
                    dead.append(web)
        return dead

    def born(self, value: Value) -> None:
        web = value.web
        if web not in self.live and self.problem.uses[value]:
            self.live.add(web)
            if web.channel is not None:
                self.count[web.channel] += 1
                self.peak[web.channel] = max(self.peak[web.channel], self.count[web.channel])

    def finish(self, numbers: list[int]) -> None:
        """Ops are done: what waited for them may go."""
        for n in numbers:
            self.open.discard(n)
            if n in self.ready:
                self.ready.remove(n)
            for m, _ in self.problem.after[n]:
                self.waits[m] -= 1
                if not self.waits[m]:
                    self.ready.append(m)

    # Bundles

    def bundle(self, urgent: set[int]) -> bool:
        """Build one bundle; False if no op would go in."""
        if not any(self.alu(n) for n in self.ready):
            return False
        step = self.steps[-1] if self.steps and self.steps[-1].kind == "ALU" else None
        limit = self.problem.device.alu_clause_slots
        if step is None or step.slots + WORST > limit and not self.queue:
            step = Step("ALU")
            self.forwards = {}
            fresh = True
        else:
            fresh = False
        self.step, self.room = step, limit - step.slots
        draft = Draft(self.forwards)
        chosen: list[int] = []
        released: list[int] = []
        while True:
            n = self.pick(draft, urgent)
            if n is None:
                break
            chosen.append(n)
            self.open.discard(n)
            self.ready.remove(n)
            for m, later in self.problem.after[n]:
                if later:
                    released.append(m)
                else:
                    self.waits[m] -= 1
                    if not self.waits[m]:
                        self.ready.append(m)
            if len(draft.slots) == 5:
                break
        if not chosen:
            return False
        if fresh:
            self.steps.append(step)
        for m in released:
            self.waits[m] -= 1
            if not self.waits[m]:
                self.ready.append(m)
        step.bundles.append(draft)
        step.slots += draft.size
        self.bundles += 1
        self.forwards = {}
        for placed in draft.slots.values():
            for value in self.results_of(placed):
                self.forwards[value] = ("ps", 0) if placed.slot == T else ("pv", placed.slot)
        return True

    @staticmethod
    def results_of(placed: Placed) -> list[Value]:
        op = placed.op
        if op.name == "LDS_POP":
            return [op.results[placed.place]]
        if placed.place < len(op.results):
            if op.row.slots == "quad":
                return [op.results[placed.slot % 2]] if placed.place // 2 == op.results[0].web.channel // 2 else []
            return [op.results[placed.place]]
        if op.row.slots == "quad" and placed.place // 2 == op.results[0].web.channel // 2:
            return [op.results[placed.slot % 2]]
        return []

    def pick(self, draft: Draft, urgent: set[int]) -> int | None:
        """The next op for the bundle, placed in it."""
        ready = [n for n in self.ready if self.alu(n)]
        if self.room < WORST * (len(self.queue) + 2):  # what is left of the clause is for the LDS queue
            ready = [n for n in ready if self.ops[n].name == "LDS_POP"] if self.queue else ready
        crowded = len(self.live) > 4 * self.budget - 4

        def rank(n: int):
            first = 0 if n in urgent else 1
            if crowded:
                return first, self.growth(self.ops[n]), self.order[n]
            return first, self.order[n]

        ready.sort(key=rank)
        ready = ready[: self.window]
        if draft.slots and not crowded:
            base = self.problem.height
            top = base[ready[0]] if ready else 0
            ready.sort(key=lambda n: (n not in urgent, top - base[n] > 1, self.new_ports(draft, self.ops[n]), self.order[n]))
        for n in ready:
            if self.place(draft, self.ops[n]):
                return n
        return None

    def growth(self, op: Op) -> int:
        """Registers' words that an op adds, less those it frees."""
        keys = {self.key(s.value) for s in op.srcs if s.value.located}
        frees = sum(self.left[k] == 1 for k in keys)
        return sum(1 for r in op.results if self.problem.uses[r]) - frees

    def new_ports(self, draft: Draft, op: Op) -> int:
        banks, forwards = draft.ports.banks, draft.forwards
        new = 0
        for s in op.srcs:
            value = s.value
            if value.located and value not in forwards:
                channel = value.web.channel
                if channel is None or value.web not in banks[channel]:
                    new += 1
        return new

    def place(self, draft: Draft, op: Op) -> bool:
        """Try to put an op into the bundle."""
        if any(p.op.name == "GROUP_BARRIER" for p in draft.slots.values()):
            return False
        if op.name == "LDS_POP":
            return self.place_pop(draft, op)
        kind = op.row.slots
        free = [s for s in range(5) if s not in draft.slots]
        if op.row.predicate and not self.may_test(op):
            return False
        if op.name == "GROUP_BARRIER" and draft.slots:
            return False
        if op.row.kind == "lds" and "READ" in op.name:
            words = 2 * (len(self.queue) + 1)
            if self.room < 48 + 2 * words or len(self.live) + words > 4 * self.budget:
                return False
        web = op.results[0].web if op.results else None
        for slots, channel in self.ways(kind, free, web):
            if self.try_slots(draft, op, slots, channel):
                if op.row.kind == "lds" and "READ" in op.name:
                    self.queue.append(op)
                return True
        return False

    def may_test(self, op: Op) -> bool:
        """A test closes the clause that it stands in: all that is left must fit in."""
        left = [self.ops[n] for n in self.open]
        words = sum(2 if o.row is None or o.row.slots in ("any", "t", "vector", "x") else 8 for o in left)
        places = [s.value.place for o in left for s in o.srcs if s.value.kind == "constant"]
        windows = self.step.windows | {(place[0], place[1] // 32) for place in places}
        return words + 8 < self.room and len(windows) <= 2

    def ways(self, kind: str, free: list[int], web: Web | None):
        """Slots, and the channel of the result, in the order in which they are to be tried."""
        if kind == "quad" or kind == "pair":
            starts = (0, 2)
            if web is not None:
                options = choices(web)
                starts = tuple(
                    sorted(
                        (c - c % 2 for c in options), key=lambda c: (self.crowding(web, c), self.peak[c], self.count[c], c)
                    )
                )
            for c in dict.fromkeys(starts):
                if kind == "quad":
                    if all(s in free for s in range(4)):
                        yield (0, 1, 2, 3), c
                elif c in free and c + 1 in free:
                    yield (c, c + 1), c
            return
        if kind == "x":
            if 0 in free:
                yield (0,), None
            return
        options = [0, 1, 2, 3] if web is None else choices(web)
        if web is not None and web.channel is None:
            entered = web in self.problem.live_in
            options.sort(
                key=lambda c: (self.crowding(web, c), self.peak[c] if entered else self.count[c], self.count[c], c)
            )
        if kind != "t":
            for c in options:
                if c in free:
                    yield (c,), c
        if kind != "vector" and T in free:
            for c in options:
                yield (T,), c

    def try_slots(self, draft: Draft, op: Op, slots: tuple[int, ...], channel: int | None) -> bool:
        """Put an op into given slots if the constants, the registers and the ports allow it."""
        literals = dict(draft.literals)
        pairs = set(draft.pairs)
        constants = 0
        for n, s in enumerate(op.srcs):
            if s.value.kind == "const":
                constants += 1
                bits = literal(op, n, s.value.bits)
                if bits is not None:
                    literals.setdefault(bits, len(literals))
            elif s.value.kind == "constant":
                constants += 1
                buffer, element, c = s.value.place
                pairs.add((buffer, element, c // 2))
        windows = self.step.windows | {(b, e // 32) for b, e, _ in pairs}
        if len(literals) > 4 or len(pairs) > 2 or len(windows) > 2:
            return False
        if slots[0] == T and constants > 2:
            return False
        if len(draft.slots) + len(slots) + (len(literals) + 1) // 2 > self.room:
            return False
        saved = [(w, w.channel) for w in self.webs_of(op)]
        state = list(self.count), list(self.peak)
        if not self.take_registers(op, slots, channel):
            self.undo(saved, state)
            return False
        for s in op.srcs:
            if s.value.located and s.value not in draft.forwards:
                self.settle(s.value.web)
        units, placed = self.units(draft, op, slots, channel, constants)
        if not draft.ports.fit(units):
            self.undo(saved, state)
            return False
        for p in placed:
            draft.slots[p.slot] = p
        self.tested = self.tested or op.row.predicate
        draft.literals, draft.pairs = literals, pairs
        self.step.windows |= windows
        self.die(op)
        for r in op.results:
            self.born(r)
        return True

    @staticmethod
    def webs_of(op: Op) -> list[Web]:
        webs = [s.value.web for s in op.srcs if s.value.located] + [r.web for r in op.results]
        return webs + [w.twin for w in webs if w.twin is not None]

    def undo(self, saved: list, state: tuple) -> None:
        for web, channel in saved:
            if web.channel is not None and channel is None:
                self.note(web, -1)
            web.channel = channel
        self.count, self.peak = state

    def take_registers(self, op: Op, slots: tuple[int, ...], channel: int | None) -> bool:
        """Decide the result's channel; False if that channel's registers are used up."""
        if not op.results:
            return True
        dying: Counter = Counter()
        for key in {self.key(s.value) for s in op.srcs if s.value.located}:
            web = key if isinstance(key, Web) else key.web
            if self.left[key] == 1 and web in self.live and web.channel is not None:
                dying[web.channel] += 1
        for n, r in enumerate(op.results):
            web = r.web
            c = web.channel if web.channel is not None else (channel or 0) + n
            if not self.problem.uses[r]:
                continue
            if web in self.live:
                if web.channel is None and self.peak[c] + 1 > self.limit:
                    return False
                continue
            local = r not in self.problem.leaving and len(web.values) == 1 and web.cohort is None
            if self.count[c] - dying[c] + 1 > self.limit + (SLACK if local else 0):
                return False
        for n, r in enumerate(op.results):
            if r.web.channel is None and channel is not None:
                self.settle(r.web, channel + n)
        return True

    def units(self, draft: Draft, op: Op, slots, channel, constants: int) -> tuple[list[Unit], list[Placed]]:
        """The op's parts, slot by slot, and the reads they need."""
        words = len(op.srcs)
        units: list[Unit] = []
        placed: list[Placed] = []
        start = len(draft.ports.units)
        for place, slot in enumerate(slots):
            operands = slot_operands(op.row, words, place)
            if place and op.row.slots == "quad" and place < 3:
                placed.append(Placed(op, slot, place, operands, start))
                continue
            reads, forwarded = [], []
            for n, k in enumerate(operands):
                value = op.srcs[k].value
                if value.located and value in draft.forwards:
                    forwarded.append(n)
                    reads.append(None)
                else:
                    reads.append((value.web.channel, value.web) if value.located else None)
            units.append(unit(reads, slot == T, constants, tuple(forwarded)))
            placed.append(Placed(op, slot, place, operands, start + len(units) - 1, channel))
        return units, placed

    def place_pop(self, draft: Draft, op: Op) -> bool:
        """MOVs out of the LDS queue, all words of one read in one bundle."""
        if draft.pop is not None or not self.queue or op.info["read"] is not self.queue[0]:
            return False
        free = [s for s in range(5) if s not in draft.slots]
        if len(free) < len(op.results) or len(draft.slots) + len(op.results) + (len(draft.literals) + 1) // 2 > self.room:
            return False
        state = list(self.count), list(self.peak)
        saved = [(r.web, r.web.channel) for r in op.results]
        ways: list[tuple[int, int]] = []
        for r in op.results:
            options = sorted(choices(r.web), key=lambda c: (self.count[c], c))
            slot = next(((c, c) for c in options if c in free), None)
            if slot is None:
                slot = next(((T, c) for c in options if T in free), None)
            if slot is None or (self.count[slot[1]] + 1 > self.limit and r.web not in self.live and len(self.queue) < 2):
                self.undo(saved, state)
                return False
            free.remove(slot[0])
            ways.append(slot)
            self.settle(r.web, slot[1])
        for n, (slot, channel) in enumerate(ways):
            draft.slots[slot] = Placed(op, slot, n, (), -1, channel)
            self.born(op.results[n])
        draft.pop = op
        self.queue.pop(0)
        return True


def literal(op: Op, n: int, bits: int) -> int | None:
    """The literal dword that an operand needs: none for inline constants, with a negate where floats allow it."""
    if bits in INLINE:
        return None
    floats = op.row is not None and (op.row.kind == "float" or op.row.kind == "double" and n % 2)
    return None if floats and bits ^ SIGN in (0x3F800000, 0x3F000000, 0) else bits
