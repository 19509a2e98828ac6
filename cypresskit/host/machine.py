"""Model the computer around the chips, and plan copies and kernel calls on it.

Resources: the host's memory, the bus in each direction (shared by all chips of the board), the
CPU's cores, and for each chip the chip itself, its one DMA engine and a host thread that copies for
it. A ``Plan`` lists tasks in program order, with the buffers that they read and write. The buffers
decide what may overlap (see ``tasks``).

A strip of A or B reaches the card in two steps, as the driver requires. A host thread copies it
from the program's memory into memory that the bus can read (*pinned* memory); this copy also
transposes A and adds padding. Then the DMA engine copies it to the card. Each strip has two buffers
in both memories, so that one can arrive while the other is in use.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cypresskit.devices import HD5970, XEON, Device, Host, check_device
from cypresskit.host.checks import check_type, check_whole
from cypresskit.host.tasks import Task, Timeline, run_tasks

MEMORY, TO_CARD, TO_HOST, CPU = "host memory", "PCIe to card", "PCIe to host", "CPU"


@dataclass(frozen=True)
class Machine:
    """A board in a host computer."""

    device: Device = HD5970  # one chip of the board
    host: Host = XEON
    use_chips: int | None = None  # number of chips that work; by default all
    #: Whether strips that a kernel reads as a buffer have padded rows on the card. An assumption.
    pads_rows: bool = True

    @property
    def chips(self) -> int:
        """The number of chips at work."""
        return self.device.chips if self.use_chips is None else self.use_chips

    def __post_init__(self) -> None:
        check_device(self.device)
        check_type(Host, host=self.host)
        check_type(bool, pads_rows=self.pads_rows)
        if self.use_chips is not None:
            object.__setattr__(self, "use_chips", check_whole(use_chips=self.use_chips))
        if self.chips > self.device.chips:
            raise ValueError(f"use_chips = {self.chips}: the board has {self.device.chips}")
        if self.host.cores <= self.chips:
            raise ValueError(
                f"{self.host.name} has {self.host.cores} cores: each of {self.chips} chips"
                " takes one"
            )

    def resources(self) -> dict[str, float]:
        """Return the capacities of all shared resources by name, in bytes, flops, or seconds of a
        chip, per second. Each chip's copying thread occupies one core.
        """
        host = self.host
        cores = host.cpu_gflops * host.cpu_efficiency * (host.cores - self.chips) / host.cores
        dma = host.dma_gb_s * 1e9
        found = {MEMORY: host.memory_gb_s * 1e9, TO_CARD: dma, TO_HOST: dma, CPU: cores * 1e9}
        for chip in range(self.chips):
            found |= {f"chip {chip}": 1.0, f"DMA {chip}": dma}
            found[f"thread {chip}"] = host.copy_gb_s * 1e9
        return found


class Data(NamedTuple):
    """A part of a matrix that a task moves or computes."""

    matrix: str  # "A", "B", "C", or "AB": a product that isn't added to C yet
    place: tuple[int, ...]  # its position among the parts
    name: str  # such as "A[3,0]"
    chip: int | None = None  # the chip that it is for; None: the CPU
    bytes: float = 0.0


class Buffer(NamedTuple):
    """A buffer, and what it holds."""

    name: str  # such as "card 0 A1"
    content: str  # such as "A[3,0]"


@dataclass
class Plan:
    """Tasks in program order."""

    machine: Machine
    real: bool = False  # whether the tasks also compute, on ``arrays``
    serial: bool = False  # whether the program waits for each task
    tasks: list[Task] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # contents of buffers, by name
    #: By chip and matrix, the number of the card's buffer that holds each strip; the least recently
    #: used strip comes first.
    resident: dict[tuple[int | None, str], dict[str, int]] = field(default_factory=dict)

    def add(
        self,
        queue: str,
        stage: str,
        data: Data,
        uses: dict[str, float],
        reads: Iterable[Buffer],
        writes: Buffer,
        action: Callable[[], None],
    ) -> None:
        """Add a task (see `Task`). A plan that isn't real drops the ``action``."""
        # The first product of a block has one prime, which only later ones need
        label = data.name.removesuffix("'")
        task = Task(
            f"{stage} {label}",
            stage,
            "program" if self.serial else queue,
            uses,
            dict(reads),
            dict([writes]),
            data.bytes,
            action=action if self.real else None,
            matrix=data.matrix,
            place=data.place,
            chip=data.chip,
            label=label,
        )
        self.tasks.append(task)

    def copy(
        self,
        stage: str,
        data: Data,
        passes: int,
        reads: Iterable[Buffer],
        writes: Buffer,
        action: Callable[[], None],
    ) -> None:
        """Add a copy by a host thread. Its bytes cross the host's memory ``passes`` times: 2 to
        read and write; 3 if the target is read too, to add to it.
        """
        thread = f"thread {data.chip}"
        uses = {MEMORY: passes * data.bytes, thread: passes / 2 * data.bytes}
        self.add(thread, stage, data, uses, reads, writes, action)

    def dma(self, stage: str, data: Data, direction: str, source: str, target: str) -> None:
        """Add a DMA between two buffers. ``direction``: ``TO_CARD`` or ``TO_HOST``."""

        def action() -> None:
            self.arrays[target] = self.arrays[source].copy()

        engine = f"DMA {data.chip}"
        uses = {MEMORY: data.bytes, direction: data.bytes, engine: data.bytes}
        read, written = (Buffer(name, data.name) for name in (source, target))
        self.add(engine, stage, data, uses, [read], written, action)

    def send(self, data: Data, pinned: str, card: str, fetch: Callable[..., Any]) -> None:
        """Add the copy of ``fetch()`` to the buffer ``pinned``, and its DMA to ``card``."""

        def action() -> None:
            self.arrays[pinned] = fetch()

        source = Buffer(data.name, data.name)
        self.copy("load1", data, 2, [source], Buffer(pinned, data.name), action)
        self.dma("load2", data, TO_CARD, pinned, card)

    def load(self, data: Data, fetch: Callable[..., Any]) -> Buffer:
        """Return the card's buffer with a strip, which is sent unless it is there.

        A new strip replaces the one of its matrix that was used least recently.
        """
        resident = self.resident.setdefault((data.chip, data.matrix), {})
        is_resident = data.name in resident
        oldest = data.name if is_resident else next(iter(resident), "")
        number = resident.pop(oldest) if is_resident or len(resident) == 2 else len(resident)
        resident[data.name] = number
        name = f"{data.matrix}{number}"
        card = card_buffer(data.chip, name)
        if not is_resident:
            self.send(data, f"pinned {data.chip} {name}", card, fetch)
        return Buffer(card, data.name)

    def run(self, flops: float) -> Timeline:
        """Return the plan's timeline."""
        return run_tasks(self.tasks, self.machine.resources(), flops)


