"""Pairing of LDS reads: two that each bring a word become one operation that brings two.

The second word lies at a fixed distance from the first, or has an address of its own. Two reads of a block pair if
nothing between them writes to the LDS, waits, or takes what the first one brought.
"""

from dataclasses import replace

import numpy as np

from cypresskit.compiler.ir import Function, LdsAccess, Op, Word


def pair_lds_reads(function: Function) -> None:
    """Pair the LDS reads of every block, in place: LDS_READ_REL_RET and LDS_READ2_RET."""
    for block in function.blocks:
        first: Op | None = None  # a read that waits for another
        pops = {op.popped: op for op in block.ops if op.popped}
        for op in list(block.ops):
            access = op.detail
            touched = first is not None and any(s.value in pops[first].results for s in op.srcs)
            if op.name in ("LDS_WRITE", "LDS_WRITE_REL", "GROUP_BARRIER") or touched:
                first = None
            if op.name != "LDS_READ_RET" or not isinstance(access, LdsAccess):
                continue
            if first is None or first.detail != access:
                first = op
                continue
            (first_base, start), (base, end) = _affine(first.srcs[0].value), _affine(op.srcs[0].value)
            if base is first_base and end - start in range(0, 4 * 64, 4):
                op.name, op.srcs, op.detail = "LDS_READ_REL_RET", first.srcs, replace(access, offset=(end - start) // 4)
            else:
                op.name, op.srcs = "LDS_READ2_RET", first.srcs + op.srcs
            single, both = pops[first], pops[op]
            both.results = single.results + both.results
            for result in both.results:
                result.op = both
            block.ops = [other for other in block.ops if other not in (first, single)]
            first = None


def _affine(address: Word) -> tuple[Word, int]:
    """An address as (value, bytes added to it)."""
    op = address.op
    if op is not None and op.name == "ADD_INT" and op.srcs[1].value.kind == "const":
        return op.srcs[0].value, int(np.uint32(op.srcs[1].value.bits).view(np.int32))
    return address, 0
