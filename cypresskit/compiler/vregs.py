"""Out of SSA form: which words share a place.

A ``VirtualRegister`` is a set of words that will live in one register channel: a phi and its arguments, where their
lifetimes let them; where not, a MOV on the edge copies the argument. So a sum that a loop carries is read and written
in place.

Virtual registers may be constrained (``constraints``): a ``RegisterGroup`` of at most four lies in different channels
of one register, and a ``pair``, the words of a double, side by side in xy or zw. What channels remain open is left to
the scheduler, the registers' numbers to the allocator.
"""

from collections import Counter

from cypresskit.compiler.ir import HIGH, LOW, BasicBlock, Function, Op, RegisterGroup, Src, VirtualRegister, Word

Alive = dict[BasicBlock, set[VirtualRegister]]


def assign_vregs(function: Function) -> Function:
    """Make the virtual registers of a function, with the copies on edges that its phis need."""
    blocks = list(function.blocks)
    preloaded: dict[int, list[VirtualRegister]] = {}
    for word in function.inputs:
        vreg = function.vreg(word)
        vreg.fixed, vreg.channel = word.place
        preloaded.setdefault(word.place[0], []).append(vreg)
    for vregs in preloaded.values():
        RegisterGroup(vregs)
    for block in blocks:
        for word in block.phis:
            function.vreg(word)
        for op in block.ops:
            for n, word in enumerate(op.results):
                vreg = function.vreg(word)
                if op.slots in ("pair", "quad"):
                    vreg.allowed = HIGH if n else LOW
    _Coalescer(function).run()
    return function


def liveness(blocks: list[BasicBlock]) -> tuple[Alive, Alive]:
    """Virtual registers alive at each block's start and end. A phi's argument is alive at the end of the predecessor it
    comes from; the phi itself is defined at the start of its block."""
    live_in: Alive = {b: set() for b in blocks}
    live_out: Alive = {b: set() for b in blocks}
    use, define = {}, {}
    for b in blocks:
        reads: set = set()
        writes = {p.vreg for p in b.phis}
        for op in b.ops:
            reads |= {word.vreg for word in op.located} - writes
            writes |= {r.vreg for r in op.results}
        use[b], define[b] = reads, writes
    passed = {
        b: {s: {p.args[b].vreg for p in s.phis if b in p.args and p.args[b].located} for s in b.succs} for b in blocks
    }
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks):
            out: set = set()
            for s in b.succs:
                out |= live_in[s] | passed[b][s]
            new = use[b] | (out - define[b])
            changed |= out != live_out[b] or new != live_in[b]
            live_out[b], live_in[b] = out, new
    return live_in, live_out


class _Coalescer:
    """Merges the virtual registers of phis and their arguments."""

    def __init__(self, function: Function):
        self.function, self.blocks = function, list(function.blocks)
        self.end_of: dict[BasicBlock, int] = {}
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)

    def run(self) -> None:
        self.lifetimes()
        copies: dict[BasicBlock, list[tuple[Word, Word]]] = {}
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            for phi in block.phis:
                for pred, arg in sorted(phi.args.items(), key=lambda item: -item[0].depth):
                    if not arg.located or (arg.vreg is not phi.vreg and not _merge(phi.vreg, arg.vreg)):
                        copies.setdefault(pred, []).append((phi, arg))
                        phi.vreg.mask |= 1 << self.end_of[pred]
                    for arg in phi.args.values():
                        self.merge_chain(phi.vreg, arg)
        for pred, wanted in copies.items():
            self.copy_on_edge(pred, wanted)

    def lifetimes(self) -> None:
        """Each virtual register's ``mask``: a bit for every point of the program where it is alive, in source order."""
        live_in, live_out = liveness(self.blocks)
        point = 0
        for block in self.blocks:
            start, end = point, point + len(block.ops)
            self.end_of[block] = end
            last = dict.fromkeys(live_out[block], end)
            for n in range(len(block.ops) - 1, -1, -1):
                op = block.ops[n]
                for result in op.results:
                    stop = last.pop(result.vreg, start + n + 1)
                    result.vreg.mask |= span(start + n + 1, stop)
                for word in op.located:
                    last.setdefault(word.vreg, start + n)
            for vreg, stop in last.items():
                vreg.mask |= span(start, stop)
            for phi in block.phis:
                if phi.vreg not in last:
                    phi.vreg.mask |= 1 << start
            here = {word.vreg for op in block.ops for word in (*op.located, *op.results)}
            for vreg in here | live_in[block] | live_out[block]:
                vreg.depth = max(vreg.depth, block.depth)
            point = end + 1

    def merge_chain(self, vreg: VirtualRegister, word: Word) -> None:
        """A sum that grows step by step in one turn of a loop stays in its place: the partial sums join it."""
        chain: list[Word] = []
        while word.op is not None and word.op.row is not None:
            op, words = word.op, 2 if word.op.kind == "double" else 1
            parts = [s.value for s in op.srcs[op.results.index(word) % words :: words]]
            if any(v.kind == "phi" and v.vreg is vreg for v in parts):
                for partial in chain:
                    _merge(vreg, partial.vreg)
                return
            parts = [v for v in parts if v.op is not None and v.op.name == op.name and self.readers[v] == 1]
            if not parts:
                return
            word = parts[-1]
            chain.append(word)

    def copy_on_edge(self, pred: BasicBlock, wanted: list[tuple[Word, Word]]) -> None:
        """Copies that happen at once, put in an order in which none destroys what another reads."""
        at = pred.ops[-1].at if pred.ops else 0
        todo = [(phi.vreg, arg) for phi, arg in wanted]
        phi_of = {phi.vreg: phi for phi, _ in wanted}

        def copy(word: Word) -> Word:
            op = Op("MOV", [Src(word)], at)
            pred.ops.append(op)
            return op.results[0]

        while todo:
            safe = next((n for n, (vreg, _) in enumerate(todo) if not _is_read(vreg, todo, n)), None)
            if safe is None:  # a cycle: one of its words is set aside
                vreg, arg = todo[0]
                aside = copy(arg)
                self.function.vreg(aside)
                todo[0] = (vreg, aside)
                safe = next((n for n, (vreg, _) in enumerate(todo) if not _is_read(vreg, todo, n)), 0)
            vreg, arg = todo.pop(safe)
            result = copy(arg)
            result.vreg = vreg
            vreg.words.append(result)
            phi_of[vreg].args[pred] = result


def _merge(kept: VirtualRegister, other: VirtualRegister) -> bool:
    """Make one virtual register of two, if their lifetimes and channels allow it."""
    if kept.mask & other.mask or not kept.allowed & other.allowed or other.fixed is not None:
        return False
    kept.allowed &= other.allowed
    kept.mask |= other.mask
    kept.depth = max(kept.depth, other.depth)
    kept.words += other.words
    for word in other.words:
        word.vreg = kept
    other.words = []
    return True


def _is_read(vreg: VirtualRegister, todo: list[tuple[VirtualRegister, Word]], n: int) -> bool:
    """Whether another copy than ``n`` is still to read it."""
    return any(arg.located and arg.vreg is vreg for m, (_, arg) in enumerate(todo) if m != n)


def span(first: int, last: int) -> int:
    """Bits first..last."""
    return ((1 << (last - first + 1)) - 1) << first if last >= first else 0
