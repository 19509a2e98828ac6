"""Multiply matrices that are larger than the card's memory, in blocks (Matsumoto et al.).

C is cut into square blocks. For each block, a strip of A, a strip of B and the old block of C are
sent to the card, and a kernel call adds the strips' product. The host transposes A as it copies it,
for the faster TN kernel, and pads with zeros to whole blocks. With *overlap*, buffers are doubled,
and the bus works while the chip computes; without, the program waits for each copy. Blocks are
multiples of 128, so that padding is small.

**Which block fits.** The paper names 1792 as the largest block for 1 GB, but not the buffers. Here
a strip is as deep as a texture can be, 16384, so that each block of C is sent once. The card holds
two strips of A, two of B and three blocks of C: one is received, one computed, one sent. That is
8 (4 * 16384 b + 3 b^2) bytes: 1017 MB for b = 1792 and 1095 MB for 1920, of 1074 MB.

Not covered: several chips, and blocks that aren't square.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cypresskit.blas.gemm import check_product, gemm
from cypresskit.devices import HD5870, Device, check_device
from cypresskit.host.checks import check_double, check_type, check_units, check_whole
from cypresskit.host.machine import (
    TO_HOST,
    Buffer,
    Data,
    Machine,
    Plan,
    card_buffer,
    check_card,
    order_blocks,
    prefetch,
)
from cypresskit.host.rates import kernel_rate
from cypresskit.host.tasks import Timeline
from cypresskit.kernels.convention import BYTES

SIZE = BYTES["double"]
MULTIPLE = 128  # blocks are multiples of this many rows and columns (Matsumoto et al.)


def card_bytes(block: int, depth: int = HD5870.texture_side) -> dict[str, float]:
    """Return the bytes of each kind of buffer on the card.

    Parameters
    ----------
    block
        Rows and columns of a block of C.
    depth
        Values of k in a strip; by default the rows of the HD 5870's largest texture.
    """
    block, depth = check_whole(block=block, depth=depth)
    strip = 2.0 * SIZE * block * depth
    return {
        "two strips of A": strip,
        "two of B": strip,
        "three blocks of C": 3.0 * SIZE * block**2,
    }


def largest_block(device: Device = HD5870, depth: int | None = None) -> int:
    """Return the largest multiple of 128 for which a block's buffers fit the card.

    ``depth`` as for `gemm_out_of_core`. Raises ``ValueError`` if not even 128 fits.
    """
    check_device(device)
    depth = strip_depth(device, depth)
    check_card(device, card_bytes(MULTIPLE, depth))
    block = MULTIPLE
    while sum(card_bytes(block + MULTIPLE, depth).values()) <= device.memory_bytes:
        block += MULTIPLE
    return block


def strip_depth(device: Device, depth: int | None) -> int:
    """Return the values of k in a strip. A strip is a texture, so by default they are the rows of
    the largest one. Raises ``ValueError`` for more.
    """
    if depth is None:
        return device.texture_side
    depth = check_whole(depth=depth)
    if depth > device.texture_side:
        raise ValueError(
            f"depth = {depth:,}: a strip is a texture, which has at most {device.texture_side:,}"
            f" rows on the {device.name}"
        )
    return depth


def count_strips(rows: int, columns: int, chunks: int) -> int:
    """Count the strips of A and B that are sent for ``rows`` x ``columns`` blocks, with k in
    ``chunks``.

    A block reuses the strips that it shares with the block before it, as many as two buffers hold.
    If k is in one chunk, the first block of each further row reuses one more.
    """
    blocks = rows * columns
    shared = min(chunks, 2) * (blocks - 1)
    at_turns = rows - 1 if chunks == 1 and columns > 1 else 0
    return 2 * chunks * blocks - shared - at_turns


def choose_block(m: int, n: int, k: int, machine: Machine, depth: int | None = None) -> int:
    """Return the block, a multiple of 128, with the shortest estimated time for (m, k) by (k, n).

    A small block pads less but moves more. The estimate is the larger of two times: the chip's, for
    the flops of all blocks at its peak; and the bus's, for the strips, and for C in both
    directions. Of equal times the larger block is returned.
    """
    m, n, k = check_whole(m=m, n=n, k=k)
    check_type(Machine, machine=machine)
    chunks = -(-k // strip_depth(machine.device, depth))
    peak = machine.device.double_gflops * 1e9

    def estimate(block: int) -> tuple[float, int]:
        rows, columns = -(-m // block), -(-n // block)
        padded = rows * columns * block * block  # elements of C
        strips = count_strips(rows, columns, chunks) / chunks
        moved = SIZE * (strips * block * k + 2 * padded)
        bus = machine.host.pageable_gb_s * 1e9
        return max(2.0 * padded * k / peak, moved / bus), -block

    largest = largest_block(machine.device, depth)
    return min(range(MULTIPLE, largest + 1, MULTIPLE), key=estimate)


def blocked_timeline(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    block: int | None = None,
    overlap: bool = True,
) -> Timeline:
    """Return the timeline of an (m, k) by (k, n) multiply-add on one chip, without data.

    ``block`` and errors as for `gemm_out_of_core`. Without ``overlap`` the program waits for every
    copy and every kernel.
    """
    return _Blocked((m, n, k), machine, block=block, overlap=overlap).plan_all()


def gemm_out_of_core(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    device: Device = HD5870,
    block: int | None = None,
    depth: int | None = None,
) -> tuple[np.ndarray, Timeline]:
    """Compute alpha a b + beta c in blocks that fit the card's memory, with ``dgemm_tn``.

    Parameters
    ----------
    a, b, c
        (m, k), (k, n) and (m, n), of float64.
    block
        Rows and columns of a block; by default the result of `choose_block`.
    depth
        Most values of k in a strip; by default the rows of ``device``'s largest texture.

    Returns
    -------
    result
        The product, (m, n).
    timeline
        Its timeline, which is empty for an empty product.

    Raises
    ------
    ValueError
        For shapes that don't match, and for blocks or strips that don't fit the card.
    TypeError
        For other types.
    """
    precision, (alpha, _), (beta, _), (m, n, k) = check_product(a, b, c, alpha, beta)
    check_double(precision, "out of core")
    data = (a, b, c, beta, partial(gemm, alpha=alpha, trans_a=True))
    machine = Machine(device, use_chips=1)
    if not m * n * k:  # there are no blocks to send
        return gemm(a, b, c, alpha=alpha, beta=beta), Plan(machine, real=True).run(0.0)
    work = _Blocked((m, n, k), machine, block=block, depth=depth, matrices=data)
    timeline = work.plan_all()
    timeline.execute()
    return work.result, timeline


class KernelCall(NamedTuple):
    """A kernel call, which adds the product of two strips to a block of C."""

    unit: int  # number of the block, in the order of computing
    i: int  # the block's position in C
    j: int
    done: int  # calls for this block before this one
    q: int  # number of the strips along k

    @property
    def before(self) -> Data:
        """The block of C before this call, with one prime per call so far."""
        return Data("C", (self.i, self.j), f"C[{self.i},{self.j}]" + "'" * self.done, chip=0)

    @property
    def after(self) -> Data:
        """The block of C after this call, with another prime."""
        return self.before._replace(name=self.before.name + "'")


class _Blocked:
    """A plan of a multiply-add, block by block. With matrices, its tasks also compute."""

    def __init__(
        self,
        size: tuple[int, int, int],
        machine: Machine,
        *,
        block: int | None = None,
        depth: int | None = None,
        overlap: bool = True,
        matrices: tuple[Any, ...] = (),
    ):
        m, n, k = size
        m, n, k = check_whole(m=m, n=n, k=k)
        check_type(Machine, machine=machine)
        depth = strip_depth(machine.device, depth)
        check_type(bool, overlap=overlap)
        if block is None:
            block = choose_block(m, n, k, machine, depth)
        self.block = check_whole(block=block)
        check_card(machine.device, card_bytes(self.block, depth))
        check_units(m, n, self.block, -(-k // depth))
        self.block_bytes = float(SIZE * self.block**2)
        self.m, self.n, self.k = m, n, k
        self.a, self.b, self.c, self.beta, self.product = matrices or (None, None, None, 1.0, None)
        self.result = np.zeros((m, n) if matrices else (0, 0))
        self.plan = Plan(machine, real=bool(matrices), serial=not overlap)
        self.rate = kernel_rate("dgemm_tn", self.block, self.block, min(depth, k), machine.device)
        self.chunks = [slice(low, min(low + depth, k)) for low in range(0, k, depth)]

    def plan_all(self) -> Timeline:
        """Plan all blocks, with the next one's strips loaded during each, and return the timeline.

        Every other block takes k backwards, so that the strip that it shares with the block before
        is still on the card.
        """
        blocks = order_blocks(range(0, self.m, self.block), range(0, self.n, self.block))
        forward = range(len(self.chunks))
        calls = [
            KernelCall(unit, i, j, done, q)
            for unit, (i, j) in enumerate(blocks)
            for done, q in enumerate(reversed(forward) if unit % 2 else forward)
        ]
        for call, (a, b) in prefetch(calls, self._load):
            self._multiply(call, a, b)
            if call.done == len(self.chunks) - 1:
                self._store(call)
        return self.plan.run(2.0 * self.m * self.n * self.k)

    def _load(self, call: KernelCall) -> tuple[Buffer, Buffer]:
        """Load the strips of a call and, for a block's first call, the block of C."""
        unit, i, j, done, q = call
        rows = self._lines(i)
        columns = self._lines(j)
        depth = self.chunks[q]
        size = float(SIZE * self.block * (depth.stop - depth.start))
        strip_a = Data("A", (i, q), f"A[{i},{q}]", 0, size)
        strip_b = Data("B", (q, j), f"B[{q},{j}]", 0, size)
        a = self.plan.load(strip_a, lambda: self._take(self.a, rows, depth).T.copy())
        b = self.plan.load(strip_b, lambda: self._take(self.b, depth, columns))
        if done == 0 and self.beta:
            block = call.before._replace(bytes=self.block_bytes)
            pinned, card = f"pinned 0 C{unit % 2}", self._card_buffer(call)
            self.plan.send(block, pinned, card, lambda: self._take(self.c, rows, columns))
        return a, b

    def _card_buffer(self, call: KernelCall) -> str:
        """Return the card's buffer for a call's block of C; there are three of them."""
        return card_buffer(0, f"C{call.unit % 3}")

    def _multiply(self, call: KernelCall, a: Buffer, b: Buffer) -> None:
        """Plan the kernel call."""
        depth = self.chunks[call.q]
        card = self._card_buffer(call)
        arrays = self.plan.arrays
        beta = 1.0 if call.done else self.beta

        def action() -> None:
            arrays[card] = self.product(
                arrays[a.name], arrays[b.name], arrays[card] if beta else None, beta=beta
            )

        flops = 2.0 * self.block**2 * (depth.stop - depth.start)
        uses = {"chip 0": flops / self.rate}
        reads = [a, b, Buffer(card, call.before.name)] if beta else [a, b]
        written = Buffer(card, call.after.name)
        self.plan.add("chip 0", "mult", call.after, uses, reads, written, action)

    def _store(self, call: KernelCall) -> None:
        """Plan a finished block's return: by DMA into pinned memory, then without its padding into
        the result.
        """
        pinned = f"pinned 0 out{call.unit % 2}"
        block = call.after._replace(bytes=self.block_bytes)

        def action() -> None:
            target = self.result[self._lines(call.i), self._lines(call.j)]
            target[:] = self.plan.arrays[pinned][: target.shape[0], : target.shape[1]]

        self.plan.dma("store1", block, TO_HOST, self._card_buffer(call), pinned)
        result = Buffer(f"result[{call.i},{call.j}]", block.name)
        self.plan.copy("store2", block, 2, [Buffer(pinned, block.name)], result, action)

    def _lines(self, block: int) -> slice:
        return slice(block * self.block, (block + 1) * self.block)

    def _take(self, matrix: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """Return a part of a matrix, with zeros beyond the matrix's edges."""
        part = matrix[rows, columns]
        padded = np.zeros((rows.stop - rows.start, columns.stop - columns.start), matrix.dtype)
        padded[: part.shape[0], : part.shape[1]] = part
        return padded
