"""The computer around the chips, and how a plan of copies and kernels for it is written down.

Resources: the host's memory, the bus each way (shared by all chips of the board), the CPU's cores, and for each chip
the chip itself, its one DMA engine and a host thread that copies for it. A ``Plan`` collects tasks in program order and
the buffers that they pass data through; what may overlap follows from those (`timeline`).

Moving a strip of a matrix to a card takes two steps, as the driver requires: a host thread copies it from the program's
memory into memory that the bus can read (*pinned* memory; here A is also transposed and padding added), then the DMA
engine copies that to the card. Both places have two buffers, so that a strip can arrive while another is used.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from cypresskit.devices import HD5970, XEON, Device, Host
from cypresskit.host.checks import check_type, check_whole
from cypresskit.host.resources import Resource
from cypresskit.host.tasks import Task, Timeline, run

MEMORY, TO_CARD, TO_HOST, CPU = "host memory", "PCIe to card", "PCIe to host", "CPU"


@dataclass(frozen=True)
class Machine:
    """A board in a host. ``device`` is one chip of it; ``use_chips`` says how many work, by default all."""

    device: Device = HD5970
    host: Host = XEON
    use_chips: int | None = None

    @property
    def chips(self) -> int:
        """How many chips work."""
        return self.device.chips if self.use_chips is None else self.use_chips

    def __post_init__(self):
        check_type(Device, device=self.device)
        check_type(Host, host=self.host)
        check_whole(use_chips=self.chips)
        if self.chips > self.device.chips:
            raise ValueError(f"use_chips = {self.chips}: the board has {self.device.chips}")
        if self.host.cores <= self.chips:
            raise ValueError(f"{self.host.name} has {self.host.cores} cores: each of {self.chips} chips takes one")

    def resources(self) -> dict[str, Resource]:
        """Everything that tasks share, by name. Threads are whole: a chip's copying thread has a core to itself."""
        host = self.host
        cores = host.cpu_gflops * host.cpu_efficiency * (host.cores - self.chips) / host.cores
        rows = [(MEMORY, host.memory_gb_s * 1e9, "bytes")]
        rows += [(way, host.dma_gb_s * 1e9, "bytes") for way in (TO_CARD, TO_HOST)] + [(CPU, cores * 1e9, "flops")]
        for chip in range(self.chips):
            rows += [(f"chip {chip}", 1.0, "seconds"), (f"DMA {chip}", host.dma_gb_s * 1e9, "bytes")]
            rows += [(f"thread {chip}", host.copy_gb_s * 1e9, "bytes copied")]
        return {row[0]: Resource(*row) for row in rows}


class Strip(NamedTuple):
    """Some rows of A or columns of B on a card: the buffer's name and what it holds."""

    buffer: str
    content: str


@dataclass
class Plan:
    """Tasks in program order. A ``real`` plan can be executed, and ``arrays`` then holds what is in each buffer. A
    ``serial`` plan does one task at a time, as a program does that waits for each."""

    machine: Machine
    real: bool = False
    serial: bool = False
    tasks: list[Task] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    resident: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)  # the one used last stands last

    def add(self, queue: str, stage: str, what: str, uses: dict, reads: dict, writes: dict, action, size=0.0) -> None:
        """A task that moves ``size`` bytes; see `Task`. ``action`` is left out of a plan that isn't real."""
        queue, action = "program" if self.serial else queue, action if self.real else None
        name = f"{stage} {what}".removesuffix("'")  # the first sum needs no prime: only those after it are told apart
        self.tasks.append(Task(name, stage, queue, uses, reads, writes, size, action=action))

    def copy(self, chip: int, stage: str, what: str, size: float, passes: int, reads, writes, action) -> None:
        """A host thread copies ``size`` bytes and moves ``passes`` times as many through the host's memory: 2 to read
        and write, 3 where it also reads what it adds to."""
        uses = {MEMORY: passes * size, f"thread {chip}": passes / 2 * size}
        self.add(f"thread {chip}", stage, what, uses, reads, writes, action, size)

    def dma(self, chip: int, stage: str, content: str, size: float, way: str, source: str, target: str) -> None:
        """The chip's DMA engine moves ``content`` from buffer to buffer, ``way`` TO_CARD or TO_HOST."""

        def action() -> None:
            self.arrays[target] = self.arrays[source].copy()

        uses = {MEMORY: size, way: size, f"DMA {chip}": size}
        self.add(f"DMA {chip}", stage, content, uses, {source: content}, {target: content}, action, size)

    def send(self, chip: int, content: str, size: float, buffers: tuple[str, str], fetch: Callable) -> None:
        """Copy ``content``, whose array ``fetch`` gives, into the first of ``buffers`` and by DMA into the second."""
        pinned, card = buffers

        def action() -> None:
            self.arrays[pinned] = fetch()

        self.copy(chip, "load1", content, size, 2, {content: content}, {pinned: content}, action)
        self.dma(chip, "load2", content, size, TO_CARD, pinned, card)

    def load(self, chip: int, kind: str, content: str, size: float, fetch: Callable) -> Strip:
        """Bring ``content``, a strip of matrix ``kind``, to the card unless it is in one of the two buffers for it. The
        strip that was asked for last stays, for it is still in use."""
        resident = self.resident.setdefault((chip, kind), {})
        there = content in resident
        oldest = content if there else next(iter(resident), "")
        number = resident.pop(oldest) if there or len(resident) == 2 else len(resident)
        resident[content] = number
        card = f"card {chip} {kind}{number}"
        if not there:
            self.send(chip, content, size, (f"pinned {chip} {kind}{number}", card), fetch)
        return Strip(card, content)

    def run(self, flops: float) -> Timeline:
        """The plan in time."""
        return run(self.tasks, self.machine.resources(), flops)


def check_card(device: Device, buffers: dict[str, float]) -> None:
    """``ValueError`` unless buffers of these bytes fit the card together."""
    total = sum(buffers.values())
    if total > device.memory_bytes:
        listed = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in buffers.items())
        has = f"{device.name} has {device.memory_bytes / 1e6:.0f} MB: try a smaller block"
        raise ValueError(f"the buffers on the card take {total / 1e6:.0f} MB ({listed}), and {has}")


def split(start: int, stop: int, block: int, multiple: int = 1) -> list[range]:
    """start..stop in as few ranges of at most ``block`` as can be, as equal as multiples of ``multiple`` allow."""
    count = -(-(stop - start) // block)
    size = min(block, -(-(stop - start) // max(count, 1) // multiple) * multiple) if count else block
    return [range(low, min(low + size, stop)) for low in range(start, stop, size)]


def ahead(steps: Sequence, load: Callable) -> Iterator[tuple]:
    """Pairs of a step and what ``load`` brought for it. Loading is one step ahead (prefetching): a step's data are
    asked for before the step in front of it is done."""
    coming = load(steps[0])
    for number, step in enumerate(steps, 1):
        here, coming = coming, load(steps[number]) if number < len(steps) else None
        yield step, here


def corner_turn(rows: Sequence, columns: Sequence) -> Iterator[tuple[int, int]]:
    """Positions (row, column) of all blocks so that from one to the next only one of the two changes: along a row,
    down at its end, and back along the next ("bounce corner turn"). Each block loads one strip of A or B, not two."""
    forth = range(len(columns))
    for i in range(len(rows)):
        yield from ((i, j) for j in (reversed(forth) if i % 2 else forth))
