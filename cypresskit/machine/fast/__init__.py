"""The fast engine: IL translated to machine code, four or eight work-items at a time.

``run(launch, threads)`` does what the explaining engine does, bit for bit, without telling what happens on the way.

- ``defuse``       which definitions and uses of registers belong together, and what is live
- ``variation``    what is the same in all lanes, and which control flow diverges
- ``analysis``     how registers are stored, and which results have an observable NaN payload
- ``vec``          LLVM IR as text behind typed values
- ``native_meaning``  what each arithmetic opcode computes, on such values
- ``storage``      context, literals, variables, registers, lanes; ``readwrite`` operands and results
- ``texel_layout``, ``fetches``, ``access``  memory: textures, LDS, global memory, outputs
- ``instructions``, ``control``, ``strips``, ``units``, ``translate``  from one instruction to the whole function
- ``target``, ``jit``, ``execute``  the host's processor, machine code and the launch
"""

from cypresskit.machine.fast.execute import run

__all__ = ["run"]
