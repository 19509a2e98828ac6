"""What a block's schedule must respect: which op waits for which, and what the block can't do without.

An op waits for those that make its operands (a later bundle), and a write for the readers of the value it replaces (the
same bundle will do: reads come first). Accesses to global memory and to the LDS stay in order, reads among each other
excepted. An op's height is the longest chain of ops that wait for it; the block's bounds are the fewest bundles that
its slots fill and the registers that its own order needs.
"""

from collections import Counter
from dataclasses import dataclass

from cypresskit.compiler.ir import BasicBlock, Export, GlobalRead, GlobalWrite, LdsPop, Op, VirtualRegister, Word
from cypresskit.devices import Device


@dataclass(eq=False)
class BlockPressure:
    """A scheduled block through which virtual registers live whose channel is still open: how full its channels are."""

    peak: list[int]


class _Order:
    """Accesses to one memory: writes in order, reads between them in any."""

    def __init__(self) -> None:
        self.reads: list[int] = []
        self.write: list[int] = []

    def put(self, n: int, writes: bool) -> list[int]:
        """Add access ``n``; those that must come before it."""
        if not writes:
            self.reads.append(n)
            return self.write
        before = self.write + self.reads
        self.write, self.reads = [n], []
        return before


class Problem:
    """What is known of a block before scheduling: dependences, heights, uses. ``scheduled``: the pressure of blocks
    that have been scheduled, by what lives through them with its channel still open."""

    def __init__(
        self,
        block: BasicBlock,
        live_in: set[VirtualRegister],
        live_out: set[VirtualRegister],
        device: Device,
        scheduled: dict[VirtualRegister, list[BlockPressure]],
    ):
        self.block, self.device, self.scheduled = block, device, scheduled
        self.ops = block.ops
        self.live_in, self.live_out = live_in, live_out
        self.number = {op: n for n, op in enumerate(self.ops)}
        count = len(self.ops)
        self.after: list[list[tuple[int, int]]] = [[] for _ in range(count)]  # (op, 1 if a later bundle, 0 if the same)
        self.waits = [0] * count
        self.defined = {r for op in self.ops for r in op.results}
        last: dict[VirtualRegister, Word] = {}
        for op in self.ops:
            for r in op.results:
                last[r.vreg] = r
        self.leaving = {last[w] for w in live_out if w in last}  # words that live on after the block
        self.uses: Counter = Counter()
        for op in self.ops:
            self.uses.update(self.reads(op).keys())
        self.uses.update(self.leaving)
        self.uses.update(w for w in live_out if w not in last)
        self.edges()
        self.heights()
        self.first_use: dict[Word, int] = {}
        for n, op in enumerate(self.ops):
            for src in op.srcs:
                self.first_use[src.value] = max(self.first_use.get(src.value, 0), self.height[n])
        for value in self.defined:
            self.first_use.setdefault(value, 0)
        self.source_need = self.need()
        self.bound = self.lower_bound()

    def reads(self, op: Op) -> dict[Word | VirtualRegister, VirtualRegister]:
        """Words that an op reads, or the virtual registers of those that were there before the block, and where each
        lies."""
        return {word if word in self.defined else word.vreg: word.vreg for word in op.located}

    def edges(self) -> None:
        """Who waits for whom."""
        seen: set[tuple[int, int]] = set()

        def edge(a: int, b: int, later: int) -> None:
            if a != b and (a, b) not in seen:
                seen.add((a, b))
                self.after[a].append((b, later))
                self.waits[b] += 1

        maker: dict[Word, int] = {}
        writer: dict[VirtualRegister, int] = {}
        readers: dict[VirtualRegister, list[int]] = {}
        memory, lds, outputs = _Order(), _Order(), _Order()
        for n, op in enumerate(self.ops):
            detail, barrier = op.detail, op.kind == "sync"
            for word in op.located:
                if word in maker:
                    edge(maker[word], n, 1)
                readers.setdefault(word.vreg, []).append(n)
            for r in op.results:
                for m in readers.pop(r.vreg, []):
                    edge(m, n, 0)
                if r.vreg in writer:
                    edge(writer[r.vreg], n, 1)
                maker[r] = writer[r.vreg] = n
            if isinstance(detail, LdsPop):
                edge(self.number[detail.read], n, 1)
            before: list[int] = []
            if isinstance(detail, GlobalRead | GlobalWrite) or barrier:
                before += memory.put(n, not isinstance(detail, GlobalRead))
            if op.kind == "lds" or barrier:
                before += lds.put(n, "READ" not in op.name)
            if isinstance(detail, Export):
                before += outputs.put(n, True)
            if op.predicate:  # it ends the block: only arithmetic may follow in its clause
                before += [m for m, o in enumerate(self.ops) if o.kind in ("", "lds", "sync")]
            for m in before:
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
            for key, vreg in self.reads(op).items():
                left[key] -= 1
                if not left[key]:
                    live.discard(vreg)
            for r in op.results:
                if self.uses[r]:
                    live.add(r.vreg)
            most = max(most, len(live))
        return -(-most // 4)

    def lower_bound(self) -> int:
        """Bundles that no schedule can go below."""
        slots: Counter = Counter()
        for op in self.ops:
            if op.row is not None:
                slots[op.slots] += op.row.width
            elif isinstance(op.detail, LdsPop):
                slots["any"] += len(op.results)
        vector = slots["vector"] + slots["pair"] + slots["quad"]
        total = sum(slots.values())
        return max(-(-total // 5), -(-vector // 4), slots["t"], slots["x"], 0)

    def chain(self) -> int:
        """The longest chain of dependent ALU ops, in bundles."""
        return max((self.height[n] for n, op in enumerate(self.ops) if op.row is not None), default=0)
