"""Leave SSA form: determine which words share a register channel.

A ``VirtualRegister`` is a set of words that will share one register channel. The pass makes one for
each word, and then does two things:

1. ``coalescing`` joins those of a phi and its arguments, so that a loop-carried value is read and
   written in place. Where they can't be joined, a MOV on the edge copies the argument.
2. ``constraints`` ties together what the hardware requires in one register (the results of a fetch,
   its coordinates, the words of a store) or in adjacent channels (the two words of a double). Where
   constraints collide, a MOV before or after the operation separates them.

Afterwards, every word that needs a register has a virtual register, and a phi and its
arguments have the same. ``allowed``, ``group``, ``pair`` and ``fixed`` say what is still open: the
scheduler chooses channels, the allocator register numbers.

Tests hold two laws: a random program gives the same bits as IL and as code
(tests/core/test_compiler.py), and its code breaks no rule of the hardware (tools/legality.py).
"""

from cypresskit.compiler.coalescing import coalesce
from cypresskit.compiler.constraints import constrain
from cypresskit.compiler.ir import HIGH, LOW, Function


def assign_vregs(function: Function) -> None:
    """Make a function's virtual registers, with the copies that phis and the hardware need."""
    for word in function.inputs:  # they are preloaded, in the registers that the chip uses
        function.vreg(word)
        word.vreg.fixed, word.vreg.channel = word.place
    preloaded = [word.vreg for word in function.inputs]
    for vreg in preloaded:
        vreg.group = tuple(member for member in preloaded if member.fixed == vreg.fixed)
    for block in function.blocks:
        for phi in block.phis:
            function.vreg(phi)
        for op in block.ops:
            for n, word in enumerate(op.results):
                vreg = function.vreg(word)
                if op.row.width > 1:  # a double: its low word comes first
                    vreg.allowed = HIGH if n else LOW
    coalesce(function)
    constrain(function)
