"""Multiply-add of matrices larger than the card, in blocks (Matsumoto et al.).

C is cut into square blocks. For each, a strip of A and a strip of B are brought to the card, C's
block too, and a kernel call adds their product. The host copies A transposed, so that the faster TN
kernel serves, and pads with zeros to whole blocks. With *overlap* every buffer is there twice and
the bus works while the chip does; without, the program waits for each copy. The block is chosen in
multiples of 128, so that little is padded.

**Which block fits.** Their text names 1792 as the largest that 1 GB allows, but not the buffers.
Here a strip is as deep as a texture can be, 16384, so that C makes the trip once; A's and B's
strips are there twice, C's blocks three times: one arrives, one is computed, one leaves. That is 8
(4 * 16384 b + 3 b^2) bytes: 1017 MB for b = 1792 and 1095 MB for 1920, of 1074 MB.

Left out: more than one chip, and blocks that aren't square.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from cypresskit.blas.gemm import check_launching, checked, gemm, plain
from cypresskit.devices import HD5870, Device, check_device
from cypresskit.host.checks import check_precision, check_type, check_units, check_whole
from cypresskit.host.machine import (
    TO_HOST,
    Data,
    Machine,
    Plan,
    Strip,
    ahead,
    check_card,
    corner_turn,
)
from cypresskit.host.rates import kernel_rate, tn_kernel
from cypresskit.host.tasks import Timeline
from cypresskit.kernels import Kernel

MULTIPLE = 128  # blocks are multiples of this many rows and columns (Matsumoto et al.)


def card_bytes(block: int, depth: int = HD5870.texture_side, itemsize: int = 8) -> dict[str, float]:
    """Bytes of each kind of buffer on the card, for square blocks and strips ``depth`` deep; by
    default the rows of the HD 5870's largest texture.
    """
    check_whole(block=block, depth=depth, itemsize=itemsize)
    strip = 2.0 * itemsize * block * depth
    return {
        "two strips of A": strip,
        "two of B": strip,
        "three blocks of C": 3.0 * itemsize * block**2,
    }


def largest_block(device: Device = HD5870, depth: int | None = None, itemsize: int = 8) -> int:
    """The largest multiple of 128 for which a block's buffers fit the card; ``depth`` as for
    `gemm_out_of_core`. Raises ``ValueError`` if not even 128 does.
    """
    check_device(device)
    depth = strip_depth(device, depth)
    check_card(device, card_bytes(MULTIPLE, depth, itemsize))
    block = MULTIPLE
    while sum(card_bytes(block + MULTIPLE, depth, itemsize).values()) <= device.memory_bytes:
        block += MULTIPLE
    return block


def strip_depth(device: Device, depth: int | None) -> int:
    """The steps of k in a strip: ``depth`` or, for None, the rows of the largest texture, since a
    strip is one. Raises ``ValueError`` for more.
    """
    if depth is None:
        return device.texture_side
    check_whole(depth=depth)
    if depth > device.texture_side:
        most = (
            f"a strip is a texture, which has at most {device.texture_side:,} rows on the"
            f" {device.name}"
        )
        raise ValueError(f"depth = {depth:,}: {most}")
    return depth


def strips_sent(rows: int, columns: int, chunks: int) -> int:
    """Count the strips of A and B that are sent for so many rows and columns of blocks, with k in
    ``chunks``. A block keeps what the one before it shares with it, as far as two buffers hold it;
    at the end of a row the next row finds one strip more on the card, if k is in one chunk.
    """
    blocks = rows * columns
    shared = min(chunks, 2) * (blocks - 1)
    at_turns = rows - 1 if chunks == 1 and columns > 1 else 0
    return 2 * chunks * blocks - shared - at_turns


def choose_block(
    m: int, n: int, k: int, machine: Machine, depth: int | None = None, itemsize: int = 8
) -> int:
    """The block, a multiple of 128, with the shortest estimated time for (m, k) by (k, n); of
    equals the largest.

    A small block pads less but moves more. The estimate is the larger of two times: the flops of
    all blocks at the chip's peak, and the copies over the bus, of the strips that have to be sent
    and of C both ways for each block.
    """
    check_whole(m=m, n=n, k=k)
    check_type(Machine, machine=machine)
    chunks = -(-k // strip_depth(machine.device, depth))
    peak = machine.device.peak_gflops("double" if itemsize == 8 else "single") * 1e9

    def estimate(block: int) -> tuple[float, int]:
        rows, columns = -(-m // block), -(-n // block)
        count = rows * columns
        strips = strips_sent(rows, columns, chunks) / chunks
        moved = itemsize * (strips * block * k + 2 * count * block * block)
        return (
            max(2.0 * count * block * block * k / peak, moved / (machine.host.pageable_gb_s * 1e9)),
            -block,
        )

    return min(
        range(MULTIPLE, largest_block(machine.device, depth, itemsize) + 1, MULTIPLE), key=estimate
    )


def blocked_timeline(
    m: int,
    n: int,
    k: int,
    machine: Machine,
    *,
    kernel: str | Kernel = "dgemm_tn",
    block: int | None = None,
    overlap: bool = True,
) -> Timeline:
    """The timeline of the multiply-add of (m, k) by (k, n) on one chip, without data; ``block`` and
    errors as for `gemm_out_of_core`. Without ``overlap`` the program waits for every copy and every
    kernel.
    """
    return _Blocked((m, n, k), machine, kernel, block=block, overlap=overlap).plan_all()


def gemm_out_of_core(
    a: np.ndarray,
    b: np.ndarray,
    c: np.ndarray | None = None,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    trans_a: bool = False,
    trans_b: bool = False,
    kernel: str | Kernel | None = None,
    device: Device = HD5870,
    block: int | None = None,
    depth: int | None = None,
    **launching: Any,
) -> tuple[np.ndarray, Timeline]:
    """(alpha op(a) op(b) + beta c, its timeline), really computed, in blocks that go through the
    card's memory.

    ``a`` (m, k), ``b`` (k, n), ``c`` (m, n) of one type, float32 or float64, no size 0; with
    ``trans_a``, ``a`` is (k, m), with ``trans_b``, ``b`` is (n, k). ``kernel``: a TN kernel, by
    default ``sgemm_tn`` or ``dgemm_tn``. ``block``: rows and columns of a block, by default what
    `choose_block` finds. ``depth``: the most steps of k in a strip, by default the rows of
    ``device``'s largest texture. Other keywords go to ``ck.launch``. Raises ``ValueError`` for
    shapes that don't match and for blocks or strips that don't fit the card, ``TypeError`` for
    other types.
    """
    check_launching(gemm_out_of_core, launching)
    a, b, c = map(plain, (a, b, c))
    precision, (alpha, _), (beta, _), (m, n, k) = checked(a, b, c, alpha, beta, trans_a, trans_b)
    check_precision(precision, "out of core")
    usual = "sgemm_tn" if precision == "single" else "dgemm_tn"
    chosen = tn_kernel(usual if kernel is None else kernel)
    if chosen.precision != precision:
        raise TypeError(
            f"the matrices are {precision}, and the kernel {chosen.name} computes in"
            f" {chosen.precision}"
        )
    product = partial(gemm, alpha=alpha, trans_a=True, kernel=chosen, device=device, **launching)
    data = (a.T if trans_a else a, b.T if trans_b else b, c, beta, product)
    machine = Machine(device, use_chips=1)
    work = _Blocked((m, n, k), machine, chosen, block=block, depth=depth, matrices=data)
    timeline = work.plan_all()
    timeline.execute()
    return work.result, timeline


class KernelCall(NamedTuple):
    """A kernel call: it adds the product of the strips with number ``q`` to block (i, j) of C.
    ``unit`` numbers the blocks as computed; ``done`` is how many calls for this block went
    before.
    """

    unit: int
    i: int
    j: int
    done: int
    q: int

    @property
    def before(self) -> Data:
        """The block of C before this call, with a prime for each call so far."""
        return Data("C", (self.i, self.j), f"C[{self.i},{self.j}]" + "'" * self.done)

    @property
    def after(self) -> Data:
        """The block of C after this call, with another prime."""
        return self.before._replace(name=self.before.name + "'")


class _Blocked:
    """A multiply-add as a plan of tasks, block by block; with matrices, the tasks also compute."""

    def __init__(
        self,
        size: tuple[int, int, int],
        machine: Machine,
        kernel: str | Kernel,
        *,
        block: int | None = None,
        depth: int | None = None,
        overlap: bool = True,
        matrices: tuple[Any, ...] = (),
    ):
        m, n, k = size
        check_whole(m=m, n=n, k=k)
        check_type(Machine, machine=machine)
        depth = strip_depth(machine.device, depth)
        check_type(bool, overlap=overlap)
        kernel = tn_kernel(kernel)
        self.size = kernel.dtype.itemsize
        self.block = choose_block(m, n, k, machine, depth, self.size) if block is None else block
        check_card(machine.device, card_bytes(self.block, depth, self.size))
        check_units(m, n, self.block, -(-k // depth))
        self.m, self.n, self.k = m, n, k
        self.a, self.b, self.c, self.beta, self.product = matrices or (None, None, None, 1.0, None)
        self.result = np.zeros((m, n) if matrices else (0, 0), kernel.dtype)
        self.plan = Plan(machine, real=bool(matrices), serial=not overlap)
        self.rate = kernel_rate(kernel, self.block, self.block, min(depth, k), machine.device)
        self.chunks = [slice(low, min(low + depth, k)) for low in range(0, k, depth)]

    def plan_all(self) -> Timeline:
        """Plan all blocks, loading the next one's strips during each, and time the plan. Every
        other block takes k backwards, so that the strip of A or B shared with the block before is
        still on the card.
        """
        blocks = corner_turn(range(0, self.m, self.block), range(0, self.n, self.block))
        forth = range(len(self.chunks))
        calls = [
            KernelCall(unit, i, j, done, q)
            for unit, (i, j) in enumerate(blocks)
            for done, q in enumerate(reversed(forth) if unit % 2 else forth)
        ]
        for call, (a, b) in ahead(calls, self._arrive):
            self._multiply(call, a, b)
            if call.done == len(self.chunks) - 1:
                self._leave(call)
        return self.plan.run(2.0 * self.m * self.n * self.k)

    def _arrive(self, call: KernelCall) -> tuple[Strip, Strip]:
        """Load the strips of a call and, for a block's first one, the block of C."""
        unit, i, j, done, q = call
        rows = self._lines(i)
        columns = self._lines(j)
        depth = self.chunks[q]
        size = float(self.size * self.block * (depth.stop - depth.start))
        of_a, of_b = Data("A", (i, q), f"A[{i},{q}]"), Data("B", (q, j), f"B[{q},{j}]")
        a = self.plan.load(0, of_a, size, lambda: self._take(self.a, rows, depth).T.copy())
        b = self.plan.load(0, of_b, size, lambda: self._take(self.b, depth, columns))
        if done == 0 and self.beta:
            buffers = f"pinned 0 C{unit % 2}", self._card(call)
            size = float(self.size * self.block**2)
            self.plan.send(0, call.before, size, buffers, lambda: self._take(self.c, rows, columns))
        return a, b

    def _card(self, call: KernelCall) -> str:
        """The card's buffer for a call's block of C: every third block has the same."""
        return self.plan.card_buffer(0, f"C{call.unit % 3}")

    def _multiply(self, call: KernelCall, a: Strip, b: Strip) -> None:
        """Plan the kernel call."""
        depth = self.chunks[call.q]
        card = self._card(call)
        arrays = self.plan.arrays
        beta = 1.0 if call.done else self.beta

        def action() -> None:
            arrays[card] = self.product(
                arrays[a.buffer], arrays[b.buffer], arrays[card] if beta else None, beta=beta
            )

        flops = 2.0 * self.block**2 * (depth.stop - depth.start)
        self.plan.add(
            "chip 0",
            "mult",
            call.after,
            uses={"chip 0": flops / self.rate},
            reads=dict([a, b, (card, call.before.name)] if beta else [a, b]),
            writes={card: call.after.name},
            action=action,
            chip=0,
        )

    def _leave(self, call: KernelCall) -> None:
        """Plan a finished block's way back: by DMA into pinned memory, then without its padding
        into the result.
        """
        pinned = f"pinned 0 out{call.unit % 2}"
        block = call.after
        size = float(self.size * self.block**2)

        def action() -> None:
            target = self.result[self._lines(call.i), self._lines(call.j)]
            target[:] = self.plan.arrays[pinned][: target.shape[0], : target.shape[1]]

        self.plan.dma(
            0, "store1", block, size=size, way=TO_HOST, source=self._card(call), target=pinned
        )
        self.plan.copy(
            0,
            "store2",
            block,
            size=size,
            passes=2,
            reads={pinned: block.name},
            writes={f"result[{call.i},{call.j}]": block.name},
            action=action,
        )

    def _lines(self, block: int) -> slice:
        return slice(block * self.block, (block + 1) * self.block)

    def _take(self, matrix: np.ndarray, rows: slice, columns: slice) -> np.ndarray:
        """A part of a matrix, with zeros beyond its edges."""
        part = matrix[rows, columns]
        padded = np.zeros((rows.stop - rows.start, columns.stop - columns.start), matrix.dtype)
        padded[: part.shape[0], : part.shape[1]] = part
        return padded
