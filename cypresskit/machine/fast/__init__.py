"""The fast engine: IL translated to machine code, four or eight work-items at a time.

``run(launch, threads)`` does what the explaining engine does, bit for bit, without telling what happens on the way.

- ``flow``         which definitions and uses of registers belong together, and what is live
- ``variation``    what is the same in all lanes, and which control flow diverges
- ``cells``        how registers are stored
- ``analysis``     both, and who can see which NaN it is
- ``arithmetic``   LLVM IR for each arithmetic opcode
- ``operands``, ``stores``, ``memory`` (with ``access``), ``instructions``, ``branches``, ``units``, ``translate``
                   the translation, each building on the one before: from what an instruction reads to the function
- ``jit``, ``execute``  machine code and the launch
"""

from cypresskit.machine.fast.execute import run

__all__ = ["run"]
