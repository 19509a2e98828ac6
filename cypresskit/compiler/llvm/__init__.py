"""Compile a kernel with LLVM: its r600 target is another compiler for the same chip.

1. ``to_ir``: our lowered words in SSA form to LLVM's IR.
2. ``back_end``: the IR to assembly. What it gave for the catalog is stored, with its version.
3. ``from_assembly``: the assembly to our instructions. Statistics, listing, pictures and clock take
   the ``Code`` as if it were ours.

How the IR is written decides what LLVM makes of it. So this is what LLVM makes of *our
translation*, not what LLVM can do.
"""

from functools import lru_cache

from cypresskit.compiler.code import Code
from cypresskit.compiler.ir import CompileError
from cypresskit.compiler.llvm.back_end import assembly
from cypresskit.compiler.llvm.from_assembly import read
from cypresskit.compiler.llvm.to_ir import KernelIr, translate
from cypresskit.compiler.lower import lower
from cypresskit.compiler.simplify import simplify
from cypresskit.compiler.target import Target
from cypresskit.devices import Device
from cypresskit.il import Program


@lru_cache(maxsize=128)
def compile_with_llvm(program: Program, device: Device, source: tuple[object, ...]) -> Code:
    """Compile a program with LLVM. ``source`` is its name, lines and meaning: equal programs may
    differ in these, which the code has.

    Raises
    ------
    CompileError
        If LLVM can't, or isn't installed and the program is none of the catalog's.
    """
    translation = translated(program, device)
    version, text = assembly(translation.text, program.name)
    controls, gprs = read(text, translation.unprinted, program)
    if gprs > device.usable_gprs:
        raise CompileError(
            f"{program.name}: LLVM needs {gprs} registers for it, and the chip has"
            f" {device.usable_gprs} for a work-item: compute a smaller block"
        )
    return Code(controls, gprs, 0, program, device, by=version.partition(".")[0])


def translated(program: Program, device: Device) -> KernelIr:
    """Return a program in LLVM's IR."""
    function = lower(program, Target.of(device))
    simplify(function)
    return translate(function)
