"""C = alpha A B + beta C from the host's memory: four-stage and five-stage pipelines over chips and CPU.

C is cut into blocks, work units; the strip of A and the strip of B that a block needs are loaded unless they are still
on the card, and the blocks come in an order that changes one strip at a time.

* **Four stages** (Yang et al., 2010): *load1* copies a strip into pinned memory, *load2* sends it to the card, *mult*
  multiplies and lets the kernel store straight into the host's memory over the bus, *store* adds the result into C.
* **Five stages** (Li et al., 2012): *mult1* stores on the card in sub-blocks, *store1* fetches one by DMA while the
  next is computed, *store2* adds into C. The bus and the chip are no longer held by the same stage.

Each chip has its own columns of C; the CPU takes rows from the bottom. The bus and the host's memory are shared.
Left out: more than one board, and the cost of starting a DMA.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cypresskit.blas import gemm
from cypresskit.host.machine import (
    CPU,
    MEMORY,
    TO_HOST,
    Machine,
    Plan,
    Strip,
    check_card,
    check_sizes,
    corner_turn,
    split,
)
from cypresskit.host.rates import kernel_rate
from cypresskit.host.timeline import Task, Timeline
from cypresskit.kernels import KERNELS

BLOCK = 2048  # rows and columns of a work unit: it divides all sizes that Li et al. measured
PARTS, PIECES = 2, 2  # blocks C(i,j) of a work unit, and sub-blocks C(i,j,k) of each


@dataclass
class Matrices:
    """Real matrices for a run: ``a`` (m, k), ``b`` (k, n), ``c`` (m, n) of one float type; ``result`` is written."""

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self):
        self.result = np.full(self.c.shape, np.nan, self.c.dtype)


def four_stage(m: int, n: int, k: int, machine: Machine, **options) -> Timeline:
    """The four-stage pipeline on an (m, k) by (k, n) product; options and errors as for `five_stage`. Its kernel
    addresses a global buffer by default ("dgemm_tn_buffer"): arbitrary places in any memory, and no texture cache."""
    return _pipeline(_four_stage_unit, m, n, k, machine, **{"kernel": "dgemm_tn_buffer", **options})


def five_stage(m: int, n: int, k: int, machine: Machine, **options) -> Timeline:
    """The five-stage pipeline on an (m, k) by (k, n) product.

    Options: ``kernel``, a TN kernel of the catalogue ("dgemm_tn"); ``block``, rows and columns of a work unit (2048);
    ``cpu_share``, the part of C's rows that the CPU computes (0); ``matrices``, real ones to be multiplied by
    ``timeline.execute()``. Raises ``ValueError`` for sizes that can't be, or blocks that don't fit the card.
    """
    return _pipeline(_five_stage_unit, m, n, k, machine, **{"kernel": "dgemm_tn", **options})


@dataclass
class _Job:
    """What all stages of a run need to know."""

    plan: Plan
    kernel: str
    rate: float
    k: int
    itemsize: int
    matrices: Matrices | None

    def seconds(self, rows: range, columns: range) -> float:
        """What the kernel takes: the rate is that of a whole sub-block, ragged ones included."""
        return 2.0 * len(rows) * len(columns) * self.k / self.rate

    def strip(self, kind: str, lines: range) -> Callable[[], np.ndarray] | None:
        """What load1 copies: rows of A, transposed for the TN kernel, or columns of B."""
        data, part = self.matrices, slice(lines.start, lines.stop)
        if data is None:
            return None
        return (lambda: data.a[part].T.copy()) if kind == "A" else (lambda: data.b[:, part].copy())

    def multiply(self, a: str, b: str, rows: range, target: str) -> Callable[[], None] | None:
        """The kernel on ``rows`` of the strip in buffer ``a``, counted from its first."""
        data, arrays = self.matrices, self.plan.arrays
        if data is None:
            return None

        def action() -> None:
            part = arrays[a][:, rows.start : rows.stop]
            arrays[target] = gemm(part, arrays[b], alpha=data.alpha, trans_a=True, kernel=self.kernel)

        return action

    def add(self, sources: list[str], rows: range, columns: range) -> Callable[[], None] | None:
        """The last stage: alpha A B, which is in ``sources`` from top to bottom, plus beta C."""
        data, arrays = self.matrices, self.plan.arrays
        if data is None:
            return None

        def action() -> None:
            where = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
            product = np.concatenate([arrays[source] for source in sources])
            data.result[where] = product + data.c.dtype.type(data.beta) * data.c[where] if data.beta else product

        return action

    @property
    def passes(self) -> int:
        """How often the last stage touches each byte: read the result, write C, and read C unless beta is 0."""
        return 2 if self.matrices and not self.matrices.beta else 3


Unit = Callable[[_Job, int, int, Strip, Strip, range, range], None]


def _pipeline(
    unit: Unit,
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    kernel: str,
    block: int = BLOCK,
    cpu_share: float = 0.0,
    matrices: Matrices | None = None,
) -> Timeline:
    check_sizes(m=m, n=n, k=k, block=block)
    if not 0 <= cpu_share <= 1:
        raise ValueError(f"cpu_share = {cpu_share:g} has to lie in 0 to 1")
    chosen = KERNELS[kernel]
    if not chosen.trans_a or chosen.trans_b:
        raise ValueError(f"the pipelines transpose A on the host and need a TN kernel; {kernel} is not one")
    if matrices and (matrices.a.shape, matrices.b.shape, matrices.c.shape) != ((m, k), (k, n), (m, n)):
        raise ValueError(f"the matrices don't have the shapes of an ({m}, {k}) by ({k}, {n}) product")
    size = chosen.dtype.itemsize
    piece = -(-block // (PARTS * PIECES))
    strip = {"two strips of A": 2.0 * size * k * block, "two of B": 2.0 * size * k * block}
    check_card(machine.device, strip | {"two sub-blocks of C": 2.0 * size * piece * block})

    rate = kernel_rate(kernel, min(piece, m), min(block, n), k, machine.device)
    job = _Job(Plan(machine), kernel, rate, k, size, matrices)
    gpu_rows = m - round(cpu_share * m)
    rows = split(0, gpu_rows, block, PARTS * PIECES * chosen.tile[0])
    columns = split(0, n, -(-n // machine.chips), chosen.tile[1]) if gpu_rows else []
    units = []
    for own in columns:
        blocks = split(own.start, own.stop, block, chosen.tile[1])
        units.append([(i, j, rows[i], blocks[j]) for i, j in corner_turn(rows, blocks)])
    queues = [_chip(job, chip, work, unit) for chip, work in enumerate(units)]
    for _ in range(max(map(len, units), default=0)):
        for queue in queues:
            next(queue, None)
    _cpu(job, range(gpu_rows, m), split(0, n, block))
    return job.plan.run(2.0 * m * n * k)


def _chip(job: _Job, chip: int, units: list, unit: Unit):
    """Plan a chip's work units, one each time it is asked; the strips of the next are loaded ahead of the stores."""

    def load(number: int, keep: tuple[str, str]) -> tuple[Strip, Strip]:
        i, j, rows, columns = units[number]
        size = job.itemsize * job.k
        a = job.plan.load(chip, "A", f"A[{i}]", size * len(rows), keep[0], job.strip("A", rows))
        b = job.plan.load(chip, "B", f"B[{chip}.{j}]", size * len(columns), keep[1], job.strip("B", columns))
        return a, b

    ahead = load(0, ("", ""))
    for number, (_, _, rows, columns) in enumerate(units):
        a, b = ahead
        if number + 1 < len(units):
            ahead = load(number + 1, (a.content, b.content))
        unit(job, chip, number, a, b, rows, columns)
        yield