def card_buffer(chip: int | None, name: str) -> str:
    """Return the full name of a buffer in the memory of a chip's card."""
    return f"card {chip} {name}"


def check_card(device: Device, buffers: dict[str, float]) -> None:
    """Raise ``ValueError`` unless buffers of these bytes fit the card together."""
    total = sum(buffers.values())
    if total > device.memory_bytes:
        listed = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in buffers.items())
        has = f"{device.name} has {device.memory_bytes / 1e6:.0f} MB: try a smaller block"
        raise ValueError(f"the buffers on the card take {total / 1e6:.0f} MB ({listed}), and {has}")


def split(start: int, stop: int, block: int, multiple: int = 1) -> list[range]:
    """Split start..stop into as few ranges of at most ``block`` as possible.

    Their sizes are as equal as multiples of ``multiple`` allow.
    """
    total = stop - start
    count = -(-total // block)
    size = min(block, -(-total // count // multiple) * multiple) if count else block
    return [range(low, min(low + size, stop)) for low in range(start, stop, size)]


def prefetch(steps: Sequence[Any], load: Callable[..., Any]) -> Iterator[tuple[Any, ...]]:
    """Yield each step with what ``load`` returned for it. The next step is loaded before this one
    is yielded.
    """
    following = load(steps[0])
    for number, step in enumerate(steps, 1):
        current = following
        following = load(steps[number]) if number < len(steps) else None
        yield step, current


def order_blocks(rows: Sequence[Any], columns: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Yield the positions (row, column) of all blocks: along a row, down at its end, and back along
    the next one ("bounce corner turn").

    Each step changes only one of the two, so that a block loads one strip of A or B, not two.
    """
    forward = range(len(columns))
    for i in range(len(rows)):
        yield from ((i, j) for j in (reversed(forward) if i % 2 else forward))
