"""Record what a work-item does: the words that each step reads and writes, and their writers."""

from bisect import bisect_left
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.elements import StoredAt
from cypresskit.il import Source
from cypresskit.il.dataflow import Key, defines, is_address, lds_words
from cypresskit.machine.checks.races import lost_bits
from cypresskit.machine.launch import Launch
from cypresskit.machine.observer import FetchEvent, MemoryEvent, Observer, StepEvent, WroteEvent


class StoreRecorder(Observer):
    """A recorder of the last store to a place.

    Attributes
    ----------
    place
        The place.
    writer
        (instruction, work-item) of the store; None if there is none.
    lost_bits
        By store, the bits of a work-item's number on which its addresses don't depend.
    launch
        The launch.
    """

    def __init__(self, place: StoredAt) -> None:
        self.place = place
        self.writer: tuple[int, int] | None = None
        self.lost_bits: dict[int, tuple[int, ...]] = {}

    def start(self, launch: Launch) -> None:
        self.launch = launch

    def wrote(self, event: WroteEvent) -> None:
        items = self.place.writers(event)
        if len(items):
            self.writer = event.at, int(items[-1])

    def memory(self, event: MemoryEvent) -> None:
        if event.store and event.space == "global" and event.at not in self.lost_bits:
            self.lost_bits[event.at] = lost_bits(event, self.launch.shape.group_items)


class RecordedStep(NamedTuple):
    """What an instruction did.

    Attributes
    ----------
    at
        The instruction.
    sources
        The words of each source, without modifiers, at its four positions; none for addresses.
    words
        What it wrote, by component.
    texel
        The coordinates x and y of what it fetched; else empty.
    """

    at: int
    sources: dict[int, list[int]]
    words: dict[int, int]
    texel: list[int]


class LdsStore(NamedTuple):
    """A store to the LDS: before which step it ran, its line, and what all work-items put there."""

    step: int
    line: int
    words: set[int]


class StepRecorder(Observer):
    """A recorder of the steps of a work-item.

    Attributes
    ----------
    item, place
        The work-item, and a place of C.
    steps
        What each step did.
    writers
        The steps that write each component of a register.
    store
        The last step that stores ``place``; -1 if none does.
    lds_stores
        The stores to the LDS.
    first_stores
        The step that first stored each word: an element of ``g[]``, or an output; and a component.
    late_reads
        The steps that read one of them after that, each with the step that stored it.
    """

    def __init__(self, item: int, place: StoredAt) -> None:
        self.item, self.place = item, place
        self.store = -1
        self.steps: list[RecordedStep] = []
        self.writers: dict[Key, list[int]] = defaultdict(list)
        self.lds_stores: list[LdsStore] = []
        self.first_stores: dict[tuple[object, int], int] = {}
        self.late_reads: dict[int, int] = {}

    def step(self, event: StepEvent) -> None:
        i = event.instruction
        if i.op.kind == "lds" and i.op.store:
            rows = _read(i.sources[i.op.passed[0]], event)[[*lds_words(i)]]
            words = {*rows[:, event.active].ravel().tolist()}
            self.lds_stores.append(LdsStore(len(self.steps), i.written_line, words))
        if event.active[self.item]:
            for key in defines(i):
                self.writers[key].append(len(self.steps))
            record = RecordedStep(event.at, {}, {}, [])
            self.steps.append(record)
            for n, source in enumerate(i.sources):
                if not is_address(i, n):
                    record.sources[n] = _read(source, event)[:, self.item].tolist()

    def wrote(self, event: WroteEvent) -> None:
        if self.item in self.place.writers(event):
            self.store = len(self.steps) - 1
        if event.active[self.item]:
            shape = len(event.components), len(event.active)
            rows = np.broadcast_to(event.rows.astype(np.uint32), shape)
            self.steps[-1].words.update(zip(event.components, rows[:, self.item].tolist()))
            if event.register.kind in "go":
                at = event.register if event.element is None else int(event.element[self.item])
                for c in event.components:
                    self.first_stores.setdefault((at, c), len(self.steps) - 1)

    def fetch(self, event: FetchEvent) -> None:
        if event.active[self.item]:
            self.steps[-1].texel.extend((int(event.x[self.item]), int(event.y[self.item])))

    def memory(self, event: MemoryEvent) -> None:
        if event.space == "global" and event.active[self.item] and not event.store:
            for stored in ((int(event.element[self.item]), word) for word in event.words):
                if stored in self.first_stores:
                    self.late_reads[len(self.steps) - 1] = self.first_stores[stored]

    def last_writer(self, key: Key, step: int) -> int | None:
        """Return the step that wrote a component of a register last before a step, or None."""
        before = bisect_left(self.writers[key], step)
        return self.writers[key][before - 1] if before else None


def _read(source: Source, event: StepEvent) -> np.ndarray:
    """Return the words of a source at its four positions, for each work-item."""
    return np.broadcast_to(event.rows(source, source.swizzle), (4, len(event.active)))
