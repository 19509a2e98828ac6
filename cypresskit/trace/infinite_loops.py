"""Find loops that never end, by running only what decides branches.

The branches of a kernel that can be timed depend on ids, constants and counters alone. The program
is therefore launched without its accesses to memory and its barriers, on the compiled engine, for
the work-items that are still in the loop. Each finds its ids in global memory.
``MAX_INSTRUCTIONS`` of a work-item take less than a millisecond.

An instruction that is left out leaves its destination unchanged. If a branch depends on that, the
result is useless; but then, the trace rejects that branch in the first iteration that reaches it.
"""

from dataclasses import replace

import numpy as np

from cypresskit.devices import WAVEFRONT
from cypresskit.il import Program, assemble
from cypresskit.il.program import Register
from cypresskit.machine.engines import run
from cypresskit.machine.launch import KernelError, endless_error, prepare
from cypresskit.machine.shape import LaunchShape, input_registers, lanes

COPIED = "dcl_literal", "dcl_cb"


def infinite_loop(
    shape: LaunchShape, wavefronts: np.ndarray, active: np.ndarray
) -> KernelError | None:
    """Return the error for a loop that one of the ``active`` lanes of these wavefronts (numbers in
    dispatch order) never leaves; None if there is no such loop.
    """
    program = shape.program
    x, y, _ = lanes(shape, wavefronts)
    ids = input_registers(shape, x[active], y[active])
    deciding = [at for at, i in enumerate(program.body) if _decides(program, at)]
    branches = _reading_ids(program, deciding, tuple(ids))

    count = -(-int(np.count_nonzero(active)) // WAVEFRONT) * WAVEFRONT
    records = np.stack([row.T for row in ids.values()], axis=1).reshape(-1, 4 * len(ids))
    memory = np.resize(records, (count, 4 * len(ids)))  # whole workgroups: the first ids again
    launch = prepare(branches, count, constants=shape.constants, global_memory=memory)
    try:
        run(launch)
    except KernelError as error:
        at = deciding[error.at - (len(branches.body) - len(deciding))]
        return endless_error(shape, at, launch.max_instructions)
    return None


def _decides(program: Program, at: int) -> bool:
    """Return whether branches may depend on an instruction."""
    i = program.body[at]
    return i.op.kind in ("alu", "flow") and not any(r.kind in ("g", "o") for r in i.registers)


def _reading_ids(program: Program, deciding: list[int], names: tuple[str, ...]) -> Program:
    """Return a program of the ``deciding`` instructions, in which work-item n reads its ids, the
    registers ``names``, from record n of global memory.
    """
    own = max(program.registers, default=-1) + 1
    record = f"r{own + len(names)}"
    size = max(program.literals, default=-1) + 1
    copies = [f"mov r{own + n}, g[{record}.x+{n}]" for n in range(len(names))]
    text = [
        "il_cs_2_0",
        f"dcl_literal l{size}, {len(names)}, 0, 0, 0",
        f"umul {record}.x, vAbsTidFlat.x, l{size}.x",
        *copies,
        "end",
    ]
    reading = assemble("\n".join(text))

    def renamed(register: Register) -> Register:
        if register.kind in names:
            return Register("r", own + names.index(register.kind))
        return register

    copied = [i for i in program.declarations if i.opcode in COPIED]
    body = [program.body[at].renamed(renamed) for at in deciding]
    instructions = (*copied, *reading.expanded, *body)
    return replace(reading, instructions=instructions, expanded=instructions)
