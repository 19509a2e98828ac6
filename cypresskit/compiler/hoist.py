"""Loop-invariant code motion: what a loop computes anew from the same operands each turn is computed once, before it.

An operation is invariant if no operand is made in the loop, or only by invariant operations. It moves to the end of the
block before the loop, innermost loops first. As nothing on this chip faults, that may be work from behind a condition;
fetches move only if every turn does them, and reads of global memory if besides no store or barrier stands in the loop.

What moves saves its slots in every turn, but its result occupies a channel of a register from end to end of the loop:
it must save more than a quarter of a register is worth, and ``words`` limits how many results leave a loop (``search``
tries some limits). Left out: strength reduction, and copies of constants, which need no slot where they are read.
"""

from cypresskit.compiler.ir import BasicBlock, Function, Op

REGISTER = 0.015  # share of the clocks that a register is worth: SGEMM with 37 of them is 16 % slower than with 25
HIGHEST = 32  # loops in one another that are looked at, from the inside
FETCH = 4  # bundles that take as long as a fetch


def hoist(function: Function, words: int) -> int:
    """Move invariant operations out of all loops, inner ones first, at most ``words`` results out of each. Returns how
    many it may be worth to move out of one."""
    most, starts = 0, list[int]()
    for n, item in enumerate(function.items):
        if item == "loop":
            starts.append(n)
        elif item == "endloop":
            start = starts.pop()
            before, inside = function.items[start - 1], function.items[start:n]
            depth = max(item.depth for item in inside if isinstance(item, BasicBlock))
            if isinstance(before, BasicBlock) and not before.dead and depth - before.depth <= HIGHEST:
                most = max(most, _Invariants(inside).move(before, words))
    return most


class _Invariants:
    """The operations of one loop that it need not repeat, ``moving``: doing them earlier, and where they were not to be
    done, shows nowhere."""

    def __init__(self, items: list[BasicBlock | str]):
        self.blocks = [item for item in items if isinstance(item, BasicBlock)]
        ops = [op for b in self.blocks for op in b.ops]
        inside = {r for op in ops for r in op.results} | {phi for b in self.blocks for phi in b.phis}
        quiet = not any(op.name in ("MEM_WRITE", "GROUP_BARRIER") for op in ops)
        self.slots = sum(map(_slots, ops))
        self.moving: dict[Op, None] = {}  # in the order of the program
        depth = 0
        for item in items:
            if not isinstance(item, BasicBlock):
                depth += {"if": 1, "endif": -1}.get(item, 0)
                continue
            for op in item.ops:
                fixed = all(s.value not in inside or s.value.op in self.moving for s in op.srcs)
                if fixed and (depth == 0 and (op.samples or quiet) if op.fetches else op.pure):
                    self.moving[op] = None
        self.read = {s.value for op in ops if op not in self.moving for s in op.srcs}
        self.merged = {v for b in self.blocks for phi in b.phis for v in phi.args.values()}

    def words(self, op: Op) -> int:
        """Results that live through the loop if it moves."""
        return sum(r in self.read or r in self.merged for r in op.results)

    def made_of(self, op: Op) -> set[Op]:
        """The invariant operations that it takes, and itself."""
        found, stack = {op}, [op]
        while stack:
            makers = {s.value.op for s in stack.pop().srcs if s.value.op is not None and s.value.op in self.moving}
            stack += makers - found
            found |= makers
        return found

    def worth(self, op: Op) -> float:
        """Slots a turn that each word saves. What begins an inner loop's sum still needs a copy there."""
        parts = self.made_of(op)
        return (sum(map(_slots, parts)) - sum(r not in self.read for r in op.results)) / sum(map(self.words, parts))

    def move(self, before: BasicBlock, words: int) -> int:
        """Move what saves most until ``words`` results leave the loop; how many there are that save enough."""
        worth = {op: self.worth(op) for op in self.moving if self.words(op)}
        wanted = [op for op in worth if worth[op] > REGISTER / 4 * self.slots]
        moved: set[Op] = set()
        for op in sorted(wanted, key=lambda op: -worth[op]):
            parts = self.made_of(op) - moved
            if (cost := sum(map(self.words, parts))) <= words:
                words -= cost
                moved |= parts
        before.ops += [op for op in self.moving if op in moved]
        for block in self.blocks if moved else ():
            block.ops = [op for op in block.ops if op not in moved]
        return sum(map(self.words, wanted))


def _slots(op: Op) -> int:
    """Slots that it fills, or as many as take its time."""
    if op.row.slots:
        return op.row.width
    return 5 * FETCH if op.fetches or op.stores else len(op.results)
