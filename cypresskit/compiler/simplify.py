"""Reduce the number of operations without changing a bit.

Copies are propagated, common subexpressions shared within a block, and dead code is removed. One
pass goes over the program in order and rewrites each op with what is known of its operands.

Then, LDS reads are paired: two reads of one word each become one operation that reads two, the
second at a fixed distance from the first. Two reads of a block can be paired if nothing between
them writes to the LDS, waits, or takes the first one's word.

Left out: all arithmetic. No sum is reassociated, and the chip operates on constants, too.
"""

from dataclasses import replace

import numpy as np

from cypresskit.compiler.ir import BasicBlock, Function, LdsAccess, Op, Src, Word, const
from cypresskit.il.bits import SIGN

EFFECTS = ("LDS_WRITE", "LDS_WRITE_REL", "GROUP_BARRIER")  # in addition to stores and tests


def simplify(function: Function) -> None:
    """Rewrite ``function`` in place."""
    _drop_trivial_phis(function)
    for block in function.blocks:
        _Rewriter(block).run()
    pair_lds_reads(function)
    _drop_dead(function)


class _Rewriter:
    """Rewrites one block.

    Attributes
    ----------
    shared
        Ops that later ones may share, by ``_key``.
    """

    def __init__(self, block: BasicBlock):
        self.block = block
        self.shared: dict[tuple, Op] = {}

    def run(self) -> None:
        self.block.ops = [op for op in self.block.ops if self.rewrite(op)]

    def rewrite(self, op: Op) -> bool:
        """Rewrite one op. Return False if it is to be removed."""
        op.srcs = [self.look_through(op, n, s.resolve()) for n, s in enumerate(op.srcs)]
        if op.row.is_test:
            return True
        if op.is_arithmetic:
            value, neg = op.srcs[0]
            if op.name == "MOV" and not neg and value.has_register:
                return self.replaced(op, [value])
        if not op.is_pure or (op.name == "MOV" and op.srcs[0].value.kind == "const"):
            return True
        same = self.shared.setdefault(_key(op), op)
        return same is op or self.replaced(op, same.results)

    def replaced(self, op: Op, words: list[Word]) -> bool:
        """Replace the results of ``op`` by these words. Return False: the op is removed."""
        for result, word in zip(op.results, words, strict=True):
            result.forward = word
        return False

    def look_through(self, op: Op, n: int, src: Src) -> Src:
        """Return the operand with copies propagated: what a MOV read, if it has no sign."""
        made = src.value.op
        if made is not None and made.name == "MOV":
            inner = made.srcs[0].resolve()
            if inner.value.kind in ("const", "constant") and not (
                op.is_arithmetic or op.name.startswith("LDS_")
            ):
                return src
            if not inner.neg:
                src = Src(inner.value, src.neg)
        if src.value.kind == "const" and src.neg:
            src = Src(const(src.value.bits ^ SIGN))
        return src


def _key(op: Op) -> tuple:
    """Return a key that is equal for ops that compute the same."""
    return op.name, tuple((id(s.value), s.neg) for s in op.srcs), op.detail


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
    """Replace two LDS reads of a block by one LDS_READ_REL_RET, in place."""
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
            if base is not first_base or distance not in range(0, 4 * 64, 4):
                first = op
                continue
            op.name = "LDS_READ_REL_RET"
            op.srcs = first.srcs
            op.detail = replace(access, offset=distance // 4)

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
