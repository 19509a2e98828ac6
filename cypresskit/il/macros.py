"""Macro expansion, by the rules of the IL specification (chapter 7, "Call a Macro").

A call becomes: a move of each actual input into a fresh register, the body, a move of each formal
output into its actual destination. Every register and literal of the body gets a fresh number, so
macros can't disturb their caller. Reports use the names in the macro: an instruction knows the
lines of the calls around it, and ``MacroExpansion.written`` the names of fresh registers.
"""

from contextlib import suppress
from dataclasses import replace

from cypresskit.il.program import Dest, Instruction, Macro, Register, Source

MAX_INSTRUCTIONS = 20_000  # after expansion
MAX_CALLS = 32  # macros called inside macros


class _TooLong(Exception):
    """There are more than ``MAX_INSTRUCTIONS``."""


class MacroExpansion:
    """``instructions`` with every ``mcall`` replaced; ``written``: fresh registers ("r45") to what
    stands in the macro ("in0"). ``faults``: line and message of every macro that is defined twice
    or uses arguments it doesn't have, of every call of an unknown macro, with a wrong count of
    arguments, or of the macro that it is in, and of the instruction at which there are more than
    ``MAX_INSTRUCTIONS``.
    """

    def __init__(self, instructions: list[Instruction], macros: list[Macro]):
        self.macros: dict[int, Macro] = {}
        self.fresh = {
            kind: 1 + _highest(kind, [instructions, *(m.body for m in macros)]) for kind in "rl"
        }
        self.written: dict[str, str] = {}
        self.instructions: list[Instruction] = []
        self.faults: dict[tuple[int, str], None] = {}  # a set that keeps their order
        self.calls = 0  # counted too: macros may nest without holding any instruction
        for macro in macros:
            n = macro.number
            first = self.macros.setdefault(macro.number, macro)
            if first is not macro:
                self._fail(macro, f"macro {n} is defined twice, first in line {first.line}")
            for kind, count in (("in", macro.inputs), ("out", macro.outputs)):
                if (last := _highest(kind, [macro.body])) >= count:
                    self._fail(
                        macro,
                        f"macro {n} uses {kind}{last}: for that it needs `_{kind}({last + 1})`",
                    )
        with suppress(_TooLong):
            self._block(instructions, ())

    def _fail(self, at: Instruction | Macro, message: str) -> None:
        self.faults[at.line, message] = None

    def _block(self, instructions, inside: tuple[int, ...]) -> None:
        for i in instructions:
            if i.opcode == "mcall":
                self._call(i, inside)
            else:
                self.instructions.append(i)
            if len(self.instructions) + self.calls > MAX_INSTRUCTIONS:
                self._fail(i, f"macros expand to more than {MAX_INSTRUCTIONS:,} instructions")
                raise _TooLong

    def _call(self, call: Instruction, inside: tuple[int, ...]) -> None:
        self.calls += 1
        number = call.controls.k
        macro = self.macros.get(number)
        if macro is None:
            known = ", ".join(map(str, sorted(self.macros))) or "none"
            return self._fail(call, f"there is no macro {number} (macros here: {known})")
        if number in inside:
            return self._fail(call, f"macro {number} calls itself")
        if len(inside) >= MAX_CALLS:
            return self._fail(call, f"macros nest deeper than {MAX_CALLS}")
        if (len(call.outputs), len(call.sources)) != (macro.outputs, macro.inputs):
            what = f"macro {number} takes {macro.outputs} outputs and {macro.inputs} inputs"
            return self._fail(call, f"{what}, found {len(call.outputs)} and {len(call.sources)}")
        names: dict[tuple[str, int], Register] = {}
        for n, source in enumerate(call.sources):
            self._move(Dest(self._rename(Register("in", n), names)), source, call)
        calls = (*call.calls, call.line)
        body = [
            replace(i.renamed(lambda register: self._rename(register, names)), calls=calls)
            for i in macro.body
        ]
        self._block(body, (*inside, number))
        for n, dest in enumerate(call.outputs):
            self._move(dest, Source(self._rename(Register("out", n), names)), call)

    def _move(self, dest: Dest, source: Source, call: Instruction) -> None:
        self.instructions.append(
            Instruction("mov", dest, (source,), line=call.line, calls=call.calls)
        )

    def _rename(self, register: Register, names: dict[tuple[str, int], Register]) -> Register:
        if register.kind not in ("r", "l", "in", "out"):
            return register
        key = (register.kind, register.index)
        if key not in names:
            kind = "l" if register.kind == "l" else "r"
            names[key] = Register(kind, self.fresh[kind])
            self.written[str(names[key])] = str(register)
            self.fresh[kind] += 1
        return names[key]


def _highest(kind: str, blocks) -> int:
    return max(
        (r.index for block in blocks for i in block for r in i.registers if r.kind == kind),
        default=-1,
    )
