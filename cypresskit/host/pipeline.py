"""C = alpha A B + beta C from the host's memory: four-stage and five-stage pipelines over chips and
CPU.

C is cut into blocks, work units; the strip of A and the strip of B that a block needs are loaded
unless they are still on the card, and the blocks come in an order that changes one strip at a time.

* **Four stages** (Yang et al., 2010): *load1* copies a strip into pinned memory, *load2* sends it
  to the card, *mult* multiplies and lets the kernel store straight into the host's memory over the
  bus, *store* adds the result into C.
* **Five stages** (Li et al., 2012): *mult1* stores on the card in sub-blocks, *store1* fetches one
  by DMA while the next is computed, *store2* adds into C. The bus and the chip are no longer held
  by the same stage.

Each chip has its own columns of C; the CPU takes rows from the bottom. The bus and the host's
memory are shared. Left out: more than one board, and the cost of starting a DMA.

The CPU's share is *static*, so that both would end at once at their peaks, or *adaptive* (Yang et
al., 2010): the first call takes the static share; each further one takes the share that the rates
measured in the last one ask for. The rates depend on the share, because CPU and chips compete for
the host's memory, so it takes a few calls to settle.
"""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from cypresskit.blas.gemm import checked, gemm, plain
from cypresskit.host.checks import (
    check_precision,
    check_share,
    check_type,
    check_units,
    check_whole,
)
from cypresskit.host.machine import (
    CPU,
    MEMORY,
    TO_HOST,
    Data,
    Machine,
    Plan,
    Strip,
    ahead,
    check_card,
    corner_turn,
    split,
)
from cypresskit.host.rates import kernel_rate, tn_kernel
from cypresskit.host.tasks import Timeline
from cypresskit.kernels import Kernel

BLOCK = 2048  # rows and columns of a work unit: it divides all sizes that Li et al. measured
PARTS, PIECES = 2, 2  # blocks C(i,j) of a work unit, and sub-blocks C(i,j,k) of each


@dataclass
class Matrices:
    """Real matrices for a run: ``a`` (m, k), ``b`` (k, n), ``c`` (m, n) of float32 or float64;
    ``result`` is written. Raises what `gemm` raises for other types and shapes.
    """

    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        self.a, self.b, self.c = map(plain, (self.a, self.b, self.c))
        precision, (self.alpha, _), (self.beta, _), self.size = checked(
            self.a, self.b, self.c, self.alpha, self.beta
        )
        check_precision(precision, "in a pipeline")
        self.result = np.full(self.c.shape, np.nan, self.c.dtype)

    def add(self, product: np.ndarray, rows: range, columns: range) -> None:
        """Write ``product``, which is alpha A B, plus beta C to its place in the result."""
        where = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        self.result[where] = (
            product + self.c.dtype.type(self.beta) * self.c[where] if self.beta else product
        )


def four_stage(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    kernel: str | Kernel = "dgemm_tn_buffer",
    block: int = BLOCK,
    cpu_share: float = 0.0,
    matrices: Matrices | None = None,
) -> Timeline:
    """The timeline of the four-stage pipeline on an (m, k) by (k, n) product; options and errors as
    for `five_stage`. Its kernel by default uses a global buffer, which can lie in any memory but
    isn't cached.
    """
    work = Work((m, n, k), machine, kernel, block, cpu_share, matrices)
    return _Pipeline(work, five=False).plan_all()


def five_stage(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    kernel: str | Kernel = "dgemm_tn",
    block: int = BLOCK,
    cpu_share: float = 0.0,
    matrices: Matrices | None = None,
) -> Timeline:
    """The timeline of the five-stage pipeline on an (m, k) by (k, n) product.

    ``kernel``: a TN kernel. ``block``: rows and columns of a work unit. ``cpu_share``: the part of
    C's rows that the CPU computes. ``matrices``: real ones, to be multiplied by
    ``timeline.execute()``. Raises ``ValueError`` for impossible sizes and blocks that don't fit the
    card, ``TypeError`` for matrices of another type than the kernel's.
    """
    work = Work((m, n, k), machine, kernel, block, cpu_share, matrices)
    return _Pipeline(work, five=True).plan_all()


def static_cpu_share(machine: Machine) -> float:
    """The CPU's share of all double-precision peaks, 0 to 1: 0.12 for two chips of an HD 5970 and
    two Xeon X5650.
    """
    check_type(Machine, machine=machine)
    cpu = machine.host.cpu_gflops
    return cpu / (cpu + machine.chips * machine.device.double_gflops)


