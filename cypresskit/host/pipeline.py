"""Compute C = alpha A B + beta C in a four-stage or five-stage pipeline over chips and CPU.

C is cut into work units. Each needs a strip of A and a strip of B, which are loaded
unless they are still on the card. The order of the units changes one strip per step.

* **Four stages** (Yang et al., 2010): *load1* copies a strip into pinned memory, *load2* sends it
  to the card, *mult* multiplies, with a kernel that stores over the bus into the host's memory, and
  *store* adds the result to C.
* **Five stages** (Li et al., 2012): *mult1* stores sub-blocks on the card, *store1* fetches one by
  DMA while the next is computed, *store2* adds them to C. No stage occupies both bus and chip.

Each chip computes its own columns of C, the CPU the rows at the bottom. They share the bus and the
host's memory.

The CPU's share is *static*, so that CPU and chips would end together at their peak rates, or
*adaptive* (Yang et al., 2010): each call takes the share that fits the rates of the last one, and
the first takes the static share. The rates depend on the share, because CPU and chips compete for
the host's memory, so the share takes a few calls to settle.

Not covered: several boards, and the time to start a DMA.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np

from cypresskit.blas.gemm import check_product, gemm
from cypresskit.host.checks import (
    check_double,
    check_share,
    check_type,
    check_units,
    check_whole,
)
from cypresskit.host.machine import (
    CPU,
    MEMORY,
    TO_HOST,
    Buffer,
    Data,
    Machine,
    Plan,
    card_buffer,
    check_card,
    order_blocks,
    prefetch,
    split,
)
from cypresskit.host.rates import find_tn_kernel, kernel_rate
from cypresskit.host.tasks import Timeline
from cypresskit.kernels import Kernel
from cypresskit.kernels.convention import BYTES

SIZE = BYTES["double"]
BLOCK = 2048  # rows and columns of a work unit: it divides all sizes that Li et al. measured
PARTS, PIECES = 2, 2  # blocks C(i,j) of a work unit, and sub-blocks C(i,j,k) of each


@dataclass
class Matrices:
    """Matrices for a run, of float64; the run writes ``result``, (m, n).

    Raises the errors of `gemm` for other types and shapes.
    """

    a: np.ndarray  # (m, k)
    b: np.ndarray  # (k, n)
    c: np.ndarray  # (m, n)
    alpha: float = 1.0
    beta: float = 1.0

    def __post_init__(self) -> None:
        precision, (self.alpha, _), (self.beta, _), self.size = check_product(
            self.a, self.b, self.c, self.alpha, self.beta
        )
        check_double(precision, "in a pipeline")
        self.result = np.full(self.c.shape, np.nan)

    def add(self, product: np.ndarray, rows: range, columns: range) -> None:
        """Write ``product``, which is alpha A B, plus beta C to these rows and columns."""
        where = slice(rows.start, rows.stop), slice(columns.start, columns.stop)
        self.result[where] = product + self.beta * self.c[where] if self.beta else product


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
    """Return the timeline of the four-stage pipeline on an (m, k) by (k, n) product.

    Options and errors as for `five_stage`. The default kernel uses a global buffer, which can be in
    any memory but isn't cached.
    """
    return _Pipeline((m, n, k), machine, kernel, block, cpu_share, matrices, five=False).plan_all()


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
    """Return the timeline of the five-stage pipeline on an (m, k) by (k, n) product.

    Parameters
    ----------
    kernel
        A TN kernel.
    block
        Rows and columns of a work unit.
    cpu_share
        The part of C's rows that the CPU computes, 0 to 1.
    matrices
        Matrices that ``timeline.execute()`` multiplies.

    Raises
    ------
    ValueError
        For impossible sizes, and for blocks that don't fit the card.
    TypeError
        For matrices that aren't doubles.
    """
    return _Pipeline((m, n, k), machine, kernel, block, cpu_share, matrices).plan_all()


def static_cpu_share(machine: Machine) -> float:
    """Return the CPU's share of the sum of double-precision peaks, 0 to 1: 0.12 for two chips of an
    HD 5970 and two Xeon X5650.
    """
    check_type(Machine, machine=machine)
    cpu = machine.host.cpu_gflops
    return cpu / (cpu + machine.chips * machine.device.double_gflops)


def balanced_cpu_share(timeline: Timeline, share: float) -> float:
    """Return the CPU's share, 0 to 1, with which CPU and chips would have ended together, at their
    rates in ``timeline``.

    ``share`` is the CPU's share there, 0 to 1. It is returned unchanged if only one of them had
    work, since the other's rate is unknown.
    """
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
) -> list[tuple[float, Timeline]]:
    """Return (the CPU's share, the timeline) of each of ``calls`` runs of the same product in
    `five_stage`.

    Raises ``ValueError`` if ``calls`` is below 1.
    """
    calls = check_whole(calls=calls)
    share = static_cpu_share(machine)
    result = []
    for _ in range(calls):
        timeline = five_stage(m, n, k, machine, cpu_share=share)
        result.append((share, timeline))
        share = balanced_cpu_share(timeline, share)
    return result


class _Pipeline:
    """A plan of a pipeline: with ``five``, sub-blocks return by DMA."""

    def __init__(
        self,
        size: tuple[int, int, int],
        machine: Machine,
        kernel: str | Kernel,
        block: int,
        cpu_share: float,
        matrices: Matrices | None,
        five: bool = True,
    ) -> None:
        m, n, k = size
        m, n, k, block = check_whole(m=m, n=n, k=k, block=block)
        check_units(m, n, block)
        cpu_share = check_share(cpu_share=cpu_share)
        check_type(Machine, machine=machine)
        self.kernel = find_tn_kernel(kernel)
        self.five = five
        nothing = np.empty((0, 0))
        self.data = Matrices(nothing, nothing, nothing) if matrices is None else matrices
        check_type(Matrices, matrices=self.data)
        if matrices and matrices.size != (m, n, k):
            raise ValueError(
                f"the matrices don't have the shapes of an ({m}, {k}) by ({k}, {n}) product"
            )
        self.m, self.n, self.k, self.block = m, n, k, block
        piece = -(-block // (PARTS * PIECES if five else PARTS))
        strips = 2.0 * SIZE * k * block
        buffers = {"two strips of A": strips, "two of B": strips}
        if five:
            buffers["two sub-blocks of C"] = 2.0 * SIZE * piece * block
        check_card(machine.device, buffers)
        self.plan = Plan(machine, real=matrices is not None)
        rows = min(piece, m)
        columns = min(block, n)
        self.rate = kernel_rate(self.kernel, rows, columns, k, machine.device, machine.pads_rows)
        self.gpu_rows = m - round(cpu_share * m)

    def plan_all(self) -> Timeline:
        """Plan each chip's columns of C and the CPU's rows, and return the timeline."""
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
        """Plan a chip's work units. Each one's strips are loaded before the previous unit's
        results are stored.
        """

        def load(unit: tuple[int, tuple[int, int]]) -> tuple[Buffer, Buffer]:
            i, j = unit[1]
            down, across = rows[i], columns[j]
            line_bytes = SIZE * self.k
            strip_a = Data("A", (i,), f"A[{i}]", chip, line_bytes * len(down))
            strip_b = Data("B", (chip, j), f"B[{chip}.{j}]", chip, line_bytes * len(across))
            # A is transposed, since the kernel is TN
            a = self.plan.load(strip_a, lambda: self.data.a[down.start : down.stop].T.copy())
            b = self.plan.load(strip_b, lambda: self.data.b[:, across.start : across.stop].copy())
            return a, b

        units = list(enumerate(order_blocks(rows, columns)))
        for (number, (i, j)), (a, b) in prefetch(units, load):
            parts = split(rows[i].start, rows[i].stop, -(-len(rows[i]) // PARTS))
            for part, lines in enumerate(parts):
                self._part((chip, number, part), a, b, lines, rows[i].start, columns[j])

    def _part(
        self,
        place: tuple[int, int, int],
        a: Buffer,
        b: Buffer,
        rows: range,
        first: int,
        columns: range,
    ) -> None:
        """Plan a block C(i,j).

        Parameters
        ----------
        place
            Its chip, the number of the chip's work unit, and its number in the unit.
        a, b
            The strips on the card.
        rows, columns
            The block's rows and columns of C.
        first
            The first row of C in strip ``a``.
        """
        chip, _, part = place
        name = ".".join(map(str, place))
        plan = self.plan
        host = self.plan.machine.host
        stored = []
        pieces = split(rows.start, rows.stop, -(-len(rows) // (PIECES if self.five else 1)))
        for p, piece in enumerate(pieces):
            pinned = f"pinned {chip} C{part}.{p}"
            size = float(SIZE * len(piece) * len(columns))
            product = Data("AB", (*place, p), f"AB[{name}.{p}]", chip, size)
            target = card_buffer(chip, f"C{p % 2}") if self.five else pinned
            uses = {f"chip {chip}": 2.0 * len(piece) * len(columns) * self.k / self.rate}
            if not self.five:
                uses |= {TO_HOST: size * host.dma_gb_s / host.remote_store_gb_s, MEMORY: size}
            lines = slice(piece.start - first, piece.stop - first)
            action = partial(self._multiply, a.name, b.name, lines, target)
            stage = "mult1" if self.five else "mult"
            written = Buffer(target, product.name)
            plan.add(f"chip {chip}", stage, product, uses, [a, b], written, action)
            if self.five:
                plan.dma("store1", product, TO_HOST, target, pinned)
            stored.append(Buffer(pinned, product.name))
        size = float(SIZE * len(rows) * len(columns))
        block = Data("C", place, f"C[{name}]", chip, size)

        def merge() -> None:
            products = [plan.arrays[buffer.name] for buffer in stored]
            self.data.add(np.concatenate(products), rows, columns)

        stage = "store2" if self.five else "store"
        passes = 3 if self.data.beta else 2
        plan.copy(stage, block, passes, stored, Buffer(block.name, "done"), merge)

    def _cpu(self, rows: range, blocks: list[range]) -> None:
        """Plan the CPU's rows of C, one task per block of columns."""
        data = self.data
        per_flop = self.plan.machine.host.cpu_bytes_flop

        def multiply(columns: range) -> None:
            product = data.a[rows.start : rows.stop] @ data.b[:, columns.start : columns.stop]
            data.add(data.alpha * product, rows, columns)

        for number, columns in enumerate(blocks):
            flops = 2.0 * len(rows) * len(columns) * self.k
            moved = flops * per_flop
            block = Data("C", (number,), str(number), bytes=moved)
            uses = {CPU: flops, MEMORY: moved}
            written = Buffer(f"C[cpu.{number}]", "done")
            self.plan.add(CPU, "cpu", block, uses, [], written, partial(multiply, columns))

    def _multiply(self, a: str, b: str, lines: slice, target: str) -> None:
        arrays = self.plan.arrays
        arrays[target] = gemm(
            arrays[a][:, lines],
            arrays[b],
            alpha=self.data.alpha,
            trans_a=True,
            kernel=self.kernel,
        )
