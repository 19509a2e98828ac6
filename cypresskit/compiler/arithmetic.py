"""One component of an arithmetic instruction, in the operations that the chip has.

Most IL opcodes are one operation. What the chip has no instruction for is written out: division by reciprocal and
correction, comparisons the other way round, multiplication by a power of two as a shift.
"""

import struct

from cypresskit.compiler.ir import Op, Src, Value
from cypresskit.compiler.isa import OPS
from cypresskit.compiler.ssa import Builder
from cypresskit.il import Instruction

#: IL opcodes with a hardware operation of the same operands, and those that take them the other way round.
SAME = {
    "add": "ADD", "mul": "MUL_IEEE", "mad": "MULADD_IEEE", "fma": "FMA", "flr": "FLOOR", "frc": "FRACT",
    "min": "MIN_DX10", "max": "MAX_DX10", "ge": "SETGE_DX10", "eq": "SETE_DX10", "ne": "SETNE_DX10",
    "iadd": "ADD_INT", "isub": "SUB_INT", "iand": "AND_INT", "ior": "OR_INT", "ixor": "XOR_INT", "inot": "NOT_INT",
    "ishr": "ASHR_INT", "imin": "MIN_INT", "imax": "MAX_INT", "umin": "MIN_UINT", "umax": "MAX_UINT",
    "ige": "SETGE_INT", "ieq": "SETE_INT", "ine": "SETNE_INT", "uge": "SETGE_UINT",
    "imul": "MULLO_INT", "umul": "MULLO_INT", "ftoi": "FLT_TO_INT", "ftou": "FLT_TO_UINT", "itof": "INT_TO_FLT",
    "utof": "UINT_TO_FLT", "rcp": "RECIP_IEEE", "sqrt": "SQRT_IEEE",
    "dadd": "ADD_64", "dmul": "MUL_64", "dmad": "FMA_64", "dge": "SETGE_64", "deq": "SETE_64", "dne": "SETNE_64",
    "d2f": "FLT64_TO_FLT32", "f2d": "FLT32_TO_FLT64",
}  # fmt: skip
SWAPPED = {"lt": "SETGT_DX10", "ilt": "SETGT_INT", "ult": "SETGT_UINT", "dlt": "SETGT_64"}
SCALED = ("MOV", "ADD", "MUL_IEEE", "FLOOR", "FRACT", "MIN_DX10", "MAX_DX10", "RECIP_IEEE", "SQRT_IEEE")