def balanced_cpu_share(timeline: Timeline, share: float) -> float:
    """The CPU's share, 0 to 1, at which CPU and chips would have ended together at the rates they
    had in ``timeline``.

    ``share`` is what the CPU had, 0 to 1. If only one of them had something to do, the other's rate
    is unknown, and the share stays as it is.
    """
    check_type(Timeline, timeline=timeline)
    check_share(share=share)
    ends = {True: 0.0, False: 0.0}
    for span in timeline.spans:
        ends[span.task.queue == CPU] = max(ends[span.task.queue == CPU], span.end)
    if not all(ends.values()):
        return share
    cpu = share / ends[True]
    chips = (1 - share) / ends[False]
    return cpu / (cpu + chips)


def adapt_cpu_share(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    calls: int = 4,
    kernel: str | Kernel = "dgemm_tn",
    block: int = BLOCK,
    matrices: Matrices | None = None,
) -> list[tuple[float, Timeline]]:
    """(the CPU's share, its timeline) for each of ``calls`` runs of the same product by
    `five_stage`, which has the other options. Raises ``ValueError`` if ``calls`` is below 1.
    """
    check_whole(calls=calls)
    share = static_cpu_share(machine)
    result = []
    for _ in range(calls):
        work = Work((m, n, k), machine, kernel, block, share, matrices)
        timeline = _Pipeline(work, five=True).plan_all()
        result.append((share, timeline))
        share = balanced_cpu_share(timeline, share)
    return result


class Work(NamedTuple):
    """What a pipeline is asked to do; see `five_stage`."""

    size: tuple[int, int, int]
    machine: Machine
    kernel: str | Kernel
    block: int
    cpu_share: float
    matrices: Matrices | None


