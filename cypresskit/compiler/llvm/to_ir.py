"""Translate a lowered kernel to LLVM's intermediate representation (IR).

Each of our words is an ``i32``, which operations on floats reinterpret. The kernel is a function of
LLVM's calling convention ``amdgpu_ps``: its two vectors are registers 0 and 1, in which the chip
preloads the ids, as our code finds them. Constant buffer n is address space 8 + n, global memory 1,
where an address is the number of an element, and the LDS 3.

LLVM's assembly prints neither the offset of a fetch nor where a store goes. So each of these has a
resource or memory of its own, whose number is its place in ``KernelIr.unprinted``. The line of an
instruction is its index in ``Program.body``, from 1: LLVM keeps such lines for debuggers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cypresskit.compiler.ir import (
    BasicBlock,
    CompileError,
    FetchDetail,
    Function,
    LdsAccess,
    Op,
    Src,
    StoreDetail,
    Word,
    error_at,
)
from cypresskit.il.bits import SIGN

#: The instructions that compute what an operation of the chip computes. ``{0}`` is its first
#: operand; after the operands, the instructions are counted. The first table's results are floats.
FLOATS = {
    "ADD": "fadd float {0}, {1}",
    "MUL_IEEE": "fmul float {0}, {1}",
    "MULADD_IEEE": "fmul contract float {0}, {1}; fadd contract float {3}, {2}",
    "FMA": "call float @llvm.fma.f32(float {0}, float {1}, float {2})",
    "FLOOR": "call float @llvm.floor.f32(float {0})",
    "CEIL": "call float @llvm.ceil.f32(float {0})",
    "TRUNC": "call float @llvm.trunc.f32(float {0})",
    "RNDNE": "call float @llvm.rint.f32(float {0})",
    "FRACT": "call float @llvm.floor.f32(float {0}); fsub float {0}, {1}",
    "MIN_DX10": "fcmp olt float {0}, {1}; select i1 {2}, float {0}, float {1}",
    "MAX_DX10": "fcmp oge float {0}, {1}; select i1 {2}, float {0}, float {1}",
    "RECIP_IEEE": "fdiv float 1.0, {0}",
    "INT_TO_FLT": "sitofp i32 {0} to float",
    "UINT_TO_FLT": "uitofp i32 {0} to float",
}
INTEGERS = {
    "MOV": "bitcast float {0} to i32",
    "ADD_INT": "add i32 {0}, {1}",
    "SUB_INT": "sub i32 {0}, {1}",
    "MULLO_INT": "mul i32 {0}, {1}",
    "LSHL_INT": "shl i32 {0}, {1}",
    "ASHR_INT": "ashr i32 {0}, {1}",
    "LSHR_INT": "lshr i32 {0}, {1}",
    "AND_INT": "and i32 {0}, {1}",
    "OR_INT": "or i32 {0}, {1}",
    "XOR_INT": "xor i32 {0}, {1}",
    "NOT_INT": "xor i32 {0}, -1",
    "MIN_INT": "icmp slt i32 {0}, {1}; select i1 {2}, i32 {0}, i32 {1}",
    "MAX_INT": "icmp sgt i32 {0}, {1}; select i1 {2}, i32 {0}, i32 {1}",
    "MIN_UINT": "icmp ult i32 {0}, {1}; select i1 {2}, i32 {0}, i32 {1}",
    "MAX_UINT": "icmp ugt i32 {0}, {1}; select i1 {2}, i32 {0}, i32 {1}",
    "MULHI_UINT": "zext i32 {0} to i64; zext i32 {1} to i64; mul i64 {2}, {3}; lshr i64 {4}, 32;"
    " trunc i64 {5} to i32",
    "RECIP_UINT": "udiv i32 -1, {0}",  # one less for powers of two, which what reads it corrects
    "CNDE_INT": "icmp eq i32 {0}, 0; select i1 {3}, i32 {1}, i32 {2}",
    "FLT_TO_INT": "fptosi float {0} to i32",
    "FLT_TO_UINT": "fptoui float {0} to i32",
}
GLOBAL, LDS, CONSTANTS = 1, 3, 8  # address spaces; that of constant buffer 0
HEAD = """target triple = "r600--"
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.floor.f32(float)
declare float @llvm.ceil.f32(float)
declare float @llvm.trunc.f32(float)
declare float @llvm.rint.f32(float)
declare void @llvm.r600.group.barrier() convergent nounwind
declare void @llvm.r600.rat.store.typed(<4 x i32>, <4 x i32>, i32)
declare <4 x float> @llvm.r600.tex(<4 x float>, {}) readnone
!llvm.dbg.cu = !{{!0}}
!llvm.module.flags = !{{!1}}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !2, emissionKind: LineTablesOnly)
!1 = !{{i32 2, !"Debug Info Version", i32 3}}
!2 = !DIFile(filename: "il", directory: "")
!3 = !DISubroutineType(types: !4)
!4 = !{{null}}
!5 = distinct !DISubprogram(name: "k", file: !2, type: !3, unit: !0, spFlags: DISPFlagDefinition)
define amdgpu_ps void @k(<4 x float> inreg %reg0, <4 x float> inreg %reg1) !dbg !5 {{
""".format(", ".join(["i32"] * 9))
ADVICE = 'leave out by="llvm", or write this line in another way'
NO_DOUBLES = (
    "LLVM's table of this chip has no fused multiply-add of doubles: compute in single precision,"
    ' or leave out by="llvm"'
)
FIRST_LINE = 6  # the number of the first line's metadata


class Unprinted(NamedTuple):
    """A fetch of a texture or a store: its operation, and what LLVM's assembly leaves out."""

    name: str
    detail: FetchDetail | StoreDetail


@dataclass(frozen=True)
class KernelIr:
    """A kernel in LLVM's IR.

    Attributes
    ----------
    text
        The IR.
    unprinted
        What each numbered resource or memory stands for.
    """

    text: str
    unprinted: Sequence[Unprinted]


def translate(function: Function) -> KernelIr:
    """Return a lowered kernel in LLVM's IR.

    Raises
    ------
    CompileError
        For an operation that has no translation. The message names the IL line.
    """
    return _Translator(function).run()


class _Translator:
    """Translates one function.

    Attributes
    ----------
    names
        The name of each word's value, of each block, and of a word that a phi takes from a block.
    unprinted
        The number of each access.
    lines
        The text so far.
    at, places
        The instruction in ``Program.body`` that the next line comes from; all of these so far.
    popped
        The LDS_POP of each LDS read.
    """

    def __init__(self, function: Function):
        self.function = function
        self.names: dict[object, str] = {}
        self.unprinted: dict[Unprinted, int] = {}
        self.lines: list[str] = []
        self.at = 0
        self.places: set[int] = set()
        self.popped = {op.popped: op for b in function.blocks for op in b.ops if op.popped}

    def run(self) -> KernelIr:
        for n, block in enumerate(self.function.blocks):
            self.lines.append(f"{self.name(block)[1:]}:")
            for phi in block.phis:
                taken = [
                    f"[{self.taken(before, word.resolve())}, {self.name(before)}]"
                    for before, word in phi.args.items()
                ]
                self.lines.append(f"  {self.name(phi)} = phi i32 {', '.join(taken)}")
            if n == 0:
                self.inputs()
            test = ""
            for op in block.ops:
                self.at = op.at
                test = self.op(op)
            self.end(block, test)
        places = [
            f"!{FIRST_LINE + at} = !DILocation(line: {at + 1}, scope: !5)"
            for at in sorted(self.places)
        ]
        return KernelIr("\n".join([HEAD, *self.lines, "}", *places, ""]), [*self.unprinted])

    def name(self, thing: object) -> str:
        """Return the name of a word's value or of a block."""
        return self.names.setdefault(thing, f"%v{len(self.names)}")

    def emit(self, text: str) -> None:
        """Append an instruction without a value."""
        self.places.add(self.at)
        self.lines.append(f"  {text}, !dbg !{FIRST_LINE + self.at}")

    def value(self, text: str, name: str = "") -> str:
        """Append an instruction. Return the name of its value."""
        name = name or self.name(object())
        self.emit(f"{name} = {text}")
        return name

    # Words

    def inputs(self) -> None:
        """Take apart the preloaded registers."""
        for word in self.function.inputs:
            register, channel = word.place
            part = self.value(f"extractelement <4 x float> %reg{register}, i32 {channel}")
            self.value(f"bitcast float {part} to i32", self.name(word))

    def word(self, word: Word, name: str = "") -> str:
        """Return the ``i32`` of a word. An element of a constant buffer is loaded where it is used,
        since the chip's operations read it there.
        """
        if word.kind == "const":
            return str(word.bits)
        if word.kind != "constant":
            return self.name(word)
        buffer, element, channel = word.place
        space = f"ptr addrspace({CONSTANTS + buffer})"
        return self.value(
            f"load i32, {space} inttoptr (i32 {16 * element + 4 * channel} to {space})", name
        )

    def taken(self, block: BasicBlock, word: Word) -> str:
        """Return the name of a word that a phi takes from a block."""
        return self.name((block, word)) if word.kind == "constant" else self.word(word)

    def float(self, src: Src) -> str:
        """Return an operand as a float."""
        if src.value.kind == "const":
            return f"bitcast (i32 {src.value.bits ^ SIGN * src.neg} to float)"
        value = self.value(f"bitcast i32 {self.word(src.value)} to float")
        return self.value(f"fneg float {value}") if src.neg else value

    def vector(self, kind: str, parts: Sequence[str], mask: Sequence[int] = range(4)) -> str:
        """Return a vector of four with these components."""
        vector = "poison"
        for n, part in zip(mask, parts, strict=False):
            vector = self.value(f"insertelement <4 x {kind}> {vector}, {kind} {part}, i32 {n}")
        return vector

    def unpack(self, vector: str, words: Sequence[Word]) -> None:
        """Set words to the components of a vector of floats."""
        for n, word in enumerate(words):
            part = self.value(f"extractelement <4 x float> {vector}, i32 {n}")
            self.value(f"bitcast float {part} to i32", self.name(word))

    def pointer(self, space: int, address: str, offset: int) -> str:
        """Return a pointer to an address in an address space."""
        kind = f"ptr addrspace({space})"
        if offset:
            address = self.value(f"add i32 {address}, {offset}")
        return f"{kind} {self.value(f'inttoptr i32 {address} to {kind}')}"

    # Blocks and operations

    def end(self, block: BasicBlock, test: str) -> None:
        """Load what phis take of constant buffers, and branch."""
        taken = {phi.args[block].resolve() for after in block.succs for phi in after.phis}
        for word in sorted(taken, key=lambda word: word.place):
            if word.kind == "constant":
                self.word(word, self.name((block, word)))
        targets = [f"label {self.name(after)}" for after in block.succs]
        if len(targets) == 2:
            self.emit(f"br i1 {test}, {', '.join(targets)}")
        else:
            self.emit(f"br {targets[0]}" if targets else "ret void")

    def op(self, op: Op) -> str:
        """Translate an operation. Return the name of its last value."""
        if op.row.kind == "double":
            raise self.refuse(op, NO_DOUBLES)
        if op.row.kind == "lds" and len(self.function.program.lds) > 1:
            raise self.refuse(op, f"our translation for LLVM has one LDS array: {ADVICE}")
        if op.row.relation:
            return self.comparison(op)
        if op.name in FLOATS:
            result = self.arithmetic(op, FLOATS[op.name])
            return self.value(f"bitcast float {result} to i32", self.name(op.results[0]))
        if op.name in INTEGERS:
            return self.arithmetic(op, INTEGERS[op.name], self.name(op.results[0]))
        access = ACCESSES.get(op.name)
        if access is None:
            raise self.refuse(op, f"our translation for LLVM has no {op.name}: {ADVICE}")
        access(self, op)
        return ""

    def refuse(self, op: Op, what: str) -> CompileError:
        return error_at(self.function.program, op.at, what)

    def operands(self, op: Op) -> list[str]:
        """Return the operands of an arithmetic operation."""
        is_float = op.row.kind == "float"
        return [self.float(src) if is_float else self.word(src.value) for src in op.srcs]

    def arithmetic(self, op: Op, form: str, name: str = "") -> str:
        """Append the instructions of a form. The last one gets the ``name``."""
        values = self.operands(op)
        *first, last = form.split("; ")
        for part in first:
            values.append(self.value(part.format(*values)))
        return self.value(last.format(*values), name)

    def comparison(self, op: Op) -> str:
        """Translate a comparison. The branch takes the value of a test itself."""
        kind, relation = op.name.rpartition("_")[2], op.row.relation
        if kind == "DX10":
            form = f"fcmp {'une' if relation == 'ne' else 'o' + relation} float"
        else:
            sign = "" if relation in ("eq", "ne") else kind[0].lower().replace("i", "s")
            form = f"icmp {sign}{relation} i32"
        bit = self.value(f"{form} {', '.join(self.operands(op))}")
        if op.row.is_test:
            return bit
        return self.value(f"select i1 {bit}, i32 -1, i32 0", self.name(op.results[0]))

    # Memory

    def number(self, op: Op) -> int:
        """Return the number of the resource or memory that stands for an access."""
        assert isinstance(op.detail, FetchDetail | StoreDetail)
        return self.unprinted.setdefault(Unprinted(op.name, op.detail), len(self.unprinted))

    def sample(self, op: Op) -> None:
        number = self.number(op)
        coordinates = self.vector("float", [self.float(src) for src in op.srcs])
        arguments = [0, 0, 0, number, number, 0, 0, 0, 0]
        listed = ", ".join(f"i32 {n}" for n in arguments)
        texel = f"call <4 x float> @llvm.r600.tex(<4 x float> {coordinates}, {listed})"
        self.unpack(self.value(texel), op.results)

    def read(self, op: Op) -> None:
        assert isinstance(op.detail, FetchDetail)
        address = self.word(op.srcs[0].value) if op.srcs else "0"
        place = self.pointer(GLOBAL, address, op.detail.offset[0])
        self.unpack(self.value(f"load <4 x float>, {place}, align 16"), op.results)

    def store(self, op: Op) -> None:
        assert isinstance(op.detail, StoreDetail)
        mask = op.detail.mask
        words = [self.word(src.value) for src in op.srcs]
        data = self.vector("i32", words[: len(mask)], mask)
        index = "poison"
        if op.name == "MEM_WRITE":
            index = self.vector("i32", words[len(mask) :] or ["0"])
        store = f"<4 x i32> {data}, <4 x i32> {index}, i32 {self.number(op)}"
        self.emit(f"call void @llvm.r600.rat.store.typed({store})")

    def lds_write(self, op: Op) -> None:
        assert isinstance(op.detail, LdsAccess)
        address, *words = (self.word(src.value) for src in op.srcs)
        for n, word in enumerate(words):
            place = self.pointer(LDS, address, 4 * op.detail.offset * n)
            self.emit(f"store i32 {word}, {place}")

    def lds_read(self, op: Op) -> None:
        assert isinstance(op.detail, LdsAccess)
        address = self.word(op.srcs[0].value)
        for n, word in enumerate(self.popped[op].results):
            place = self.pointer(LDS, address, 4 * op.detail.offset * n)
            self.value(f"load i32, {place}", self.name(word))

    def barrier(self, op: Op) -> None:
        self.emit("call void @llvm.r600.group.barrier()")

    def pop(self, op: Op) -> None:
        """Do nothing: its words were set by the LDS read."""


ACCESSES = {
    "SAMPLE": _Translator.sample,
    "MEM_READ": _Translator.read,
    "MEM_WRITE": _Translator.store,
    "EXPORT": _Translator.store,
    "LDS_WRITE": _Translator.lds_write,
    "LDS_WRITE_REL": _Translator.lds_write,
    "LDS_READ_RET": _Translator.lds_read,
    "LDS_READ_REL_RET": _Translator.lds_read,
    "LDS_POP": _Translator.pop,
    "GROUP_BARRIER": _Translator.barrier,
}
