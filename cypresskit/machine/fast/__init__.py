"""The fast engine: IL translated to machine code, a *gang* of four or eight work-items at a time,
in lockstep.

``run(launch, threads)`` does what the explaining engine does, bit for bit, but reports nothing of
what happens on the way.

- ``webs``         which definitions and uses of registers belong together, and what is live
- ``uniformity``   what is the same in all lanes, and whether all lanes take the same way
- ``analysis``     how registers are stored, and which results have an observable NaN payload
- ``vec``          LLVM IR as text behind typed values
- ``native_meaning``  what each arithmetic opcode computes, on such values
- ``texel_layout``  how textures lie in memory
- ``routine``      the compiled function as it is written
- ``register_file``, ``fetches``, ``memory_access``, ``arithmetic``, ``batches``  what
  instructions do, each given what it builds on
- ``strips``       the proof that turns of a loop need no test
- ``control_flow``, ``spill``  branches and loops; registers between two regions
- ``straight``     instructions in their order, and strips of loops
- ``regions``      what lies between barriers, for one gang after another
- ``translate``    the whole function, and ``translation`` what the host must know of it
- ``target``, ``jit``, ``execute``  the host's processor, machine code and the launch
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cypresskit.machine.launch import Launch
    from cypresskit.machine.run import Run

__all__ = ["run"]


def run(launch: "Launch", threads: int | None = None) -> "Run | None":
    """Run a checked launch on so many host threads; None if that is for the explaining engine."""
    # Loaded with the first launch: who imports the package may never run a kernel.
    from cypresskit.machine.fast import execute

    return execute.run(launch, threads)
