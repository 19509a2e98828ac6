"""Multiply-add of matrices larger than the card, in blocks (Matsumoto et al.).

C is cut into square blocks. For each, a strip of A and a strip of B are brought to the card, C's block too, and a
kernel call adds their product. The host copies A transposed, so that the faster TN kernel serves, and pads with zeros
to whole blocks. With *overlap* every buffer is there twice and the bus works while the chip does; without, the program
waits for each copy. The block is chosen in multiples of 128, so that little is padded.

**Which block fits.** Their text names 1792 as the largest that 1 GB allows, but not the buffers. Here a strip is as
deep as a texture can be, 16384, so that C makes the trip once; A's and B's strips are there twice, C's blocks three
times: one arrives, one is computed, one leaves. That is 8 (4 * 16384 b + 3 b^2) bytes: 1017 MB for b = 1792 and
1095 MB for 1920, of 1074 MB.

Left out: more than one chip, and blocks that aren't square.
"""

from collections.abc import Callable

import numpy as np

from cypresskit.blas import gemm
from cypresskit.devices import HD5870, Device
from cypresskit.host.machine import TO_HOST, Machine, Plan, Strip, check_card, check_sizes, corner_turn
from cypresskit.host.rates import kernel_rate
from cypresskit.host.timeline import Task, Timeline
from cypresskit.kernels import KERNELS, Kernel

MULTIPLE = 128  # blocks are multiples of this many rows and columns (Matsumoto et al.)
DEPTH = 16384  # most rows of a texture, and so the most of k that a strip can hold


def card_bytes(block: int, depth: int = DEPTH, itemsize: int = 8) -> dict[str, float]:
    """The buffers on the card for square blocks and strips ``depth`` deep, in bytes."""
    strip = 2.0 * itemsize * block * depth
    return {"two strips of A": strip, "two of B": strip, "three blocks of C": 3.0 * itemsize * block**2}


def largest_block(device: Device = HD5870, depth: int = DEPTH, itemsize: int = 8) -> int:
    """The largest multiple of 128 whose buffers fit the card; ``ValueError`` if not even 128 does."""
    check_card(device, card_bytes(MULTIPLE, depth, itemsize))
    block = MULTIPLE
    while sum(card_bytes(block + MULTIPLE, depth, itemsize).values()) <= device.memory_bytes:
        block += MULTIPLE
    return block


def choose_block(m: int, n: int, k: int, machine: Machine, depth: int = DEPTH, itemsize: int = 8) -> int:
    """The multiple of 128 that promises the shortest time for (m, k) by (k, n); of equal ones the largest.

    A small block pads less but moves more, so the estimate is the larger of two times: all blocks' flops at the chip's
    peak, and a strip and C both ways for each block by DMA.
    """
    peak = machine.device.peak_gflops("double" if itemsize == 8 else "single") * 1e9

    def estimate(block: int) -> tuple[float, int]:
        count = -(-m // block) * -(-n // block)
        moved = itemsize * count * (block * k + 2 * block * block)
        return max(2.0 * count * block * block * k / peak, moved / (machine.host.dma_gb_s * 1e9)), -block

    return min(range(MULTIPLE, largest_block(machine.device, depth, itemsize) + 1, MULTIPLE), key=estimate)


def blocked_time(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    kernel: str = "dgemm_tn",
    block: int = 0,
    overlap: bool = True,
) -> Timeline:
    """The multiply-add of (m, k) by (k, n) on one chip, in time alone; ``block`` and errors as for `gemm_out_of_core`.
    Without ``overlap`` the program waits for every copy and every kernel."""
    return _Blocked(m, n, k, machine, KERNELS[kernel], block, DEPTH, overlap).plan()


def gemm_out_of_core(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    kernel: str | Kernel | None = None,
    device: Device = HD5870,
    block: int = 0,
    depth: int = DEPTH,
) -> tuple[np.ndarray, Timeline]:
    """alpha a b + beta c in blocks through the card's memory, really computed, and the timeline of it.

    ``a`` (m, k), ``b`` (k, n), ``c`` (m, n) of one type, float32 or float64, at least 1 in every size. ``kernel``: a TN
    kernel; by default the catalogue's for the type. ``block``: rows and columns of a block, 0 for `choose_block`'s;
    ``depth``: most of k in a strip. Raises ``ValueError`` for shapes that don't match
    and blocks that don't fit the card.
    """
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0]:
        raise ValueError(f"a has shape {a.shape} and b {b.shape}: expected (m, k) and (k, n)")
    (m, k), n = a.shape, b.shape[1]
    if beta != 0 and (c is None or c.shape != (m, n)):
        raise ValueError(f"beta is {beta:g}, so c has to be an array of shape {(m, n)}")
    chosen = KERNELS[kernel] if isinstance(kernel, str) else kernel or tn_kernel(a.dtype)
    work = _Blocked(m, n, k, Machine(device, use_chips=1), chosen, block, depth, True, (a, b, c, alpha, beta))
    timeline = work.plan()
    timeline.execute()
    return work.result, timeline


def tn_kernel(dtype: np.dtype) -> Kernel:
    """The catalogue's first TN kernel for ``dtype``."""
    for kernel in KERNELS.values():
        if kernel.dtype == dtype and kernel.trans_a and not kernel.trans_b:
            return kernel
    raise TypeError(f"no TN kernel of the catalogue computes in {dtype}")


