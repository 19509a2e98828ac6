"""Reduce the number of operations without changing a bit.

Copies are propagated, constants folded, common subexpressions shared, and dead code is removed. One
pass goes over the program in order and rewrites each op with what is known of its operands. Equal
operations are shared within a block and the ifs it contains, but not across a loop's edge, where
sharing would occupy a register throughout the loop to save an instruction outside of it.

Then, LDS reads are paired: two reads of one word each become one operation that reads two. The
second word is at a fixed distance from the first, or has an address of its own. Two reads of a
block can be paired if nothing between them writes to the LDS, waits, or takes the first one's word.

No float operation is reassociated.
"""

from dataclasses import replace

import numpy as np

from cypresskit.compiler.ir import BasicBlock, Function, LdsAccess, Op, Src, Word, const
from cypresskit.il.bits import ALL, SIGN
from cypresskit.il.meaning import pair

EFFECTS = ("LDS_WRITE", "LDS_WRITE_REL", "GROUP_BARRIER")  # in addition to stores and tests


def simplify(function: Function) -> None:
    """Rewrite ``function`` in place."""
    _drop_trivial_phis(function)
    _Rewriter(function).run()
    _drop_dead(function)
    pair_lds_reads(function)
    _drop_dead(function)


def _rewritten(op: Op, a: Src, c: int) -> tuple[str, list[Src]] | None:
    """Return the name and operands of a simpler op for ``op`` of ``a`` and the constant ``c``.

    Integers only: floats have rounding, signs of zero and NaNs to preserve.
    """
    if op.row.neutral == c:  # a + 0, a or 0, a shifted by 0, a and all ones -> a
        return "MOV", [a]
    if op.name == "SUB_INT":  # a - c -> a + -c
        return "ADD_INT", [a, Src(const(-c & ALL))]
    inner = a.value.op
    if op.name == "ADD_INT" and inner is not None and inner.name == "ADD_INT":
        x, d = (s.value.resolve() for s in inner.srcs)
        if d.kind == "const":  # (x + d) + c -> x + (d + c)
            return "ADD_INT", [Src(x), Src(const(d.bits + c & ALL))]
    return None


class _Rewriter:
    """Rewrites one function.

    Attributes
    ----------
    scopes
        Stacks of ops that may be shared here, by ``_key``. The scope of an if begins with the
        enclosing one.
    """

    def __init__(self, function: Function):
        self.function = function
        self.scopes: list[dict[tuple, Op]] = [{}]

    def run(self) -> None:
        for item in self.function.items:
            if isinstance(item, BasicBlock):
                item.ops = [op for op in item.ops if self.rewrite(op)]
            else:
                self.enter(item)

    def enter(self, keyword: str) -> None:
        """Begin and end scopes. A loop ends two, its own and the enclosing one: what follows a loop
        shares nothing with what precedes it.
        """
        for _ in range({"else": 1, "endif": 1, "endloop": 2}.get(keyword, 0)):
            self.scopes.pop()
        if keyword in ("if", "else"):
            self.scopes.append(dict(self.scopes[-1]))
        elif keyword in ("loop", "endloop"):
            self.scopes.append({})

    def rewrite(self, op: Op) -> bool:
        """Rewrite one op. Return False if it is to be removed."""
        op.srcs = [self.look_through(op, n, s.resolve()) for n, s in enumerate(op.srcs)]
        if op.row.is_test:
            return True
        if op.is_arithmetic:
            self.algebra(op)
            value, neg = op.srcs[0]
            copies = op.name == "MOV" and not neg
            if copies and value.has_register:
                return self.replaced(op, [value])
            if not copies and all(s.value.kind == "const" for s in op.srcs):
                self.fold(op)
        if not op.is_pure or (op.name == "MOV" and op.srcs[0].value.kind == "const"):
            return True
        same = self.scopes[-1].setdefault(_key(op), op)
        return same is op or self.replaced(op, same.results)

    def replaced(self, op: Op, words: list[Word]) -> bool:
        """Replace the results of ``op`` by these words. Return False: the op is removed."""
        for result, word in zip(op.results, words, strict=True):
            result.forward = word
        return False

    def look_through(self, op: Op, n: int, src: Src) -> Src:
        """Return the operand with copies propagated: what a MOV read, if the reader can apply the
        MOV's sign.
        """
        made = src.value.op
        if made is not None and made.name == "MOV":
            inner = made.srcs[0].resolve()
            if inner.value.kind in ("const", "constant") and not (
                op.is_arithmetic or op.name.startswith("LDS_")
            ):
                return src
            if not inner.neg:
                src = Src(inner.value, src.neg)
            elif op.is_arithmetic and op.takes_float(n):
                src = Src(inner.value, not src.neg)
        if src.value.kind == "const" and src.neg:
            src = Src(const(src.value.bits ^ SIGN))
        return src

    def fold(self, op: Op) -> None:
        """Turn an op whose operands are all constants into a MOV of its result."""
        row = op.row
        if len(op.results) == 2 or row.meaning is None:
            return  # doubles of constants are rare: compute them on the chip
        words = [np.array([s.value.bits], np.uint32) for s in op.srcs]
        with np.errstate(all="ignore"):
            if row.kind == "double":
                words = [pair(low, high) for low, high in zip(words[::2], words[1::2], strict=True)]
            bits = row.meaning(*words)
        op.name = "MOV"
        op.srcs = [Src(const(int(bits[0])))]

    def algebra(self, op: Op) -> None:
        """Put an op's constant last, and simplify an op of two operands (``_rewritten``)."""
        if len(op.srcs) != 2:
            return
        first, second = (s.value.kind == "const" for s in op.srcs)
        if first and not second and op.row.commutes and op.row.kind == "int":
            op.srcs.reverse()
        a, b = op.srcs
        rewritten = _rewritten(op, a, b.value.bits) if b.value.kind == "const" else None
        if rewritten is not None:
            op.name, op.srcs = rewritten


