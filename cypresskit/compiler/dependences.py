"""The dependence graph of a block's ops, which its schedule must respect.

An op waits for those that make its operands (a later bundle), and a write for the readers of the value it replaces (the
same bundle will do: reads come first). Accesses to global memory and to the LDS stay in order, reads among each other
excepted. An op's height is the longest chain of ops that wait for it.
"""

from collections import Counter

from cypresskit.compiler.ir import BasicBlock, Op, VirtualRegister, Word
from cypresskit.devices import Device

Peaks = list[int]  # how full each channel is at most in a block


class Problem:
    """The dependence graph of a block, and what is alive around it. Ops go by their number in ``ops``. ``after`` has
    for each op those that wait for it, with 1 if they must be in a later bundle; ``before``, those it waits for;
    ``height``, its longest chain. ``uses``: how many ops read what ``reads`` names, one more if it lives on behind the
    block. ``scheduled``: for virtual registers without a channel, the peaks of the scheduled blocks that they live
    through."""

    def __init__(
        self,
        block: BasicBlock,
        live_in: set[VirtualRegister],
        live_out: set[VirtualRegister],
        device: Device,
        scheduled: dict[VirtualRegister, list[Peaks]],
    ):
        self.block, self.ops, self.device, self.scheduled = block, block.ops, device, scheduled
        self.live_in, self.live_out = live_in, live_out
        self.defined = {r for op in self.ops for r in op.results}
        last = {r.vreg: r for op in self.ops for r in op.results}
        self.uses: Counter = Counter(key for op in self.ops for key in self.reads(op))
        self.uses.update(last.get(w, w) for w in live_out)
        self.after: list[dict[int, int]] = [{} for _ in self.ops]
        self.before: list[list[int]] = [[] for _ in self.ops]
        self.find_edges()
        self.height = [1] * len(self.ops)
        for n in range(len(self.ops) - 1, -1, -1):
            self.height[n] += max((self.height[m] for m, later in self.after[n].items() if later), default=0)

    def reads(self, op: Op) -> dict[Word | VirtualRegister, VirtualRegister]:
        """The words that an op reads, or for those made before the block their virtual registers, and where each
        lies."""
        return {word if word in self.defined else word.vreg: word.vreg for word in op.located}

    def find_edges(self) -> None:
        """Fill in ``after`` and ``before``."""
        number = {op: n for n, op in enumerate(self.ops)}
        maker: dict[Word, int] = {}
        writer: dict[VirtualRegister, int] = {}
        readers: dict[VirtualRegister, list[int]] = {}
        accesses: dict[str, tuple[list[int], list[int]]] = {}  # the last write, and reads since, by memory

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
