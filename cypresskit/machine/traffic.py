"""The memory accesses of a launch's first wavefront, in order: fetches and LDS accesses of its 64
work-items.

A pixel kernel's wavefront is an 8 x 8 tile whose work-items are listed quad by quad (2 x 2); a
compute kernel's is 64 consecutive ones. Left out: global memory, and the values.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer
from cypresskit.machine.shape import lanes, number


@dataclass(frozen=True, eq=False)
class Access:
    """One fetch or LDS access.

    Attributes
    ----------
    at
        An index in ``Program.body``.
    kind
        "fetch", "store" or "load".
    active
        The work-items that take part, of a fetch only those inside the texture: bool, (64,).
    resource, x, y
        Of a fetch: the texture and the texels, each (64,).
    addresses
        Of an LDS access: bytes, (words, 64).
    """

    at: int
    kind: str
    active: np.ndarray
    resource: int = -1
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    addresses: np.ndarray | None = None


class Traffic(Observer):
    """Records the accesses of the first wavefront of a launch."""

    def __init__(self) -> None:
        self.accesses: list[Access] = []

    def start(self, launch) -> None:
        self.launch = launch
        first, second, self._there = lanes(launch.shape, np.zeros(1, np.int64))
        self._items = np.where(self._there, number(launch.shape, first, second), 0)

    def fetch(self, event: FetchEvent) -> None:
        active = event.active[self._items] & self._there & event.inside[self._items]
        if active.any():
            x, y = event.x[self._items], event.y[self._items]
            self.accesses.append(Access(event.at, "fetch", active, event.resource, x, y))

    def memory(self, event: MemoryEvent) -> None:
        active = event.active[self._items] & self._there
        if event.space == "lds" and active.any():
            addresses = (event.element[self._items] & ~3) + 4 * np.array(event.words)[:, np.newaxis]
            self.accesses.append(
                Access(event.at, "store" if event.store else "load", active, addresses=addresses)
            )
