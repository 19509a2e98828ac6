"""A recorded run of one work-item: its steps, fetches, stores, and every register value after every
step.

``Recorder`` is an observer; after the run its ``recording`` holds the trace as writes only, from
which the registers at any step follow. Pictures are drawn from it. Left out: LDS traffic, and what
the other work-items did.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.il import Program
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer, StepEvent, WroteEvent

ROWS = {"writes": 4, "fetches": 5, "stores": 2}  # what a recording holds of each


@dataclass(frozen=True, eq=False)
class Recording:
    """The trace of work-item number ``item`` at ``place`` of ``domain``.

    ``at`` (steps,) is the index in ``program.body`` of each executed instruction. ``writes`` (n, 4)
    holds step, register number (``r`` registers), component and 32-bit pattern; ``fetches`` (n, 5)
    step, resource, texel x and y, whether inside; ``stores`` (n, 2) step and 128-bit element of
    global memory. All int64. ``textures`` maps a resource to its height, width and 32-bit words per
    texel.
    """

    program: Program
    domain: tuple[int, int, int]
    item: int
    place: tuple[int, ...]
    textures: dict[int, tuple[int, int, int]]
    at: np.ndarray
    writes: np.ndarray
    fetches: np.ndarray
    stores: np.ndarray

    def __len__(self) -> int:
        """Steps: instructions that the work-item executed."""
        return len(self.at)

    def __repr__(self) -> str:
        did = f"{len(self)} steps, {len(self.fetches)} fetches, {len(self.stores)} stores"
        return f"Recording of {self.program.name}, work-item {self.place}: {did}"

    def line(self, step: int) -> int:
        """The kernel's line that ran at ``step``, counted from 1."""
        return self.program.body[int(self.at[step])].line

    def registers(self, step: int) -> dict[int, np.ndarray]:
        """Every written register's four 32-bit patterns after ``step``, uint32; the others are
        still 0.
        """
        values: dict[int, np.ndarray] = {}
        for _, register, component, bits in self.writes[
            : np.searchsorted(self.writes[:, 0], step, "right")
        ]:
            values.setdefault(int(register), np.zeros(4, np.uint32))[component] = bits
        return values


class Recorder(Observer):
    """Records one work-item of a launch: ``item`` is its place (x, y) in a pixel domain, or its
    number.
    """

    def __init__(self, item: int | tuple[int, int] = 0) -> None:
        place = item if isinstance(item, tuple) and len(item) == 2 else (item,)
        if not all(isinstance(n, (int, np.integer)) for n in place):
            raise TypeError(
                f"a work-item is told by its number or its place (x, y), not by {item!r}"
            )
        self._wanted = item
        self._launch: Launch | None = None

    def start(self, launch: Any) -> None:
        width, height, _ = launch.shape.domain
        if isinstance(self._wanted, tuple):
            x, y = self._wanted
            self._item = x + y * width
            exists = 0 <= x < width and 0 <= y < height
        else:
            self._item = self._wanted
            exists = 0 <= self._wanted < launch.shape.items
        if not exists:
            raise ValueError(
                f"there is no work-item {self._wanted} to record in a domain of {width} x {height}"
            )
        self._launch = launch
        self._at: list[int] = []
        self._rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in ROWS}

    def step(self, event: StepEvent) -> None:
        if event.active[self._item]:
            self._at.append(event.at)

    def wrote(self, event: WroteEvent) -> None:
        if not event.active[self._item] or event.register.kind != "r":
            return
        rows = np.broadcast_to(event.rows, (len(event.components), len(event.active)))
        for c, bits in zip(event.components, rows[:, self._item].tolist()):
            self._rows["writes"].append((len(self._at) - 1, event.register.index, c, bits))

    def fetch(self, event: FetchEvent) -> None:
        if event.active[self._item]:
            x, y, inside = (int(a[self._item]) for a in (event.x, event.y, event.inside))
            self._rows["fetches"].append((len(self._at) - 1, event.resource, x, y, inside))

    def memory(self, event: MemoryEvent) -> None:
        if event.active[self._item] and event.store and event.space == "global":
            self._rows["stores"].append((len(self._at) - 1, int(event.element[self._item])))

    @property
    def recording(self) -> Recording:
        """The trace; there once the run has ended, ``ValueError`` before."""
        if self._launch is None:
            raise ValueError(
                "nothing is recorded yet: ck.launch(..., observers=[recorder]) does that"
            )
        launch = self._launch
        place = self._launch.shape.place(self._item)
        place = place if isinstance(place, tuple) else (place,)
        arrays = {
            n: np.array(rows, np.int64).reshape(-1, ROWS[n]) for n, rows in self._rows.items()
        }
        textures = {n: t.words.shape for n, t in launch.textures.items()}
        at = np.array(self._at, np.int64)
        return Recording(
            launch.program, launch.shape.domain, self._item, place, textures, at, **arrays
        )
