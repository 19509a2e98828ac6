"""Which results need the canonical NaN: those whose bits can be seen.

Arithmetic on a NaN gives a NaN, whatever its bits, so a sum in a loop may hold any. Its bits are
seen where they are stored, moved to a place where they are, or read as another type. A result that
is merely stored at last is made canonical there, if nothing but such results is in its register.
"""

from cypresskit.il import Instruction, Program, Source
from cypresskit.il.bits import INFINITY, SIGN
from cypresskit.il.dataflow import (
    Numbering,
    Use,
    backward,
    components,
    defines,
    keys,
    uses,
    writers,
)
from cypresskit.il.program import LETTERS


class Payloads:
    """The NaNs of a program, by the type of the arithmetic that makes them: "f" or "d"."""

    def __init__(self, program: Program):
        self.program = program
        self.numbering = Numbering(program)
        self.paired = self._paired()
        results = {i.op.result for i in program.body if i.op.kind == "alu"}
        kinds = [kind for kind in "fd" if kind in results]
        self.pure = {kind: self._pure(kind) for kind in kinds}
        self.seen = {kind: self._seen(kind) for kind in kinds}

    def visible(self, at: int) -> bool:
        """Whether a result of ``body[at]`` has to be canonical."""
        i = self.program.body[at]
        if i.dest is None or i.dest.register.kind != "r" or i.op.result not in self.seen:
            return True
        written = self._written(i)
        if i.op.result == "d" and written & ~self.paired:
            return True
        return bool(self.seen[i.op.result][at + 1] & written)

    def stored(self, i: Instruction, use: Use) -> str:
        """The type of the results that an operand stores, if it holds nothing else; else ""."""
        number, source, positions = use
        in_register = i.dest is not None and i.dest.register.kind == "r"
        if number not in i.op.passed or in_register or source.register.kind != "r":
            return ""
        read = self.numbering.bits(keys([use]))
        for kind, pure in self.pure.items():
            whole = kind == "f" or (positions == (0, 1, 2, 3) and source.swizzle == LETTERS)
            if whole and not read & ~pure:
                return kind
        return ""

    def _written(self, i: Instruction) -> int:
        return self.numbering.bits((i.dest.register.index, c) for c in defines(i)) if i.dest else 0

    def _paired(self) -> int:
        """The components whose word of a double is never written without the other one."""
        written_by = writers(self.program)
        together = [
            (number, c)
            for number, c in written_by
            if written_by[number, c] == written_by[number, c ^ 1]
        ]
        return self.numbering.bits(together)

    def _pure(self, kind: str) -> int:
        """The components to which nothing is ever written but results of that type, 0 and 1."""
        others = ~self.paired if kind == "d" else 0
        for i in self.program.body:
            if i.op.kind != "alu" or i.op.result != kind:
                if not self._is_number(i):
                    others |= self._written(i)
        return ~others

    def _is_number(self, i: Instruction) -> bool:
        """Whether it moves literals, none of them a NaN."""
        if i.opcode != "mov" or i.sources[0].register.kind != "l" or i.sources[0].modified:
            return False
        words = self.program.literals[i.sources[0].register.index]
        return all(word & ~SIGN <= INFINITY for word in words)

    def _seen(self, kind: str) -> list[int]:
        """The components in which the bits of a NaN can be seen, before each instruction."""
        body = self.program.body
        looked = []
        passed = []
        for i in body:
            # The words of a double might part, if they are copied
            copied = i.op.passed if defines(i) and kind == "f" else ()
            bare = [
                use
                for use in uses(self.program, i)
                if not self._as_number(kind, i, use) and self.stored(i, use) != kind
            ]
            looked.append(self.numbering.bits(keys(use for use in bare if use[0] not in copied)))
            passed.append(self.numbering.bits(keys(use for use in bare if use[0] in copied)))
        written = [self._written(i) for i in body]

        def before(at: int, after: int) -> int:
            moved = passed[at] if after & written[at] else 0
            return after & ~written[at] | looked[at] | moved

        return backward(self.program, before)

    @staticmethod
    def _as_number(kind: str, i: Instruction, use: Use) -> bool:
        """Whether an operand is a number of that type to its instruction."""
        number, source, positions = use
        if number < 0 or number in i.op.passed or i.op.sources[number] != kind:
            return False
        return kind == "f" or _is_pair(source, positions)


def _is_pair(source: Source, positions: tuple[int, ...]) -> bool:
    """Whether a source's components are the two words of a double, in their order."""
    read = components(source, positions)
    return len(read) == 2 and read[0] % 2 == 0 and read[1] == read[0] + 1
