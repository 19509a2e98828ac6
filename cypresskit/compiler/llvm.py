"""A second opinion: the same kernel through LLVM's back end for this chip (triple ``r600--``, cpu ``cypress``).

The simplified scalar form is written as LLVM IR, blocks and phis one to one; texture fetches are calls of the back
end's own intrinsic. From the assembly that comes back, the bundles of the innermost loop, their filled slots and the
registers are counted. Left out, and refused: double precision, LDS, 32-bit division, outputs that are streams; the
back end's own scheduler decides everything else, so what it prints is nobody's optimum.
"""

import re
from collections import Counter
from dataclasses import asdict, dataclass

from cypresskit.compiler.ir import (
    BasicBlock,
    CompileError,
    Function,
    GlobalRead,
    GlobalWrite,
    Op,
    Src,
    TexelFetch,
    Word,
    refuse,
)
from cypresskit.compiler.isa import HardwareOp
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.devices import HD5870
from cypresskit.il import Program

HEADER = """declare <4 x float> @llvm.r600.tex(<4 x float>, i32, i32, i32, i32, i32, i32, i32, i32, i32)
declare float @llvm.fmuladd.f32(float, float, float)
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
declare float @llvm.fabs.f32(float)
declare float @llvm.minnum.f32(float, float)
declare float @llvm.maxnum.f32(float, float)
"""


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
    """Count bundles and registers in the back end's assembly: a star marks the last slot of a bundle."""
    clauses: dict[int, list[int]] = {}
    order: list[tuple[str, int]] = []
    current: list[int] | None = None
    filled = 0
    registers = set()
    for line in assembly.splitlines():
        registers |= {int(n) for n in re.findall(r"\bT(\d+)\.", line)}
        start = re.match(r"\s*(ALU|Fetch) clause starting at (\d+):", line)
        if start:
            current = clauses.setdefault(int(start[2]), []) if start[1] == "ALU" else None
            continue
        head = re.match(r"\s*(ALU\w*|LOOP\w*|ENDLOOP\w*|END_LOOP\w*|WHILE\w*)\b.*?(?:@(\d+))?[,\s]*", line)
        if current is None and head and not line.lstrip().startswith(";"):
            place = re.search(r"@(\d+)", line)
            order.append((head[1], int(place[1]) if place else -1))
        elif current is not None and re.match(r"\s+\*?\s*[A-Z]", line):
            filled += 1
            if "*" in line.split(";")[0]:
                current.append(filled)
                filled = 0
    inside: list[int] = []
    depth = 0
    for name, at in order:
        if name.startswith(("LOOP_START", "WHILE")):
            depth, inside = depth + 1, []
        elif name.startswith(("END_LOOP", "ENDLOOP", "LOOP_END")):
            break
        elif depth and name.startswith("ALU"):
            inside += clauses.get(at, [])
    shares = Counter(inside)
    count = len(inside)
    four, five = (round(100 * shares[n] / count, 1) if count else 0.0 for n in (4, 5))
    return LLVMCard(len(registers), count, four, five, assembly)


