"""The computer around the chips, and a plan of copies and kernels for it.

Resources: the host's memory, the bus each way (shared by all chips of the board), the CPU's cores,
and for each chip the chip itself, its one DMA engine and a host thread that copies for it. A
``Plan`` collects tasks in program order and the buffers that pass data between them; these decide
what may overlap (`tasks`).

A strip of a matrix gets to a card in two steps, as the driver requires. A host thread copies it
from the program's memory into memory that the bus can read (*pinned* memory; here A is also
transposed and padding added). Then the DMA engine copies that to the card. Both places have two
buffers, so that a strip can arrive while another is in use.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from cypresskit.devices import HD5970, XEON, Device, Host, check_device
from cypresskit.host.checks import check_type, check_whole
from cypresskit.host.resources import Resource
from cypresskit.host.tasks import Task, Timeline, run_tasks

MEMORY, TO_CARD, TO_HOST, CPU = "host memory", "PCIe to card", "PCIe to host", "CPU"


@dataclass(frozen=True)
class Machine:
    """A board in a host computer. ``device`` is one of its chips; ``use_chips`` of them work, by
    default all. ``pads_rows``, an assumption: strips that a kernel reads as a buffer are copied to
    the card with padded rows.
    """

    device: Device = HD5970
    host: Host = XEON
    use_chips: int | None = None
    pads_rows: bool = True

    @property
    def chips(self) -> int:
        """The number of chips at work."""
        return self.device.chips if self.use_chips is None else self.use_chips

    def __post_init__(self) -> None:
        check_device(self.device)
        check_type(Host, host=self.host)
        check_whole(use_chips=self.chips)
        if self.chips > self.device.chips:
            raise ValueError(f"use_chips = {self.chips}: the board has {self.device.chips}")
        if self.host.cores <= self.chips:
            raise ValueError(
                f"{self.host.name} has {self.host.cores} cores: each of {self.chips} chips"
                " takes one"
            )

    def resources(self) -> dict[str, Resource]:
        """Everything that tasks share, by name. A chip's copying thread has a core of its own."""
        host = self.host
        cores = host.cpu_gflops * host.cpu_efficiency * (host.cores - self.chips) / host.cores
        rows = [(MEMORY, host.memory_gb_s * 1e9, "bytes")]
        rows += [(way, host.dma_gb_s * 1e9, "bytes") for way in (TO_CARD, TO_HOST)] + [
            (CPU, cores * 1e9, "flops")
        ]
        for chip in range(self.chips):
            rows += [
                (f"chip {chip}", 1.0, "seconds"),
                (f"DMA {chip}", host.dma_gb_s * 1e9, "bytes"),
            ]
            rows += [(f"thread {chip}", host.copy_gb_s * 1e9, "bytes copied")]
        return {row[0]: Resource(*row) for row in rows}


class Data(NamedTuple):
    """A part of a matrix: "A", "B", "C" or "AB" (a product that isn't added yet), its place among
    the parts, and its name, such as "A[3,0]".
    """

    matrix: str
    place: tuple[int, ...]
    name: str


class Strip(NamedTuple):
    """A strip of A or B on a card: its buffer and its content, by name."""

    buffer: str
    content: str


