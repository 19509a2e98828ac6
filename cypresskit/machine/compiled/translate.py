"""Translate IL to LLVM IR for one work-item: registers, arithmetic and control flow.

A ``WorkItemWriter`` adds how a work-item reaches memory. Components of a register that are always
written together share a variable, a vector, so LLVM sees which components a loop changes.

Every result has the canonical NaN where its bits can be seen. A variable to which only float
arithmetic (or only double arithmetic) writes may hold any NaN: arithmetic on it gives a NaN in any
case, and other reads make it canonical. All other results are made canonical at once.
"""

from collections.abc import Callable, Sequence
from functools import partial

from cypresskit.il import Dest, Instruction, Program, Register, Source
from cypresskit.il.bits import INFINITY, ONE, SIGN
from cypresskit.il.dataflow import (
    components,
    defines,
    lds_words,
    read_positions,
)
from cypresskit.il.program import LETTERS
from cypresskit.machine.compiled.host import Lanes, WorkItemWriter
from cypresskit.machine.compiled.native_meaning import KIND, NATIVE
from cypresskit.machine.compiled.processor import HostProcessor
from cypresskit.machine.compiled.translation import TEXEL, Translation
from cypresskit.machine.compiled.vec import Vec


def number_types(program: Program, lanes: Lanes) -> dict[str, str]:
    """Return the type of the numbers in each variable that may hold any NaN: "f" or "d"."""
    types: dict[str, set[str]] = {}
    for i in program.body:
        if i.dest is None or _moves_numbers(program, i):
            continue
        for n, c in defines(i):
            name, other_word = (lanes[n, k][0] for k in (c, c ^ 1))
            whole = i.op.result == "f" or name == other_word
            is_number = i.op.kind == "alu" and i.op.result in "fd" and whole
            types.setdefault(name, set()).add(i.op.result if is_number else "")
    return {name: min(found) for name, found in types.items() if len(found) == 1}


def _moves_numbers(program: Program, i: Instruction) -> bool:
    """Return whether an instruction moves a literal without a NaN, of either type."""
    if i.opcode != "mov" or i.sources[0].register.kind != "l" or i.sources[0].negated:
        return False
    words = program.literals[i.sources[0].register.index]
    return all(word & ~SIGN <= INFINITY for word in words)


def translate(program: Program, processor: HostProcessor) -> Translation:
    """Return the function that runs a launch of ``program``."""
    writer = WorkItemWriter(program, processor)
    Translator(program, writer).work_item()
    return writer.translation()


