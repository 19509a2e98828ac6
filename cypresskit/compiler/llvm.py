"""A second opinion: the same kernel through LLVM's back end for this chip (triple ``r600--``, cpu ``cypress``).

The simplified scalar form is written as LLVM IR, blocks and phis one to one; from the assembly that comes back, the
bundles of the innermost loop, their filled slots and the registers are counted. Left out, and refused: doubles, LDS,
32-bit division, outputs that are streams. The back end's own scheduler decides the rest: it is nobody's optimum.
"""

import re
from dataclasses import asdict, dataclass

from cypresskit.compiler.ir import BasicBlock, CompileError, FetchDetail, Function, Op, Src, StoreDetail, Word, refuse
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.devices import HD5870
from cypresskit.il import Program

INTRINSICS = {"fmuladd": 3, "fma": 3, "floor": 1, "fabs": 1, "minnum": 2, "maxnum": 2}  # and how many operands
TEXTURE = "declare <4 x float> @llvm.r600.tex(<4 x float>, i32, i32, i32, i32, i32, i32, i32, i32, i32)"
MAIN = "define amdgpu_ps void @main(<4 x float> inreg %r0, <4 x float> inreg %r1) {"


@dataclass(frozen=True)
class LLVMCard:
    """What LLVM made of a kernel: ``gprs``; in the innermost loop ``loop_bundles`` and the shares of bundles with 4 and
    5 filled slots; the ``assembly``."""

    gprs: int
    loop_bundles: int
    slots4_pct: float
    slots5_pct: float
    assembly: str

    def as_dict(self) -> dict:
        """All numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "assembly"}


def llvm_card(program: Program) -> LLVMCard:
    """Compile a single-precision kernel with LLVM. Raises ``CompileError`` for what this way does not know."""
    import llvmlite.binding as llvm

    text = _ModuleWriter(simplify(lower(program, HD5870))).module()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple("r600--").create_target_machine(cpu="cypress", opt=3)
    module = llvm.parse_assembly(text)
    module.verify()
    return read_assembly(machine.emit_assembly(module))


def read_assembly(assembly: str) -> LLVMCard:
    """Count bundles and registers in the back end's assembly: control flow, then the clauses it names by address."""
    _, *clauses = re.split(r"(ALU|Fetch) clause starting at (\d+):", assembly)
    bundles = {at: _bundles(body) for kind, at, body in zip(*[iter(clauses)] * 3, strict=True) if kind == "ALU"}
    loop = re.search(r"LOOP_START(?:(?!LOOP_START).)*?END_LOOP", assembly, re.DOTALL)
    named = re.findall(r"^\s*ALU.*?@(\d+)", loop[0], re.MULTILINE) if loop else []
    inside = [size for at in named for size in bundles[at]]
    four, five = (round(100 * inside.count(n) / len(inside), 1) if inside else 0.0 for n in (4, 5))
    return LLVMCard(len(set(re.findall(r"\bT(\d+)\.", assembly))), len(inside), four, five, assembly)


def _bundles(body: str) -> list[int]:
    """Filled slots of the bundles of an ALU clause: a line for each slot, with a star at a bundle's last one."""
    lines = [line.split(";")[0] for line in body.splitlines() if re.match(r"\s+\*?\s*[A-Z]", line)]
    ends = [n for n, line in enumerate(lines) if "*" in line]
    return [end - before for before, end in zip([-1, *ends], ends)]


