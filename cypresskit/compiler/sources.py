"""Read the operands of IL instructions: the words that registers hold, and their modifiers.

A component of a general register is a variable (``ssa``). A component of a literal is a constant,
and one of a constant buffer is read where it is. Numbers of work-items and groups are in registers
that are preloaded before the kernel starts: vTidInGrpFlat in R0.w, vThreadGrpIdFlat in R1.w.
A float's negation stays with the operand, for the operation that reads it; an integer's becomes an
operation.
"""

from cypresskit.compiler.ir import FetchDetail, Src, Word, const
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import Instruction, Program, Register, Source
from cypresskit.il.bits import ONE
from cypresskit.il.program import LETTERS


class Sources:
    """Reads the operands of instructions of ``program``.

    An element of global memory is read once per instruction (``loaded``).
    """

    def __init__(self, builder: OpBuilder, program: Program):
        self.builder, self.program = builder, program
        self.loaded: dict[tuple[int, Register], list[Word]] = {}

    def component(self, source: Source, letter: str) -> Word:
        if letter in "01":
            return const(ONE if letter == "1" else 0)
        return self.register(source.register, LETTERS.index(letter))

    def register(self, register: Register, c: int) -> Word:
        b, kind, n = self.builder, register.kind, register.index
        if kind == "r":
            return b.read((n, c))
        if kind == "l":
            return const(self.program.literals[n][c])
        if kind == "cb":
            return b.place("constant", n, register.element, c)
        if kind == "g":
            return self.global_read(register)[c]
        if kind == "vWinCoord0":
            return b.place("input", 0, c) if c < 2 else const(ONE if c == 3 else 0)
        within, group = (b.place("input", gpr, 3) for gpr in (0, 1))
        if kind != "vAbsTidFlat":
            return group if kind == "vThreadGrpIdFlat" else within
        return b.emit("ADD_INT", b.multiply(group, const(self.program.group)), within)

    def global_read(self, register: Register) -> list[Word]:
        b = self.builder
        place = (self.builder.at, register)
        if place not in self.loaded:
            read = b.append(
                "MEM_READ", *self.address(register), detail=FetchDetail((register.element,))
            )
            self.loaded = {place: read.results}
        return self.loaded[place]

    def address(self, register: Register) -> list[Word]:
        """Return the word that an access adds to its element's number, in a list; an empty list if
        there is none.
        """
        source = register.address
        return [] if source is None else [self.component(source, source.swizzle[0])]

    def operand(self, i: Instruction, n: int, p: int) -> Src:
        """Return source ``n`` at position ``p``. Its sign is applied, or left to the op that reads
        it.
        """
        source = i.sources[n]
        word = self.component(source, source.swizzle[p])
        if source.negated and not i.op.float_modifiers(n):
            return Src(self.builder.emit("SUB_INT", 0, word))
        return Src(word, source.negated)

    def double(self, i: Instruction, n: int) -> list[Src]:
        """Return source ``n``, low word first."""
        source = i.sources[n]
        low, high = (self.component(source, source.swizzle[p]) for p in (0, 1))
        return [Src(low), Src(high, source.negated)]