def _key(op: Op) -> tuple:
    """Return a key that is equal for ops that compute the same."""
    srcs = [(id(s.value), s.neg) for s in op.srcs]
    if op.row.commutes:
        half = len(srcs) // 2  # words of an operand
        srcs = [src for operand in sorted([srcs[:half], srcs[half:]]) for src in operand]
    return op.name, tuple(srcs), op.detail


def _drop_trivial_phis(function: Function) -> None:
    """Replace each phi whose arguments are all one word, or the phi itself, by that word."""
    blocks = function.blocks
    work = [phi for block in reversed(blocks) for phi in block.phis]
    users: dict[Word, dict[Word, None]] = {}  # phis that a word is an argument of, in order
    for phi in work:
        for word in phi.args.values():
            users.setdefault(word.resolve(), {})[phi] = None
    while work:
        phi = work.pop()
        if phi.forward is not None:
            continue
        others = {word.resolve() for word in phi.args.values()} - {phi}
        if len(others) == 1:
            phi.forward = others.pop()
            readers = users.pop(phi, {})
            work += readers
            users.setdefault(phi.forward, {}).update(readers)
    for block in blocks:
        block.phis = [phi for phi in block.phis if phi.forward is None]


def _drop_dead(function: Function) -> None:
    """Remove every op and phi whose results no store, test or barrier needs."""
    blocks = function.blocks
    for block in blocks:
        for phi in block.phis:
            phi.args = {b: v.resolve() for b, v in phi.args.items()}
        for op in block.ops:
            op.srcs = [s.resolve() for s in op.srcs]
    live: set[Word | Op] = set()
    ops = (op for block in blocks for op in block.ops)
    stack: list[Word | Op] = [
        op for op in ops if op.is_store or op.row.is_test or op.name in EFFECTS
    ]
    while stack:
        needed = stack.pop()
        if needed in live:
            continue
        live.add(needed)
        if isinstance(needed, Word):
            stack += needed.args.values()
            maker = needed.op
        else:
            stack += [s.value for s in needed.srcs]
            maker = needed.popped
        if maker is not None:
            stack.append(maker)
    for block in blocks:
        block.ops = [op for op in block.ops if op in live]
        block.phis = [phi for phi in block.phis if phi in live]
    function.inputs = [v for v in function.inputs if v in live]


def pair_lds_reads(function: Function) -> None:
    """Pair the LDS reads of every block, in place: LDS_READ_REL_RET and LDS_READ2_RET."""
    for block in function.blocks:
        first: Op | None = None  # a read that isn't paired yet
        pops = {op.popped: op for op in block.ops if op.popped}
        for op in list(block.ops):
            access = op.detail
            touched = first is not None and any(s.value in pops[first].results for s in op.srcs)
            if op.name in EFFECTS or touched:
                first = None
            if op.name != "LDS_READ_RET" or not isinstance(access, LdsAccess):
                continue
            if first is None or first.detail != access:
                first = op
                continue

            first_base, first_offset = _affine(first.srcs[0].value)
            base, offset = _affine(op.srcs[0].value)
            distance = offset - first_offset
            if base is first_base and distance in range(0, 4 * 64, 4):
                op.name = "LDS_READ_REL_RET"
                op.srcs = first.srcs
                op.detail = replace(access, offset=distance // 4)
            else:
                op.name = "LDS_READ2_RET"
                op.srcs = first.srcs + op.srcs

            first_pop, pop = pops[first], pops[op]
            pop.results = first_pop.results + pop.results
            for result in pop.results:
                result.op = pop
            block.ops = [other for other in block.ops if other not in (first, first_pop)]
            first = None


def _affine(address: Word) -> tuple[Word, int]:
    """Return an address as (value, bytes added to it)."""
    op = address.op
    if op is not None and op.name == "ADD_INT" and op.srcs[1].value.kind == "const":
        return op.srcs[0].value, int(np.uint32(op.srcs[1].value.bits).view(np.int32))
    return address, 0
