"""An IL kernel as the machine code of a chip that is sold, by LLVM's AMDGPU back end, which comes
with llvmlite.

The compiler's scalar form is written as LLVM IR, blocks and phis one to one; what each operation
means stands in ``operations.ll`` and ``amdgcn.ll``, and all that follows is LLVM's. Textures are
images on a Radeon; an Instinct has none, and loads from arrays. An output is stored at the
work-item's place in a matrix. Left out: IL's rules for subnormals and NaNs, and operations that
those texts haven't, which are refused.
"""

import re
from dataclasses import dataclass, replace
from importlib.resources import files
from math import ceil, prod
from typing import NamedTuple

import llvmlite.binding as llvm

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
    const,
    refuse,
)
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.devices import HD5870
from cypresskit.kernels.own import Source, resolve_program


class Gpu(NamedTuple):
    """LLVM's name of a processor; what a texture is, "image" or "array"; work-items of a
    wavefront; bytes of LDS that SIMDs share, and how many SIMDs do.
    """

    processor: str
    fetch: str
    wavefront: int
    lds_bytes: int
    simds: int


CHIPS = {
    "HD 7970": Gpu("tahiti", "image", 64, 65536, 4),
    "MI300X": Gpu("gfx942", "array", 64, 65536, 4),
    "RX 9070": Gpu("gfx1201", "image", 32, 131072, 4),
}
OPERATIONS, MEMORY = (
    files("cypresskit.today").joinpath(f"{name}.ll").read_text(encoding="utf-8")
    for name in ("operations", "amdgcn")
)
#: What the kernel's scalar registers hold, and what its frame looks like.
POINTERS = "ptr addrspace(4) inreg %descriptors, ptr addrspace(4) inreg %constants"
POINTERS += ", ptr addrspace(1) inreg %memory"
FRAME = 'define {convention} void @main({arguments}) "amdgpu-flat-work-group-size"="1,{items}"'


