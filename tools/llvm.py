"""A second opinion: the kernels as compiled by LLVM's back end for this chip (triple ``r600--``, cpu ``cypress``).

    python -m tools.llvm     # writes cypresskit/data/llvm.json, with LLVM's version and the date; lesson 03 shows it

The compiler's scalar form is written as LLVM IR, blocks and phis one to one; in the resulting assembly, registers and
the bundles of the innermost loop are counted. Kernels with doubles or LDS, which can't be written this way, are not in
the record. The rest is up to the back end's own scheduler: it is nobody's optimum.
"""

import datetime
import json
import re
from pathlib import Path

import llvmlite.binding as llvm

import cypresskit as ck
from cypresskit.compiler.ir import BasicBlock, CompileError, FetchDetail, Function, Op, Src, StoreDetail, Word, refuse
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify

FILE = Path(ck.__file__).parent / "data" / "llvm.json"
TEXTURE = "declare <4 x float> @llvm.r600.tex(<4 x float>, i32, i32, i32, i32, i32, i32, i32, i32, i32)"
FMA = "declare float @llvm.fmuladd.f32(float, float, float)"
MAIN = "define amdgpu_ps void @main(<4 x float> inreg %r0, <4 x float> inreg %r1) {"
INTEGERS = {"ADD_INT": "add", "SUB_INT": "sub", "AND_INT": "and", "LSHL_INT": "shl", "LSHR_INT": "lshr",
            "MULLO_INT": "mul"}  # fmt: skip
IR = {  # operands by number; each step gives the next one, the last the result as i32
    "MOV": ["bitcast float {0} to i32"],
    "ADD": ["fadd float {0}, {1}", "bitcast float {2} to i32"],
    "MUL_IEEE": ["fmul float {0}, {1}", "bitcast float {2} to i32"],
    "MULADD_IEEE": ["call float @llvm.fmuladd.f32(float {0}, float {1}, float {2})", "bitcast float {3} to i32"],
    "FLT_TO_INT": ["fptosi float {0} to i32"],
    "INT_TO_FLT": ["sitofp i32 {0} to float", "bitcast float {1} to i32"],
    **{name: [f"{ir} i32 {{0}}, {{1}}"] for name, ir in INTEGERS.items()},
    "MULHI_UINT": ["zext i32 {0} to i64", "zext i32 {1} to i64", "mul i64 {2}, {3}", "lshr i64 {4}, 32",
                   "trunc i64 {5} to i32"],
    "CNDE_INT": ["icmp eq i32 {0}, 0", "select i1 {3}, i32 {1}, i32 {2}"],
    "RECIP_UINT": ["udiv i32 -1, {0}"],
}  # fmt: skip


