"""What only the whole program can tell: names that are used but not declared, or that the mode doesn't have."""

from cypresskit.il.operands import INPUTS
from cypresskit.il.program import Instruction, Program

MAX_CONSTANTS = 4096  # elements of a constant buffer (Evergreen instruction set, 4.6)


def name_faults(i: Instruction, program: Program):
    """Pairs of the word at fault and what is wrong with it."""
    registers = [d.register for d in (i.dest, *i.outputs) if d] + [s.register for s in i.sources]
    registers += [r.address.register for r in registers if r.address]
    for register in registers:
        kind, index = register.kind, register.index
        if kind == "l" and index not in program.literals:
            yield f"l{index}", f"l{index} is not declared: add `dcl_literal l{index}, ...`"
        elif kind == "cb" and not any(d.opcode == "dcl_cb" and d.numbers[0] == index for d in program.declarations):
            yield f"cb{index}", f"cb{index} is not declared: add `dcl_cb cb{index}[{register.element + 1}]`"
        elif kind == "cb" and register.element >= MAX_CONSTANTS:
            yield f"cb{index}", f"{register}: a constant buffer has at most {MAX_CONSTANTS} elements"
        elif kind == "vWinCoord0" and program.mode == "compute":
            yield (
                kind,
                f"{kind} exists in pixel kernels (`il_ps_2_0`); a compute kernel has vAbsTid, vTidInGrp and the like",
            )
        elif kind in INPUTS[1:] and program.mode == "pixel":
            yield kind, f"{kind} exists in compute kernels (`il_cs_2_0`); a pixel kernel has vWinCoord0"
        elif kind == "o" and program.mode == "compute":
            yield str(register), "output streams exist in pixel kernels only; a compute kernel stores to g[]"
        elif kind in ("in", "out"):
            yield str(register), f"{register} exists inside a macro only"
    if i.op.kind == "fetch" and i.control("resource") not in program.textures:
        n = i.control("resource")
        declaration = f"dcl_resource_id({n})_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
        yield f"{i.opcode}_resource", f"resource {n} is not declared: add `{declaration}`"
    if i.op.kind == "lds":
        if program.mode == "pixel":
            yield i.opcode, f"`{i.opcode}`: a pixel kernel has no LDS; use `il_cs_2_0`"
        elif i.control("id") not in program.lds:
            yield i.opcode, f"LDS {i.control('id')} is not declared: add `dcl_lds_id({i.control('id')}) BYTES`"
    if i.opcode == "fence" and program.mode == "pixel" and (i.control("threads") or i.control("lds")):
        yield "fence", "a pixel kernel has no workgroup: only `fence_memory` is allowed in it"
