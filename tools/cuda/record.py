"""Write the modeled speeds, in Gflop/s, of the products that were measured on a GPU into the record
(``today.record``). Print them beside the measured speeds.

Each product is simulated with the machine code of its loop, from ``loops.json``:

    NUMBA_ENABLE_CUDASIM=1 python -m tools.cuda.record
"""

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cypresskit import today
from cypresskit.today import figures, record
from cypresskit.today.cuda_clock import RESERVED_BYTES, simulate
from cypresskit.today.cuda_code import known
from cypresskit.today.cuda_kernels import as_written, blocked
from cypresskit.today.cuda_report import CudaReport
from cypresskit.today.gpus import H200
from tools.cuda.tiles import tiled

OUTPUT = Path(today.__file__).with_name("record.json")
MAX_SHARED_BYTES = 48 * 1024  # bytes of shared memory that a launch may request


def simulate_product(
    kernel: Any,
    code: str,
    n: int,
    block: tuple[int, int],
    threads: tuple[int, int],
    precision: type = np.float32,
    shared: int = 0,
) -> CudaReport:
    """Simulate a product of n x n matrices.

    Parameters
    ----------
    kernel
        The kernel.
    code
        The name of its machine code in ``loops.json``.
    n
        The size.
    block
        Rows and columns of C per thread.
    threads
        The threads of a workgroup: across, down.
    precision
        The type of the matrices' elements.
    shared
        Bytes of shared memory that a workgroup takes besides its own, to keep others off.
    """
    matrices = [SimpleNamespace(shape=(n, n), dtype=np.dtype(precision)) for _ in range(3)]
    grid = [max(n // (a * b), 1) for a, b in zip(block[::-1], threads)]
    (loop,) = (loop for loop in known() if loop.name == code)
    return simulate(kernel, tuple(grid), threads, *matrices, code=loop, shared=shared)


def simulate_products() -> Iterator[tuple[str, CudaReport, int]]:
    """Simulate the record's products. Yield the name, report and N of each."""
    n = record()["n"]
    for b in (1, 2, 4, 8):
        sides = (b, b), (8, 8)
        yield f"block, {b} x {b}", simulate_product(blocked(b, b), f"block {b} x {b}", n, *sides), n
        kernel = blocked(b, b, np.float64)
        yield (
            f"double, {b} x {b}",
            simulate_product(kernel, f"double {b} x {b}", n, *sides, precision=np.float64),
            n,
        )
    sides = (8, 8), (8, 8)
    kernels = {"NN": blocked(8, 8, transposed=False), "TN, wide": blocked(8, 8, wide=True)}
    for name, kernel in kernels.items():
        code = "NN 8 x 8" if name == "NN" else "wide 8 x 8"
        yield f"layout, {name}", simulate_product(kernel, code, n, *sides), n
    for size in map(int, figures("size")):
        yield f"size, {size}", simulate_product(blocked(8, 8), "block 8 x 8", size, *sides), size
    yield (
        "shared memory, 128 x 128",
        simulate_product(tiled(16), "tile of 128", n, (8, 8), (16, 16)),
        n,
    )
    for warps in map(int, figures("warps")):
        reserved = (H200.lds_bytes // warps - RESERVED_BYTES) // 128 * 128
        kernel = blocked(8, 8)
        report = simulate_product(
            kernel, "block 8 x 8", n, (8, 8), (8, 4), shared=min(reserved, MAX_SHARED_BYTES)
        )
        yield f"warps, {warps}", report, n
    for case in figures("exercise"):
        across, down = map(int, case.split(" x "))
        report = simulate_product(as_written, "as written 8 x 8", n, (8, 8), (across, down))
        yield f"exercise, {case}", report, n


def main() -> None:
    """Write the record. Print each product's modeled and measured speed, and their ratio."""
    made = {name: round(2e-9 * n**3 / report.seconds, 1) for name, report, n in simulate_products()}
    for row in record()["rows"]:
        name = f"{row['experiment']}, {row['case']}"
        row.pop("modeled", None)
        row |= {"modeled": made[name]} if name in made else {}
    OUTPUT.write_text(json.dumps(record(), indent=1) + "\n", encoding="utf-8")
    for name, speed, measured in today.clock_errors():
        print(f"{name:28} {speed:8.0f} {measured:8.0f} {speed / measured:6.2f}")


if __name__ == "__main__":
    main()
