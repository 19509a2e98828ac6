"""Check the names that a program uses: a name has to be declared, and to exist in the kernel's
mode (pixel or compute).
"""

from cypresskit.il.declarations import MAX_CONSTANTS
from cypresskit.il.program import Instruction, Program
from cypresskit.il.registers import INPUTS


def name_faults(i: Instruction, program: Program):
    """Yield (word at fault, message) for each name of an instruction that the program lacks."""
    for register in i.registers:
        kind, index = register.kind, register.index
        if kind == "l" and index not in program.literals:
            yield f"l{index}", f"l{index} is not declared: add `dcl_literal l{index}, ...`"
        elif kind == "cb" and (index > 15 or register.element >= MAX_CONSTANTS):
            yield (
                f"cb{index}",
                (
                    f"{register}: constant buffers are cb0 to cb15, of {MAX_CONSTANTS} elements at"
                    " most"
                ),
            )
        elif kind == "cb" and index not in program.constants:
            yield (
                f"cb{index}",
                f"cb{index} is not declared: add `dcl_cb cb{index}[{register.element + 1}]`",
            )
        elif kind == "cb" and register.element >= program.constants[index]:
            size = program.constants[index]
            yield (
                f"cb{index}",
                f"{register} is not declared: `dcl_cb cb{index}[{size}]` has elements 0 to"
                f" {size - 1}. Declare `dcl_cb cb{index}[{register.element + 1}]`",
            )
        elif kind == "vWinCoord0" and program.mode == "compute":
            instead = "a compute kernel has vAbsTidFlat, vTidInGrpFlat and the like"
            yield kind, f"{kind} exists in pixel kernels (`il_ps_2_0`); {instead}"
        elif kind in INPUTS[1:] and program.mode == "pixel":
            yield (
                kind,
                f"{kind} exists in compute kernels (`il_cs_2_0`); a pixel kernel has vWinCoord0",
            )
        elif kind == "o" and program.mode == "compute":
            yield (
                str(register),
                "output streams exist in pixel kernels only; a compute kernel stores to g[]",
            )
        elif kind in ("in", "out"):
            yield str(register), f"{register} exists inside a macro only"
    if i.op.kind == "fetch" and i.controls.resource not in program.textures:
        n = i.controls.resource
        declaration = (
            f"dcl_resource_id({n})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
        )
        yield f"{i.opcode}_resource", f"resource {n} is not declared: add `{declaration}`"
    if i.op.kind == "lds" and program.mode == "pixel":
        yield i.opcode, f"`{i.opcode}`: a pixel kernel has no LDS; use `il_cs_2_0`"
    elif i.op.kind == "lds" and i.controls.id not in program.lds:
        yield (
            i.opcode,
            f"LDS {i.controls.id} is not declared: add `dcl_lds_id({i.controls.id}) BYTES`",
        )
    if i.opcode == "fence" and program.mode == "pixel" and (i.controls.threads or i.controls.lds):
        yield "fence", "a pixel kernel has no workgroup: only `fence_memory` is allowed in it"
