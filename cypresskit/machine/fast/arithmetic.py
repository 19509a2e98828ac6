"""Translates instructions that compute: scalar by scalar, whole registers at once, doubles."""

from cypresskit.il import Instruction
from cypresskit.machine.fast.memory_access import MemoryAccess
from cypresskit.machine.fast.native_meaning import KIND, NATIVE, canonical
from cypresskit.machine.fast.register_file import RegisterFile
from cypresskit.machine.fast.uniformity import literal
from cypresskit.machine.fast.vec import Vec

# Operations for which it is worth telling LLVM that the second source is a literal
CONSTANT_SECOND = (
    "ishl",
    "ishr",
    "ushr",
    "udiv",
    "umod",
    "iand",
    "imul",
    "umul",
)


class Arithmetic:
    """Translates instructions that compute; what they write to memory, ``memory`` stores."""

    def __init__(self, registers: RegisterFile, memory: MemoryAccess):
        self.registers, self.memory = registers, memory
        self.program, self.body = registers.program, registers.body
        self.analysis, self.floats = registers.analysis, registers.floats

    def execute(self, at: int) -> None:
        """Translate a computing instruction."""
        i = self.body[at]
        self.memory.read_global(at)
        if i.op.double:
            self._double(at, i)
        elif i.op.across:
            places = range(i.op.across)
            sides = [
                [self.registers.component(at, n, p).bits("float") for p in places] for n in (0, 1)
            ]
            value = self._finished(at, i, NATIVE[i.op.name](self.floats, *sides))
            self.memory.write_components(
                at, dict.fromkeys(self.registers.dest(at).written, value) | self.registers.fixed(at)
            )
        else:
            self._componentwise(at, i)

    def _componentwise(self, at: int, i: Instruction) -> None:
        dest, values = self.registers.dest(at), self.registers.fixed(at)
        to_register = dest.register.kind == "r"
        together = [c for c in dest.written if not to_register or self.analysis.defined(at, c).wide]
        if self.registers.lanes != 4:
            together = []
        whole = self._value(at, i, tuple(together), True) if together else None
        values |= {c: self._value(at, i, (c,), False) for c in dest.written if c not in together}
        if whole is not None and not to_register:
            self.memory.store_out(at, values, whole)
            return
        if whole is not None:
            self.registers.write_wide(at, whole, together)
        self.memory.write_components(at, values)

    def _value(self, at: int, i: Instruction, positions: tuple[int, ...], whole: bool) -> Vec:
        """The result (i32) at these positions: of whole registers, or of one component."""
        operands = []
        for n, source in enumerate(i.sources):
            same = {literal(self.program, source, p) for p in positions}
            if n == 1 and i.op.name in CONSTANT_SECOND and len(same) == 1 and None not in same:
                operands.append(self.registers.routine.ir.const(same.pop() or 0, "i32"))
            elif whole:
                operands.append(self.registers.wide(at, n, positions))
            else:
                operands.append(self.registers.component(at, n, positions[0]))
        lanes = max(v.n for v in operands)
        operands = [
            v.lanes(lanes).bits(KIND[k]) for v, k in zip(operands, i.op.sources, strict=True)
        ]
        return self._finished(at, i, NATIVE[i.op.name](self.floats, *operands))

    def _finished(self, at: int, i: Instruction, value: Vec) -> Vec:
        """The bits (i32) of a computed ``value``: scaled, clamped, its NaN made canonical if it
        must be now.
        """
        if i.shift != 1.0 or i.saturate:
            value = self.floats.scaled(value.bits("float"), i.shift, i.saturate)
        dest = self.registers.dest(at)
        known = self.analysis
        now = dest.register.kind != "r" or any(
            known.defined(at, c).double or known.mixed(at, c) for c in dest.written
        )
        if now and value.kind == "float" and not i.saturate:
            value = canonical(value)
        return value.bits("i32")

    def _double(self, at: int, i: Instruction) -> None:
        """An operation with doubles among operands or results."""
        operands = [
            self.registers.double(at, n)
            if kind == "d"
            else self.registers.component(at, n, 0).bits("float")
            for n, kind in enumerate(i.op.sources)
        ]
        lanes = max(v.n for v in operands)
        result = NATIVE[i.op.name](self.floats, *(v.lanes(lanes) for v in operands))
        dest, values = self.registers.dest(at), self.registers.fixed(at)
        if i.op.result != "d":
            values |= dict.fromkeys(dest.written, self._finished(at, i, result))
            self.memory.write_components(at, values)
            return
        for p in (0, 2):
            written = [c for c in (p, p + 1) if c in dest.written]
            cell = None
            if len(written) == 2 and dest.register.kind == "r":
                cell = self.analysis.defined(at, p)
            if cell and cell.double:
                bits = canonical(result) if self.analysis.mixed(at, p) else result
                self.registers.write_cell(at, cell, bits.bits("i64"))
            elif written:
                bits = canonical(result).bits("i64")
                values |= {c: (bits >> 32 if c % 2 else bits).cast("trunc", "i32") for c in written}
        self.memory.write_components(at, values)
