"""Read the operands of IL instructions: the words that registers hold, and their modifiers.

A component of a general register is a variable (``ssa``). A component of a literal is a constant,
and one of a constant buffer is read where it is. Numbers of work-items and groups are in registers
that are preloaded before the kernel starts: vTidInGrp in R0, vThreadGrpId in R1, flat ones in w.
Negation and absolute value stay with the operand, for the operation that reads it; other modifiers
become operations.
"""

import math

from cypresskit.compiler.ir import FetchDetail, Src, Word, const
from cypresskit.compiler.ssa import OpBuilder
from cypresskit.il import Instruction, Program, Register, Source
from cypresskit.il.bits import ONE, TWO
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
        if kind == "vWinCoord0" and c >= 2:
            return const(ONE if c == 3 else 0)
        flat = kind.endswith("Flat")
        if c == 3 and not flat:
            return const(0)

        def given(gpr: int) -> Word:
            return b.place("input", gpr, 3 if flat else c)

        if not kind.startswith("vAbsTid"):
            return given(1 if kind.startswith("vThreadGrpId") else 0)
        size = math.prod(self.program.group) if flat else self.program.group[c]
        return b.emit("ADD_INT", b.multiply(given(1), const(size)), given(0))

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
        """Return source ``n`` at position ``p``. Its modifiers are applied, or left to the op that
        reads it.
        """
        source = i.sources[n]
        word = self.component(source, source.swizzle[p])
        negate = LETTERS[p] in source.negate
        if i.op.float_modifiers(n):
            return self.modified(word, source, negate)
        return Src(self.builder.emit("SUB_INT", 0, word)) if negate else Src(word)

    def double(self, i: Instruction, n: int) -> list[Src]:
        """Return source ``n``, low word first."""
        source = i.sources[n]
        low, high = (self.component(source, source.swizzle[p]) for p in (0, 1))
        return [Src(low), self.modified(high, source, source.negates_double)]

    def modified(self, word: Word, source: Source, negate: bool) -> Src:
        if source.x2:
            word = self.builder.emit("MUL_IEEE", word, TWO)
        return Src(word, negate, source.abs)
