"""Find loops that never end, by running only what decides branches.

The branches of a kernel that can be timed depend on ids, constants and counters alone. The program
is therefore launched without its accesses to memory and its barriers, on the compiled engine.
``MAX_INSTRUCTIONS`` of a work-item take less than a millisecond.

An instruction that is left out leaves its destination unchanged. If a branch depends on that, the
result is useless; but then, the trace rejects that branch in the first iteration that reaches it.
"""

from dataclasses import replace

from cypresskit.machine.engines import run
from cypresskit.machine.launch import KernelError, endless_error, prepare
from cypresskit.machine.shape import LaunchShape


def infinite_loop(shape: LaunchShape) -> KernelError | None:
    """Return the error for a loop that a work-item never leaves; None if there is no such loop."""
    program = shape.program
    deciding = [
        at
        for at, i in enumerate(program.body)
        if i.op.kind in ("alu", "flow") and not any(r.kind in ("g", "o") for r in i.registers)
    ]
    instructions = (*program.declarations, *(program.body[at] for at in deciding))
    branches = replace(program, instructions=instructions, expanded=instructions)
    launch = prepare(branches, shape.domain[: 2 if shape.pixels else 1], constants=shape.constants)
    try:
        run(launch)
    except KernelError as error:
        return endless_error(shape, deciding[error.at], launch.max_instructions)
    return None
