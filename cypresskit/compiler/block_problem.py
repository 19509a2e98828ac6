"""What a block's schedule must respect: the dependences of its ops, and the pressure on registers
as it goes on.

An op waits for those that make its operands (a later bundle), and a write for the readers of the
value it replaces (the same bundle will do: reads come first). Accesses to global memory and to the
LDS stay in order, reads among each other excepted.
"""

from collections import Counter

from cypresskit.compiler.ir import BasicBlock, Op, VirtualRegister, Word
from cypresskit.compiler.isa import CHANNELS
from cypresskit.compiler.register_channels import choices, decide
from cypresskit.devices import CodeLimits


class Problem:
    """The dependence graph of a block, and what is alive around it. Ops go by their number in
    ``ops``. ``after`` has for each op those that wait for it, with 1 if they must be in a later
    bundle; ``before``, those it waits for. ``uses``: how many ops read what ``reads`` names, one
    more if it lives on behind the block.
    """

    def __init__(
        self,
        block: BasicBlock,
        live_in: set[VirtualRegister],
        live_out: set[VirtualRegister],
        limits: CodeLimits,
    ):
        self.block = block
        self.ops = block.ops
        self.limits = limits
        self.live_in = live_in
        self.defined = {r for op in self.ops for r in op.results}
        last = {r.vreg: r for op in self.ops for r in op.results}
        self.uses: Counter = Counter(key for op in self.ops for key in self.reads(op))
        self.uses.update(last.get(w, w) for w in live_out)
        self.after: list[dict[int, int]] = [{} for _ in self.ops]
        self.before: list[list[int]] = [[] for _ in self.ops]
        self.find_edges()

    def reads(self, op: Op) -> dict[Word | VirtualRegister, VirtualRegister]:
        """The words that an op reads, or for those made before the block their virtual registers,
        and where each lies.
        """
        return {word if word in self.defined else word.vreg: word.vreg for word in op.located}

    def find_edges(self) -> None:
        """Fill in ``after`` and ``before``."""
        number = {op: n for n, op in enumerate(self.ops)}
        maker: dict[Word, int] = {}
        writer: dict[VirtualRegister, int] = {}
        readers: dict[VirtualRegister, list[int]] = {}
        # by memory: its last write, and the reads since
        accesses: dict[str, tuple[list[int], list[int]]] = {}

        def edge(a: int, b: int, later: int = 1) -> None:
            if a != b and b not in self.after[a]:
                self.after[a][b] = later
                self.before[b].append(a)

        for n, op in enumerate(self.ops):
            for word in op.located:
                if word in maker:
                    edge(maker[word], n)
                readers.setdefault(word.vreg, []).append(n)
            for r in op.results:
                for m in readers.pop(r.vreg, []):
                    edge(m, n, 0)
                if r.vreg in writer:
                    edge(writer[r.vreg], n)
                maker[r] = writer[r.vreg] = n
            if op.popped:
                edge(number[op.popped], n)
            for memory in op.row.memories:
                write, since = accesses.get(memory, ([], []))
                reads = "READ" in op.name
                for m in write if reads else write + since:
                    edge(m, n)
                accesses[memory] = (write, [*since, n]) if reads else ([n], [])
            if op.row.predicate:  # it ends the block: only arithmetic may follow in its clause
                for m in (m for m, other in enumerate(self.ops) if not other.arithmetic):
                    edge(m, n)


class Pressure:
    """Virtual registers alive at the present point of a block, and the channels decided in it.
    ``count`` and ``peak``: per channel, those alive now, and the most so far; ``settled``: those
    whose channel was decided, in order.
    """

    def __init__(self, problem: Problem):
        self.problem = problem
        self.left = Counter(problem.uses)
        self.live: set[VirtualRegister] = set(problem.live_in)
        self.count = [sum(w.channel == c for w in self.live) for c in range(CHANNELS)]
        self.peak = list(self.count)
        self.settled: list[VirtualRegister] = []

    def preferred(self, vreg: VirtualRegister) -> list[int]:
        """Channels that it may take: the component that the IL gives it, if it may, or else the
        emptiest first.
        """
        options = choices(vreg)
        if vreg.home in options:
            return [vreg.home]
        if len(options) > 1:
            full = self.peak if vreg in self.problem.live_in else self.count
            options.sort(key=lambda c: (full[c], self.count[c], c))
        return options

    def settle(self, vreg: VirtualRegister, channel: int | None = None) -> None:
        """Decide a virtual register's channel: the emptiest one if none is given."""
        if vreg.channel is not None:
            return
        if channel is None:
            channel = min(self.preferred(vreg), key=lambda c: (self.peak[c], c))
        pair = vreg.pair if vreg.pair is not None and vreg.pair.channel is None else None
        decide(vreg, channel)
        for w, c in ((vreg, channel), (pair, channel ^ 1)):
            if w is not None:
                self.settled.append(w)
                if w in self.live:
                    self.count[c] += 1
                    self.peak[c] = max(self.peak[c] + (w in self.problem.live_in), self.count[c])

    def state(self) -> tuple[int, list[int], list[int]]:
        """A snapshot for ``undo``: how many channels were decided, and how full each is."""
        return len(self.settled), list(self.count), list(self.peak)

    def undo(self, state: tuple[int, list[int], list[int]]) -> None:
        """Take back what was decided since ``state`` was asked for."""
        kept, self.count, self.peak = state
        for vreg in self.settled[kept:]:
            vreg.channel = None
        del self.settled[kept:]

    def read(self, op: Op) -> None:
        """Count an op's reads; what they read for the last time dies."""
        for key, vreg in self.problem.reads(op).items():
            self.left[key] -= 1
            if not self.left[key] and vreg in self.live:
                self.live.discard(vreg)
                if vreg.channel is not None:
                    self.count[vreg.channel] -= 1

    def write(self, word: Word) -> None:
        """A result comes to life, if anybody reads it."""
        vreg = word.vreg
        if vreg not in self.live and self.problem.uses[word]:
            self.live.add(vreg)
            if vreg.channel is not None:
                self.count[vreg.channel] += 1
                self.peak[vreg.channel] = max(self.peak[vreg.channel], self.count[vreg.channel])

    def issue(self, op: Op) -> None:
        """Count an op as done: its operands are read, its results come to life."""
        self.read(op)
        for r in op.results:
            self.write(r)


def source_need(problem: Problem) -> int:
    """The registers that the block would need in the order of the IL."""
    pressure = Pressure(problem)
    most = len(pressure.live)
    for op in problem.ops:
        pressure.issue(op)
        most = max(most, len(pressure.live))
    return -(-most // CHANNELS)
