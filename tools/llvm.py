"""A second opinion: the kernels as compiled by LLVM's back end for this chip (triple ``r600--``,
cpu ``cypress``).

    python -m tools.llvm

writes cypresskit/data/llvm.json, with LLVM's version and the date; lesson 03 shows it.

The compiled engine's translator writes the LLVM IR, for one more target: how this chip reads and
writes. In the assembly, registers and the bundles of the innermost loop are counted. Kernels with
doubles or LDS are not in the record: the back end has no way to them. The rest is up to its own
scheduler: it is nobody's optimum.
"""

import datetime
import json
import re
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding as llvm

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.il import Instruction
from cypresskit.machine.fast.target import Target
from cypresskit.machine.fast.translate import Translator
from cypresskit.machine.fast.vec import Vec
from cypresskit.today.machine_code import PlainFloats, assembled

FILE = Path(ck.__file__).parent / "data" / "llvm.json"
HEAD = "define amdgpu_ps void @main(<4 x float> inreg %r0, <4 x float> inreg %r1) {"


def opinion(program: ck.Program) -> dict[str, int]:
    """Registers and bundles of the innermost loop. Raises ``CompileError`` for doubles and LDS."""
    if program.lds or any(i.op.double for i in program.body):
        raise CompileError("doubles and LDS are not known to this back end")
    return read(assembled(CypressTarget(program).module(), "r600--", "cypress"))


def read(assembly: str) -> dict[str, int]:
    """The figures of the back end's assembly: control flow, then the clauses that it names by
    address. A bundle's slots have a line each, with a star at the last one.
    """
    _, *clauses = re.split(r"(ALU|Fetch) clause starting at (\d+):", assembly)
    last = re.compile(r"^\s+[A-Z]\S* +\*", re.MULTILINE)
    bundles = {
        address: len(last.findall(body))
        for kind, address, body in zip(*[iter(clauses)] * 3, strict=True)
    }
    loop = re.search(r"LOOP_START(?:(?!LOOP_START).)*?END_LOOP", assembly, re.DOTALL)
    named = re.findall(r"^\s*ALU.*?@(\d+)", loop[0], re.MULTILINE) if loop else []
    registers = len(set(re.findall(r"\bT(\d+)\.", assembly)))
    return {"registers": registers, "loop_bundles": sum(bundles[address] for address in named)}


class ScalarTranslator(Translator):
    """Translates component by component, for this back end knows no vectors of words."""

    vectors = False

    def result(self, i: Instruction, written: Sequence[int]) -> Vec:
        if i.op.vector:
            return super().result(i, written)
        return self.ir.vector([super(ScalarTranslator, self).result(i, (c,)) for c in written])


class CypressTarget(Target):
    """This chip, whose registers are preloaded whole, and which reads a constant where it is
    used.
    """

    def __init__(self, program: ck.Program):
        super().__init__(program, PlainFloats)

    def module(self) -> str:
        """The module's text."""
        ScalarTranslator(self.program, self).work_item()
        self.ir.do("ret void")
        return "\n".join([*self.ir.declared.values(), self.function(HEAD)])

    def _place(self, byte: Vec, space: int) -> Vec:
        address = byte.cast("trunc", "i32")
        return self.ir.op(
            f"inttoptr {address} to ptr addrspace({space})", f"ptr addrspace({space})"
        )

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        place = self._place(self.ir.const(16 * element, "i32"), 8)
        return place.load("float", 4)[component].bits("i32")

    def input(self, name: str, component: int) -> Vec:
        register = "%r1" if name.startswith("vThreadGrp") else "%r0"
        return Vec(self.ir, register, "float", 4)[component].bits("i32")

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        x, y = (*place, self.ir.const(0, "i32"))[:2]
        number, zero = (self.ir.const(n, "i32") for n in (i.controls.resource, 0))
        offsets = [self.ir.const(more, "i32") for more in i.controls.aoffimmi[:2]]
        where = self.ir.vector([x, y, zero, zero]).bits("float")
        more = [*offsets, zero, number, number, zero, zero, zero, zero]
        return self.ir.call("llvm.r600.tex", "float", 4, where, *more).bits("i32")

    identity = input

    def place(self, array: int | None, byte: Vec) -> Vec:
        return self._place(byte, 1)

    def store(
        self, at: int, array: int | None, byte: Vec, words: Sequence[int], value: Vec
    ) -> None:
        if len(words) < 4:
            raise self.refused("a part of an element")
        self.place(array, byte).store(value)

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        raise self.refused("an output")

    def refused(self, what: str) -> CompileError:
        return CompileError(f"{what} is not known to this back end")


if __name__ == "__main__":
    kernels = {}
    for name, kernel in ck.kernels.items():
        try:
            kernels[name] = opinion(kernel.program)
        except CompileError as error:
            print(f"{name}: {error}")
    version = ".".join(map(str, llvm.llvm_version_info))
    record = {"llvm": version, "date": str(datetime.date.today()), "kernels": kernels}
    FILE.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
