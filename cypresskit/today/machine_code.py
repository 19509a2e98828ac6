"""An IL kernel as the machine code of AMD's current GPUs, by LLVM's AMDGPU back end, which comes
with llvmlite.

The fast engine's translator writes the LLVM IR, for another target: textures are images on a
Radeon; an Instinct has none, and loads from arrays. An output is stored at the work-item's place in
a matrix. Left out: IL's rules for subnormals and NaNs, and checks of addresses.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import NamedTuple

import llvmlite.binding as llvm

from cypresskit.il import Instruction, Program
from cypresskit.il.bits import ONE
from cypresskit.kernels.own import Source, resolve_program
from cypresskit.machine.fast.native_meaning import Floats
from cypresskit.machine.fast.target import Target, store_words
from cypresskit.machine.fast.translate import Translator
from cypresskit.machine.fast.vec import Vec


class Gpu(NamedTuple):
    """LLVM's name of a processor; whether it has images; work-items of a wavefront; bytes of LDS
    that SIMDs share, and how many SIMDs do.
    """

    processor: str
    images: bool
    wavefront: int
    lds_bytes: int
    simds: int


CHIPS = {
    "HD 7970": Gpu("tahiti", True, 64, 65536, 4),
    "MI300X": Gpu("gfx942", False, 64, 65536, 4),
    "RX 9070": Gpu("gfx1201", True, 32, 131072, 4),
}
#: What a kernel's scalar registers hold: a table of 32-byte descriptors, of textures from 0 on, the
#: sampler, and of outputs from 128 on; all constant buffers, of 64 KiB each; and ``g[]``.
DESCRIPTORS, CONSTANTS, MEMORY = "%descriptors", "%constants", "%memory"
OUTPUTS, SAMPLER, BUFFER = 128, 127, 65536
HEAD = (
    "define amdgpu_cs void @main(ptr addrspace(4) inreg %descriptors,"
    " ptr addrspace(4) inreg %constants, ptr addrspace(1) inreg %memory{numbers})"
    ' "amdgpu-flat-work-group-size"="1,{items}" !dbg !3 {{'
)
#: Places in the kernel's text: line n is !(n + LINES)
LINES = 100
DEBUG = """
!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!4, !5}
!0 = !DIFile(filename: "kernel.il", directory: "")
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !0, emissionKind: LineTablesOnly)
!2 = !DISubroutineType(types: !6)
!3 = distinct !DISubprogram(name: "main", file: !0, type: !2, unit: !1, spFlags: DISPFlagDefinition)
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !{i32 2, !"Dwarf Version", i32 4}
!6 = !{}"""


class PlainFloats(Floats):
    """Arithmetic without IL's rules for subnormals and NaNs, and as fast as IL's own."""

    def flush(self, value: Vec) -> Vec:
        return value

    def canonical(self, value: Vec) -> Vec:
        return value

    def mad(self, a: Vec, b: Vec, c: Vec) -> Vec:
        return a.call("fmuladd", b, c)

    def small(self, result: Vec, exact: Vec, also: Vec | None = None) -> Vec:
        return result

    def inverse_root(self, a: Vec) -> Vec:
        return self.multiply("div afn", self.e.const(1.0, "float", a.n), a.call("sqrt"))


class GpuTarget(Target):
    """The kernel of a program for one of ``CHIPS``."""

    def __init__(self, program: Program, chip: Gpu):
        super().__init__(program, PlainFloats)
        self.chip = chip
        self.descriptors = Vec(self.ir, DESCRIPTORS, "ptr addrspace(4)")
        self.numbers: dict[str, Vec] = {}
        self.lds: dict[int, int] = {}
        end = 0
        for n, (_, size) in program.lds.items():
            self.lds[n] = end
            end += size

    def module(self) -> str:
        """The module's text."""
        self.ir.mark = f", !dbg !{LINES}"
        Translator(self.program, self).work_item()
        self.ir.do("ret void")
        numbers = (
            f", i32 {'inreg ' * name.startswith('vThreadGrp')}%{name}" for name in self.numbers
        )
        items = self.chip.wavefront if self.program.mode == "pixel" else prod(self.program.group)
        head = HEAD.format(numbers="".join(numbers), items=items)
        places = [
            f"!{LINES + line} = !DILocation(line: {line}, column: 1, scope: !3)"
            for line in {i.line for i in self.program.body} | {0}
        ]
        return "\n".join([*self.ir.declared.values(), self.function(head), DEBUG, *places])

    def begin(self, at: int) -> None:
        self.ir.mark = f", !dbg !{LINES + self.program.body[at].line}"

    def fence(self, at: int) -> None:
        if self.program.body[at].controls.threads and self.program.mode == "compute":
            self.ir.declared["barrier"] = "declare void @llvm.amdgcn.s.barrier()"
            self.ir.do('fence syncscope("workgroup") release')
            self.ir.do("call void @llvm.amdgcn.s.barrier()")
            self.ir.do('fence syncscope("workgroup") acquire')

    def literal(self, bits: int) -> Vec:
        return self.ir.const(bits, "i32")

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        place = Vec(self.ir, CONSTANTS, "ptr addrspace(4)")
        place = place.at(BUFFER * buffer + 16 * element + 4 * component)
        return place.load("i32")

    def input(self, name: str, component: int) -> Vec:
        if name == "vWinCoord0" and component > 1:
            return self.literal((0, ONE)[component - 2])
        if component == 3 and "Flat" not in name:
            return self.literal(0)
        if name.startswith("vAbsTid"):
            size = self.program.group
            items = prod(size) if "Flat" in name else size[component]
            flat = "Flat" * ("Flat" in name)
            group = self.input(f"vThreadGrpId{flat}", component)
            return group * items + self.input(f"vTidInGrp{flat}", component)
        number = name if "Flat" in name else f"{name}_{'xyz'[component]}"
        return self.numbers.setdefault(number, Vec(self.ir, f"%{number}", "i32"))

    def _pixel(self, n: int, x: Vec, y: Vec) -> Vec:
        """The place of an element in the matrix of a descriptor: its address, its width."""
        descriptor = self.descriptors.at(32 * n)
        width = descriptor.at(8).load("i32")
        matrix = descriptor.load("ptr addrspace(1)")
        return matrix.at((y * width + x).cast("sext", "i64") << 4)

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        kind = "float" if i.opcode == "sample" else "i32"
        number = {"float": float, "i32": int}[kind]
        axes = [self.ir.const(number(0), kind)] * 2  # y of a texture of one dimension
        for axis, value in enumerate(place):
            more = number(i.controls.aoffimmi[axis])
            axes[axis] = value.bits(kind) + more if more else value.bits(kind)
        x, y = axes
        if not self.chip.images:
            if kind == "float":
                x, y = (at.call("floor").cast("fptosi", "i32") for at in axes)
            return self._pixel(i.controls.resource, x, y).load("i32", 4, 16)
        texture = self.descriptors.at(32 * i.controls.resource).load("i32", 8, 4)
        every, zero = self.ir.const(15, "i32"), self.ir.const(0, "i32")
        if kind == "i32":
            name = "llvm.amdgcn.image.load.2d.v4f32.i32.v8i32"
            return self.ir.call(name, "float", 4, every, x, y, texture, zero, zero).bits("i32")
        name = "llvm.amdgcn.image.sample.lz.2d.v4f32.f32.v8i32.v4i32"
        sampler = self.descriptors.at(32 * SAMPLER).load("i32", 4, 4)
        unnormalized = self.ir.const("true", "i1")
        return self.ir.call(
            name, "float", 4, every, x, y, texture, sampler, unnormalized, zero, zero
        ).bits("i32")

    def _element(self, element: Vec) -> Vec:
        return Vec(self.ir, MEMORY, "ptr addrspace(1)").at(element << 4)

    def load_global(self, element: Vec) -> Vec:
        return self._element(element).load("i32", 4, 16)

    def store_global(self, at: int, element: Vec, words: Sequence[int], value: Vec) -> None:
        store_words(self._element(element), words, value)

    def _in_lds(self, array: int, byte: Vec) -> Vec:
        address = (byte + self.lds[array]).cast("trunc", "i32")
        return self.ir.op(f"inttoptr {address} to ptr addrspace(3)", "ptr addrspace(3)")

    def load_lds(self, array: int, byte: Vec, words: Sequence[int]) -> Vec:
        place = self._in_lds(array, byte)
        if words == (0,):
            return place.load("i32", 0, 4)
        return place.load("i32", 4, 4).pick(words)

    def store_lds(self, at: int, array: int, byte: Vec, words: Sequence[int], value: Vec) -> None:
        store_words(self._in_lds(array, byte), words, value)

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        floats = (self.input("vWinCoord0", c).bits("float") for c in (0, 1))
        x, y = (coordinate.cast("fptosi", "i32") for coordinate in floats)
        store_words(self._pixel(OUTPUTS + n, x, y), words, value)


