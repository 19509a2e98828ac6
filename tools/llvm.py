"""Compile the kernels with LLVM's back end for Cypress, to compare its code with the package's.

``python -m tools.llvm`` writes cypresskit/data/llvm.json, with LLVM's version and the date; lesson
03 shows it. The LLVM IR comes from the compiled engine's translator, with a target for how this
chip reads and writes (triple ``r600--``, cpu ``cypress``). Registers, and bundles of the innermost
loop, are counted in the assembly.

Not covered: kernels with doubles or LDS, which the back end doesn't support.
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
from cypresskit.machine.compiled.native_meaning import Floats
from cypresskit.machine.compiled.target import Target
from cypresskit.machine.compiled.translate import Translator
from cypresskit.machine.compiled.vec import Vec

FILE = Path(ck.__file__).parent / "data" / "llvm.json"
HEAD = "define amdgpu_ps void @main(<4 x float> inreg %r0, <4 x float> inreg %r1) {"


def opinion(program: ck.Program) -> dict[str, int]:
    """Return the registers, and the bundles of the innermost loop, of LLVM's code.

    Raises
    ------
    CompileError
        For doubles and LDS.
    """
    if program.lds or any(i.op.double for i in program.body):
        raise CompileError("LLVM's back end doesn't support doubles and LDS")
    return read(assembled(CypressTarget(program).module()))


def read(assembly: str) -> dict[str, int]:
    """Count registers and bundles in LLVM's assembly.

    It has control flow first, then the clauses, which are named by address. Each slot of a bundle
    has a line, the last one with a star.
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


def assembled(module: str) -> str:
    """Return LLVM's assembly of a module, after its passes; loops are not unrolled."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parsed = llvm.parse_assembly(module)
    machine = llvm.Target.from_triple("r600--").create_target_machine(cpu="cypress", opt=3)
    machine.set_asm_verbosity(True)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)


class PlainFloats(Floats):
    """Arithmetic without IL's rules for subnormals and NaNs."""

    def flush(self, value: Vec) -> Vec:
        return value

    canonical = flush

    def mad(self, a: Vec, b: Vec, c: Vec) -> Vec:
        return a.call("fmuladd", b, c)

    def inverse_root(self, a: Vec) -> Vec:
        return self.multiply("div afn", self.e.const(1.0, "float", a.n), a.call("sqrt"))


class ScalarTranslator(Translator):
    """Translates component by component, since the back end has no vectors of words."""

    vectors = False

    def result(self, i: Instruction, written: Sequence[int]) -> Vec:
        if i.op.vector:
            return super().result(i, written)
        return self.ir.vector([super(ScalarTranslator, self).result(i, (c,)) for c in written])


class CypressTarget(Target):
    """The target Cypress: registers are preloaded, and constants are read where they are used."""

    def __init__(self, program: ck.Program):
        super().__init__(program, PlainFloats)

    def module(self) -> str:
        """Return the module's text."""
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
        return CompileError(f"LLVM's back end doesn't support {what}")


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
