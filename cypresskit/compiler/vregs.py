"""Out of SSA form: which words share a place.

A ``VirtualRegister`` is a set of words that will live in one register channel: a phi and its arguments, where their
lifetimes let them; where not, a MOV on the edge copies the argument. So a sum that a loop carries is read and written
in place. ``constraints`` ties some together; the scheduler decides what channels remain open, the allocator numbers.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from cypresskit.compiler.ir import HIGH, LOW, BasicBlock, Function, Op, Src, VirtualRegister, Word


def assign_vregs(function: Function) -> Function:
    """Make the virtual registers of a function, with the copies on edges that its phis need."""
    for word in function.inputs:
        vreg = function.vreg(word)
        vreg.fixed, vreg.channel = word.place
    preloaded = [word.vreg for word in function.inputs]
    for vreg in preloaded:
        vreg.group = tuple(other for other in preloaded if other.fixed == vreg.fixed)
    for block in function.blocks:
        for word in block.phis:
            function.vreg(word)
        for op in block.ops:
            for n, word in enumerate(op.results):
                vreg = function.vreg(word)
                if op.row.width > 1:
                    vreg.allowed = HIGH if n else LOW
    _Coalescer(function).run()
    return function


Sets = dict[BasicBlock, set[VirtualRegister]]


class Alive:
    """Virtual registers alive at each block's start, ``into`` it, and end, ``out`` of it. A phi's argument is alive at
    the end of the predecessor it comes from; the phi itself is defined at the start of its block."""

    def __init__(self, blocks: list[BasicBlock]):
        self.into: Sets = {b: set() for b in blocks}
        self.out: Sets = {b: set() for b in blocks}
        use: Sets = {b: set() for b in blocks}
        define: Sets = {b: {p.vreg for p in b.phis} for b in blocks}
        passed: Sets = {}
        for b in blocks:
            for op in b.ops:
                use[b] |= {word.vreg for word in op.located} - define[b]
                define[b] |= {r.vreg for r in op.results}
            passed[b] = {p.args[b].vreg for s in b.succs for p in s.phis if b in p.args and p.args[b].located}
        changed = True
        while changed:
            changed = False
            for b in reversed(blocks):
                out = passed[b].union(*(self.into[s] for s in b.succs))
                new = use[b] | (out - define[b])
                changed |= out != self.out[b] or new != self.into[b]
                self.out[b], self.into[b] = out, new

    def set_masks(self, steps: Mapping[BasicBlock, Sequence[Sequence]], unread: bool = False) -> set[Word]:
        """Add to each virtual register's ``mask`` a bit for every point of the program where it is alive. ``steps``:
        per block and point, the words that it makes and reads. Returns those made that are read; ``unread``, the others
        get the point behind them."""
        written: set[Word] = set()
        point = 0
        for block, found in steps.items():
            end = point + len(found)
            last = dict.fromkeys(self.out[block], end)
            for n in range(end - 1, point - 1, -1):
                results, reads, *_ = found[n - point]
                for word in results:
                    if unread or word.vreg in last:
                        word.vreg.mask |= _span(n + 1, last.pop(word.vreg, n + 1))
                        written.add(word)
                for word in reads:
                    last.setdefault(word.vreg, n)
            for phi in block.phis if unread else ():
                last.setdefault(phi.vreg, point)
            for vreg, stop in last.items():
                vreg.mask |= _span(point, stop)
            point = end + 1
        return written


def _span(first: int, last: int) -> int:
    return (1 << last + 1) - (1 << first)


class _Coalescer:
    """Merges the virtual registers of phis and their arguments. ``end_of``: the last point of each block."""

    def __init__(self, function: Function):
        self.function, self.blocks = function, function.blocks
        self.end_of: dict[BasicBlock, int] = {}
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)
        alive, end = Alive(self.blocks), -1
        alive.set_masks({b: [(op.results, op.located) for op in b.ops] for b in self.blocks}, unread=True)
        for block in self.blocks:
            self.end_of[block] = end = end + len(block.ops) + 1
            here = {word.vreg for op in block.ops for word in (*op.located, *op.results)}
            for vreg in here | alive.into[block] | alive.out[block]:
                vreg.depth = max(vreg.depth, block.depth)

    def run(self) -> None:
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

    def merge_chain(self, vreg: VirtualRegister, word: Word) -> None:
        """A sum that grows step by step in one turn of a loop stays in its place: the partial sums join it."""
        chain: list[Word] = []
        while word.op is not None and word.op.arithmetic:
            op, words = word.op, 2 if word.op.row.kind == "double" else 1
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
        todo = list(wanted)

        def copy(word: Word) -> Word:
            op = Op("MOV", [Src(word)], at)
            pred.ops.append(op)
            return op.results[0]

        while todo:
            read = Counter(arg.vreg for _, arg in todo if arg.located)
            safe = [n for n, (phi, arg) in enumerate(todo) if read[phi.vreg] == (arg.located and arg.vreg is phi.vreg)]
            if not safe:  # a cycle: one of its words is set aside
                phi, arg = todo[0]
                todo[0] = phi, copy(arg)
                self.function.vreg(todo[0][1])
                continue
            phi, arg = todo.pop(safe[0])
            result = phi.args[pred] = copy(arg)
            result.vreg = phi.vreg
            phi.vreg.words.append(result)


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