class ModuleWriter:
    """LLVM IR of a function, as text. Words are i32, floats are bitcasts of them; each operation is
    a call of its meaning in ``library``, and has its line of IL. ``items`` are in a workgroup.
    """

    convention = "amdgpu_cs"

    def __init__(self, function: Function, library: str, fetch: str, items: int):
        self.function = function
        self.fetch = fetch
        self.signatures = {
            name: (result, [tuple(one.rsplit(" %", 1)) for one in given.split(", ") if one])
            for result, name, given in re.findall(
                r"define internal (.+) @(\w+)\((.*)\) alwaysinline", library
            )
        }
        self.lines: list[str] = []
        self.names: dict[Word, str] = {}
        self.reads: dict[Op, tuple[str, str]] = {}  # types and values from LDS
        self.at = 0
        blocks = [block for block in function.blocks if not block.dead]
        self.labels = {block: f"b{n}" for n, block in enumerate(blocks)}
        self.lines += ["entry:", *self.constants(blocks), f"  br label %{self.labels[blocks[0]]}"]
        for block in blocks:
            self.block(block)
        frame = FRAME.format(convention=self.convention, arguments=self.arguments(), items=items)
        places = [
            f"!{100 + line} = !DILocation(line: {line}, column: 1, scope: !3)"
            for line in {instruction.line for instruction in function.program.body} | {0}
        ]
        self.module = "\n".join([frame + " !dbg !3 {", *self.lines, "}", library, *places])

    def arguments(self) -> str:
        """The kernel's arguments: pointers and numbers of the group in scalar registers, the
        work-item's in its own.
        """
        own = {word.place for word in self.function.inputs}
        own |= set() if self.function.program.group else {(0, 0), (0, 1)}
        numbers = (
            f"i32 {'inreg ' if register else ''}%i{register}_{channel}"
            for register, channel in sorted(own, reverse=True)
        )
        return ", ".join([POINTERS, *numbers])

    def constants(self, blocks: list[BasicBlock]) -> list[str]:
        """Loads of all constants that are used, for the function's beginning."""
        words = {src.value for block in blocks for op in block.ops for src in op.srcs}
        words |= {word for block in blocks for phi in block.phis for word in phi.args.values()}
        places = sorted({word.place for word in words if word.kind == "constant"})
        return [line for place in places for line in self.constant(*place)]

    def constant(self, buffer: int, element: int, channel: int) -> list[str]:
        at = 65536 * buffer + 16 * element + 4 * channel
        name = f"%c{buffer}_{element}_{channel}"
        return [f"  {name} = call i32 @constant(ptr addrspace(4) %constants, i32 {at}), !dbg !100"]

    def word(self, value: Word) -> str:
        """A word's name, or its number."""
        if value.kind == "const":
            return str(value.bits)
        if value.kind in ("constant", "input"):
            return f"%{value.kind[0]}{'_'.join(map(str, value.place))}"
        return self.names.setdefault(value, f"%w{len(self.names)}")

    def new(self, text: str) -> str:
        """The name of what an instruction computes."""
        name = f"%t{len(self.lines)}"
        self.lines.append(f"  {name} = {text}, !dbg !{self.at}")
        return name

    def operand(self, kind: str, *srcs: Src) -> str:
        """One operand, of one or two words, as a value of a type."""
        word, *high = (self.word(src.value) for src in srcs)
        if kind == "i32":
            return word
        if high:
            low = self.new(f"insertelement <2 x i32> undef, i32 {word}, i32 0")
            both = self.new(f"insertelement <2 x i32> {low}, i32 {high[0]}, i32 1")
            value = self.new(f"bitcast <2 x i32> {both} to double")
        else:
            value = self.new(f"bitcast i32 {word} to float")
        if srcs[-1].abs:
            value = self.new(f"call {kind} @absolute_{kind}({kind} {value})")
        return self.new(f"fneg {kind} {value}") if srcs[-1].neg else value

    def define(self, words: list[Word], kind: str, value: str) -> None:
        """Name the words of a value."""
        if len(words) == 1:
            self.lines.append(f"  {self.word(words[0])} = bitcast {kind} {value} to i32")
        elif words:
            vector = f"<{len(words)} x i32>"
            value = self.new(f"bitcast {kind} {value} to {vector}")
            for n, word in enumerate(words):
                self.lines.append(f"  {self.word(word)} = extractelement {vector} {value}, i32 {n}")

    def call(self, op: Op, name: str, srcs: list[Src], *more: int | str) -> tuple[str, str]:
        """Call the meaning of ``name`` on operands, then on ``more``. Returns type and value."""
        if name not in self.signatures:
            raise self.refused(op, op.name)
        result, parameters = self.signatures[name]
        operands = [*srcs]
        numbers = [str(number) for number in more]
        given = []
        for kind, parameter in parameters:
            if parameter in ("descriptors", "constants", "memory"):
                value = f"%{parameter}"
            elif operands:
                words = [operands.pop(0) for _ in range(2 if kind == "double" else 1)]
                value = self.operand(kind, *words)
            else:
                value = numbers.pop(0)
            given.append(f"{kind} {value}")
        text = f"call {result} @{name}({', '.join(given)})"
        if result != "void":
            return result, self.new(text)
        self.lines.append(f"  {text}, !dbg !{self.at}")
        return result, ""

    def op(self, op: Op) -> None:
        """An operation: a call of its meaning, of a store for each component."""
        detail = op.detail
        if op.popped:
            self.define(op.results, *self.reads[op.popped])
        elif isinstance(detail, StoreDetail):
            self.store(op, detail)
        elif isinstance(detail, LdsAccess):
            self.reads[op] = self.call(op, op.name, op.srcs, 4 * detail.offset)
        elif isinstance(detail, FetchDetail) and op.name == "MEM_READ":
            index = () if op.srcs else (0,)
            self.define(op.results, *self.call(op, op.name, op.srcs, *index, *detail.offset))
        elif isinstance(detail, FetchDetail):
            srcs = [*op.srcs, Src(const(0))][:2]
            more = *(*detail.offset, 0)[:2], detail.resource
            self.define(op.results, *self.call(op, f"{op.name}_{self.fetch}", srcs, *more))
        else:
            kind, value = self.call(op, op.name, op.srcs)
            if op.omod != 1.0:
                value = self.new(f"fmul float {value}, {op.omod}")
            if op.clamp:
                value = self.new(f"call float @clamped(float {value})")
            self.define(op.results, kind, value)

    def store(self, op: Op, detail: StoreDetail) -> None:
        count = len(detail.mask)
        place = op.srcs[count:]
        if op.name == "EXPORT":
            place = [Src(Word("input", place=(0, axis))) for axis in (0, 1)]
        index = () if place else (0,)
        for channel, src in zip(detail.mask, op.srcs):
            self.call(op, op.name, [src, *place], *index, detail.place, channel)

    def refused(self, op: Op, what: str) -> CompileError:
        return refuse(self.function.program, op.at, f"{what} is not known to the way through LLVM")

    def block(self, block: BasicBlock) -> None:
        self.lines.append(f"{self.labels[block]}:")
        for phi in block.phis:
            values = (
                f"[ {self.word(word)}, %{self.labels[before]} ]"
                for before, word in phi.args.items()
            )
            self.lines.append(f"  {self.word(phi)} = phi i32 {', '.join(values)}")
        test = ""
        for op in block.ops:
            self.at = 100 + self.function.program.body[op.at].line
            if op.row.predicate:
                test = f"i1 {self.call(op, op.name, op.srcs)[1]}, "
            else:
                self.op(op)
        targets = ", ".join(f"label %{self.labels[after]}" for after in block.succs)
        self.lines.append(f"  br {test}{targets}" if targets else "  ret void")