@dataclass
class Plan:
    """Tasks in program order. A ``real`` plan can be executed; ``arrays`` then holds the buffers'
    contents. A ``serial`` plan does one task at a time, as does a program that waits for each.
    """

    machine: Machine
    real: bool = False
    serial: bool = False
    tasks: list[Task] = field(default_factory=list)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    # By chip and matrix, each strip's number of buffer; the one used last stands last.
    resident: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)

    def add(
        self,
        queue: str,
        stage: str,
        data: Data,
        *,
        uses: dict[str, float],
        reads: dict[str, str],
        writes: dict[str, str],
        action: Callable[[], None],
        size: float = 0.0,
        chip: int | None = None,
    ) -> None:
        """Add a task that moves ``size`` bytes; see `Task`. A plan that isn't real leaves out the
        ``action``.
        """
        # The first sum of a block needs no prime: only those after it are told apart.
        label = data.name.removesuffix("'")
        task = Task(
            f"{stage} {label}",
            stage,
            "program" if self.serial else queue,
            uses,
            reads,
            writes,
            size,
            action=action if self.real else None,
            matrix=data.matrix,
            place=data.place,
            chip=chip,
            label=label,
        )
        self.tasks.append(task)

    def copy(
        self,
        chip: int,
        stage: str,
        data: Data,
        *,
        size: float,
        passes: int,
        reads: dict[str, str],
        writes: dict[str, str],
        action: Callable[[], None],
    ) -> None:
        """Add a host thread's copy of ``size`` bytes, which cross the host's memory ``passes``
        times: 2 to read and write, 3 if the target is read too, to add to it.
        """
        thread = f"thread {chip}"
        self.add(
            thread,
            stage,
            data,
            uses={MEMORY: passes * size, thread: passes / 2 * size},
            reads=reads,
            writes=writes,
            action=action,
            size=size,
            chip=chip,
        )

    def dma(
        self,
        chip: int,
        stage: str,
        data: Data,
        *,
        size: float,
        way: str,
        source: str,
        target: str,
    ) -> None:
        """Add a DMA that moves ``data`` from one buffer to another, ``way`` TO_CARD or TO_HOST."""

        def action() -> None:
            self.arrays[target] = self.arrays[source].copy()

        self.add(
            f"DMA {chip}",
            stage,
            data,
            uses={MEMORY: size, way: size, f"DMA {chip}": size},
            reads={source: data.name},
            writes={target: data.name},
            action=action,
            size=size,
            chip=chip,
        )

    def send(
        self,
        chip: int,
        data: Data,
        size: float,
        buffers: tuple[str, str],
        fetch: Callable[..., Any],
    ) -> None:
        """Add the copy of ``data``, the array ``fetch()``, to the first of ``buffers`` and its DMA
        to the second.
        """
        pinned, card = buffers

        def action() -> None:
            self.arrays[pinned] = fetch()

        self.copy(
            chip,
            "load1",
            data,
            size=size,
            passes=2,
            reads={data.name: data.name},
            writes={pinned: data.name},
            action=action,
        )
        self.dma(chip, "load2", data, size=size, way=TO_CARD, source=pinned, target=card)

    def load(self, chip: int, data: Data, size: float, fetch: Callable[..., Any]) -> Strip:
        """A strip on the card; it is sent unless one of its matrix's two buffers has it. The strip
        asked for last is kept, since it is still in use.
        """
        resident = self.resident.setdefault((chip, data.matrix), {})
        on_card = data.name in resident
        oldest = data.name if on_card else next(iter(resident), "")
        number = resident.pop(oldest) if on_card or len(resident) == 2 else len(resident)
        resident[data.name] = number
        card = self.card_buffer(chip, f"{data.matrix}{number}")
        if not on_card:
            self.send(chip, data, size, (f"pinned {chip} {data.matrix}{number}", card), fetch)
        return Strip(card, data.name)

    def card_buffer(self, chip: int, name: str) -> str:
        """The full name of a buffer in the memory of a chip's card."""
        return f"card {chip} {name}"

    def run(self, flops: float) -> Timeline:
        """The plan's timeline."""
        return run_tasks(self.tasks, self.machine.resources(), flops)


def check_card(device: Device, buffers: dict[str, float]) -> None:
    """Raise ``ValueError`` unless buffers of these bytes fit the card together."""
    total = sum(buffers.values())
    if total > device.memory_bytes:
        listed = ", ".join(f"{name} {size / 1e6:.0f} MB" for name, size in buffers.items())
        has = f"{device.name} has {device.memory_bytes / 1e6:.0f} MB: try a smaller block"
        raise ValueError(f"the buffers on the card take {total / 1e6:.0f} MB ({listed}), and {has}")


def split(start: int, stop: int, block: int, multiple: int = 1) -> list[range]:
    """start..stop in as few ranges of at most ``block`` as possible, as equal as multiples of
    ``multiple`` allow.
    """
    count = -(-(stop - start) // block)
    size = (
        min(block, -(-(stop - start) // max(count, 1) // multiple) * multiple) if count else block
    )
    return [range(low, min(low + size, stop)) for low in range(start, stop, size)]


def ahead(steps: Sequence[Any], load: Callable[..., Any]) -> Iterator[tuple[Any, ...]]:
    """Pairs of a step and what ``load`` returned for it. Loading runs a step ahead (prefetching):
    the next step is loaded before this one is done.
    """
    coming = load(steps[0])
    for number, step in enumerate(steps, 1):
        current = coming
        coming = load(steps[number]) if number < len(steps) else None
        yield step, current


def corner_turn(rows: Sequence[Any], columns: Sequence[Any]) -> Iterator[tuple[int, int]]:
    """Positions (row, column) of all blocks, in an order that changes only one of the two at a
    time: along a row, down at its end, and back along the next ("bounce corner turn"). So each
    block loads one strip of A or B, not two.
    """
    forth = range(len(columns))
    for i in range(len(rows)):
        yield from ((i, j) for j in (reversed(forth) if i % 2 else forth))
