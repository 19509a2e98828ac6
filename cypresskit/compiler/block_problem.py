"""Model what the schedule of a block must respect: dependences of its ops, and register pressure.

An op must be in a later bundle than the ops that make its operands. A write may be in the same
bundle as the readers of the value that it replaces, since reads come first. Accesses to global
memory and to the LDS stay in order, except reads among each other.
"""

from collections import Counter

from cypresskit.compiler.ir import BasicBlock, Op, VirtualRegister, Word
from cypresskit.compiler.isa import CHANNELS
from cypresskit.compiler.register_channels import choose_channel, find_free_channels
from cypresskit.compiler.target import Target


class DependenceGraph:
    """The dependence graph of a block. Ops are identified by their index in ``ops``.

    Attributes
    ----------
    ops
        The ops of the block.
    after
        For each op, the ops that wait for it, with 1 if they must be in a later bundle.
    before
        For each op, the ops that it waits for.
    uses
        How many ops read each key of ``reads``; one more if it is live at the end of the block.
    """

    def __init__(
        self,
        block: BasicBlock,
        live_in: set[VirtualRegister],
        live_out: set[VirtualRegister],
        target: Target,
    ):
        self.ops = block.ops
        self.target = target
        self.live_in = live_in
        self.defined = {r for op in self.ops for r in op.results}
        last = {r.vreg: r for op in self.ops for r in op.results}
        self.uses: Counter = Counter(key for op in self.ops for key in self.reads(op))
        self.uses.update(last.get(w, w) for w in live_out)
        self.after: list[dict[int, int]] = [{} for _ in self.ops]
        self.before: list[list[int]] = [[] for _ in self.ops]
        self.find_edges()

    def reads(self, op: Op) -> dict[Word | VirtualRegister, VirtualRegister]:
        """Return what an op reads: words made in the block, or virtual registers for others, each
        with its virtual register.
        """
        return {
            word if word in self.defined else word.vreg: word.vreg for word in op.register_words
        }

    def find_edges(self) -> None:
        """Fill in ``after`` and ``before``."""
        number = {op: n for n, op in enumerate(self.ops)}
        maker: dict[Word, int] = {}
        writer: dict[VirtualRegister, int] = {}
        readers: dict[VirtualRegister, list[int]] = {}
        # by memory: its last write, and the reads after it
        accesses: dict[str, tuple[list[int], list[int]]] = {}

        def edge(m: int, later: int = 1) -> None:  # from m to n
            if m != n and n not in self.after[m]:
                self.after[m][n] = later
                self.before[n].append(m)

        for n, op in enumerate(self.ops):
            for word in op.register_words:
                if word in maker:
                    edge(maker[word])
                readers.setdefault(word.vreg, []).append(n)
            for r in op.results:
                for m in readers.pop(r.vreg, []):
                    edge(m, 0)
                if r.vreg in writer:
                    edge(writer[r.vreg])
                maker[r] = writer[r.vreg] = n
            if op.popped:
                edge(number[op.popped])
            for memory in op.row.memories:
                write, since = accesses.get(memory, ([], []))
                reads = "READ" in op.name
                for m in write if reads else write + since:
                    edge(m)
                accesses[memory] = (write, [*since, n]) if reads else ([n], [])
            if op.row.is_test:  # it ends the block
                for m in range(n):
                    edge(m)


class Pressure:
    """The virtual registers that are live at the current point of a block.

    Attributes
    ----------
    count
        By channel: how many are live now.
    assigned
        Virtual registers whose channel was chosen in this block, in order.
    """

    def __init__(self, graph: DependenceGraph):
        self.graph = graph
        self.left = Counter(graph.uses)
        self.live: set[VirtualRegister] = set(graph.live_in)
        self.count = [sum(w.channel == c for w in self.live) for c in range(CHANNELS)]
        self.assigned: list[VirtualRegister] = []

    def preferred(self, vreg: VirtualRegister) -> list[int]:
        """Return the channels that a virtual register may take, the best first: its component in
        the IL, if allowed, then the emptiest.
        """
        options = find_free_channels(vreg)
        if vreg.home in options:
            return [vreg.home]
        if len(options) > 1:
            options.sort(key=lambda c: (self.count[c], c))
        return options

    def assign_channel(self, vreg: VirtualRegister, channel: int | None = None) -> None:
        """Choose a virtual register's channel; by default the emptiest."""
        if vreg.channel is not None:
            return
        if channel is None:
            channel = self.preferred(vreg)[0]
        pair = vreg.pair if vreg.pair is not None and vreg.pair.channel is None else None
        choose_channel(vreg, channel)
        for w, c in ((vreg, channel), (pair, channel ^ 1)):
            if w is not None:
                self.assigned.append(w)
                if w in self.live:
                    self.count[c] += 1

    def state(self) -> tuple[int, list[int]]:
        """Return a snapshot for ``undo``: how many channels were chosen, and the counts."""
        return len(self.assigned), list(self.count)

    def undo(self, state: tuple[int, list[int]]) -> None:
        """Restore a snapshot."""
        length, self.count = state
        for vreg in self.assigned[length:]:
            vreg.channel = None
        del self.assigned[length:]

    def read(self, op: Op) -> None:
        """Count an op's reads; a word's live range ends with its last read."""
        for key, vreg in self.graph.reads(op).items():
            self.left[key] -= 1
            if not self.left[key] and vreg in self.live:
                self.live.discard(vreg)
                if vreg.channel is not None:
                    self.count[vreg.channel] -= 1

    def write(self, word: Word) -> None:
        """Begin the live range of a result, if it is read."""
        vreg = word.vreg
        if vreg not in self.live and self.graph.uses[word]:
            self.live.add(vreg)
            if vreg.channel is not None:
                self.count[vreg.channel] += 1

    def issue(self, op: Op) -> None:
        """Count an op as done: its operands are read, and its results become live."""
        self.read(op)
        for r in op.results:
            self.write(r)
