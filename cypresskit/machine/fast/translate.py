"""From IL to LLVM IR, for one work-item: registers, arithmetic and control flow. How it reaches
memory is its target's.

Components of a register that are always written together share a variable, a vector: LLVM then
sees what of a register a loop changes.
"""

from collections.abc import Sequence

from cypresskit.il import Dest, Instruction, Program, Register, Source
from cypresskit.il.bits import ONE, SIGN
from cypresskit.il.dataflow import lds_address, lds_words, read_positions, writers
from cypresskit.il.program import LETTERS
from cypresskit.machine.fast.native_meaning import KIND, NATIVE
from cypresskit.machine.fast.payloads import Payloads
from cypresskit.machine.fast.target import Target
from cypresskit.machine.fast.vec import Vec


def variables(program: Program, vectors: bool) -> dict[tuple[int, int], tuple[str, int]]:
    """The variable of each component of a register, (number, component), and its lane there;
    without ``vectors``, each has its own.
    """
    written_by = writers(program)
    places = {}
    for number in program.registers:
        for c in range(4):
            together = [d for d in range(4) if written_by[number, d] == written_by[number, c]]
            together = together if vectors else [c]
            name = f"r{number}{''.join(LETTERS[d] for d in together)}"
            places[number, c] = name, together.index(c)
    return places