class _Blocked:
    """One multiply-add: its tasks block by block and, where there are matrices, what they do to the arrays."""

    def __init__(
        self, m, n, k, machine: Machine, kernel: Kernel, block: int, depth: int, overlap: bool, matrices: tuple = ()
    ):
        check_sizes(m=m, n=n, k=k, depth=depth)
        self.size = kernel.dtype.itemsize
        self.block = block or choose_block(m, n, k, machine, depth, self.size)
        check_sizes(block=self.block)
        check_card(machine.device, card_bytes(self.block, depth, self.size))
        if not kernel.trans_a or kernel.trans_b:
            raise ValueError(f"the host transposes A for a TN kernel, and {kernel.name} is not one")
        self.m, self.n, self.k, self.kernel, self.device = m, n, k, kernel, machine.device
        self.real = bool(matrices)
        self.a, self.b, self.c, self.alpha, self.beta = matrices or (None, None, None, 1.0, 1.0)
        self.result = np.zeros((m, n) if self.real else (0, 0), kernel.dtype)
        self.tasks = Plan(machine, serial=not overlap)
        self.rate = kernel_rate(kernel.name, self.block, self.block, min(depth, k), machine.device)
        self.chunks = [range(low, min(low + depth, k)) for low in range(0, k, depth)]

    def plan(self) -> Timeline:
        """All blocks, each with what the next one needs arriving meanwhile."""
        blocks = corner_turn(range(0, self.m, self.block), range(0, self.n, self.block))
        steps = [(unit, i, j, q) for unit, (i, j) in enumerate(blocks) for q in range(len(self.chunks))]
        ahead = self._arrive(steps[0], "", "")
        for number, step in enumerate(steps):
            a, b = ahead
            if number + 1 < len(steps):
                ahead = self._arrive(steps[number + 1], a.content, b.content)
            self._multiply(step, a, b)
            if step[3] == len(self.chunks) - 1:
                self._leave(step)
        return self.tasks.run(2.0 * self.m * self.n * self.k)

    def _arrive(self, step: tuple[int, int, int, int], keep_a: str, keep_b: str) -> tuple[Strip, Strip]:
        unit, i, j, q = step
        rows, columns, depth = self._lines(i), self._lines(j), self.chunks[q]
        size = float(self.size * self.block * len(depth))
        take = self._take if self.real else lambda *_: None
        a = self.tasks.load(0, "A", f"A[{i},{q}]", size, keep_a, take("a", rows, depth, True))
        b = self.tasks.load(0, "B", f"B[{q},{j}]", size, keep_b, take("b", depth, columns, False))
        if q == 0 and self.beta:
            size, fetch = float(self.size * self.block**2), take("c", rows, columns, False)
            self.tasks.send(0, f"C[{i},{j}]", f"pinned C{unit % 2}", f"card C{unit % 3}", size, fetch)
        return a, b

    def _multiply(self, step: tuple[int, int, int, int], a: Strip, b: Strip) -> None:
        unit, i, j, q = step
        card, arrays, beta = f"card C{unit % 3}", self.tasks.arrays, 1.0 if q else self.beta

        def action() -> None:
            c = arrays[card] if beta else None
            options = {"alpha": self.alpha, "beta": beta, "trans_a": True, "kernel": self.kernel, "device": self.device}
            arrays[card] = gemm(arrays[a.buffer], arrays[b.buffer], c, **options)

        reads = dict([a, b])
        if beta:
            reads[card] = f"C[{i},{j}]" + "'" * q
        seconds = 2.0 * self.block**2 * len(self.chunks[q]) / self.rate
        self.tasks.tasks.append(
            Task(
                f"mult {unit}.{q}",
                "mult",
                "chip 0",
                {"chip 0": seconds},
                reads,
                {card: f"C[{i},{j}]" + "'" * (q + 1)},
                action=action if self.real else None,
            )
        )

    def _leave(self, step: tuple[int, int, int, int]) -> None:
        """The finished block by DMA into pinned memory, and from there into the result, without the padding."""
        unit, i, j, q = step
        card, pinned, content = f"card C{unit % 3}", f"pinned out{unit % 2}", f"C[{i},{j}]" + "'" * (q + 1)

        def action() -> None:
            rows, columns = self._lines(i), self._lines(j)
            target = self.result[rows.start : rows.stop, columns.start : columns.stop]
            target[:] = self.tasks.arrays[pinned][: target.shape[0], : target.shape[1]]

        size, move = float(self.size * self.block**2), self.tasks.move(card, pinned)
        here, there, done = {card: content}, {pinned: content}, {f"result[{i},{j}]": content}
        self.tasks.dma(0, f"store1 {unit}", "store1", size, TO_HOST, here, there, move if self.real else None)
        self.tasks.copy(0, f"store2 {unit}", "store2", size, 2, there, done, action if self.real else None)

    def _lines(self, block: int) -> range:
        return range(block * self.block, (block + 1) * self.block)

    def _take(self, name: str, rows: range, columns: range, transpose: bool) -> Callable[[], np.ndarray]:
        """A function that copies a part of ``self.<name>``, with zeros for what lies outside."""
        shape = len(rows), len(columns)

        def fetch() -> np.ndarray:
            part = getattr(self, name)[rows.start : rows.stop, columns.start : columns.stop]
            padded = np.zeros(shape, part.dtype)
            padded[: part.shape[0], : part.shape[1]] = part
            return padded.T.copy() if transpose else padded

        return fetch
