"""Make ``loops.json``, the machine code of CUDA kernels, without a GPU.

    python -m tools.cuda.loops

It needs an environment of its own with numba-cuda[cu13], nvidia-cuda-nvcc and nvidia-cuda-nvdisasm
beside this package. Each kernel is compiled for an H200, disassembled, and its loop read as
``cypresskit.today.cuda_code`` says.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np

from cypresskit.today import cuda_kernels
from cypresskit.today.cuda_code import Loop, described
from cypresskit.today.cuda_count import totals_of
from cypresskit.today.cuda_events import GridLaunch
from cypresskit.today.cuda_kernels import blocked, cuda
from cypresskit.today.cuda_parts import parts_of
from cypresskit.today.cuda_values import FMA
from tools.cuda.listing import read_listing
from tools.cuda.tiles import tiled

INTO = Path(cuda_kernels.__file__).with_name("loops.json")
SIDES = 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 16
FEW = 1, 2, 4, 8
MOST = 64  # of C for a thread


def ranged(rows: int, columns: int, kept: bool, dtype: type = np.float32) -> Any:
    """C = A^T B as a reader writes it, with `range` over k; operands ``kept`` in local arrays."""

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        block = cuda.local.array((rows, columns), dtype)
        left = cuda.local.array(rows, dtype)
        right = cuda.local.array(columns, dtype)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        for k in range(b.shape[0]):
            if kept:
                for i in range(rows):
                    left[i] = a[k, rows * y + i]
                for j in range(columns):
                    right[j] = b[k, columns * x + j]
            for i in range(rows):
                for j in range(columns):
                    if kept:
                        block[i, j] += left[i] * right[j]
                    else:
                        block[i, j] += a[k, rows * y + i] * b[k, columns * x + j]
        for i in range(rows):
            for j in range(columns):
                c[rows * y + i, columns * x + j] = block[i, j]

    return kernel


def written(rows: int, columns: int, turned: bool) -> Any:
    """C = A B, or with B ``turned`` A B^T, as a reader writes it, with `range` over k."""

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        block = cuda.local.array((rows, columns), np.float32)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        for k in range(c.shape[0]):
            for i in range(rows):
                for j in range(columns):
                    right = b[columns * x + j, k] if turned else b[k, columns * x + j]
                    block[i, j] += a[rows * y + i, k] * right
        for i in range(rows):
            for j in range(columns):
                c[rows * y + i, columns * x + j] = block[i, j]

    return kernel


def swapped(rows: int, columns: int) -> Any:
    """C = A^T B whose threads lie side by side along rows of C."""

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        block = cuda.local.array((rows, columns), np.float32)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        for k in range(a.shape[0]):
            for i in range(rows):
                for j in range(columns):
                    block[i, j] += a[k, rows * x + i] * b[k, columns * y + j]
        for i in range(rows):
            for j in range(columns):
                c[rows * x + i, columns * y + j] = block[i, j]

    return kernel


def two_steps(rows: int, columns: int) -> Any:
    """C = A^T B with two values of k per iteration."""

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        block = cuda.local.array((rows, columns), np.float32)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        for k in range(0, b.shape[0], 2):
            for i in range(rows):
                for j in range(columns):
                    block[i, j] += a[k, rows * y + i] * b[k, columns * x + j]
                    block[i, j] += a[k + 1, rows * y + i] * b[k + 1, columns * x + j]
        for i in range(rows):
            for j in range(columns):
                c[rows * y + i, columns * x + j] = block[i, j]

    return kernel


def strided(rows: int, columns: int) -> Any:
    """C = A^T B whose threads' rows and columns lie a workgroup of 8 x 8 apart."""
    across = down = 8

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row = rows * down * cuda.blockIdx.y + y
        column = columns * across * cuda.blockIdx.x + x
        block = cuda.local.array((rows, columns), np.float32)
        left = cuda.local.array(rows, np.float32)
        right = cuda.local.array(columns, np.float32)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        k = 0
        while k < b.shape[0]:
            for i in range(rows):
                left[i] = a[k, row + down * i]
            for j in range(columns):
                right[j] = b[k, column + across * j]
            for i in range(rows):
                for j in range(columns):
                    block[i, j] += left[i] * right[j]
            k += 1
        for i in range(rows):
            for j in range(columns):
                c[row + down * i, column + across * j] = block[i, j]

    return kernel


