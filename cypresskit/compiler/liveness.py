"""Compute the live ranges of virtual registers, by block and by point of the program.

A phi's argument is live at the end of the predecessor that it comes from; the phi itself is defined
at the start of its block.

Left out: the liveness of IL's registers, which aren't in SSA form (``il.dataflow``).
"""

from collections.abc import Mapping, Sequence

from cypresskit.compiler.ir import BasicBlock, VirtualRegister, Word

LiveSets = dict[BasicBlock, set[VirtualRegister]]


class Alive:
    """Virtual registers that are live at each block's start (``into``) and end (``out``)."""

    def __init__(self, blocks: list[BasicBlock]):
        self.into: LiveSets = {block: set() for block in blocks}
        self.out: LiveSets = {block: set() for block in blocks}
        used: LiveSets = {}
        defined: LiveSets = {}
        for block in blocks:
            used[block], defined[block] = _used_and_defined(block)
        to_phis = {block: _arguments_from(block) for block in blocks}

        earlier: LiveSets = {}
        while earlier != self.into:
            earlier = {**self.into}
            for block in reversed(blocks):
                out = to_phis[block].union(*(self.into[successor] for successor in block.succs))
                self.out[block], self.into[block] = out, used[block] | (out - defined[block])

    def set_masks(
        self, steps: Mapping[BasicBlock, Sequence[Sequence]], *, count_unread: bool = False
    ) -> set[Word]:
        """Set a bit of a virtual register's ``mask`` for each point of its live range.

        Parameters
        ----------
        steps
            For each block and point: the words that are made there, and the words that are read.
        count_unread
            Whether a word that is never read is live for one point, the one after it. By default it
            is skipped.

        Returns
        -------
        The words that are made and counted.
        """
        counted: set[Word] = set()
        start = 0
        for block, points in steps.items():
            end = start + len(points)
            last_read = dict.fromkeys(self.out[block], end)
            for point in range(end - 1, start - 1, -1):
                results, reads, *_ = points[point - start]
                for word in results:
                    if count_unread or word.vreg in last_read:
                        last = last_read.pop(word.vreg, point + 1)
                        word.vreg.mask |= _span(point + 1, last)
                        counted.add(word)
                for word in reads:
                    last_read.setdefault(word.vreg, point)

            if count_unread:
                for phi in block.phis:
                    last_read.setdefault(phi.vreg, start)
            for vreg, last in last_read.items():
                vreg.mask |= _span(start, last)
            start = end + 1
        return counted


def _used_and_defined(block: BasicBlock) -> tuple[set[VirtualRegister], set[VirtualRegister]]:
    """Return the virtual registers that a block reads before writing them, and those that it
    writes.
    """
    used: set[VirtualRegister] = set()
    defined = {phi.vreg for phi in block.phis}
    for op in block.ops:
        used |= {word.vreg for word in op.register_words} - defined
        defined |= {word.vreg for word in op.results}
    return used, defined


def _arguments_from(block: BasicBlock) -> set[VirtualRegister]:
    """Return the virtual registers that phis of the successors take from a block."""
    phis = [phi for successor in block.succs for phi in successor.phis]
    words = [phi.args[block] for phi in phis if block in phi.args]
    return {word.vreg for word in words if word.has_register}


def _span(first: int, last: int) -> int:
    """Return the bits first .. last."""
    return (1 << last + 1) - (1 << first)
