"""A second opinion: the same kernel through LLVM's back end for this chip (triple ``r600--``, cpu ``cypress``).

The simplified scalar form is written as LLVM IR, blocks and phis one to one; texture fetches are calls of the back
end's own intrinsic. From the assembly that comes back, the bundles of the innermost loop, their filled slots and the
registers are counted. Left out, and refused: double precision, LDS, 32-bit division, outputs that are streams; the
back end's own scheduler decides everything else, so what it prints is nobody's optimum.
"""

import re
from collections import Counter
from dataclasses import asdict, dataclass

from cypresskit.compiler.ir import Block, CompileError, Function, Op, Src, Value, refuse
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.devices import HD5870
from cypresskit.il import Program

FLOATS = {"ADD": "fadd", "MUL_IEEE": "fmul"}
CALLS = {"MULADD_IEEE": "fmuladd", "FMA": "fma", "FLOOR": "floor", "MIN_DX10": "minnum", "MAX_DX10": "maxnum"}
INTEGERS = {"ADD_INT": "add", "SUB_INT": "sub", "AND_INT": "and", "OR_INT": "or", "XOR_INT": "xor", "LSHL_INT": "shl",
            "LSHR_INT": "lshr", "ASHR_INT": "ashr", "MULLO_INT": "mul"}  # fmt: skip
COMPARISONS = {"SETGT_DX10": "fcmp ogt", "SETGE_DX10": "fcmp oge", "SETE_DX10": "fcmp oeq", "SETNE_DX10": "fcmp une",
               "SETGT_INT": "icmp sgt", "SETGE_INT": "icmp sge", "SETE_INT": "icmp eq", "SETNE_INT": "icmp ne",
               "SETGT_UINT": "icmp ugt", "SETGE_UINT": "icmp uge"}  # fmt: skip
CONVERSIONS = {"FLT_TO_INT": "fptosi float", "FLT_TO_UINT": "fptoui float", "INT_TO_FLT": "sitofp i32",
               "UINT_TO_FLT": "uitofp i32"}  # fmt: skip
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

    function = lower(program, HD5870)
    simplify(function)
    text = _Writer(function).module()
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


