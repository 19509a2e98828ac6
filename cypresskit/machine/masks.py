"""SIMT masks: which work-items are active inside nested ifs and loops.

All work-items step through a program together. An ``if`` narrows the mask; ``break`` takes
work-items out of a loop until its end, ``continue`` until its next iteration.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class StackEntry:
    """An "if" or a "loop" (``kind``) being run: the instruction ``at`` that opened it, and who
    ``entered`` it.

    Of an if, who is ``waiting`` for the else. Of a loop, who is ``skipping`` the rest of this
    iteration, who is still ``running`` in it, and how many instructions were ``issued`` before it.
    """

    kind: str
    at: int
    entered: np.ndarray
    waiting: np.ndarray
    skipping: np.ndarray
    running: np.ndarray
    issued: int = 0


class Masks:
    """``active`` (bool, one per work-item) and ``count`` of them, inside the ifs and loops of the
    ``stack``.
    """

    def __init__(self, items: int):
        self.stack: list[StackEntry] = []
        self.set(np.ones(items, bool))

    def set(self, active: np.ndarray) -> None:
        """Make ``active`` the mask."""
        self.active = active
        self.count = int(np.count_nonzero(active))

    def loop_past_limit(self, issued: int, limit: int) -> StackEntry | None:
        """The loop that is taken for endless, of which more than ``limit`` of all ``issued``
        instructions ran, or None. An inner loop that ends every time leads back into it, too: the
        endless one is the innermost where most of them ran.
        """
        loops = self.loops
        if not loops or issued - loops[0].issued <= limit:
            return None
        most = issued - loops[0].issued
        return [loop for loop in loops if 2 * (issued - loop.issued) > most][-1]

    @property
    def loops(self) -> list[StackEntry]:
        """The open loops, the innermost last."""
        return [entry for entry in self.stack if entry.kind == "loop"]

    def begin_if(self, taken: np.ndarray, at: int = 0) -> None:
        """Open an if: go on with those that are active and ``taken``."""
        none = np.zeros_like(self.active)
        self.stack.append(
            StackEntry("if", at, self.active, self.active & ~taken, none, self.active)
        )
        self.set(self.active & taken)

    def otherwise(self) -> None:
        """Go on with those that the if left out."""
        self._rejoin(self.stack[-1].waiting)

    def close(self) -> None:
        """Close the innermost if or loop: go on with all that came to it and are still in the loop
        around it.
        """
        self._rejoin(self.stack.pop().entered)

    def begin_loop(self, at: int = 0, issued: int = 0) -> None:
        """Open a loop."""
        none = np.zeros_like(self.active)
        self.stack.append(
            StackEntry("loop", at, self.active, none, none.copy(), self.active.copy(), issued)
        )

    def leave(self, items: np.ndarray, for_good: bool) -> None:
        """Take active work-items out of the innermost loop, for good or until its next
        iteration.
        """
        loop = self.loops[-1]
        leaving = self.active & items
        loop.skipping |= leaving
        if for_good:
            loop.running &= ~leaving
        self.set(self.active & ~leaving)

    def next_iteration(self) -> bool:
        """At a loop's end: whether anyone starts another iteration; if not, the loop is closed."""
        loop = self.loops[-1]
        loop.skipping[:] = False
        self.set(loop.running.copy())
        if self.count:
            return True
        self.close()
        return False

    def _rejoin(self, mask: np.ndarray) -> None:
        loops = self.loops
        self.set(mask & ~loops[-1].skipping if loops else mask)
