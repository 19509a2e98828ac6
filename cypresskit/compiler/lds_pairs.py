"""Two single reads of the local data share become one that reads two words: at a fixed distance, or at two addresses.

Reads pair within a block if nothing between them writes, waits, or takes what the first one read.
"""

from dataclasses import replace

from cypresskit.compiler.ir import Function, LdsAccess, Op, Word


def pair_lds_reads(function: Function) -> None:
    for block in function.blocks:
        waiting: Op | None = None
        pops = {op.popped: op for op in block.ops if op.popped}
        ops: list[Op] = []
        for op in block.ops:
            ops.append(op)
            touched = waiting is not None and any(s.value in pops[waiting].results for s in op.srcs)
            if op.name in ("LDS_WRITE", "LDS_WRITE_REL", "GROUP_BARRIER") or touched:
                waiting = None
            access = op.detail
            if op.name != "LDS_READ_RET" or not isinstance(access, LdsAccess):
                continue
            if waiting is None or waiting.detail != access:
                waiting = op
                continue
            first, second = pops[waiting], pops[op]
            base, other = _affine(waiting.srcs[0].value), _affine(op.srcs[0].value)
            distance = other[1] - base[1]
            if base[0] is other[0] and distance % 4 == 0 and 0 <= distance // 4 < 64:
                op.name, op.srcs = "LDS_READ_REL_RET", waiting.srcs
                op.detail = replace(access, offset=distance // 4)
            else:
                op.name, op.srcs = "LDS_READ2_RET", waiting.srcs + op.srcs
            second.words, second.results = 2, first.results + second.results
            for result in second.results:
                result.op = second
            ops.remove(waiting)
            ops.remove(first)
            waiting = None
        block.ops = ops


def _affine(value: Word) -> tuple[Word, int]:
    """An address as (value, bytes added)."""
    if value.op is not None and value.op.name == "ADD_INT" and value.op.srcs[1].value.kind == "const":
        added = value.op.srcs[1].value.bits
        return value.op.srcs[0].value, added - (added >> 31 << 32)
    return value, 0
