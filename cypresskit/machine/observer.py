"""The events of a run, and ``Observer``, which listens to them.

The machine never prints or draws. The explaining engine calls an observer's methods as a program
runs; recorders, checkers and counters are observers. Arrays in an event cover all work-items of the
launch, by number; they are views that the next instruction may change, so an
observer copies what it keeps.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from cypresskit.il import Instruction, Register, Source
from cypresskit.machine.masks import StackEntry


class StepEvent(NamedTuple):
    """Instruction ``at`` of ``Program.body`` is about to run; ``registers`` are the r registers
    before it: number to 32-bit patterns, uint32 of shape (4, items). ``rows(source, letters)``
    gives components of any source, without its modifiers: uint32 of shape (letters or 1, items or
    1).
    """

    at: int
    active: np.ndarray
    instruction: Instruction
    registers: Mapping[int, np.ndarray]
    rows: Callable[[Source, str], np.ndarray]


class WroteEvent(NamedTuple):
    """Register ``register``, an output or global memory is about to be written in ``components``
    (numbers 0 to 3): ``rows`` are the 32-bit patterns, uint32 of shape (components or 1, items or
    1), ``element`` the elements of global memory (int64).
    """

    at: int
    active: np.ndarray
    register: Register
    components: tuple[int, ...]
    rows: np.ndarray
    element: np.ndarray | None = None


class FetchEvent(NamedTuple):
    """Texels were read: ``x``, ``y`` whole coordinates (int64; at most +-2^62, unless ``INFINITE``
    or ``NOWHERE``), ``inside`` whether they lie in the texture.
    """

    at: int
    active: np.ndarray
    resource: int
    x: np.ndarray
    y: np.ndarray
    inside: np.ndarray


class MemoryEvent(NamedTuple):
    """Global memory or LDS was read or is about to be written: ``space`` is "global" or "lds" (then
    ``array`` is its id), ``element`` (int64) counts 128-bit elements or bytes (as asked for: the
    two low bits are dropped later), ``words`` which 32-bit words from there on each work-item looks
    at, ``inside`` whether all of them exist.
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
    """Work-items come to a fence inside the open loops and ifs of the ``stack``, the outermost
    first. It is told before a barrier that only some of a group reach raises `KernelError`.
    """

    at: int
    active: np.ndarray
    stack: tuple[StackEntry, ...] = ()


#: What is told by the method of an ``Observer`` of that name; all events begin with the instruction
#: and with which work-items are active (bool, one per work-item).
EVENTS = {
    "step": StepEvent,
    "wrote": WroteEvent,
    "fetch": FetchEvent,
    "memory": MemoryEvent,
    "barrier": BarrierEvent,
}


class Observer:
    """Listens to a run; a subclass overrides what it wants to hear."""

    def start(self, launch: Any) -> None:
        """The run begins; ``launch`` is the checked ``Launch``."""

    def step(self, event: StepEvent) -> None:
        """An instruction is about to run."""

    def wrote(self, event: WroteEvent) -> None:
        """A register, an output or global memory is about to be written."""

    def fetch(self, event: FetchEvent) -> None:
        """Texels were read."""

    def memory(self, event: MemoryEvent) -> None:
        """Global memory or LDS was read or is about to be written."""

    def barrier(self, event: BarrierEvent) -> None:
        """Work-items come to a fence."""

    def finish(self, run: Any) -> None:
        """The run has ended; ``run`` is its ``LaunchCounters``."""


def listeners(observers: Iterable[Observer], event: str) -> list[Callable[..., Any]]:
    """The methods named ``event`` of those observers that override it: an event without a listener
    isn't made.
    """
    return [
        getattr(o, event)
        for o in observers
        if getattr(type(o), event) is not getattr(Observer, event)
    ]