class _ModuleWriter:
    """LLVM IR of a function. Words are i32 values ``%v<n>``; floats are bitcasts of them."""

    def __init__(self, function: Function):
        self.function = function
        self.names: dict[Word, str] = {}
        self.labels = {block: f"b{n}" for n, block in enumerate(function.blocks)}
        self.lines: list[str] = []
        self.count = 0

    def module(self) -> str:
        """The whole module."""
        items = self.function.items
        for block in self.function.blocks:
            for value in [*block.phis, *(r for op in block.ops for r in op.results)]:
                self.names[value] = f"%v{len(self.names)}"
        self.lines.append("define amdgpu_ps void @main(<4 x float> inreg %r0, <4 x float> inreg %r1) {")
        for n, item in enumerate(items):
            if isinstance(item, BasicBlock) and not item.dead:
                self.block(item, n)
        return HEADER + "\n".join([*self.lines, "}", ""])

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
            return self.new(f"bitcast float {self.new(f'extractelement <4 x float> {vector}, i32 {channel}')} to i32")
        if value.kind == "input":
            register, channel = value.place
            part = self.new(f"extractelement <4 x float> %r{register}, i32 {channel}")
            return self.new(f"bitcast float {part} to i32")
        return self.names[value]

    def number(self, src: Src) -> str:
        """An operand as float."""
        text = self.new(f"bitcast i32 {self.word(src.value)} to float")
        if src.abs:
            text = self.new(f"call float @llvm.fabs.f32(float {text})")
        return self.new(f"fneg float {text}") if src.neg else text

    def vector(self, words: list[str]) -> str:
        text = "undef"
        for n, word in enumerate(words):
            text = self.new(f"insertelement <4 x float> {text}, float {word}, i32 {n}")
        return text

    def block(self, block: BasicBlock, n: int) -> None:
        self.lines.append(f"{self.labels[block]}:")
        for phi in block.phis:
            pairs = [f"[ {self.plain(arg)}, %{self.labels[b]} ]" for b, arg in phi.args.items()]
            self.lines.append(f"  {self.names[phi]} = phi i32 {', '.join(pairs)}")
        test = None
        for op in block.ops:
            if op.row.predicate:
                test = self.compare(op, op.row)
            else:
                self.op(op)
        if not block.succs:
            self.lines.append("  ret void")
        elif test is not None:
            then, other = block.succs
            self.lines.append(f"  br i1 {test}, label %{self.labels[then]}, label %{self.labels[other]}")
        else:
            self.lines.append(f"  br label %{self.labels[block.succs[0]]}")

    def plain(self, value: Word) -> str:
        """A phi's argument, which must be there already."""
        if value.located and value.kind != "input":
            return self.names[value]
        if value.kind == "const":
            return str(value.bits)
        raise CompileError("an input or constant that flows into a loop unchanged is not known to this way")

    def compare(self, op: Op, row: HardwareOp) -> str:
        """A comparison or a test, as i1."""
        return self.new(f"{row.llvm} {', '.join(self.operands(op, row.llvm.endswith('float')))}")

    def operands(self, op: Op, floats: bool) -> list[str]:
        return [self.number(s) if floats else self.word(s.value) for s in op.srcs]

    def op(self, op: Op) -> None:
        if isinstance(op.detail, TexelFetch | GlobalRead) and op.name != "LD":
            self.fetch(op)
        elif isinstance(op.detail, GlobalWrite):
            self.store(op, op.detail)
        elif not op.row.slots or op.omod != 1.0 or op.clamp or len(op.results) != 1:
            raise self.unknown(op)
        else:
            self.lines.append(f"  {self.names[op.results[0]]} = {self.arithmetic(op, op.row)}")

    def arithmetic(self, op: Op, row: HardwareOp) -> str:
        """What gives the i32 word that an op computes."""
        code = row.llvm
        if row.relation and code:
            return f"sext i1 {self.compare(op, row)} to i32"
        if code.startswith("call"):
            numbers = ", ".join(f"float {x}" for x in self.operands(op, True))
            return f"bitcast float {self.new(f'call float @llvm.{code.split()[-1]}.f32({numbers})')} to i32"
        if code.startswith(("fpto", "sito", "uito")):  # conversions
            (x,) = self.operands(op, code.endswith("float"))
            if code.startswith("fpto"):
                return f"{code} {x} to i32"
            return f"bitcast float {self.new(f'{code} {x} to float')} to i32"
        if code:
            floats = code.endswith("float")
            text = f"{code} {', '.join(self.operands(op, floats))}"
            return f"bitcast float {self.new(text)} to i32" if floats else text
        return self.written_out(op)

    def written_out(self, op: Op) -> str:
        """An op that LLVM has no one instruction for."""
        if op.name == "RECIP_UINT":
            return f"udiv i32 -1, {self.word(op.srcs[0].value)}"
        if op.name == "MULHI_UINT":
            a, b = (self.new(f"zext i32 {word} to i64") for word in self.operands(op, False))
            product = self.new(f"mul i64 {a}, {b}")
            return f"trunc i64 {self.new(f'lshr i64 {product}, 32')} to i32"
        if op.name == "CNDE_INT":
            a, b, c = self.operands(op, False)
            return f"select i1 {self.new(f'icmp eq i32 {a}, 0')}, i32 {b}, i32 {c}"
        if op.name == "MOV":
            return f"bitcast float {self.number(op.srcs[0])} to i32"
        raise self.unknown(op)

    def unknown(self, op: Op) -> CompileError:
        return refuse(self.function.program, op.at, f"{op.name} is not known to the way through LLVM")

    def fetch(self, op: Op) -> None:
        if isinstance(op.detail, TexelFetch):
            place = self.vector([self.number(s) for s in op.srcs])
            x, y = (*op.detail.offset, 0)[:2]
            resource = op.detail.resource
            numbers = ", ".join(f"i32 {n}" for n in (x, y, 0, resource, resource, 0, 0, 0, 0))
            vector = self.new(f"call <4 x float> @llvm.r600.tex(<4 x float> {place}, {numbers})")
        elif isinstance(op.detail, GlobalRead):
            vector = self.new(f"load <4 x float>, ptr addrspace(1) {self.address(op.detail.offset, op.srcs)}")
        for c, word in enumerate(op.results):
            part = self.new(f"extractelement <4 x float> {vector}, i32 {c}")
            self.lines.append(f"  {self.names[word]} = bitcast float {part} to i32")

    def store(self, op: Op, detail: GlobalWrite) -> None:
        if detail.mask != (0, 1, 2, 3):
            raise self.unknown(op)
        words = self.vector([self.number(s) for s in op.srcs[:4]])
        self.lines.append(f"  store <4 x float> {words}, ptr addrspace(1) {self.address(detail.offset, op.srcs[4:])}")

    def address(self, offset: int, srcs: list[Src]) -> str:
        index = self.word(srcs[0].value) if srcs else "0"
        place = self.new(f"add i32 {index}, {offset}")
        return self.new(f"inttoptr i32 {self.new(f'shl i32 {place}, 4')} to ptr addrspace(1)")
