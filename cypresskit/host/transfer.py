"""Compute the time of a GEMM with its transfers, by Nakasato's model (section 4.4).

Three n x n matrices are sent to the card, the kernel runs, and one matrix is sent back:

    T = 4 S n^2 / B + 2 n^3 / F

with S bytes per number, B byte/s of the bus and F flop/s of the kernel. ``round_trip_timeline``
models the same as five tasks.

Not covered: overlap (see `blocked` and `pipeline`).
"""

from functools import partial

import numpy as np

from cypresskit.blas.gemm import gemm
from cypresskit.devices import check_precision
from cypresskit.host.checks import check_positive, check_type, check_whole
from cypresskit.host.machine import TO_CARD, TO_HOST
from cypresskit.host.pipeline import Matrices
from cypresskit.host.tasks import Task, Timeline, run_tasks
from cypresskit.kernels.convention import BYTES


def transfer_seconds(n: int, bandwidth: float) -> float:
    """Return the seconds to move four n x n matrices of doubles at ``bandwidth`` byte/s (equation
    4): 32 n^2 / B.
    """
    n = check_whole(n=n)
    bandwidth = check_positive(bandwidth=bandwidth)
    return 4 * BYTES["double"] * n**2 / bandwidth


def kernel_seconds(n: int, rate: float) -> float:
    """Return the seconds of a kernel at ``rate`` flop/s (equation 5): 2 n^3 / F."""
    n = check_whole(n=n)
    rate = check_positive(rate=rate)
    return 2 * n**3 / rate


def rate_with_transfers(n: int, bandwidth: float, rate: float) -> float:
    """Return the flop/s with transfers, 2 n^3 / T. At ``n_balance`` it is half of ``rate``."""
    n = check_whole(n=n)
    seconds = transfer_seconds(n, bandwidth) + kernel_seconds(n, rate)
    return 2 * n**3 / seconds


def n_balance(bandwidth: float, rate: float, precision: str = "double") -> float:
    """Return the n at which transfers and kernel take equally long: 2 S F / B, which is 16 F / B in
    double precision.
    """
    bandwidth, rate = check_positive(bandwidth=bandwidth, rate=rate)
    check_precision(precision)
    return 2 * BYTES[precision] * rate / bandwidth


def round_trip_timeline(
    n: int, bandwidth: float, rate: float, matrices: Matrices | None = None
) -> Timeline:
    """Return the timeline of the same GEMM: send A, B and C, run the kernel, fetch C, one after
    another. Its ``execute`` does the same with ``matrices``, which are n x n.
    """
    n = check_whole(n=n)
    bandwidth, rate = check_positive(bandwidth=bandwidth, rate=rate)
    if matrices is not None:
        check_type(Matrices, matrices=matrices)
        if set(matrices.size) != {n}:
            m, columns, k = matrices.size
            raise ValueError(f"n is {n}, but the matrices are {m} x {k} and {k} x {columns}")
    size = float(BYTES["double"] * n**2)
    card: dict[str, np.ndarray] = {}  # what its memory holds
    resources = {TO_CARD: bandwidth, TO_HOST: bandwidth, "chip 0": rate}

    def send(matrix: str) -> None:
        card[matrix] = getattr(matrices, matrix.lower()).copy()

    def multiply() -> None:
        assert matrices is not None
        a, b, c = (card[matrix] for matrix in "ABC")
        card["C"] = gemm(a, b, c, alpha=matrices.alpha, beta=matrices.beta)

    def fetch(matrix: str) -> None:
        assert matrices is not None
        matrices.result[...] = card[matrix]

    def move(
        verb: str, matrix: str, bus: str, reads: dict[str, str], writes: dict[str, str]
    ) -> Task:
        action = partial({"send": send, "fetch": fetch}[verb], matrix)
        return Task(
            f"{verb} {matrix}",
            verb,
            "program",
            {bus: size},
            reads,
            writes,
            bytes=size,
            action=action if matrices else None,
            matrix=matrix,
            chip=0,
            label=matrix,
        )

    product = {"card C": "AB + C"}
    kernel = Task(
        "kernel",
        "mult",
        "program",
        {"chip 0": 2.0 * n**3},
        {f"card {matrix}": matrix for matrix in "ABC"},
        product,
        action=multiply if matrices else None,
        matrix="C",
        chip=0,
        label="kernel",
    )
    return run_tasks(
        [
            *(move("send", m, TO_CARD, {m: m}, {f"card {m}": m}) for m in "ABC"),
            kernel,
            move("fetch", "C", TO_HOST, product, {"result": "AB + C"}),
        ],
        resources,
        2.0 * n**3,
    )
