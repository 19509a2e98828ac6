"""Active masks: which work-items are active inside nested ifs and loops.

All work-items step through a program together. An ``if`` narrows the active mask; ``break`` removes
work-items until the end of the loop.
"""

from dataclasses import dataclass

import numpy as np


@dataclass
class StackEntry:
    """An open if or loop; masks are bool, one per work-item.

    Attributes
    ----------
    kind
        "if" or "loop".
    at
        The instruction that opened it.
    entry_mask
        The work-items that entered it.
    else_mask
        Of an if: those left for the else.
    loop_mask
        Of a loop: those that have not left it.
    issued
        Of a loop: the instructions issued before it.
    """

    kind: str
    at: int
    entry_mask: np.ndarray
    else_mask: np.ndarray
    loop_mask: np.ndarray
    issued: int = 0


class Masks:
    """The active mask inside nested ifs and loops.

    Attributes
    ----------
    active
        The active mask: bool, one per work-item.
    count
        The number of active work-items.
    stack
        The open ifs and loops, the innermost last.
    """

    def __init__(self, items: int):
        self.stack: list[StackEntry] = []
        self.set(np.ones(items, bool))

    def set(self, active: np.ndarray) -> None:
        """Replace the active mask."""
        self.active = active
        self.count = int(np.count_nonzero(active))

    def loop_past_limit(self, issued: int, limit: int) -> StackEntry | None:
        """Return the loop that is taken for endless, or None.

        That needs more than ``limit`` of all ``issued`` instructions in the outermost loop. An
        endless loop runs its inner loops again and again, so the endless one is the innermost that
        issued more than half of them.
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
        """Open an if: continue with the active work-items that are ``taken``."""
        self.stack.append(StackEntry("if", at, self.active, self.active & ~taken, self.active))
        self.set(self.active & taken)

    def begin_else(self) -> None:
        """Continue with the work-items that the if left out."""
        self._rejoin(self.stack[-1].else_mask)

    def close(self) -> None:
        """Close the innermost if or loop: continue with all that entered it and are still in the
        loop around it.
        """
        self._rejoin(self.stack.pop().entry_mask)

    def begin_loop(self, at: int = 0, issued: int = 0) -> None:
        """Open a loop."""
        none = np.zeros_like(self.active)
        self.stack.append(StackEntry("loop", at, self.active, none, self.active.copy(), issued))

    def leave_loop(self, items: np.ndarray) -> None:
        """Remove active work-items from the innermost loop."""
        leaving = self.active & items
        self.loops[-1].loop_mask &= ~leaving
        self.set(self.active & ~leaving)

    def next_iteration(self) -> bool:
        """At a loop's end, return whether any work-item starts another iteration; if none does,
        close the loop.
        """
        loop = self.loops[-1]
        self.set(loop.loop_mask.copy())
        if self.count:
            return True
        self.close()
        return False

    def _rejoin(self, mask: np.ndarray) -> None:
        loops = self.loops
        self.set(mask & loops[-1].loop_mask if loops else mask)
