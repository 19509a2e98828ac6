"""Let a phi and its arguments share a virtual register, or copy one to the other.

A phi is at the head of a block and takes one argument per predecessor, by the edge along which
control arrives. If all arguments are in one register channel, it costs nothing. Two virtual
registers can be joined if their live ranges don't overlap (``mask`` has a bit per point), if a
common channel is allowed, and if neither is preloaded.

Innermost loops come first, since a copy costs most there. What can't be joined is copied at the end
of the predecessor; all copies of one edge act at once.
"""

from collections import Counter, defaultdict

from cypresskit.compiler.ir import BasicBlock, Function, Op, Src, VirtualRegister, Word
from cypresskit.compiler.liveness import Alive


def coalesce(function: Function) -> None:
    """Join the virtual registers of phis and their arguments; copy what can't be joined."""
    _Coalescer(function).run()


class _Coalescer:
    """Joins the virtual registers of one function.

    Attributes
    ----------
    readers
        How many operands read each word.
    last_point
        For each block the point at which a copy on the edge after it writes.
    """

    def __init__(self, function: Function):
        self.function = function
        self.blocks = function.blocks
        self.readers = Counter(s.value for b in self.blocks for op in b.ops for s in op.srcs)

        alive = Alive(self.blocks)
        steps = {
            block: [(op.results, op.register_words) for op in block.ops] for block in self.blocks
        }
        alive.set_masks(steps, count_unread=True)

        # Points are numbered as `set_masks` does: one for each op of a block, one for its end
        self.last_point: dict[BasicBlock, int] = {}
        end = -1
        for block in self.blocks:
            end += len(block.ops) + 1
            self.last_point[block] = end

    def run(self) -> None:
        """Join what can be joined, innermost loops first; copy the rest on the edges."""
        copies: dict[BasicBlock, list[tuple[Word, Word]]] = defaultdict(list)
        for block in sorted(self.blocks, key=lambda b: -b.depth):
            for phi in block.phis:
                for pred, arg in sorted(phi.args.items(), key=lambda item: -item[0].depth):
                    if not (arg.has_register and _join(phi.vreg, arg.vreg)):
                        copies[pred].append((phi, arg))
                        phi.vreg.mask |= 1 << self.last_point[pred]  # the copy writes it there
                for arg in phi.args.values():
                    self.join_chain(phi.vreg, arg)

        for pred, pairs in copies.items():
            self.copy_on_edge(pred, pairs)

    def join_chain(self, vreg: VirtualRegister, word: Word) -> None:
        """Let the partial results of a loop-carried sum share the sum's virtual register.

        The chain runs from ``word``, the last, back to the op that reads the phi in ``vreg``. If it
        doesn't end there, nothing is joined.
        """
        chain: list[Word] = []
        while word.op is not None and word.op.is_arithmetic:
            op = word.op
            operands = _operands_of_part(op, word)
            if any(v.kind == "phi" and v.vreg is vreg for v in operands):
                for partial in chain:
                    _join(vreg, partial.vreg)
                return

            # Partial results of a chain of this op, each read once
            alike = [v for v in operands if v.op is not None and v.op.name == op.name]
            partials = [v for v in alike if self.readers[v] == 1]
            if not partials:
                return
            word = partials[-1]
            chain.append(word)

    def copy_on_edge(self, pred: BasicBlock, pairs: list[tuple[Word, Word]]) -> None:
        """Append copies of arguments to their phis, as pairs (phi, argument), to the block
        ``pred``.

        The copies act at once, so none may overwrite what a later one reads. A copy is safe if no
        other one reads its target. If none is safe, they form a cycle, and one of its words is
        moved to another register first.
        """
        at = pred.ops[-1].at if pred.ops else 0
        waiting = list(pairs)

        def copy(word: Word) -> Word:
            op = Op("MOV", [Src(word)], at)
            pred.ops.append(op)
            return op.results[0]

        while waiting:
            readers = Counter(arg.vreg for _, arg in waiting if arg.has_register)
            safe = [n for n, pair in enumerate(waiting) if _is_safe(*pair, readers)]
            if safe:
                phi, arg = waiting.pop(safe[0])
                result = copy(arg)
                result.vreg = phi.vreg
                phi.args[pred] = result
                phi.vreg.words.append(result)
            else:
                phi, arg = waiting[0]
                spare = copy(arg)
                self.function.vreg(spare)
                waiting[0] = phi, spare


def _is_safe(phi: Word, arg: Word, readers: Counter[VirtualRegister]) -> bool:
    """Return whether no copy but this one reads the register that it writes."""
    itself = int(arg.has_register and arg.vreg is phi.vreg)
    return readers[phi.vreg] == itself


def _operands_of_part(op: Op, word: Word) -> list[Word]:
    """Return what ``op`` reads to make ``word``; of a double either the low or the high words."""
    parts = 2 if op.row.kind == "double" else 1
    part = op.results.index(word) % parts
    return [s.value for s in op.srcs[part::parts]]


def _join(vreg: VirtualRegister, other: VirtualRegister) -> bool:
    """Merge two virtual registers if their live ranges and channels allow it. Return whether they
    are one.
    """
    if vreg is other:
        return True
    alive_together = vreg.mask & other.mask
    common_channels = vreg.allowed & other.allowed
    if alive_together or not common_channels or other.fixed is not None:
        return False
    vreg.allowed &= other.allowed
    vreg.mask |= other.mask
    vreg.words += other.words
    for word in other.words:
        word.vreg = vreg
    other.words = []
    return True
