"""Record a run of one work-item: its steps, fetches, stores, and every register value after every
step.

``Recorder`` is an observer; after the run its ``recording`` holds the trace as writes only, from
which the registers at any step follow. Pictures are drawn from it. LDS accesses aren't recorded:
``Recording.texture_words`` runs the group again, and follows values through the LDS. Left out: what
the other work-items do.
"""

from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from math import inf
from typing import Any

import numpy as np

from cypresskit.il import Program
from cypresskit.machine import interpreter
from cypresskit.machine.launch import KernelError, Launch, prepare
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer, StepEvent, WroteEvent
from cypresskit.machine.shape import LaunchShape, coordinates, input_registers

ROWS = {"writes": 4, "fetches": 5, "stores": 2}  # numbers per row
#: The first of the bit patterns that identify words of textures: large floats, or halves of large
#: doubles. Their sums, products and leading bits are none of these patterns.
NUMBERED = 0x65432100


@dataclass(frozen=True, eq=False)
class Recording:
    """The trace of one work-item; arrays are int64.

    Attributes
    ----------
    shape
        The launch's.
    elements
        The 128-bit elements of global memory.
    item
        The work-item's number.
    at
        (steps,) the index in ``program.body`` of each executed instruction.
    writes
        (n, 4) step, register number (``r`` registers), component and 32-bit pattern.
    fetches
        (n, 5) step, resource, texel x and y, whether inside.
    stores
        (n, 2) step and 128-bit element of global memory.
    is_complete
        Whether all steps are recorded.
    """

    shape: LaunchShape
    elements: int
    item: int
    at: np.ndarray
    writes: np.ndarray
    fetches: np.ndarray
    stores: np.ndarray
    is_complete: bool

    def __len__(self) -> int:
        """The number of recorded steps."""
        return len(self.at)

    def __repr__(self) -> str:
        did = f"{self.steps_text} steps, {len(self.fetches)} fetches, {len(self.stores)} stores"
        return f"Recording of {self.program.name}, work-item {self.place}: {did}"

    @property
    def steps_text(self) -> str:
        """The number of steps as text: "92", or "the first 640"."""
        return f"{'' if self.is_complete else 'the first '}{len(self)}"

    @property
    def program(self) -> Program:
        return self.shape.program

    @property
    def place(self) -> tuple[int, ...]:
        """The work-item's place in the domain: (x, y) or (number,)."""
        place = self.shape.place(self.item)
        return place if isinstance(place, tuple) else (place,)

    @property
    def textures(self) -> dict[int, tuple[int, int, int]]:
        """The height, width and 32-bit words per texel of each resource."""
        return {n: (t.height, t.width, t.texel // 4) for n, t in self.shape.textures.items()}

    def line(self, step: int) -> int:
        """Return the kernel's line that ran at ``step``, counted from 1."""
        return self.program.body[int(self.at[step])].line

    def registers(self, step: int) -> dict[int, np.ndarray]:
        """Return every written register's four 32-bit patterns after ``step``, uint32; the others
        are still 0.
        """
        before = self.writes[: np.searchsorted(self.writes[:, 0], step, "right"), 1]
        return {int(register): self.bits[step, register] for register in np.unique(before)}

    @cached_property
    def bits(self) -> np.ndarray:
        """All registers after each step: 32-bit patterns, uint32 of shape (steps, registers, 4)."""
        registers = 1 + self.writes[:, 1].max(initial=-1)
        last = np.zeros((len(self), registers, 4), np.int64)  # write so far, counted from 1
        steps, numbers, components, words = self.writes.T
        last[steps, numbers, components] = np.arange(1, 1 + len(words))
        written = np.concatenate([[0], words]).astype(np.uint32)
        return written[np.maximum.accumulate(last)]

    @cached_property
    def texture_words(self) -> np.ndarray:
        """The texture word that each register component holds after each step, on whichever path it
        came, LDS included; -1 if none. Words are counted from resource to resource; int64 of shape
        (steps, registers, 4).

        The work-item's group runs once more on textures whose words are their own numbers. If that
        takes other steps, branches depend on the numbers, and nothing is known.
        """
        numbered: dict[int, np.ndarray] = {}
        count = 0
        for resource, sizes in self.textures.items():
            words = NUMBERED + count + np.arange(np.prod(sizes), dtype=np.uint32)
            numbered[resource] = words.reshape(sizes).view(np.float32)
            count += words.size
        shape = self.shape
        members = shape.group_items
        again = Recorder(self.item % members, len(self))
        outputs = {n: np.zeros((1, 1, e.texel // 4), np.float32) for n, e in shape.outputs.items()}
        launch = prepare(
            shape.program,
            (members, 1, 1),
            inputs=numbered,
            constants=shape.constants,
            outputs=outputs,
            global_memory=np.zeros(4 * self.elements, np.float32),
            max_instructions=2 * len(self) * members,
        )
        numbers = self.item // members * members + np.arange(members)
        # In place of those of the first group
        vars(launch)["ids"] = input_registers(shape, *coordinates(shape, numbers))
        with suppress(KernelError):
            interpreter.run(launch, (again,))
        if not np.array_equal(again.recording.at, self.at):
            return np.full(self.bits.shape, -1)
        held = again.recording.bits.astype(np.int64) - NUMBERED
        return np.where((held >= 0) & (held < count), held, -1)


class Recorder(Observer):
    """Records one work-item of a launch. ``item``: its place (x, y) in a pixel domain, or its
    number. ``max_steps``: the steps to record.
    """

    def __init__(self, item: int | tuple[int, int] = 0, max_steps: float = inf) -> None:
        place = item if isinstance(item, tuple) and len(item) == 2 else (item,)
        if not all(isinstance(n, (int, np.integer)) for n in place):
            raise TypeError(
                f"a work-item is named by its number or its place (x, y), not by {item!r}"
            )
        self._wanted = tuple(map(int, item)) if isinstance(item, tuple) else int(item)
        self._max_steps = max_steps
        self._launch: Launch | None = None

    def start(self, launch: Any) -> None:
        width, height, _ = launch.shape.domain
        x, y = self._wanted if isinstance(self._wanted, tuple) else (self._wanted, 0)
        self._item = x + y * width
        across = width if isinstance(self._wanted, tuple) else launch.shape.items
        if not (0 <= x < across and 0 <= y < height):
            raise ValueError(
                f"there is no work-item {self._wanted} to record in a domain of {width} x {height}"
            )
        self._launch = launch
        self._at: list[int] = []
        self._whole = True
        self._rows: dict[str, list[tuple[int, ...]]] = {name: [] for name in ROWS}

    def step(self, event: StepEvent) -> None:
        if not event.active[self._item]:
            return
        self._whole = len(self._at) < self._max_steps
        if self._whole:
            self._at.append(event.at)

    def wrote(self, event: WroteEvent) -> None:
        if not self._follows(event.active) or event.register.kind != "r":
            return
        rows = np.broadcast_to(event.rows, (len(event.components), len(event.active)))
        for c, bits in zip(event.components, rows[:, self._item].tolist()):
            self._rows["writes"].append((len(self._at) - 1, event.register.index, c, bits))

    def _follows(self, active: np.ndarray) -> bool:
        """Return whether an event belongs to the work-item, in a recorded step."""
        return self._whole and bool(active[self._item])

    def fetch(self, event: FetchEvent) -> None:
        if self._follows(event.active):
            x, y, inside = (int(a[self._item]) for a in (event.x, event.y, event.inside))
            self._rows["fetches"].append((len(self._at) - 1, event.resource, x, y, inside))

    def memory(self, event: MemoryEvent) -> None:
        if self._follows(event.active) and event.store and event.space == "global":
            self._rows["stores"].append((len(self._at) - 1, int(event.element[self._item])))

    @property
    def recording(self) -> Recording:
        """The trace, after the run; ``ValueError`` before."""
        if self._launch is None:
            raise ValueError(
                "nothing is recorded yet: ck.launch(..., observers=[recorder]) does that"
            )
        arrays = {
            n: np.array(rows, np.int64).reshape(-1, ROWS[n]) for n, rows in self._rows.items()
        }
        at = np.array(self._at, np.int64)
        elements = len(self._launch.memory)
        return Recording(
            self._launch.shape, elements, self._item, at, **arrays, is_complete=self._whole
        )
