"""The fast engine: IL translated to machine code, which runs a work-item at a time.

``run(launch, threads)`` does what the interpreter does, bit for bit, but reports nothing of what
happens on the way.

- ``vec``          LLVM IR as text behind typed values
- ``native_meaning``  what each arithmetic opcode computes, on such values
- ``payloads``     where the bits of a NaN can be seen
- ``translate``    a program, for one work-item
- ``target``       what a program needs of the machine that it is translated for
- ``in_step``      what keeps the work-items of a wavefront in step
- ``host``         this computer as a target: the function that runs a launch
- ``processor``, ``jit``, ``execute``  the host's processor, machine code and the launch
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cypresskit.machine.launch import Launch
    from cypresskit.machine.run import LaunchCounters

__all__ = ["run"]


def run(launch: "Launch", threads: int | None = None) -> "LaunchCounters | None":
    """Run a checked launch on ``threads`` host threads; None if that is for the interpreter."""
    # Loaded with the first launch: a process that imports the package may never run a kernel.
    from cypresskit.machine.fast import execute

    return execute.run(launch, threads)