class _Writer:
    """LLVM IR of a function. Words are i32 values ``%v<n>``; floats are bitcasts of them."""

    def __init__(self, function: Function):
        self.function = function
        self.names: dict[Value, str] = {}
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
            if isinstance(item, Block) and not item.dead:
                self.block(item, n)
        return HEADER + "\n".join([*self.lines, "}", ""])

    def new(self, text: str) -> str:
        self.count += 1
        self.lines.append(f"  %t{self.count} = {text}")
        return f"%t{self.count}"

    def word(self, value: Value) -> str:
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

    def block(self, block: Block, n: int) -> None:
        self.lines.append(f"{self.labels[block]}:")
        for phi in block.phis:
            pairs = [f"[ {self.plain(arg)}, %{self.labels[b]} ]" for b, arg in phi.args.items()]
            self.lines.append(f"  {self.names[phi]} = phi i32 {', '.join(pairs)}")
        test = None
        for op in block.ops:
            if op.row is not None and op.row.predicate:
                test = self.compare(op, "SET" + op.name.removeprefix("PRED_SET") + "_DX10" * ("INT" not in op.name))
            else:
                self.op(op)
        if not block.succs:
            self.lines.append("  ret void")
        elif test is not None:
            then, other = block.succs
            self.lines.append(f"  br i1 {test}, label %{self.labels[then]}, label %{self.labels[other]}")
        else:
            self.lines.append(f"  br label %{self.labels[block.succs[0]]}")

    def plain(self, value: Value) -> str:
        """A phi's argument, which must be there already."""
        if value.located and value.kind != "input":
            return self.names[value]
        if value.kind == "const":
            return str(value.bits)
        raise CompileError("an input or constant that flows into a loop unchanged is not known to this way")

    def compare(self, op: Op, name: str) -> str:
        if op.name.endswith("UINT"):
            name = op.name.removeprefix("PRED_")
        kind = COMPARISONS[name]
        if kind.startswith("fcmp"):
            a, b = (self.number(s) for s in op.srcs)
            return self.new(f"{kind} float {a}, {b}")
        a, b = (self.word(s.value) for s in op.srcs)
        return self.new(f"{kind} i32 {a}, {b}")

    def op(self, op: Op) -> None:
        name = op.name
        if name in ("SAMPLE", "MEM_READ"):
            self.fetch(op)
            return
        if name == "MEM_WRITE":
            self.store(op)
            return
        target = self.names[op.results[0]] if len(op.results) == 1 else ""
        if op.omod != 1.0 or op.clamp or not target:
            raise self.unknown(op)
        if name in FLOATS or name in CALLS:
            numbers = [self.number(s) for s in op.srcs]
            if name in FLOATS:
                result = self.new(f"{FLOATS[name]} float {', '.join(numbers)}")
            else:
                arguments = ", ".join(f"float {x}" for x in numbers)
                result = self.new(f"call float @llvm.{CALLS[name]}.f32({arguments})")
            self.lines.append(f"  {target} = bitcast float {result} to i32")
        elif name in INTEGERS:
            a, b = (self.word(s.value) for s in op.srcs)
            self.lines.append(f"  {target} = {INTEGERS[name]} i32 {a}, {b}")
        elif name == "RECIP_UINT":
            self.lines.append(f"  {target} = udiv i32 -1, {self.word(op.srcs[0].value)}")
        elif name == "MULHI_UINT":
            a, b = (self.new(f"zext i32 {self.word(s.value)} to i64") for s in op.srcs)
            high = self.new(f"lshr i64 {self.new(f'mul i64 {a}, {b}')}, 32")
            self.lines.append(f"  {target} = trunc i64 {high} to i32")
        elif name in COMPARISONS:
            self.lines.append(f"  {target} = sext i1 {self.compare(op, name)} to i32")
        elif name in CONVERSIONS:
            if "float" in CONVERSIONS[name]:
                self.lines.append(f"  {target} = {CONVERSIONS[name]} {self.number(op.srcs[0])} to i32")
            else:
                result = self.new(f"{CONVERSIONS[name]} {self.word(op.srcs[0].value)} to float")
                self.lines.append(f"  {target} = bitcast float {result} to i32")
        elif name == "CNDE_INT":
            a, b, c = (self.word(s.value) for s in op.srcs)
            self.lines.append(f"  {target} = select i1 {self.new(f'icmp eq i32 {a}, 0')}, i32 {b}, i32 {c}")
        elif name == "MOV":
            self.lines.append(f"  {target} = bitcast float {self.number(op.srcs[0])} to i32")
        else:
            raise self.unknown(op)

    def unknown(self, op: Op) -> CompileError:
        return refuse(self.function.program, op.at, f"{op.name} is not known to the way through LLVM")

    def fetch(self, op: Op) -> None:
        if op.name == "SAMPLE":
            place = self.vector([self.number(s) for s in op.srcs])
            x, y = (*op.info["offset"], 0)[:2]
            resource = op.info["resource"]
            numbers = ", ".join(f"i32 {n}" for n in (x, y, 0, resource, resource, 0, 0, 0, 0))
            vector = self.new(f"call <4 x float> @llvm.r600.tex(<4 x float> {place}, {numbers})")
        else:
            vector = self.new(f"load <4 x float>, ptr addrspace(1) {self.address(op, op.srcs)}")
        for c, value in enumerate(op.results):
            part = self.new(f"extractelement <4 x float> {vector}, i32 {c}")
            self.lines.append(f"  {self.names[value]} = bitcast float {part} to i32")

    def store(self, op: Op) -> None:
        if op.info["mask"] != [0, 1, 2, 3]:
            raise self.unknown(op)
        words = self.vector([self.number(s) for s in op.srcs[:4]])
        self.lines.append(f"  store <4 x float> {words}, ptr addrspace(1) {self.address(op, op.srcs[4:])}")

    def address(self, op: Op, srcs: list[Src]) -> str:
        index = self.word(srcs[0].value) if srcs else "0"
        place = self.new(f"add i32 {index}, {op.info['offset']}")
        return self.new(f"inttoptr i32 {self.new(f'shl i32 {place}, 4')} to ptr addrspace(1)")