@dataclass(frozen=True)
class Listed:
    """An instruction of the listing, and the line of IL that it was made for: 0 for the frame."""

    text: str
    line: int

    @property
    def multiply_adds(self) -> int:
        return len(re.findall(r"v_(?:pk_|dual_)?(?:fma|mac|mad)\w*_(?:f32|f64)", self.text))


@dataclass(frozen=True)
class TodaysCode:
    """A kernel's machine code on a chip that is sold. ``loop`` is the innermost that multiplies the
    most; ``registers``, the vector registers of a work-item; ``wavefronts``, how many a SIMD holds.
    """

    chip: str
    processor: str
    assembly: str
    registers: int
    wavefronts: int
    code: tuple[Listed, ...]
    loop: tuple[Listed, ...]

    def count(self, pattern: str) -> int:
        """Instructions of a turn of the loop that begin with ``pattern``, a regular expression."""
        return sum(bool(re.match(pattern, listed.text)) for listed in self.loop)

    @property
    def multiply_adds(self) -> int:
        """Of a turn of the loop."""
        return sum(listed.multiply_adds for listed in self.loop)

    @property
    def pairs(self) -> int:
        """Instructions of a turn that start two operations."""
        return self.count("v_dual_")

    @property
    def loads(self) -> int:
        return self.count("image_|global_load|flat_load|buffer_load|ds_(read|load)")

    @property
    def waits(self) -> int:
        return self.count("s_wait(?!_alu)")

    def __str__(self) -> str:
        version = ".".join(map(str, llvm.llvm_version_info))
        vector = self.count("v_")
        lines = [
            f"{self.chip} ({self.processor}), by LLVM {version}",
            f"{self.registers} vector registers; {self.wavefronts} wavefronts fit on a SIMD",
            f"A turn: {self.multiply_adds} multiply-adds, {vector} vector instructions, of which"
            f" {self.pairs} are pairs; {self.loads} loads, {self.waits} waits",
            "",
            "line  the loop" if self.loop else "line",
        ]
        shown = self.loop or self.code
        return "\n".join([*lines, *(f"{one.line or '':>4}  {one.text}" for one in shown)])


def machine_code(kernel: Source, chip: str = "RX 9070") -> TodaysCode:
    """A kernel of IL as the machine code of ``chip``: "RX 9070", "MI300X" or "HD 7970".

    Raises what ``ck.compile`` raises for its text, ``CompileError`` with the line for an operation
    that isn't known here, ``ValueError`` for another chip.

    >>> print(ck.machine_code("sgemm_tn", "RX 9070"))
    """
    if chip not in CHIPS:
        raise ValueError(f"chip is one of {', '.join(CHIPS)}, not {chip!r}")
    processor, fetch, wavefront, lds_bytes, simds = CHIPS[chip]
    program = resolve_program(kernel)
    limits = replace(HD5870.limits, wavefront=wavefront)
    function = simplify(lower(program, limits))
    items = prod(program.group) if program.group else wavefront
    module = ModuleWriter(function, OPERATIONS + MEMORY, fetch, items).module
    assembly = assembled(module, "amdgcn--", processor)
    code, loop = _read(assembly)
    waves = int(re.findall(r"Occupancy: (\d+)", assembly)[0])
    if program.lds_bytes:
        groups = lds_bytes // program.lds_bytes
        waves = min(waves, groups * ceil(items / wavefront) // simds)
    registers = int(re.findall(r"NumVgprs: (\d+)", assembly)[0])
    return TodaysCode(chip, processor, assembly, registers, waves, code, loop)


def assembled(module: str, triple: str, processor: str) -> str:
    """LLVM's assembly of a module, after its passes; loops are not unrolled."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parsed = llvm.parse_assembly(module)
    parsed.verify()
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    machine.set_asm_verbosity(True)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)


def _read(assembly: str) -> tuple[tuple[Listed, ...], tuple[Listed, ...]]:
    """The instructions, and those of the loop."""
    body = assembly.split("\nmain:")[1].split(".Lfunc_end")[0]
    code: list[Listed] = []
    labels: dict[str, int] = {}
    loops: list[tuple[Listed, ...]] = [()]
    line = 0
    for text in (row.split(";")[0].strip() for row in body.splitlines()):
        if place := re.match(r"\.loc\s+\d+ (\d+)", text):
            line = int(place[1])
        elif text.endswith(":"):
            labels[text[:-1]] = len(code)
        elif text and not text.startswith("."):
            code.append(Listed(re.sub(r"\s+", " ", text), line))
            jump = re.match(r"s_c?branch\w* (\S+)", text)
            if jump and jump[1] in labels:
                loops.append(tuple(code[labels[jump[1]] :]))
    return tuple(code), max(loops, key=lambda loop: sum(one.multiply_adds for one in loop))
