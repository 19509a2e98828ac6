"""The fast engine: IL translated to machine code, four or eight work-items at a time.

``run(launch, threads)`` does what the explaining engine does, bit for bit, without telling what happens on the way.

- ``flow``        which definitions and uses of registers belong together, and what is live
- ``analysis``    what is the same in all lanes, what diverges, who sees a NaN's bits, how registers are stored
- ``arithmetic``  LLVM IR for each arithmetic opcode
- ``access``, ``memory``  checked fetches, loads and stores
- ``translate``   control flow, operands, results, workgroups and barriers
- ``jit``, ``execute``    machine code and the launch
"""

from cypresskit.machine.fast.execute import run

__all__ = ["run"]