def _parts(rows: range) -> list[range]:
    """The blocks C(i,j) of a work unit's rows."""
    return split(rows.start, rows.stop, -(-len(rows) // PARTS))


def _four_stage_unit(job: _Job, chip: int, number: int, a: Strip, b: Strip, rows: range, columns: range) -> None:
    plan, host = job.plan, job.plan.machine.host
    for j, part in enumerate(_parts(rows)):
        size = job.itemsize * len(part) * len(columns)
        pinned, name = f"pinned {chip} C{j % 2}", f"{chip}.{number}.{j}"
        inside = range(part.start - rows.start, part.stop - rows.start)
        uses = {
            f"chip {chip}": job.seconds(part, columns),
            TO_HOST: size * host.dma_gb_s / host.remote_store_gb_s,
            MEMORY: size,
        }
        reads, writes = dict([a, b]), {pinned: f"AB[{name}]"}
        action = job.multiply(a.buffer, b.buffer, inside, pinned)
        plan.tasks.append(Task(f"mult {name}", "mult", f"chip {chip}", uses, reads, writes, bytes=size, action=action))
        done, add = {f"C[{name}]": "done"}, job.add([pinned], part, columns)
        plan.copy(chip, f"store {name}", "store", size, job.passes, writes, done, add)


def _five_stage_unit(job: _Job, chip: int, number: int, a: Strip, b: Strip, rows: range, columns: range) -> None:
    plan = job.plan
    pieces_before = number * PARTS * PIECES
    for j, part in enumerate(_parts(rows)):
        stored: dict[str, str] = {}
        for p, piece in enumerate(split(part.start, part.stop, -(-len(part) // PIECES))):
            size = job.itemsize * len(piece) * len(columns)
            name = f"{chip}.{number}.{j}.{p}"
            card, pinned = f"card {chip} C{(pieces_before + j * PIECES + p) % 2}", f"pinned {chip} C{j % 2}.{p}"
            inside = range(piece.start - rows.start, piece.stop - rows.start)
            uses = {f"chip {chip}": job.seconds(piece, columns)}
            reads, writes = dict([a, b]), {card: f"AB[{name}]"}
            action = job.multiply(a.buffer, b.buffer, inside, card)
            plan.tasks.append(
                Task(f"mult1 {name}", "mult1", f"chip {chip}", uses, reads, writes, bytes=size, action=action)
            )
            move = plan.move(card, pinned) if job.matrices else None
            plan.dma(chip, f"store1 {name}", "store1", size, TO_HOST, writes, {pinned: f"AB[{name}]"}, move)
            stored[pinned] = f"AB[{name}]"
        name = f"{chip}.{number}.{j}"
        done, add = {f"C[{name}]": "done"}, job.add(list(stored), part, columns)
        size = job.itemsize * len(part) * len(columns)
        plan.copy(chip, f"store2 {name}", "store2", size, job.passes, stored, done, add)


def _cpu(job: _Job, rows: range, blocks: list[range]) -> None:
    """The CPU's rows of C, a block of columns at a time."""
    host, data = job.plan.machine.host, job.matrices
    for number, columns in enumerate(blocks if rows else []):
        flops = 2.0 * len(rows) * len(columns) * job.k * job.itemsize / 8  # single precision runs at twice the rate
        where = slice(rows.start, rows.stop), slice(columns.start, columns.stop)

        def action(where=where, data=data) -> None:
            product = data.c.dtype.type(data.alpha) * (data.a[where[0]] @ data.b[:, where[1]])
            data.result[where] = product + data.c.dtype.type(data.beta) * data.c[where] if data.beta else product

        job.plan.tasks.append(
            Task(
                f"cpu {number}",
                "cpu",
                CPU,
                {CPU: flops, MEMORY: flops * host.cpu_bytes_flop},
                writes={f"C[cpu.{number}]": "done"},
                bytes=flops * host.cpu_bytes_flop,
                action=action if data else None,
            )
        )
