"""A second opinion: the kernels as compiled by LLVM's back end for this chip (triple ``r600--``,
cpu ``cypress``).

    python -m tools.llvm

writes cypresskit/data/llvm.json, with LLVM's version and the date; lesson 03 shows it.

``cypresskit.today.machine_code`` writes the LLVM IR; ``cypress.ll`` has how this chip reads and
writes. In the assembly, registers and the bundles of the innermost loop are counted. Kernels with
doubles or LDS are not in the record: the back end has no way to them. The rest is up to its own
scheduler: it is nobody's optimum.
"""

import datetime
import json
import re
from pathlib import Path

import llvmlite.binding as llvm

import cypresskit as ck
from cypresskit.compiler.ir import BasicBlock, CompileError, Op, StoreDetail, Word
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.today.machine_code import OPERATIONS, ModuleWriter, assembled

FILE = Path(ck.__file__).parent / "data" / "llvm.json"
MEMORY = (Path(__file__).parent / "cypress.ll").read_text(encoding="utf-8")
MEANING = re.compile(r"define internal .*?@(\w+)\(.*?\n}\n", re.DOTALL)


def opinion(program: ck.Program) -> dict[str, int]:
    """Registers and bundles of the innermost loop. Raises ``CompileError`` for doubles and LDS."""
    function = simplify(lower(program, ck.HD5870.limits))
    library = MEANING.sub(lambda found: found[0] * ("_64(" not in found[0]), OPERATIONS)
    module = CypressWriter(function, library + MEMORY, "texture", 64).module
    called = {*re.findall(r"call .*? @(\w+)\(", module)}
    kept = MEANING.sub(lambda found: found[0] * (found[1] in called), module)
    return read(assembled(kept, "r600--", "cypress"))


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


class CypressWriter(ModuleWriter):
    """The same for Cypress, whose registers are preloaded whole, and which reads a constant where
    it is used.
    """

    convention = "amdgpu_ps"

    def arguments(self) -> str:
        return ", ".join(f"<4 x float> inreg %r{n}" for n in (0, 1))

    def constants(self, blocks: list[BasicBlock]) -> list[str]:
        return []

    def word(self, value: Word) -> str:
        if value.kind == "constant":
            places = ", ".join(f"i32 {place}" for place in value.place)
            return self.new(f"call i32 @constant({places})")
        if value.kind == "input":
            register, channel = value.place
            part = self.new(f"extractelement <4 x float> %r{register}, i32 {channel}")
            return self.new(f"bitcast float {part} to i32")
        return super().word(value)

    def block(self, block: BasicBlock) -> None:
        for word in (word for phi in block.phis for word in phi.args.values()):
            if word.kind in ("constant", "input"):
                raise CompileError("an input of a loop is not known to the way through LLVM")
        super().block(block)

    def store(self, op: Op, detail: StoreDetail) -> None:
        if op.name == "EXPORT" or len(detail.mask) < 4:
            raise self.refused(op, "a part of an element")
        index = () if op.srcs[4:] else (0,)
        self.call(op, op.name, op.srcs, *index, detail.place)


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