def opinion(program: ck.Program) -> dict[str, int]:
    """Registers and bundles of the innermost loop. Raises ``CompileError`` for doubles and LDS."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(ModuleWriter(simplify(lower(program, ck.HD5870))).module())
    module.verify()
    machine = llvm.Target.from_triple("r600--").create_target_machine(cpu="cypress", opt=3)
    return read(machine.emit_assembly(module))


def read(assembly: str) -> dict[str, int]:
    """The figures of the back end's assembly: control flow, then the clauses that it names by address. A bundle's
    slots have a line each, with a star at the last one."""
    _, *clauses = re.split(r"(ALU|Fetch) clause starting at (\d+):", assembly)
    last = re.compile(r"^\s+[A-Z]\S* +\*", re.MULTILINE)
    bundles = {at: len(last.findall(body)) for kind, at, body in zip(*[iter(clauses)] * 3, strict=True)}
    loop = re.search(r"LOOP_START(?:(?!LOOP_START).)*?END_LOOP", assembly, re.DOTALL)
    named = re.findall(r"^\s*ALU.*?@(\d+)", loop[0], re.MULTILINE) if loop else []
    registers = len(set(re.findall(r"\bT(\d+)\.", assembly)))
    return {"registers": registers, "loop_bundles": sum(bundles[at] for at in named)}


class ModuleWriter:
    """LLVM IR of a function. Words are i32 values ``%v<n>``; floats are bitcasts of them."""

    def __init__(self, function: Function):
        self.function = function
        self.labels = {block: f"b{n}" for n, block in enumerate(function.blocks)}
        words = [w for b in function.blocks for w in (*b.phis, *(r for op in b.ops for r in op.results))]
        self.names: dict[Word, str] = {word: f"%v{n}" for n, word in enumerate(words)}
        self.lines = [TEXTURE, FMA, MAIN]
        self.count = 0

    def module(self) -> str:
        for block in self.function.blocks:
            if not block.dead:
                self.block(block)
        return "\n".join([*self.lines, "}", ""])

    def new(self, text: str) -> str:
        """The name of a new value."""
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def word(self, value: Word) -> str:
        """A word as i32."""
        if value.kind == "const":
            return str(value.bits)
        if value.kind == "constant":
            buffer, element, channel = value.place
            place = f"getelementptr ([1024 x <4 x float>], ptr addrspace({8 + buffer}) null, i32 0, i32 {element})"
            vector = self.new(f"load <4 x float>, ptr addrspace({8 + buffer}) {place}")
        elif value.kind == "input":
            register, channel = value.place
            vector = f"%r{register}"
        else:
            return self.names[value]
        return self.new(f"bitcast float {self.new(f'extractelement <4 x float> {vector}, i32 {channel}')} to i32")

    def number(self, src: Src) -> str:
        """An operand as a float."""
        if src.neg or src.abs:
            raise CompileError("a negated operand is not known to the way through LLVM")
        return self.new(f"bitcast i32 {self.word(src.value)} to float")

    def vector(self, srcs: list[Src]) -> str:
        text = "undef"
        for n, number in enumerate([self.number(src) for src in srcs]):
            text = self.new(f"insertelement <4 x float> {text}, float {number}, i32 {n}")
        return text

    def block(self, block: BasicBlock) -> None:
        self.lines.append(f"{self.labels[block]}:")
        for phi in block.phis:
            if any(value.kind in ("constant", "input") for value in phi.args.values()):
                raise CompileError("an input that flows into a loop unchanged is not known to the way through LLVM")
            pairs = [f"[ {self.word(value)}, %{self.labels[b]} ]" for b, value in phi.args.items()]
            self.lines.append(f"  {self.names[phi]} = phi i32 {', '.join(pairs)}")
        targets = [f"label %{self.labels[b]}" for b in block.succs]
        end = f"br {targets[0]}" if targets else "ret void"
        for op in block.ops:
            if op.row.predicate:
                end = f"br i1 {self.new(self.computed(op))}, {', '.join(targets)}"
            else:
                self.op(op)
        self.lines.append(f"  {end}")

    def op(self, op: Op) -> None:
        detail = op.detail
        if isinstance(detail, FetchDetail) and op.name != "LD":
            self.fetch(op, detail)
        elif isinstance(detail, StoreDetail) and op.name == "MEM_WRITE" and detail.mask == (0, 1, 2, 3):
            vector, address = self.vector(op.srcs[:4]), self.address(detail.place, op.srcs[4:])
            self.lines.append(f"  store <4 x float> {vector}, ptr addrspace(1) {address}")
        elif op.row.slots and op.plain and len(op.results) == 1:
            self.lines.append(f"  {self.names[op.results[0]]} = {self.computed(op)}")
        else:
            raise self.unknown(op)

    def computed(self, op: Op) -> str:
        """The LLVM expression for the i32 that an operation computes, or for a test's i1."""
        floats, relation = op.row.kind == "float", op.row.relation
        if relation:
            sign = "" if relation in ("eq", "ne") else op.row.compares.replace("i", "s")
            compare = (
                f"fcmp {'u' if relation == 'ne' else 'o'}{relation} float" if floats else f"icmp {sign}{relation} i32"
            )
            steps = [f"{compare} {{0}}, {{1}}", "sext i1 {2} to i32"][: 1 if op.row.predicate else 2]
        elif not (steps := IR.get(op.name, [])):
            raise self.unknown(op)
        floats |= op.name == "MOV"
        operands = [self.number(src) if floats else self.word(src.value) for src in op.srcs]
        for step in steps[:-1]:
            operands.append(self.new(step.format(*operands)))
        return steps[-1].format(*operands)

    def unknown(self, op: Op) -> CompileError:
        return refuse(self.function.program, op.at, f"{op.name} is not known to the way through LLVM")

    def fetch(self, op: Op, detail: FetchDetail) -> None:
        if op.samples:
            resource, (x, y) = detail.resource, (*detail.offset, 0)[:2]
            numbers = ", ".join(f"i32 {n}" for n in (x, y, 0, resource, resource, 0, 0, 0, 0))
            vector = self.new(f"call <4 x float> @llvm.r600.tex(<4 x float> {self.vector(op.srcs)}, {numbers})")
        else:
            vector = self.new(f"load <4 x float>, ptr addrspace(1) {self.address(detail.offset[0], op.srcs)}")
        for channel, word in enumerate(op.results):
            part = self.new(f"extractelement <4 x float> {vector}, i32 {channel}")
            self.lines.append(f"  {self.names[word]} = bitcast float {part} to i32")

    def address(self, offset: int, srcs: list[Src]) -> str:
        index = self.word(srcs[0].value) if srcs else "0"
        place = self.new(f"add i32 {index}, {offset}")
        return self.new(f"inttoptr i32 {self.new(f'shl i32 {place}, 4')} to ptr addrspace(1)")


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