class Translator:
    """Writes a program's instructions to ``writer.ir``."""

    def __init__(self, program: Program, writer: WorkItemWriter):
        self.program, self.writer = program, writer
        self.ir, self.floats = writer.ir, writer.floats
        self.lanes = writer.lanes
        self.types = number_types(program, self.lanes)

    def work_item(self) -> None:
        """Write the program from its beginning to its end."""
        self.writer.begin_work_item()
        for at, i in enumerate(self.program.body):
            self.writer.begin(at)
            if i.op.flow:
                getattr(self, f"_{i.op.flow}")(at, i)
            elif i.op.kind == "lds":
                self._access_lds(at, i)
            elif i.dest is not None:
                self._write(at, i.dest, self.result(i, i.dest.written or (0,)))
        self.writer.end_work_item()

    # Operands

    def _words(self, source: Source, positions: Sequence[int], number: str = "") -> Vec:
        """Return a source at some positions, without its sign. ``number``: "f" or "d" if the
        reader takes it as a number of that type.
        """
        letters = [source.swizzle[p] for p in positions]
        register = source.register
        if register.kind == "r" and set(letters) <= set(LETTERS):
            lanes = [self.lanes[register.index, LETTERS.index(letter)] for letter in letters]
            if len({name for name, _ in lanes}) == 1:
                return self._variable(lanes[0][0], number).pick([lane for _, lane in lanes])
        read: Callable[[int], Vec] = partial(self._component, register, number)
        if register.kind == "g":
            read = self.writer.load(None, self._byte(register), range(4)).__getitem__
        words = {x: self._constant(x) if x in "01" else read(LETTERS.index(x)) for x in letters}
        return self.ir.vector([words[letter] for letter in letters])

    def _constant(self, letter: str) -> Vec:
        """Return the float that "0" or "1" means in a swizzle."""
        return self.writer.literal(ONE * int(letter))

    def _component(self, register: Register, number: str, c: int) -> Vec:
        """Return a component of a register, except of ``g[]``."""
        if register.kind == "r":
            name, lane = self.lanes[register.index, c]
            return self._variable(name, number)[lane]
        if register.kind == "l":
            return self.writer.literal(self.program.literals[register.index][c])
        if register.kind == "cb":
            return self.writer.constant(register.index, register.element, c)
        return self.writer.input(register.kind, c)

    def _variable(self, name: str, number: str) -> Vec:
        """Return a variable's words, with the canonical NaN unless they are read as ``number``."""
        value = self.ir.get(name)
        held = self.types.get(name, "")
        if not held or held == number:
            return value
        return self.floats.canonical(value.bits(KIND[held])).bits("i32")

    def _operand(self, i: Instruction, n: int, positions: Sequence[int]) -> Vec:
        """Return source ``n`` at some positions, with its sign."""
        source = i.sources[n]
        value = self._words(source, positions, "" if n in i.op.passed else i.op.sources[n])
        if not source.negated:
            return value
        return value ^ SIGN if i.op.float_modifiers(n) else value.like(0) - value

    def _double(self, source: Source) -> Vec:
        """Return a double, with its sign."""
        in_order = components(source, (0, 1)) in ([0, 1], [2, 3])
        value = self._words(source, (0, 1), "d" if in_order else "").lanes(2).bits("double")
        return self.ir.op(f"fneg {value}", "double") if source.negated else value

    # Instructions

    def result(self, i: Instruction, written: Sequence[int]) -> Vec:
        """Return what an instruction computes or fetches for some components; a scalar for all."""
        if i.op.kind == "fetch":
            coordinates = self._operand(i, 0, read_positions(self.program, i, 0))
            parts = [coordinates[k] for k in range(max(1, coordinates.n))]
            return self.writer.texel(i, parts).pick(written)
        operands = []
        for n, kind in enumerate(i.op.sources):
            if kind == "d":
                operands.append(self._double(i.sources[n]))
            else:
                positions = read_positions(self.program, i, n) if i.op.vector else written
                operands.append(self._operand(i, n, positions).bits(KIND.get(kind, "i32")))
        value = NATIVE[i.op.name](self.floats, *operands)
        held = {self.types.get(self.lanes[key][0]) for key in defines(i)}
        may_hold_any_nan = held == {i.op.result}
        if value.kind in ("float", "double") and not may_hold_any_nan:
            value = self.floats.canonical(value)
        if value.kind == "double":
            return value.bits("i32").pick([c % 2 for c in written])
        return value.bits("i32")

    def _write(self, at: int, dest: Dest, value: Vec) -> None:
        """Write a lane to each component of ``dest.written``; a scalar to all."""
        register = dest.register
        written = list(dest.written)
        value = value.lanes(len(written))
        if register.kind == "g":
            self.writer.store(at, None, self._byte(register), written, value)
        elif register.kind == "o":
            self.writer.store_output(register.index, written, value)
        else:
            names = [self.lanes[register.index, c][0] for c in written]
            for name in dict.fromkeys(names):
                own = [k for k, other in enumerate(names) if other == name]
                self.ir.set(name, value.pick(own))

    def _byte(self, register: Register) -> Vec:
        """Return the first byte of an element of ``g[]``."""
        if register.address is None:
            return self.ir.const(TEXEL * register.element, "i64")
        element = self._words(register.address, (0,)).cast("sext", "i64") + register.element
        return element * TEXEL

    def _access_lds(self, at: int, i: Instruction) -> None:
        array = i.controls.id
        byte = self._operand(i, 0, (0,)).cast("zext", "i64")
        words = lds_words(i) or (0,)
        if i.op.store:
            value = self._operand(i, i.op.passed[0], words)
            self.writer.store(at, array, byte & -4, words, value)
        elif i.dest is not None:
            self._write(at, i.dest, self.writer.load(array, byte & -4, words))

    # Control flow

    def _condition(self, i: Instruction) -> Vec:
        if not i.sources:
            return self.ir.const(1, "i1")
        values = [self._operand(i, n, (0,)) for n in range(len(i.sources))]
        if i.controls.relop:
            return self.floats.compare(i.controls.relop, *(v.bits("float") for v in values))
        return values[0].cmp(i.op.relation, 0)

    def _if(self, at: int, i: Instruction) -> None:
        taken = self.ir.new("then")
        self.ir.branch(self._condition(i), taken, f"at{self.program.matching[at]}")
        self.ir.label(taken)

    def _else(self, at: int, i: Instruction) -> None:
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"at{at}")

    def _endif(self, at: int, i: Instruction) -> None:
        self.ir.label(f"at{at}")

    def _loop(self, at: int, i: Instruction) -> None:
        self.ir.label(f"at{at}")
        self.writer.iteration(at)

    def _break(self, at: int, i: Instruction) -> None:
        end = self.program.matching[self.program.matching[at]]
        stay = self.ir.new("stay")
        self.ir.branch(self._condition(i), f"after{end}", stay)
        self.ir.label(stay)

    def _endloop(self, at: int, i: Instruction) -> None:
        self.ir.label(f"at{at}")
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"after{at}")
