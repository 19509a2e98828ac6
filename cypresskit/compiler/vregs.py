"""Out of SSA form: which words share a place.

A ``VirtualRegister`` is a set of words that will live in one register channel. The pass makes one
for each word, and then does two things:

1. ``coalescing`` joins those of a phi and its arguments, so that what a loop carries is read and
   written in place; where they can't be joined, a MOV on the edge copies the argument.
2. ``constraints`` ties those together that the hardware wants in one register: what a fetch gives,
   its coordinates, the words of a store; or side by side: the two words of a double. Where that
   collides, a MOV before or after the operation parts them.

What holds afterwards: every word that lies in a register has a virtual register; a phi and its
arguments have the same; nothing is decided that needn't be. ``allowed``, ``group``, ``pair`` and
``fixed`` say what is still open, the scheduler decides the channels, the allocator the registers.

The laws: a random program gives the same bits as IL and as code (tests/test_compiler.py), and its
code breaks no rule (tools/legality.py).
"""

from cypresskit.compiler.coalescing import coalesce
from cypresskit.compiler.constraints import constrain
from cypresskit.compiler.ir import HIGH, LOW, Function


def assign_vregs(function: Function) -> None:
    """Make a function's virtual registers, with the copies that phis and the hardware need."""
    _number_inputs(function)
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


def _number_inputs(function: Function) -> None:
    """Virtual registers for what the kernel starts with, which lies where the chip puts it."""
    for word in function.inputs:
        vreg = function.vreg(word)
        vreg.fixed, vreg.channel = word.place
    preloaded = [word.vreg for word in function.inputs]
    for vreg in preloaded:
        vreg.group = tuple(member for member in preloaded if member.fixed == vreg.fixed)