class Arithmetic(Builder):
    """Appends what an opcode means on given operands."""

    def times(self, a: Value, b: Value) -> Value:
        """a * b modulo 2^32; a shift where b is a power of two."""
        if b.kind == "const" and b.bits.bit_count() == 1:
            return self.emit("LSHL_INT", a, self.const(b.bits.bit_length() - 1)) if b.bits > 1 else a
        return self.emit("MULLO_INT", a, b)

    def plain(self, src: Src) -> Value:
        """The operand as a value, its modifiers carried out."""
        return self.emit("MOV", src) if src.neg or src.abs else src.value

    def scalar(self, name: str, srcs: list[Src]) -> Value:
        """One component of an arithmetic instruction."""
        if name == "mov":
            value = srcs[0].value
            constant = value.kind == "const" or (value.op is not None and _loads_constant(value.op))
            return self.emit("MOV", srcs[0]) if constant or srcs[0].neg or srcs[0].abs else value
        if name in SAME:
            if OPS[SAME[name]].reads == 3:  # operations of three operands take no absolutes
                srcs = [Src(self.emit("MOV", Src(s.value, False, True)), s.neg) if s.abs else s for s in srcs]
            return (
                self.times(srcs[0].value, srcs[1].value) if name in ("imul", "umul") else self.emit(SAME[name], *srcs)
            )
        if name in SWAPPED:
            return self.emit(SWAPPED[name], srcs[1], srcs[0])
        if name == "sub":
            return self.emit("ADD", srcs[0], Src(srcs[1].value, not srcs[1].neg, srcs[1].abs))
        if name in ("ishl", "ushr"):  # the chip gives 0 for counts above 31, IL takes the low five bits
            count = srcs[1].value
            count = (
                self.const(count.bits & 31) if count.kind == "const" else self.emit("AND_INT", count, self.const(31))
            )
            return self.emit("LSHL_INT" if name == "ishl" else "LSHR_INT", srcs[0], count)
        if name == "cmov_logical":
            return self.emit("CNDE_INT", srcs[0], self.plain(srcs[2]), self.plain(srcs[1]))
        if name == "div":
            quotient = self.emit("MUL_IEEE", srcs[0], self.emit("RECIP_IEEE", srcs[1]))
            return self.emit("DIV_IEEE", self.plain(srcs[0]), self.plain(srcs[1]), quotient)
        if name == "inegate":
            return self.emit("SUB_INT", self.const(0), srcs[0])
        a, b, *rest = (s.value for s in srcs)
        if name in ("imad", "umad"):
            return self.emit("ADD_INT", self.times(a, b), rest[0])
        return self.divided(a, b, name == "umod")

    def divided(self, a: Value, b: Value, rest: bool) -> Value:
        """a / b or a mod b of unsigned integers: by reciprocal, off by at most one, then corrected."""
        if b.kind == "const" and b.bits.bit_count() == 1:
            if rest:
                return self.emit("AND_INT", a, self.const(b.bits - 1))
            return self.emit("LSHR_INT", a, self.const(b.bits.bit_length() - 1))
        quotient = self.emit("MULHI_UINT", self.emit("RECIP_UINT", b), a)
        left = self.emit("SUB_INT", a, self.emit("MULLO_INT", quotient, b))
        more = self.emit("SETGE_UINT", left, b)  # all ones, that is -1, where one more fits
        if rest:
            result = self.emit("SUB_INT", left, self.emit("AND_INT", more, b))
        else:
            result = self.emit("SUB_INT", quotient, more)
        return self.emit("CNDE_INT", b, self.const(0xFFFFFFFF), result)

    def doubles(self, name: str, srcs: list[Src]) -> list[Value]:
        if name == "ddiv":
            return self.double_quotient(srcs)
        if name == "dlt":
            return self.pair("SETGT_64", srcs[2:] + srcs[:2])
        if name == "dmad":
            srcs = [Src(self.emit("MOV", Src(s.value, False, True)), s.neg) if s.abs else s for s in srcs]
        return self.pair(SAME[name], srcs)

    def pair(self, name: str, srcs: list[Src]) -> list[Value]:
        op = Op(name, srcs, self.at, words=2 if OPS[name].double_result else 1)
        return self.append(op).results

    def double_quotient(self, srcs: list[Src]) -> list[Value]:
        """a / b: the reciprocal of b in single precision, two steps of Newton, a product, the last rounding."""
        a, b = ([Src(s[0].value), Src(self.plain(s[1]))] for s in (srcs[:2], srcs[2:]))
        one = [Src(self.const(0)), Src(self.const(0x3FF00000))]
        minus = [b[0], Src(b[1].value, True)]
        guess = self.emit("RECIP_IEEE", self.pair("FLT64_TO_FLT32", b)[0])
        y = [Src(v) for v in self.pair("FLT32_TO_FLT64", [Src(guess)])]
        for _ in range(2):
            error = [Src(v) for v in self.pair("FMA_64", minus + y + one)]
            y = [Src(v) for v in self.pair("FMA_64", error + y + y)]
        quotient = [Src(v) for v in self.pair("MUL_64", a + y)]
        return self.pair("DIV_64", a + b + quotient)

    def scaled(self, i: Instruction, value: Value) -> Value:
        """The result's scale and clamp, on the op that made it where the chip can."""
        if i.shift == 1.0 and not i.saturate:
            return value
        op = value.op
        if op is None or op.at != self.at or op.name not in SCALED or op.clamp or op.omod != 1.0:
            value = self.emit("MOV", value)
            op = value.op
        assert op is not None
        if i.shift in (1.0, 2.0, 4.0, 0.5):
            op.omod = i.shift
        else:
            value = self.emit("MUL_IEEE", value, self.const(_float_bits(i.shift)))
            op = value.op
            assert op is not None
        op.clamp = i.saturate
        return value


def _loads_constant(op: Op) -> bool:
    return op.name == "MOV" and op.srcs[0].value.kind == "const"


def _float_bits(value: float) -> int:
    return struct.unpack("<I", struct.pack("<f", value))[0]