@dataclass(frozen=True)
class Listed:
    """An instruction of the listing, and the line of IL that it was made for: 0 for the frame."""

    text: str
    line: int

    @property
    def multiply_adds(self) -> int:
        found = re.findall(r"v_(pk_)?(?:dual_)?(?:fma|mac|mad)\w*_(?:f32|f64)", self.text)
        return sum(2 if packed else 1 for packed in found)


@dataclass(frozen=True)
class TodaysCode:
    """A kernel's machine code on a current chip. ``loop`` is the innermost that multiplies the
    most, empty if none multiplies; ``registers``, the vector registers of a work-item;
    ``wavefronts``, how many a SIMD holds.
    """

    chip: str
    processor: str
    assembly: str
    registers: int
    wavefronts: int
    code: tuple[Listed, ...]
    loop: tuple[Listed, ...]

    def count(self, pattern: str) -> int:
        """Instructions of an iteration that begin with ``pattern``, a regular expression."""
        return sum(bool(re.match(pattern, listed.text)) for listed in self.loop)

    @property
    def multiply_adds(self) -> int:
        """Of an iteration of the loop."""
        return sum(listed.multiply_adds for listed in self.loop)

    @property
    def pairs(self) -> int:
        """Instructions of an iteration that start two operations."""
        return self.count("v_dual_")

    @property
    def loads(self) -> int:
        return self.count("image_|global_load|flat_load|buffer_load|ds_(read|load)")

    @property
    def waits(self) -> int:
        return self.count("s_wait(?!_alu)")

    def __str__(self) -> str:
        version = ".".join(map(str, llvm.llvm_version_info))
        iteration = "No loop that multiplies"
        if self.loop:
            iteration = (
                f"An iteration: {self.multiply_adds} multiply-adds, {self.count('v_')} vector"
                f" instructions, of which {self.pairs} are pairs; {self.loads} loads,"
                f" {self.waits} waits"
            )
        lines = [
            f"{self.chip} ({self.processor}), by LLVM {version}",
            f"{self.registers} vector registers; {self.wavefronts} wavefronts fit on a SIMD",
            iteration,
            "",
            "line  the loop" if self.loop else "line",
        ]
        shown = self.loop or self.code
        return "\n".join([*lines, *(f"{one.line or '':>4}  {one.text}" for one in shown)])


def machine_code(kernel: Source, chip: str = "RX 9070") -> TodaysCode:
    """A kernel of IL as the machine code of ``chip``: "RX 9070", "MI300X" or "HD 7970".

    Raises what ``ck.assemble`` raises for its text, ``ValueError`` for another chip.

    >>> print(ck.machine_code("sgemm_tn", "RX 9070"))
    """
    names = {name.lower(): name for name in CHIPS}
    name = names.get(chip.lower()) if isinstance(chip, str) else None
    if name is None:
        raise ValueError(f"chip is one of {', '.join(CHIPS)}, not {chip!r}")
    gpu = CHIPS[name]
    program = resolve_program(kernel)
    assembly = assembled(GpuTarget(program, gpu).module(), "amdgcn--", gpu.processor)
    code, loop = _read(assembly)
    waves = int(re.findall(r"Occupancy: (\d+)", assembly)[0])
    if program.lds_bytes:
        groups = gpu.lds_bytes // program.lds_bytes
        waves = min(waves, groups * ceil(prod(program.group) / gpu.wavefront) // gpu.simds)
    registers = int(re.findall(r"NumVgprs: (\d+)", assembly)[0])
    return TodaysCode(name, gpu.processor, assembly, registers, waves, code, loop)


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
