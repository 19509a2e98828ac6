"""Expand calls of macros.

A macro call (IL specification, chapter 7, "Call a Macro") becomes a move of each actual input into
a fresh register, the body, and a move of each formal output into its actual destination. Every
register and literal of the body gets a fresh number, so a macro can't change its caller's. For
reports, an instruction has the line of the call that led to it, and ``MacroExpansion.written`` the
names of fresh registers. Left out: macros that call macros.
"""

from dataclasses import replace

from cypresskit.il.program import Dest, Instruction, Macro, Register, Source

MAX_LENGTH = 2_000  # instructions after expansion: the catalog's longest kernel has 531


class MacroExpansion:
    """Instructions with every call expanded.

    Parameters
    ----------
    instructions
        The program.
    macros
        Its macros.

    Attributes
    ----------
    instructions
        The expanded program.
    written
        Fresh registers ("r45") to their names in the macro ("in0").
    faults
        (line, message) of each fault: a second definition; an argument that a macro doesn't have; a
        call of what isn't defined, or with a wrong number of arguments; the instruction at which
        ``MAX_LENGTH`` is exceeded.
    """

    def __init__(self, instructions: list[Instruction], macros: list[Macro]):
        self.macros: dict[int, Macro] = {}
        self.fresh = {
            kind: 1 + _highest(kind, [instructions, *(m.body for m in macros)]) for kind in "rl"
        }
        self.written: dict[str, str] = {}
        self.instructions: list[Instruction] = []
        self.faults: dict[tuple[int, str], None] = {}  # an ordered set
        for macro in macros:
            first = self.macros.setdefault(macro.number, macro)
            if first is not macro:
                self._fail(macro, f"{macro} is defined twice, first in line {first.line}")
            for kind, count in (("in", macro.inputs), ("out", macro.outputs)):
                if (last := _highest(kind, [macro.body])) >= count:
                    self._fail(
                        macro,
                        f"{macro} uses {kind}{last}: for that it needs `_{kind}({last + 1})`",
                    )
        for i in instructions:
            if i.op.kind == "macro":
                self._call(i)
            else:
                self.instructions.append(i)
            if len(self.instructions) > MAX_LENGTH:
                return self._fail(i, f"macros expand to more than {MAX_LENGTH:,} instructions")

    def _fail(self, at: Instruction | Macro, message: str) -> None:
        self.faults[at.line, message] = None

    def _call(self, call: Instruction) -> None:
        macro = self.macros.get(call.controls.k)
        if macro is None:
            known = ", ".join(map(str, sorted(self.macros)))
            what = f"there is no macro {call.controls.k} (macros here: {known or 'none'})"
            return self._fail(call, what)
        if (len(call.outputs), len(call.sources)) != (macro.outputs, macro.inputs):
            what = f"{macro} takes {macro.outputs} outputs and {macro.inputs} inputs"
            return self._fail(call, f"{what}, found {len(call.outputs)} and {len(call.sources)}")
        names: dict[tuple[str, int], Register] = {}
        for n, source in enumerate(call.sources):
            self._move(Dest(self._rename(Register("in", n), names)), source, call)
        self.instructions += [
            replace(i.renamed(lambda register: self._rename(register, names)), call=call.line)
            for i in macro.body
        ]
        for n, dest in enumerate(call.outputs):
            self._move(dest, Source(self._rename(Register("out", n), names)), call)

    def _move(self, dest: Dest, source: Source, call: Instruction) -> None:
        self.instructions.append(Instruction("mov", dest, (source,), line=call.line))

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
