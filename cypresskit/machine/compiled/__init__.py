"""The compiled engine: translate IL to machine code, which runs one work-item after another.

``run(launch)`` does what the interpreter does, bit for bit, without events.

- ``vec``          LLVM IR as text
- ``native_meaning``  what each arithmetic opcode computes, in LLVM IR
- ``translate``, ``translation``  a program, for one work-item; what the host knows of the result
- ``in_step``      when the work-items of a wavefront wait for each other
- ``host``         the machine that it is translated for, and the function that runs a launch
- ``processor``, ``jit``, ``execute``  the host's processor, machine code and the launch
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cypresskit.machine.counters import LaunchCounters
    from cypresskit.machine.launch import Launch

__all__ = ["run"]


def run(launch: "Launch", batches: Iterable[int] | None = None) -> "LaunchCounters | None":
    """Run a checked launch, or some ``LaunchShape.batches``. Return None if the interpreter has
    to.
    """
    # Loaded with the first launch: a process that imports the package may never run a kernel.
    from cypresskit.machine.compiled import execute

    return execute.run(launch, batches)
