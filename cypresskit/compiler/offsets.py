"""Addresses: what the chip adds to them itself need not be computed.

A fetch whose coordinate is another value plus a whole number adds that itself, if the addition is exact: where the
coordinate is a multiple of 1/2 by construction (one beyond 2^22 lies outside every texture, with or without the
offset). Multiples of 1/2 are found by assuming it of all values that could be, then striking out what does not follow.

Two single reads of the local data share become one that reads two words, at a fixed distance or at two addresses, if in
their block nothing between them writes, waits, or takes what the first one read.
"""

import math
from dataclasses import replace

import numpy as np

from cypresskit.compiler.ir import FetchDetail, Function, LdsAccess, Op, Src, Word

OFFSETS = range(-8, 8)  # whole texels that a fetch instruction can add (ISA 10, TEX_WORD2)
WHOLE = ("FLOOR", "INT_TO_FLT", "UINT_TO_FLT")  # always give whole numbers
KEPT = (*WHOLE, "ADD", "MUL_IEEE", "MULADD_IEEE", "MOV", "MIN_DX10", "MAX_DX10")  # may give multiples of 1/2


def offset_fetches(function: Function) -> None:
    """Turn additions to the coordinates of fetches into offsets, in place."""
    ops = [op for block in function.blocks for op in block.ops]
    halves = _multiples_of_half(function) if any(op.name == "SAMPLE" for op in ops) else set()
    for op in ops:
        fetch, integer = op.detail, op.name == "LD"
        if not isinstance(fetch, FetchDetail) or op.name == "MEM_READ" or not (integer or fetch.unnormalised):
            continue
        offset = list(fetch.offset)
        for axis, src in enumerate(op.srcs):
            word = src.value
            while (step := _added(word, integer, halves)) is not None and offset[axis] + step[1] in OFFSETS:
                word, offset[axis] = step[0], offset[axis] + step[1]
            if word is not src.value:
                op.srcs[axis] = Src(word)
        op.detail = replace(fetch, offset=tuple(offset))


def pair_lds_reads(function: Function) -> None:
    """Pair the LDS reads of every block, in place."""
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
            (base, start), (other, end) = _affine(first.srcs[0].value), _affine(op.srcs[0].value)
            if base is other and end - start in range(0, 4 * 64, 4):
                op.name, op.srcs, op.detail = "LDS_READ_REL_RET", first.srcs, replace(access, offset=(end - start) // 4)
            else:
                op.name, op.srcs = "LDS_READ2_RET", first.srcs + op.srcs
            one, both = pops[first], pops[op]
            both.results = one.results + both.results
            for result in both.results:
                result.op = both
            block.ops = [kept for kept in block.ops if kept not in (first, one)]
            first = None


def _affine(address: Word) -> tuple[Word, int]:
    """An address as (value, bytes added)."""
    op = address.op
    if op is not None and op.name == "ADD_INT" and op.srcs[1].value.kind == "const":
        return op.srcs[0].value, int(_number(op.srcs[1].value, np.int32))
    return address, 0


def _number(value: Word, kind: type = np.float32) -> float:
    """What a constant is, read as that numpy type; NaN for other values."""
    return float(np.array([value.bits], np.uint32).view(kind)[0]) if value.kind == "const" else math.nan


def _added(value: Word, integer: bool, halves: set[Word]) -> tuple[Word, int] | None:
    """``value`` as (another value, whole number added to it)."""
    op = value.op
    if op is None or op.name != ("ADD_INT" if integer else "ADD") or not op.plain:
        return None
    for one, other in (op.srcs, op.srcs[::-1]):
        number = _number(other.value, np.int32 if integer else np.float32)
        if one.value.located and not (one.neg or one.abs) and abs(number) < 16 and number == int(number):
            if integer or one.value in halves:
                return one.value, int(number)
    return None


def _multiples_of_half(function: Function) -> set[Word]:
    """Values that are multiples of 1/2, or not finite, whatever the inputs."""
    makers = {op.results[0]: op for block in function.blocks for op in block.ops if op.name in KEPT}
    phis = [phi for block in function.blocks for phi in block.phis]
    known = {*makers, *phis, *(function.inputs if function.program.mode == "pixel" else ())}

    def half(value: Word, of: int = 2) -> bool:
        """Whether it is a multiple of 1/2, or a constant that is one of 1/``of``."""
        number = _number(value)
        return value in known if value.kind != "const" else abs(number) < 2**22 and (of * number).is_integer()

    def follows(word: Word) -> bool:
        op = makers.get(word)
        if op is None:  # a phi, or an input
            return all(map(half, word.args.values()))
        values = [s.value for s in op.srcs]
        if op.clamp or op.omod not in (1.0, 2.0, 4.0):
            return False
        if op.name in ("MUL_IEEE", "MULADD_IEEE"):
            factors = any(a.kind == "const" and half(a, 1) and half(b) for a, b in (values[:2], values[1::-1]))
            return factors and all(map(half, values[2:]))
        return op.name in WHOLE or all(map(half, values))

    while bad := {word for word in known if not follows(word)}:
        known -= bad
    return known