class _Pipeline:
    """A run of a pipeline: with ``five``, in sub-blocks that leave by DMA."""

    def __init__(self, work: Work, five: bool) -> None:
        (m, n, k), machine, kernel, block, cpu_share, matrices = work
        check_whole(m=m, n=n, k=k, block=block)
        check_units(m, n, block)
        check_share(cpu_share=cpu_share)
        check_type(Machine, machine=machine)
        self.kernel = tn_kernel(kernel)
        self.five = five
        nothing = np.empty((0, 0))
        self.data = Matrices(nothing, nothing, nothing) if matrices is None else matrices
        check_type(Matrices, matrices=self.data)
        if matrices and matrices.size != (m, n, k):
            raise ValueError(
                f"the matrices don't have the shapes of an ({m}, {k}) by ({k}, {n}) product"
            )
        if matrices and matrices.c.dtype != self.kernel.dtype:
            raise TypeError(
                f"the matrices are {matrices.c.dtype}, and {self.kernel.name} takes"
                f" {self.kernel.dtype}"
            )
        self.m, self.n, self.k, self.block = m, n, k, block
        self.size = self.kernel.dtype.itemsize
        piece = -(-block // (PARTS * PIECES if five else PARTS))
        strips = 2.0 * self.size * k * block
        buffers = {"two strips of A": strips, "two of B": strips}
        if five:
            buffers["two sub-blocks of C"] = 2.0 * self.size * piece * block
        check_card(machine.device, buffers)
        self.plan = Plan(machine, real=matrices is not None)
        rows = min(piece, m)
        columns = min(block, n)
        self.rate = kernel_rate(self.kernel, rows, columns, k, machine.device, machine.pads_rows)
        self.gpu_rows = m - round(cpu_share * m)

    def plan_all(self) -> Timeline:
        """Plan each chip's columns of C, and the CPU's rows."""
        machine, (down, across) = self.plan.machine, self.kernel.convention.multiple
        rows = split(0, self.gpu_rows, self.block, PARTS * PIECES * down)
        if rows:
            chips_columns = split(0, self.n, -(-self.n // machine.chips), across)
            for chip, columns in enumerate(chips_columns):
                self._chip(chip, rows, split(columns.start, columns.stop, self.block, across))
        if self.gpu_rows < self.m:
            self._cpu(range(self.gpu_rows, self.m), split(0, self.n, self.block))
        return self.plan.run(2.0 * self.m * self.n * self.k)

    def _chip(self, chip: int, rows: list[range], columns: list[range]) -> None:
        """Plan a chip's work units. The next one's strips are loaded before the last one's results
        leave.
        """

        def load(unit: tuple[int, tuple[int, int]]) -> tuple[Strip, Strip]:
            i, j = unit[1]
            bytes_a, bytes_b = (self.size * self.k * len(lines) for lines in (rows[i], columns[j]))
            of_a, of_b = (slice(lines.start, lines.stop) for lines in (rows[i], columns[j]))
            strip_a = Data("A", (i,), f"A[{i}]")
            strip_b = Data("B", (chip, j), f"B[{chip}.{j}]")
            # A is transposed, since the kernel is TN.
            a = self.plan.load(chip, strip_a, bytes_a, lambda: self.data.a[of_a].T.copy())
            b = self.plan.load(chip, strip_b, bytes_b, lambda: self.data.b[:, of_b].copy())
            return a, b

        for (number, (i, j)), (a, b) in ahead(list(enumerate(corner_turn(rows, columns))), load):
            parts = split(rows[i].start, rows[i].stop, -(-len(rows[i]) // PARTS))
            for part, lines in enumerate(parts):
                first = lines.start - rows[i].start
                self._part((chip, number, part), a, b, lines, first, columns[j])

    def _part(
        self,
        place: tuple[int, int, int],
        a: Strip,
        b: Strip,
        rows: range,
        first: int,
        columns: range,
    ) -> None:
        """Plan a block C(i,j): ``rows`` and ``columns`` of C, from row ``first`` of the strip ``a``
        on. ``place``: its chip, the chip's work unit, and its number in that.
        """
        chip, _, part = place
        name = ".".join(map(str, place))
        plan = self.plan
        host = self.plan.machine.host
        stored = {}
        for p, piece in enumerate(
            split(rows.start, rows.stop, -(-len(rows) // (PIECES if self.five else 1)))
        ):
            pinned = f"pinned {chip} C{part}.{p}"
            product = Data("AB", (*place, p), f"AB[{name}.{p}]")
            target = plan.card_buffer(chip, f"C{p % 2}") if self.five else pinned
            size = float(self.size * len(piece) * len(columns))
            uses = {f"chip {chip}": 2.0 * len(piece) * len(columns) * self.k / self.rate}
            if not self.five:
                uses |= {TO_HOST: size * host.dma_gb_s / host.remote_store_gb_s, MEMORY: size}
            start = first + piece.start - rows.start
            lines = slice(start, start + len(piece))
            action = partial(self._multiply, a.buffer, b.buffer, lines, target)
            plan.add(
                f"chip {chip}",
                "mult1" if self.five else "mult",
                product,
                uses=uses,
                reads=dict([a, b]),
                writes={target: product.name},
                action=action,
                size=size,
                chip=chip,
            )
            if self.five:
                plan.dma(
                    chip, "store1", product, size=size, way=TO_HOST, source=target, target=pinned
                )
            stored[pinned] = product.name
        block = Data("C", place, f"C[{name}]")

        def merge() -> None:
            self.data.add(np.concatenate([plan.arrays[source] for source in stored]), rows, columns)

        plan.copy(
            chip,
            "store2" if self.five else "store",
            block,
            size=float(self.size * len(rows) * len(columns)),
            passes=3 if self.data.beta else 2,
            reads=stored,
            writes={block.name: "done"},
            action=merge,
        )

    def _cpu(self, rows: range, blocks: list[range]) -> None:
        """Plan the CPU's rows of C, a block of columns at a time. Single precision runs at twice
        the rate.
        """
        data = self.data
        per_flop = self.plan.machine.host.cpu_bytes_flop

        def multiply(columns: range) -> None:
            product = data.a[rows.start : rows.stop] @ data.b[:, columns.start : columns.stop]
            data.add(data.c.dtype.type(data.alpha) * product, rows, columns)

        for number, columns in enumerate(blocks):
            flops = 2.0 * len(rows) * len(columns) * self.k * self.size / 8
            self.plan.add(
                CPU,
                "cpu",
                Data("C", (number,), str(number)),
                uses={CPU: flops, MEMORY: flops * per_flop},
                reads={},
                writes={f"C[cpu.{number}]": "done"},
                action=partial(multiply, columns),
                size=flops * per_flop,
            )

    def _multiply(self, a: str, b: str, lines: slice, target: str) -> None:
        arrays = self.plan.arrays
        multiply = partial(gemm, kernel=self.kernel, device=self.plan.machine.device)
        arrays[target] = multiply(
            arrays[a][:, lines], arrays[b], alpha=self.data.alpha, trans_a=True
        )
