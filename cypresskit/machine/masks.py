"""SIMT masks: which work-items are active inside nested ifs and loops.

All work-items step through a program together. An ``if`` narrows the mask; ``break`` takes work-items out of a loop
until its end, ``continue`` until its next iteration.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class MaskBlock:
    """An if or a loop being run: the instruction ``at`` that opened it, and who ``entered`` it."""

    at: int
    entered: np.ndarray


@dataclass
class Loop(MaskBlock):
    """A loop being run: who is still ``running``, who is ``gone`` for this iteration, and how many instructions were
    ``issued`` before it."""

    running: np.ndarray
    gone: np.ndarray
    issued: int


@dataclass
class If(MaskBlock):
    """An if being run: who takes the else."""

    otherwise: np.ndarray


class Masks:
    """``active`` (bool, one per work-item) and ``count`` of them, inside the open ``blocks``."""

    def __init__(self, items: int):
        self.blocks: list[MaskBlock] = []
        self.set(np.ones(items, bool))

    def set(self, active: np.ndarray) -> None:
        """Make ``active`` the mask."""
        self.active, self.count = active, int(np.count_nonzero(active))

    @property
    def loops(self) -> list[Loop]:
        """The open loops, the innermost last."""
        return [block for block in self.blocks if isinstance(block, Loop)]

    def begin_if(self, taken: np.ndarray, at: int = 0) -> None:
        """Open an if: go on with those that are active and ``taken``."""
        self.blocks.append(If(at, self.active, self.active & ~taken))
        self.set(self.active & taken)

    def otherwise(self) -> None:
        """Go on with those that the if left out."""
        block = self.blocks[-1]
        assert isinstance(block, If)
        self._rejoin(block.otherwise)

    def end_if(self) -> None:
        """Go on with all that came to the if and are still in the loop around it."""
        self._rejoin(self.blocks.pop().entered)

    def begin_loop(self, at: int = 0, issued: int = 0) -> None:
        """Open a loop."""
        self.blocks.append(Loop(at, self.active, self.active.copy(), np.zeros(len(self.active), bool), issued))

    def leave(self, who: np.ndarray, for_good: bool) -> None:
        """Take active work-items out of the innermost loop, for good or until its next iteration."""
        loop, leaving = self.loops[-1], self.active & who
        loop.gone |= leaving
        if for_good:
            loop.running &= ~leaving
        self.set(self.active & ~leaving)

    def next_iteration(self) -> bool:
        """At a loop's end: whether anyone starts another iteration; if not, the loop is closed."""
        loop = self.blocks[-1]
        assert isinstance(loop, Loop)
        loop.gone[:] = False
        self.set(loop.running.copy())
        if not self.count:
            self.blocks.pop()
            self._rejoin(loop.entered)
            return False
        return True

    def _rejoin(self, mask: np.ndarray) -> None:
        loops = self.loops
        self.set(mask & ~loops[-1].gone if loops else mask)
