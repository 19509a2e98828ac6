"""Write the modeled speeds, in Gflop/s, of the products that were measured on a GPU to the record
(``today.record``), and the code of the workbook's own kernels to ``code.json``. It needs the extra
`cuda`, and no GPU:

    python -m tools.cuda.record
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from cypresskit import today
from cypresskit.today import figures, record, stored_code
from cypresskit.today.cuda_clock import RESERVED_BYTES, simulate
from cypresskit.today.cuda_compile import code_of
from cypresskit.today.cuda_kernels import as_written, blocked
from cypresskit.today.cuda_report import CudaReport
from cypresskit.today.gpus import H200
from tools.cuda.tiles import tiled

FOLDER = Path(today.__file__).parent
MAX_SHARED_BYTES = 48 * 1024  # bytes of shared memory that a launch may request


def simulate_product(
    kernel: Any,
    n: int,
    block: tuple[int, int],
    threads: tuple[int, int],
    precision: type = np.float32,
    shared: int = 0,
) -> CudaReport:
    """Simulate a product of n x n matrices.

    Parameters
    ----------
    kernel, n
        The kernel, and the size.
    block
        Rows and columns of C per thread.
    threads
        The threads of a block: across, down.
    precision
        The type of the matrices' elements.
    shared
        Bytes of shared memory that a block takes besides its own, to keep others off.
    """
    matrices = [SimpleNamespace(shape=(n, n), dtype=np.dtype(precision)) for _ in range(3)]
    grid = [max(n // (a * b), 1) for a, b in zip(block[::-1], threads)]
    return simulate(kernel, tuple(grid), threads, *matrices, shared=shared)


def simulate_products() -> Iterator[tuple[str, CudaReport, int]]:
    """Simulate the record's products. Yield the name, report and N of each."""
    n = record()["n"]
    for b in (1, 2, 4, 8):
        sides = (b, b), (8, 8)
        yield f"block, {b} x {b}", simulate_product(blocked(b, b), n, *sides), n
        kernel = blocked(b, b, np.float64)
        yield f"double, {b} x {b}", simulate_product(kernel, n, *sides, np.float64), n
    sides = (8, 8), (8, 8)
    kernels = {"NN": blocked(8, 8, transposed=False), "TN, wide": blocked(8, 8, wide=True)}
    for name, kernel in kernels.items():
        yield f"layout, {name}", simulate_product(kernel, n, *sides), n
    for size in map(int, figures("size")):
        yield f"size, {size}", simulate_product(blocked(8, 8), size, *sides), size
    yield "shared memory, 128 x 128", simulate_product(tiled(16), n, (8, 8), (16, 16)), n
    for warps in map(int, figures("warps")):
        reserved = (H200.lds_bytes // warps - RESERVED_BYTES) // 128 * 128
        shared = min(reserved, MAX_SHARED_BYTES)
        yield (
            f"warps, {warps}",
            simulate_product(blocked(8, 8), n, (8, 8), (8, 4), shared=shared),
            n,
        )
    for case in figures("exercise"):
        across, down = map(int, case.split(" x "))
        yield f"exercise, {case}", simulate_product(as_written, n, (8, 8), (across, down)), n


def write_code() -> None:
    """Write the code of the workbook's own kernels, with lines by ``stored_code.lines_of``."""
    matrices = (SimpleNamespace(shape=(64, 64), dtype=np.dtype(np.float32)),) * 3
    kernels = as_written, blocked(8, 8), blocked(8, 8, wide=True), blocked(8, 8, transposed=False)
    found = {}
    for kernel in kernels:
        function = kernel.py_func
        code = code_of(function, {}, matrices)
        text = stored_code.renumbered(code.text, stored_code.lines_of(function).index)
        found[stored_code.key_of(function, matrices)] = asdict(code) | {"text": text}
    (FOLDER / "code.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Write the code and the record. Print each product's modeled and measured speed."""
    write_code()
    made = {name: round(2e-9 * n**3 / report.seconds, 1) for name, report, n in simulate_products()}
    for row in record()["rows"]:
        name = f"{row['experiment']}, {row['case']}"
        row.pop("modeled", None)
        row |= {"modeled": made[name]} if name in made else {}
    text = json.dumps(record(), indent=1) + "\n"
    (FOLDER / "record.json").write_text(text, encoding="utf-8")
    for name, speed, measured in today.clock_errors():
        print(f"{name:28} {speed:8.0f} {measured:8.0f} {speed / measured:6.2f}")


if __name__ == "__main__":
    main()
