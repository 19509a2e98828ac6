"""Operands of IL instructions: the values that registers hold, and the modifiers on them.

A component of a general register is a variable (``ssa``), one of a literal a constant, one of a constant buffer a place
to read. Numbers of work-items and groups come in registers that are filled before the kernel starts: vTidInGrp in R0,
vThreadGrpId in R1, the flat ones in w. Negate and absolute stay with the operand, for the operation that reads it to do
if it can; the other modifiers are operations of their own.
"""

from cypresskit.compiler.arithmetic import Arithmetic
from cypresskit.compiler.ir import Op, Src, Value
from cypresskit.il import Instruction, Program, Register, Source

ONE, HALF, SIGN, NAN = 0x3F800000, 0x3F000000, 0x80000000, 0x7FC00000
INPUTS = {  # register, first channel, and whether all components are the same word
    "vWinCoord0": (0, 0, False),
    "vTidInGrp": (0, 0, False),
    "vTidInGrpFlat": (0, 3, True),
    "vThreadGrpId": (1, 0, False),
    "vThreadGrpIdFlat": (1, 3, True),
}


class Operands(Arithmetic):
    """Reads the operands of instructions of ``program``."""

    def __init__(self, program: Program):
        super().__init__()
        self.program = program

    def component(self, source: Source, letter: str) -> Value:
        if letter in "01":
            return self.const(ONE if letter == "1" else 0)
        c = "xyzw".index(letter)
        return self.register(source.register, c)

    def register(self, register: Register, c: int) -> Value:
        kind, n = register.kind, register.index
        if kind == "r":
            return self.read((n, c), self.block)
        if kind == "l":
            return self.const(self.program.literals[n][c])
        if kind == "cb":
            return self.place("constant", n, register.element, c)
        if kind == "g":
            return self.global_read(register)[c]
        if kind == "vWinCoord0" and c >= 2:
            return self.const(ONE if c == 3 else 0)
        if kind in INPUTS:
            gpr, first, same = INPUTS[kind]
            return self.const(0) if c == 3 and not same else self.place("input", gpr, first if same else c)
        return self.absolute_id(kind, c)

    def absolute_id(self, kind: str, c: int) -> Value:
        """vAbsTid and vAbsTidFlat: group number times group size plus number in the group."""
        x, y, z = self.program.group
        flat = kind == "vAbsTidFlat"
        if c == 3 and not flat:
            return self.const(0)
        group, within = self.place("input", 1, 3 if flat else c), self.place("input", 0, 3 if flat else c)
        size = x * y * z if flat else (x, y, z)[c]
        return self.emit("ADD_INT", self.times(group, self.const(size)), within)

    def global_read(self, register: Register) -> list[Value]:
        if self.gread is None or self.gread[0] != register:
            srcs = (
                [] if register.address is None else [Src(self.component(register.address, register.address.swizzle[0]))]
            )
            op = Op("MEM_READ", srcs, self.at, words=4, info={"offset": register.element})
            self.gread = (register, self.append(op).results)
        return self.gread[1]

    gread: tuple[Register, list[Value]] | None = None

    def operand(self, i: Instruction, n: int, p: int) -> Src:
        """Source ``n`` at position ``p``, its modifiers applied or kept for the op that reads it."""
        source = i.sources[n]
        value = self.component(source, source.swizzle[p])
        negate = "xyzw"[p] in source.negate
        if i.op.float_modifiers(n):
            return self.modified(value, source, negate)
        return Src(self.emit("SUB_INT", self.const(0), value)) if negate else Src(value)

    def double(self, i: Instruction, n: int) -> list[Src]:
        source = i.sources[n]
        low, high = (self.component(source, source.swizzle[p]) for p in (0, 1))
        return [Src(low), self.modified(high, source, source.negates_double)]

    def modified(self, value: Value, source: Source, negate: bool) -> Src:
        if source.invert:
            value = self.emit("ADD", self.const(ONE), Src(value, True))
        if source.bias:
            value = self.emit("ADD", value, self.const(HALF | SIGN))
        if source.x2:
            value = self.emit("MUL_IEEE", value, self.const(0x40000000))
        if source.sign:
            above = self.emit("AND_INT", self.emit("SETGT_DX10", value, self.const(0)), self.const(ONE))
            below = self.emit("AND_INT", self.emit("SETGT_DX10", self.const(0), value), self.const(ONE | SIGN))
            nan = self.emit("AND_INT", self.emit("SETNE_DX10", value, value), self.const(NAN))
            value = self.emit("OR_INT", self.emit("OR_INT", above, below), nan)
        return Src(value, negate, source.abs)