@cuda.jit
def naive(a, b, c):
    """C = A B, an element for each thread."""
    column, row = cuda.grid(2)
    total = np.float32(0)
    for k in range(b.shape[0]):
        total += a[row, k] * b[k, column]
    c[row, column] = total


def shared(tile: int) -> Any:
    """C = A B, an element for each thread, from tiles in shared memory."""

    @cuda.jit
    def kernel(a, b, c):
        of_a = cuda.shared.array((tile, tile), np.float32)
        of_b = cuda.shared.array((tile, tile), np.float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        column, row = cuda.grid(2)
        total = np.float32(0)
        for first in range(0, b.shape[0], tile):
            of_a[y, x] = a[row, first + x]
            of_b[y, x] = b[first + y, column]
            cuda.syncthreads()
            for k in range(tile):
                total += of_a[y, k] * of_b[k, x]
            cuda.syncthreads()
        c[row, column] = total

    return kernel


def kernels() -> Iterator[tuple[str, Any, str, int]]:
    """Name, kernel, precision, and the side of a workgroup."""
    for r, c in product(SIDES, SIDES):
        if r * c <= MOST:
            yield f"block {r} x {c}", blocked(r, c), "float32", 8
            yield f"NN {r} x {c}", blocked(r, c, transposed=False), "float32", 8
            yield f"block {r} x {c}, range", ranged(r, c, kept=True), "float32", 8
            yield f"NN written {r} x {c}", written(r, c, turned=False), "float32", 8
            yield f"NT written {r} x {c}", written(r, c, turned=True), "float32", 8
            yield f"two steps {r} x {c}", two_steps(r, c), "float32", 8
        if 2 * r * c <= MOST:
            yield f"double {r} x {c}, range", ranged(r, c, True, np.float64), "float64", 8
        if 2 * r * c <= MOST or r == c == 8:
            yield f"double {r} x {c}", blocked(r, c, np.float64), "float64", 8
    for r, c in product(FEW, FEW):
        yield f"as written {r} x {c}", ranged(r, c, kept=False), "float32", 8
        if r * c >= 16 and min(r, c) >= 4:
            yield f"wide {r} x {c}", blocked(r, c, wide=True), "float32", 8
            yield f"apart {r} x {c}", strided(r, c), "float32", 8
    yield "an element, range", naive, "float32", 8
    for side in (8, 16):
        yield f"tile of {8 * side}", tiled(side), "float32", side
    for side in (16, 32):
        yield f"tile of {side}, an element", shared(side), "float32", side


def read_source_iteration(kernel: Any, precision: str, side: int) -> Loop:
    """Return an iteration of the source as a loop without code."""
    matrices = [SimpleNamespace(shape=(3840, 3840), dtype=np.dtype(precision))] * 3
    totals = totals_of(GridLaunch(kernel, (2, 2), (side, side), matrices))
    parts = parts_of(totals.items)
    return described(max(parts, key=lambda part: sum(one.kind == FMA for one in part.actions)))


def compiled(
    kernel: Any, precision: str, folder: str, dimensions: Sequence[int] = (2, 2, 2)
) -> tuple[str, int]:
    """The listing of a kernel's machine code, and the registers of a thread. Its arguments are
    arrays with as many ``dimensions``.
    """
    from numba import types

    tools = next(Path(place) / "nvidia/cu13/bin" for place in sys.path if "site-packages" in place)
    arrays = tuple(types.Array(getattr(types, precision), count, "C") for count in dimensions)
    ptx, _ = cuda.compile_ptx(kernel.py_func, arrays, cc=(9, 0))
    source, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
    source.write_text(ptx, encoding="utf-8")
    about = _said(tools / "ptxas", "-v", "-arch=sm_90", source, "-o", made)
    code = _said(tools / "nvdisasm", "-hex", "-c", made)
    return code, int(re.findall(r"Used (\d+) registers", about)[0])


def _said(*command: str | Path) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout + done.stderr


def main() -> None:
    rows = []
    with TemporaryDirectory() as folder:
        for name, kernel, precision, side in kernels():
            listing, registers = compiled(kernel, precision, folder)
            text = read_listing(listing).text
            loop = read_source_iteration(kernel, precision, side)
            loop = replace(loop, name=name, registers=registers, text=text)
            rows.append(vars(loop))
    INTO.write_text("[\n" + ",\n".join(map(json.dumps, rows)) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
