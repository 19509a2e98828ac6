"""AMD's current GPUs as a target: machine code by LLVM's back end, which llvmlite brings.

The compiled engine's translator writes the LLVM IR, for another target: textures and outputs are
images. Left out: IL's rules for subnormals and NaNs, and checks of addresses.
"""

import re
from collections.abc import Sequence

import llvmlite.binding as llvm

from cypresskit.il import Instruction, Program
from cypresskit.machine.compiled.native_meaning import Floats
from cypresskit.machine.compiled.target import Target
from cypresskit.machine.compiled.translate import Translator
from cypresskit.machine.compiled.vec import Vec

CHIPS = {"HD 7970": "tahiti", "RX 9070": "gfx1201"}  # LLVM's names of the processors
#: A kernel's arguments, in scalar registers: a table of 32-byte descriptors (textures from 0 on,
#: the sampler, outputs from 128 on); all constant buffers, of 64 KiB each; and ``g[]``.
ARGUMENTS = (
    "ptr addrspace(4) inreg %descriptors, ptr addrspace(4) inreg %constants,"
    " ptr addrspace(1) inreg %memory"
)
OUTPUTS, SAMPLER, BUFFER = 128, 127, 65536
#: In a listing: the line that instructions are for, or an instruction or a label.
STEP = r"^\s*(?:\.loc\s+\d+ (\d+)|((?:\w|\.LBB)[^;\n]*))"
LINES = 100  # line n of the kernel is the LLVM metadata !(n + LINES)
DEBUG = """
!llvm.dbg.cu = !{!1}
!llvm.module.flags = !{!4, !5}
!0 = !DIFile(filename: "kernel.il", directory: "")
!1 = distinct !DICompileUnit(language: DW_LANG_C, file: !0, emissionKind: LineTablesOnly)
!2 = !DISubroutineType(types: !6)
!3 = distinct !DISubprogram(name: "main", file: !0, type: !2, unit: !1, spFlags: DISPFlagDefinition)
!4 = !{i32 2, !"Debug Info Version", i32 3}
!5 = !{i32 2, !"Dwarf Version", i32 4}
!6 = !{}
"""


class PlainFloats(Floats):
    """Arithmetic without IL's rules for subnormals and NaNs."""

    def flush(self, value: Vec) -> Vec:
        return value

    canonical = flush

    def mad(self, a: Vec, b: Vec, c: Vec) -> Vec:
        return a.call("fmuladd", b, c)

    def inverse_root(self, a: Vec) -> Vec:
        return self.multiply("div afn", self.e.const(1.0, "float", a.n), a.call("sqrt"))


class GpuTarget(Target):
    """An AMD GPU with images."""

    def __init__(self, program: Program):
        super().__init__(program, PlainFloats)
        self.numbers: dict[str, Vec] = {}

    def module(self) -> str:
        """Return the text of a module for the program."""
        Translator(self.program, self).work_item()
        self.ir.do("ret void")
        numbers = (
            f", i32 {'inreg ' * name.startswith('vThreadGrp')}%{name}" for name in self.numbers
        )
        head = (
            f"define amdgpu_cs void @main({ARGUMENTS}{''.join(numbers)})"
            f' "amdgpu-flat-work-group-size"="1,{self.items}" !dbg !3 {{'
        )
        places = [
            f"!{LINES + line} = !DILocation(line: {line}, column: 1, scope: !3)"
            for line in {i.line for i in self.program.body}
        ]
        return "\n".join([*self.ir.declared.values(), self.function(head), DEBUG, *places])

    def begin(self, at: int) -> None:
        i = self.program.body[at]
        self.ir.mark = f", !dbg !{LINES + i.line}"
        if i.controls.threads and not self.pixels:
            self.ir.do('fence syncscope("workgroup") release')
            self.ir.call("llvm.amdgcn.s.barrier", "void", 0)
            self.ir.do('fence syncscope("workgroup") acquire')

    def constant(self, buffer: int, element: int, component: int) -> Vec:
        base = Vec(self.ir, "%constants", "ptr addrspace(4)")
        return base.at(BUFFER * buffer + 16 * element + 4 * component).load("i32")

    def identity(self, name: str, component: int) -> Vec:
        number = name if "Flat" in name else f"{name}_{'xyz'[component]}"
        return self.numbers.setdefault(number, Vec(self.ir, f"%{number}", "i32"))

    def _descriptor(self, n: int, words: int = 8) -> Vec:
        return Vec(self.ir, "%descriptors", "ptr addrspace(4)").at(32 * n).load("i32", words, 4)

    def texel(self, i: Instruction, place: Sequence[Vec]) -> Vec:
        kind, number = ("float", float) if i.opcode == "sample" else ("i32", int)
        parts = [v.bits(kind) + number(more) for v, more in zip(place, i.controls.aoffimmi)]
        axes = [*parts, parts[0].like(number(0))][:2]  # y is 0 in one dimension
        every, zero = self.ir.const(15, "i32"), self.ir.const(0, "i32")
        name = "llvm.amdgcn.image.load.2d.v4f32.i32.v8i32"
        operands = [every, *axes, self._descriptor(i.controls.resource)]
        if kind == "float":
            name = "llvm.amdgcn.image.sample.lz.2d.v4f32.f32.v8i32.v4i32"
            operands += [self._descriptor(SAMPLER, 4), self.ir.const("true", "i1")]
        return self.ir.call(name, "float", 4, *operands, zero, zero).bits("i32")

    def place(self, array: int | None, byte: Vec) -> Vec:
        if array is None:
            return Vec(self.ir, "%memory", "ptr addrspace(1)").at(byte)
        address = byte + self.lds[array]
        return self.ir.op(f"inttoptr {address} to ptr addrspace(3)", "ptr addrspace(3)")

    def store_output(self, n: int, words: Sequence[int], value: Vec) -> None:
        x, y = (self.identity("vWinCoord0", c).bits("float").cast("fptosi", "i32") for c in (0, 1))
        mask, zero = (self.ir.const(m, "i32") for m in (sum(1 << c for c in words), 0))
        name = f"llvm.amdgcn.image.store.2d.{value.suffix('float')}.i32.v8i32"
        operands = value.bits("float"), mask, x, y, self._descriptor(OUTPUTS + n), zero, zero
        self.ir.call(name, "void", 0, *operands)


def listing(program: Program, chip: str) -> str:
    """Return ``kernels.compiled.machine_code`` of a program."""
    chip = str(chip).upper()
    if chip not in CHIPS:
        raise ValueError(f"chip is one of {', '.join(CHIPS)}, not {chip!r}")
    assembly = assembled(GpuTarget(program).module(), "amdgcn--", CHIPS[chip])
    body = assembly.split("\nmain:")[1].split(".Lfunc_end")[0]
    version = ".".join(map(str, llvm.llvm_version_info))
    rows = [f"{chip}, by LLVM {version}", "line"]
    line = ""
    for place, text in re.findall(STEP, body, re.MULTILINE):
        line = place or line
        if text:
            rows.append(f"{line:>4}  {' '.join(text.split())}")
    return "\n".join(rows)


def assembled(module: str, triple: str, processor: str) -> str:
    """Return LLVM's assembly of a module, after its passes; loops are not unrolled."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    parsed = llvm.parse_assembly(module)
    machine = llvm.Target.from_triple(triple).create_target_machine(cpu=processor, opt=3)
    machine.set_asm_verbosity(True)
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_unrolling = False
    passes = llvm.create_pass_builder(machine, options)
    passes.getModulePassManager().run(parsed, passes)
    return machine.emit_assembly(parsed)