class Translator:
    """A program's instructions, as they are written to ``target.ir``."""

    def __init__(self, program: Program, target: Target):
        self.program, self.target = program, target
        self.ir, self.floats = target.ir, target.floats
        self.payloads = Payloads(program)
        self.places = variables(program, target.vectors)
        lanes: dict[str, int] = {}
        for name, _ in self.places.values():
            lanes[name] = lanes.get(name, 0) + 1
        for name, count in lanes.items():
            self.ir.variable(name, "i32", count if count > 1 else 0)
        self.registers = list(lanes)

    def work_item(self) -> None:
        """Write the program from its beginning to its end, with all registers 0."""
        for name in self.registers:
            self.ir.set(name, 0)
        self._segment(0)
        for at, i in enumerate(self.program.body):
            self.target.begin(at)
            if i.op.flow:
                getattr(self, f"_{i.op.flow}")(at, i)
                self._segment(at + 1)
            elif i.op.kind == "fence":
                self.target.fence(at)
            elif i.op.kind == "lds":
                self._access_lds(at, i)
            elif i.dest is not None:
                self._write(at, i.dest, self._results(at, i, i.dest.written or (0,)))

    # Operands

    def _words(self, source: Source, positions: Sequence[int]) -> Vec:
        """A source at those positions, without its modifiers."""
        letters = [source.swizzle[p] for p in positions]
        register = source.register
        if register.kind == "r" and set(letters) <= set(LETTERS):
            places = [self.places[register.index, LETTERS.index(letter)] for letter in letters]
            if len({name for name, _ in places}) == 1:
                return self.ir.get(places[0][0]).pick([lane for _, lane in places])
        loaded = None
        if register.kind == "g":
            loaded = self.target.load_global(self._element(register))
        words = {
            x: self._number(x) if x in "01" else self._word(register, LETTERS.index(x), loaded)
            for x in letters
        }
        return self.ir.vector([words[letter] for letter in letters])

    def _number(self, letter: str) -> Vec:
        """What "0" or "1" stands for in a swizzle or a mask."""
        return self.target.literal(ONE * int(letter))

    def _word(self, register: Register, c: int, loaded: Vec | None) -> Vec:
        """A component of a register, or of the element of ``g[]`` that was ``loaded``."""
        if loaded is not None:
            return loaded[c]
        if register.kind == "r":
            name, lane = self.places[register.index, c]
            return self.ir.get(name)[lane]
        if register.kind == "l":
            return self.target.literal(self.program.literals[register.index][c])
        if register.kind == "cb":
            return self.target.constant(register.index, register.element, c)
        return self.target.input(register.kind, c)

    def _operand(self, i: Instruction, n: int, positions: Sequence[int]) -> Vec:
        """Source ``n`` at those positions, with its modifiers."""
        source = i.sources[n]
        value = self._words(source, positions)
        stored = self.payloads.stored(i, (n, source, tuple(positions)))
        if stored:
            value = self.floats.canonical(value.bits(KIND[stored])).bits("i32")
        if not source.modified:
            return value
        negated = [LETTERS[p] in source.negate for p in positions]
        if i.op.float_modifiers(n):
            value = self.floats.modified(value.bits("float"), source).bits("i32")
            signs = self.ir.consts([SIGN * negative for negative in negated])
            return value ^ signs.pick(range(len(negated))) if any(negated) else value
        opposite = self.ir.const(0, "i32", value.n) - value
        parts = (opposite[k] if negative else value[k] for k, negative in enumerate(negated))
        return self.ir.vector([*parts])

    def _double(self, source: Source) -> Vec:
        value = self._words(source, (0, 1)).lanes(2).bits("double")
        value = value.call("fabs") if source.abs else value
        return self.ir.op(f"fneg {value}", "double") if source.negates_double else value

    # Instructions

    def _results(self, at: int, i: Instruction, written: Sequence[int]) -> Vec:
        """What an instruction computes or fetches for those components; a scalar for all."""
        if self.target.vectors or i.op.vector:
            return self._result(at, i, written)
        return self.ir.vector([self._result(at, i, (c,)) for c in written])

    def _result(self, at: int, i: Instruction, written: Sequence[int]) -> Vec:
        if i.op.kind == "fetch":
            place = self._operand(i, 0, read_positions(self.program, i, 0))
            parts = [place[k] for k in range(max(1, place.n))]
            return self.target.texel(i, parts).pick(written)
        operands = []
        for n, kind in enumerate(i.op.sources):
            if kind == "d":
                operands.append(self._double(i.sources[n]))
            else:
                positions = read_positions(self.program, i, n) if i.op.vector else written
                operands.append(self._operand(i, n, positions).bits(KIND[kind]))
        value = NATIVE[i.op.name](self.floats, *operands)
        if i.shift != 1.0 or i.saturate:
            value = self.floats.scaled(value.bits("float"), i.shift, i.saturate)
        if value.kind in ("float", "double") and self.payloads.visible(at):
            value = self.floats.canonical(value)
        if value.kind == "double":
            return value.bits("i32").pick([c % 2 for c in written])
        return value.bits("i32")

    def _write(self, at: int, dest: Dest, value: Vec) -> None:
        """Write a lane to each component of ``dest.written``; a scalar to all."""
        register = dest.register
        written = list(dest.written)
        value = value.lanes(len(written) if len(written) > 1 else 0)
        if set(dest.mask) & set("01"):
            lanes = {c: value[k] for k, c in enumerate(written)}
            lanes |= {c: self._number(x) for c, x in enumerate(dest.mask) if x in "01"}
            written = sorted(lanes)
            value = self.ir.vector([lanes[c] for c in written])
        if register.kind == "g":
            self.target.store_global(at, self._element(register), written, value)
        elif register.kind == "o":
            self.target.store_output(register.index, written, value)
        else:
            names = [self.places[register.index, c][0] for c in written]
            for name in dict.fromkeys(names):
                own = [k for k, other in enumerate(names) if other == name]
                self.ir.set(name, value.pick(own))

    def _element(self, register: Register) -> Vec:
        if register.address is None:
            return self.ir.const(register.element, "i64")
        offset = self._words(register.address, (0,))
        return offset.cast("sext", "i64") + register.element

    def _access_lds(self, at: int, i: Instruction) -> None:
        array = i.controls.id
        stride, _ = self.program.lds[array]
        byte, *inside = (
            self._operand(i, n, (p,)).cast("zext", "i64") for n, p in lds_address(self.program, i)
        )
        if stride:
            byte = byte * stride + inside[0]
        words = lds_words(i) or (0,)
        if i.op.store:
            value = self._operand(i, i.op.passed[0], words)
            self.target.store_lds(at, array, byte & -4, words, value)
        elif i.dest is not None:
            self._write(at, i.dest, self.target.load_lds(array, byte & -4, words))

    # Control flow

    def _segment(self, at: int) -> None:
        """Tell the target of the instructions from ``at`` to the next that controls flow."""
        body = self.program.body
        ends = (k + 1 for k in range(at, len(body)) if body[k].op.flow)
        end = next(ends, len(body))
        run = [k for k in range(at, end) if body[k].op.flow not in ("else", "endif")]
        if run:
            self.target.segment(run)

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
        self.target.loop(at)
        self.ir.label(f"at{at}")
        self.target.iteration(at)

    def _break(self, at: int, i: Instruction) -> None:
        end = self.program.matching[self.program.matching[at]]
        stay = self.ir.new("stay")
        away = f"after{end}" if i.op.flow == "break" else f"at{end}"
        self.ir.branch(self._condition(i), away, stay)
        self.ir.label(stay)

    _continue = _break

    def _endloop(self, at: int, i: Instruction) -> None:
        self.ir.label(f"at{at}")
        self.ir.go(f"at{self.program.matching[at]}")
        self.ir.label(f"after{at}")