class _ModuleWriter:
    """LLVM IR of a function. Words are i32 values ``%v<n>``; floats are bitcasts of them."""

    def __init__(self, function: Function):
        self.function = function
        self.labels = {block: f"b{n}" for n, block in enumerate(function.blocks)}
        words = [w for b in function.blocks for w in (*b.phis, *(r for op in b.ops for r in op.results))]
        self.names: dict[Word, str] = {word: f"%v{n}" for n, word in enumerate(words)}
        self.lines = [TEXTURE]
        for name, count in INTRINSICS.items():
            self.lines.append(f"declare float @llvm.{name}.f32({', '.join(['float'] * count)})")
        self.count = 0

    def module(self) -> str:
        self.lines.append(MAIN)
        for block in self.function.blocks:
            if not block.dead:
                self.block(block)
        return "\n".join([*self.lines, "}", ""])

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def word(self, value: Word) -> str:
        """A value as i32."""
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
        """An operand as float."""
        text = self.new(f"bitcast i32 {self.word(src.value)} to float")
        if src.abs:
            text = self.new(f"call float @llvm.fabs.f32(float {text})")
        return self.new(f"fneg float {text}") if src.neg else text

    def vector(self, srcs: list[Src]) -> str:
        text = "undef"
        for n, word in enumerate([self.number(s) for s in srcs]):
            text = self.new(f"insertelement <4 x float> {text}, float {word}, i32 {n}")
        return text

    def block(self, block: BasicBlock) -> None:
        self.lines.append(f"{self.labels[block]}:")
        for phi in block.phis:
            pairs = [f"[ {self.argument(arg)}, %{self.labels[b]} ]" for b, arg in phi.args.items()]
            self.lines.append(f"  {self.names[phi]} = phi i32 {', '.join(pairs)}")
        targets = [f"label %{self.labels[b]}" for b in block.succs]
        end = f"br {targets[0]}" if targets else "ret void"
        for op in block.ops:
            if op.row.predicate:
                end = f"br i1 {self.new(self.instruction(op))}, {', '.join(targets)}"
            else:
                self.op(op)
        self.lines.append(f"  {end}")

    def argument(self, value: Word) -> str:
        """A phi's argument, which must be there already."""
        if value.kind in ("constant", "input"):
            raise CompileError("an input or constant that flows into a loop unchanged is not known to this way")
        return self.word(value)

    def op(self, op: Op) -> None:
        detail = op.detail
        if isinstance(detail, FetchDetail) and op.name != "LD":
            self.fetch(op, detail)
        elif isinstance(detail, StoreDetail) and op.name == "MEM_WRITE" and detail.mask == (0, 1, 2, 3):
            vector, address = self.vector(op.srcs[:4]), self.address(detail.place, op.srcs[4:])
            self.lines.append(f"  store <4 x float> {vector}, ptr addrspace(1) {address}")
        elif op.row.slots and op.plain and len(op.results) == 1:
            self.lines.append(f"  {self.names[op.results[0]]} = {self.arithmetic(op)}")
        else:
            raise self.unknown(op)

    def instruction(self, op: Op) -> str:
        """The one of LLVM that means the same, with its own type of result."""
        code, floats = op.row.llvm, op.row.kind == "float"
        operands = [self.number(s) if floats else self.word(s.value) for s in op.srcs]
        if code in INTRINSICS:
            return f"call float @llvm.{code}.f32({', '.join(f'float {x}' for x in operands)})"
        text = f"{code} {'float' if floats else 'i32'} {', '.join(operands)}"
        return f"{text} to {'i32' if floats else 'float'}" if "to" in code else text

    def arithmetic(self, op: Op) -> str:
        """What gives the i32 word that an op computes."""
        if op.row.relation:
            return f"sext i1 {self.new(self.instruction(op))} to i32"
        if op.row.llvm:
            text = self.instruction(op)
            return f"bitcast float {self.new(text)} to i32" if (op.row.kind == "float") != (" to " in text) else text
        if op.name == "MOV":
            return f"bitcast float {self.number(op.srcs[0])} to i32"
        a, b, c = [*(self.word(s.value) for s in op.srcs), "", "", ""][:3]
        if op.name == "MULHI_UINT":
            product = self.new(f"mul i64 {self.new(f'zext i32 {a} to i64')}, {self.new(f'zext i32 {b} to i64')}")
            return f"trunc i64 {self.new(f'lshr i64 {product}, 32')} to i32"
        if op.name == "CNDE_INT":
            return f"select i1 {self.new(f'icmp eq i32 {a}, 0')}, i32 {b}, i32 {c}"
        if op.name == "RECIP_UINT":
            return f"udiv i32 -1, {a}"
        raise self.unknown(op)

    def unknown(self, op: Op) -> CompileError:
        return refuse(self.function.program, op.at, f"{op.name} is not known to the way through LLVM")

    def fetch(self, op: Op, detail: FetchDetail) -> None:
        if op.samples:
            resource, (x, y) = detail.resource, (*detail.offset, 0)[:2]
            numbers = ", ".join(f"i32 {n}" for n in (x, y, 0, resource, resource, 0, 0, 0, 0))
            vector = self.new(f"call <4 x float> @llvm.r600.tex(<4 x float> {self.vector(op.srcs)}, {numbers})")
        else:
            vector = self.new(f"load <4 x float>, ptr addrspace(1) {self.address(detail.offset[0], op.srcs)}")
        for c, word in enumerate(op.results):
            part = self.new(f"extractelement <4 x float> {vector}, i32 {c}")
            self.lines.append(f"  {self.names[word]} = bitcast float {part} to i32")

    def address(self, offset: int, srcs: list[Src]) -> str:
        index = self.word(srcs[0].value) if srcs else "0"
        place = self.new(f"add i32 {index}, {offset}")
        return self.new(f"inttoptr i32 {self.new(f'shl i32 {place}, 4')} to ptr addrspace(1)")
