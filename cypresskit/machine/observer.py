"""The events of a run, and ``Observer``, which receives them.

The machine never prints or draws. The interpreter calls an observer's methods as a program runs;
recorders, checks and counters are observers. Arrays in an event cover all work-items of the launch,
by number. They are views that the next instruction may change: an observer copies what it needs
later.

Every event begins with ``at``, an index in ``Program.body``, and ``active``, the active mask.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cypresskit.il import Instruction, Register, Source
from cypresskit.machine.masks import StackEntry


class StepEvent(NamedTuple):
    """An instruction other than ``else``, ``endif`` and ``endloop`` is about to run.

    ``registers`` has the 32-bit patterns of each r register, by its number: uint32 of shape
    (4, items). ``rows(source, letters)`` returns components of any source, without its modifiers:
    uint32 of shape (letters or 1, items or 1).
    """

    at: int
    active: np.ndarray
    instruction: Instruction
    registers: Mapping[int, np.ndarray]
    rows: Callable[[Source, str], np.ndarray]


class WroteEvent(NamedTuple):
    """A register, an output or global memory is about to be written in ``components`` (0 to 3).
    ``rows``: 32-bit patterns, uint32 of shape (components or 1, items or 1). ``element``: the
    elements of global memory (int64).
    """

    at: int
    active: np.ndarray
    register: Register
    components: tuple[int, ...]
    rows: np.ndarray
    element: np.ndarray | None = None


class FetchEvent(NamedTuple):
    """Texels were read. ``x``, ``y``: whole coordinates (int64; +-``addressing.NOWHERE`` for
    NaN and huge ones). ``inside``: whether each is in the texture.
    """

    at: int
    active: np.ndarray
    resource: int
    x: np.ndarray
    y: np.ndarray
    inside: np.ndarray


class MemoryEvent(NamedTuple):
    """Global memory or LDS was read or is about to be written.

    ``space`` is "global" or "lds", ``array`` the number of the LDS array. ``element`` (int64)
    counts 128-bit elements, or bytes of LDS before their two low bits are dropped. ``words``: the
    32-bit words that each work-item accesses, counted from there. ``inside``: whether all of them
    exist.
    """

    at: int
    active: np.ndarray
    space: str
    store: bool
    element: np.ndarray
    words: tuple[int, ...]
    inside: np.ndarray
    array: int = 0


class BarrierEvent(NamedTuple):
    """Work-items reach a fence. ``stack``: the open loops and ifs, the outermost first. The event
    precedes the `KernelError` of a barrier that only part of a group reaches.
    """

    at: int
    active: np.ndarray
    stack: tuple[StackEntry, ...] = ()


#: The event of each method of an ``Observer``.
EVENTS = {
    "step": StepEvent,
    "wrote": WroteEvent,
    "fetch": FetchEvent,
    "memory": MemoryEvent,
    "barrier": BarrierEvent,
}


class Observer:
    """Receives the events of a run; a subclass overrides the methods that it needs."""

    def start(self, launch: Any) -> None:
        """Receive the checked ``Launch``, before the run."""

    def step(self, event: StepEvent) -> None:
        """Receive an instruction that is about to run."""

    def wrote(self, event: WroteEvent) -> None:
        """Receive what is about to be written to a register, an output or global memory."""

    def fetch(self, event: FetchEvent) -> None:
        """Receive a fetch, after it has read its texels."""

    def memory(self, event: MemoryEvent) -> None:
        """Receive a load from global memory or LDS, or a store that is about to be done."""

    def barrier(self, event: BarrierEvent) -> None:
        """Receive a fence that work-items reach."""
