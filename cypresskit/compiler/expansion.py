"""One component of an arithmetic instruction, in the operations that the chip has.

Most IL opcodes are one operation. What the chip has no instruction for is written out: division by
reciprocal and correction, comparisons the other way round, multiplication by a power of two as a
shift. ``b`` is the builder that operations are appended to.
"""

from itertools import chain

import numpy as np

from cypresskit.compiler.ir import Op, Src, Word, const
from cypresskit.compiler.isa import OPS, comparison
from cypresskit.compiler.sources import plain, times
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import OPCODES, Instruction, Opcode

#: Hardware operations by the IL opcodes that they carry out.
SAME = {opcode.name: OPS[opcode.hardware] for opcode in OPCODES.values() if opcode.hardware}


def scalar(b: OpBuilder, opcode: Opcode, srcs: list[Src]) -> Word:
    name = opcode.name
    if name == "mov":
        op = srcs[0].value.op
        loads = srcs[0].value if op is None or op.name != "MOV" else op.srcs[0].value
        return b.emit("MOV", srcs[0]) if loads.kind == "const" else plain(b, srcs[0])
    if opcode.relation:
        compare, swapped = comparison(opcode.relation, opcode.sources[0])
        return b.emit(compare, *(srcs[::-1] if swapped else srcs))
    first, second, third = (*(s.value for s in srcs), const(0), const(0))[:3]
    if name in ("ishl", "ushr"):  # the chip gives 0 for counts above 31, IL takes the low five bits
        count = (
            const(second.bits & 31)
            if second.kind == "const"
            else b.emit("AND_INT", second, const(31))
        )
        return b.emit(SAME[name].name, first, count)
    if name in ("imul", "umul"):
        return times(b, first, second)
    if name == "sub":
        return b.emit("ADD", srcs[0], Src(second, not srcs[1].neg, srcs[1].abs))
    if name == "cmov_logical":
        return b.emit("CNDE_INT", srcs[0], plain(b, srcs[2]), plain(b, srcs[1]))
    if name in ("div", "mod"):
        quotient = b.emit("MUL_IEEE", srcs[0], b.emit("RECIP_IEEE", srcs[1]))
        if name == "mod":
            turns = Src(b.emit("TRUNC", quotient), True)
            return b.emit("MULADD_IEEE", turns, Src(plain(b, srcs[1])), Src(plain(b, srcs[0])))
        return b.emit("DIV_IEEE", plain(b, srcs[0]), plain(b, srcs[1]), quotient)
    if name == "inegate":
        return b.emit("SUB_INT", const(0), srcs[0])
    if name in ("ibit_extract", "ubit_extract"):  # IL has the width first, the chip the value
        return b.emit("BFE_INT" if name == "ibit_extract" else "BFE_UINT", third, second, first)
    if name == "ubit_insert":
        placed = b.emit("LSHL_INT", third, b.emit("AND_INT", second, const(31)))
        return b.emit("BFI_INT", b.emit("BFM_INT", first, second), placed, srcs[3].value)
    if name in ("imad", "umad"):
        return b.emit("ADD_INT", times(b, first, second), third)
    if name in ("udiv", "umod"):
        return _divided(b, first, second, name == "umod")
    return _same(b, opcode, srcs).results[0]


def _same(b: OpBuilder, opcode: Opcode, srcs: list[Src]) -> Op:
    """Append the one operation that does what the opcode does; one of three operands takes no
    absolutes.
    """
    row = SAME[opcode.name]
    if row.reads == 3:
        srcs = [Src(b.emit("MOV", Src(s.value, False, True)), s.neg) if s.abs else s for s in srcs]
    return b.append(row.name, *srcs)


def _divided(b: OpBuilder, a: Word, n: Word, rest: bool) -> Word:
    """a / n or a mod n of unsigned integers: by reciprocal, off by at most one, then corrected."""
    if n.kind == "const" and n.bits.bit_count() == 1:
        if rest:
            return b.emit("AND_INT", a, const(n.bits - 1))
        return b.emit("LSHR_INT", a, const(n.bits.bit_length() - 1))
    quotient = b.emit("MULHI_UINT", b.emit("RECIP_UINT", n), a)
    left = b.emit("SUB_INT", a, b.emit("MULLO_INT", quotient, n))
    more = b.emit("SETGE_UINT", left, n)  # all ones, that is -1, where one more fits
    if rest:
        result = b.emit("SUB_INT", left, b.emit("AND_INT", more, n))
    else:
        result = b.emit("SUB_INT", quotient, more)
    return b.emit("CNDE_INT", n, const(0xFFFFFFFF), result)


def doubles(b: OpBuilder, opcode: Opcode, srcs: list[Src]) -> list[Word]:
    """An instruction on doubles: the words of its result, low first, or the one word of a
    comparison.
    """
    if opcode.name == "ddiv":
        return _double_quotient(b, srcs)
    if opcode.relation:
        name, swapped = comparison(opcode.relation, "d")
        return [b.emit(name, *(srcs[2:] + srcs[:2] if swapped else srcs))]
    return _same(b, opcode, srcs).results


def _double_quotient(b: OpBuilder, srcs: list[Src]) -> list[Word]:
    """a / n: the reciprocal of n in single precision, two steps of Newton, a product, the last
    rounding.
    """

    def double(name: str, *operands: list[Src]) -> list[Src]:
        return [Src(word) for word in b.append(name, *chain(*operands)).results]

    a, n = ([Src(s[0].value), Src(plain(b, s[1]))] for s in (srcs[:2], srcs[2:]))
    one = [Src(const(0)), Src(const(0x3FF00000))]
    minus = [n[0], Src(n[1].value, True)]
    y = double("FLT32_TO_FLT64", [Src(b.emit("RECIP_IEEE", *double("FLT64_TO_FLT32", n)))])
    for _ in range(2):
        error = double("FMA_64", minus, y, one)
        y = double("FMA_64", error, y, y)
    return b.append("DIV_64", *a, *n, *double("MUL_64", a, y)).results


def scaled(b: OpBuilder, i: Instruction, word: Word) -> Word:
    """The result's scale and clamp, on the op that made it where the chip can."""
    if i.shift == 1.0 and not i.saturate:
        return word
    op = word.op
    if op is None or op.at != b.at or not op.row.scales or not op.plain:
        op = b.append("MOV", word)
    if i.shift in (1.0, 2.0, 4.0, 0.5):
        op.omod = i.shift
    else:
        bits = int(np.float32(i.shift).view(np.uint32))
        op = b.append("MUL_IEEE", op.results[0], const(bits))
    op.clamp = i.saturate
    return op.results[0]
