"""Scheduling as AMD's compiler did it, by the habits that its listings show: program order, and no looking ahead.

A block is a wall: nothing is moved across its ends. Its fetches from textures are gathered at its beginning, behind the
arithmetic that their coordinates need; reads of global memory only as far as the first use of what one brings. Bundles
take operations in the order of the program, and the first one that doesn't fit closes the bundle, be it for its slot,
read ports, constants or an operand that the bundle makes. A word lies in the component that the IL gives it, so an
operation runs in that slot, or else in t; only what a fetch brings is spread, so that neighbours in the program read
different banks. Clauses are filled to their last slot. The test that ends a block is alone in its bundle.

Left out: what AMD's compiler did when registers ran out (spilling). Here fewer fetches are gathered then (``search``).
"""

from collections import Counter, defaultdict
from itertools import permutations

from cypresskit.compiler.constraints import possible
from cypresskit.compiler.dependences import Problem
from cypresskit.compiler.ir import Op, Word
from cypresskit.compiler.packing import WORST, ClausePlan, Draft, Packer
from cypresskit.compiler.schedule import NoBundle

NEAR = 8  # operations after a reader, those of two vectors, whose operands should come from other banks


class InOrderScheduler:
    """One block in program order, with at most ``gather`` fetches together: ``plans`` and ``pressure`` as of a
    ``ListScheduler``. ``waits``: unscheduled ops that each op still waits for, those that the bundle being built makes
    ``later`` included."""

    def __init__(self, problem: Problem, gather: int):
        self.problem, self.gather, self.ops = problem, gather, problem.ops
        self.packer = Packer(problem, 4 * problem.device.gpr_limit, named=True)
        self.pressure = self.packer.pressure
        self.plans: list[ClausePlan] = []
        self.waits = list(problem.waits)
        self.before: list[list[int]] = [[] for _ in self.ops]
        for m, edges in enumerate(problem.after):
            for n, _ in edges:
                self.before[n].append(m)
        self.forwards: dict[Word, tuple[str, int]] = {}
        self.draft, self.later, self.draining = Draft({}), list[int](), False
        self.read_near: Counter = Counter()  # fetched words by (place as ``near`` has it, channel)
        self.readers: dict[Word, list[tuple[int, int]]] = defaultdict(list)
        for n, op in enumerate(self.ops):
            for k, src in enumerate(op.srcs):
                self.readers[src.value].append((n, k))

    def run(self) -> "InOrderScheduler":
        """Schedule the whole block."""
        while self.packer.open:
            batch, needs = self.gathered()
            if batch:
                self.arithmetic(sorted(needs))
                self.fetch(batch)
            elif run := self.until_memory():
                self.arithmetic(run)
            else:
                self.memory()
        self.pressure.restore()
        return self

    # What comes next

    def gathered(self) -> tuple[list[int], set[int]]:
        """Fetches from textures that wait for nothing but arithmetic, and that arithmetic."""
        batch: list[int] = []
        needs: set[int] = set()
        for n in sorted(self.packer.open):
            if self.samples(n) and len(batch) < self.gather:
                found = self.ancestors(n)
                if found is not None:
                    batch.append(n)
                    needs |= found
        return batch, needs

    def ancestors(self, n: int) -> set[int] | None:
        """Unscheduled arithmetic that ``n`` waits for, or None if it waits for a fetch or a store."""
        found: set[int] = set()
        stack = [n]
        while stack:
            for m in self.before[stack.pop()]:
                if m in self.packer.open and m not in found:
                    if self.ops[m].fetches or self.ops[m].stores:
                        return None
                    found.add(m)
                    stack.append(m)
        return found

    def samples(self, n: int) -> bool:
        return self.ops[n].fetches and self.ops[n].name != "MEM_READ"

    def until_memory(self) -> list[int]:
        """Arithmetic before the next store, or what needs a read of global memory, in order; of an instruction that
        reads the LDS, the reads before the words that come."""
        run: list[int] = []
        reads = False
        for n in sorted(self.packer.open):
            op = self.ops[n]
            reads |= op.name == "MEM_READ"
            found = None if op.fetches else self.ancestors(n)
            if op.stores or (found is None and reads and not op.fetches):
                break
            if found is not None:
                run.append(n)
        return sorted(run, key=lambda n: (self.ops[n].at, self.ops[n].name == "LDS_POP", n))

    # Fetches and stores

    def memory(self) -> None:
        """The next accesses to global memory or outputs; reads share one up to the first use of theirs."""
        ready = [n for n in sorted(self.packer.open) if not self.waits[n]]
        batch: list[int] = []
        for n in ready:
            if self.ops[n].name != "MEM_READ":
                break
            batch.append(n)
        if batch:
            self.fetch(batch)
            return
        op = self.ops[ready[0]]
        self.read_registers(op)
        self.plans.append(ClausePlan("STORE", ops=[op]))
        self.finish(ready[0])

    def fetch(self, batch: list[int]) -> None:
        """Fetch clauses."""
        clause = self.problem.device.tex_clause_fetches
        for first in range(0, len(batch), clause):
            plan = ClausePlan("TEX")
            self.plans.append(plan)
            for n in batch[first : first + clause]:
                op = self.ops[n]
                self.read_registers(op)
                wanted = [r for r in op.results if self.problem.uses[r]]
                self.spread(wanted)
                for r in wanted:
                    self.pressure.write(r)
                plan.ops.append(op)
                self.finish(n)

    def finish(self, n: int) -> None:
        self.packer.open.discard(n)
        for m, _ in self.problem.after[n]:
            self.waits[m] -= 1

    def read_registers(self, op: Op) -> None:
        for word in op.located:
            self.pressure.settle(word.vreg)
        self.pressure.read(op)

    def spread(self, wanted: list[Word]) -> None:
        """Channels for a fetch's results: what neighbours read comes from different banks, and lies in its own
        component if that makes no difference."""
        best, lowest = None, None
        for order in permutations(range(4), len(wanted)):
            wish = {r.vreg: c for r, c in zip(wanted, order, strict=True)}
            if any(w.channel not in (None, c) for w, c in wish.items()) or not possible(wish):
                continue
            ways = list(zip(wanted, order, strict=True))
            clashes = sum(self.read_near[place, c] for r, c in ways for place in self.near(r))
            cost = clashes, sum(w.home is not None and w.home[1] != c for w, c in wish.items())
            if lowest is None or cost < lowest:
                best, lowest = order, cost
        for r, c in zip(wanted, best or (), strict=False):
            self.pressure.settle(r.vreg, c)
            self.read_near.update((place, c) for place in self.near(r))

    def near(self, word: Word) -> set[tuple[int, int]]:
        """The operands (op, number) that it is, and those of the next ops."""
        return {(n + d, k) for n, k in self.readers[word] for d in range(NEAR)}

    # Bundles

    def arithmetic(self, run: list[int]) -> None:
        """Bundles of the ops ``run``, in order."""
        if not self.plans or self.plans[-1].kind != "ALU":
            self.open_clause()
        waiting = list(run)
        while waiting:
            n = self.next(waiting)
            if not self.waits[n] and self.fits(n):
                waiting.remove(n)
                self.placed(n)
            elif self.draft.slots:
                self.close_bundle()
            elif self.packer.queue and not self.draining:
                self.draining = True  # the clause has to end, and the LDS queue with it
            elif self.packer.clause.bundles and not self.packer.queue:
                self.open_clause()
            else:
                raise NoBundle(self.problem.block, self.ops[n])
        self.close_bundle()

    def next(self, waiting: list[int]) -> int:
        """The next op; where the clause's room runs out, what the LDS has sent; the test last."""
        queue, left = self.packer.queue, self.packer.room - self.draft.size
        self.draining = bool(queue) and (self.draining or left < WORST * (len(queue) + 2))
        if self.draining:
            return next((n for n in waiting if self.ops[n].name == "LDS_POP"), waiting[0])
        if not self.draft.slots:  # whatever order the numbers have, somebody can begin
            waiting = [n for n in waiting if not self.waits[n]] or waiting
        row = self.ops[waiting[0]].row
        return waiting[1] if row is not None and row.predicate and len(waiting) > 1 else waiting[0]

    def fits(self, n: int) -> bool:
        """Put an op into the bundle, if that may be."""
        row = self.ops[n].row
        if row is not None and row.predicate and self.draft.slots:
            return False
        return self.packer.place(self.draft, self.ops[n])

    def placed(self, n: int) -> None:
        self.packer.open.discard(n)
        for m, bundles in self.problem.after[n]:
            if bundles:
                self.later.append(m)
            else:
                self.waits[m] -= 1

    def open_clause(self) -> None:
        self.packer.clause, self.forwards = ClausePlan("ALU"), {}
        self.open_bundle()

    def open_bundle(self) -> None:
        self.draft, self.later = Draft(self.forwards), []
        self.packer.room = self.problem.device.alu_clause_slots - self.packer.clause.slots

    def close_bundle(self) -> None:
        """The bundle is as full as it gets."""
        if not self.draft.slots:
            return
        clause = self.packer.clause
        if not clause.bundles:
            self.plans.append(clause)
        clause.bundles.append(self.draft)
        clause.slots += self.draft.size
        for m in self.later:
            self.waits[m] -= 1
        self.forwards = self.draft.results
        self.open_bundle()
