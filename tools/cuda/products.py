"""Matrix products that were drawn at random and measured on a GPU, compared with the clock.

``python -m tools.cuda.products`` prints how far the clock is off, with the extra ``cuda``.
``products.json`` has the microseconds of each launch on an H200: the median of seven between two
events, less that of a launch that does nothing; C was compared with CuPy's.

A product is C = A B of any transposes. Each thread has some rows and columns of C, and loads either
from memory or from tiles in shared memory.
"""

import json
import statistics
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

WRITTEN = Path(__file__).with_name("products.json")


@dataclass(frozen=True)
class Drawn:
    """A launch.

    Attributes
    ----------
    m, n, k
        The size.
    rows, columns
        Of C, for each thread.
    threads
        Of a block: across, down.
    depth, pad
        The values of k that a tile holds, 0 without tiles; numbers that pad its rows.
    turned_a, turned_b
        Whether A, and B, are stored as their transposes.
    parts
        Into how many parts the sum is split; C has as many planes.
    double
        Whether numbers have double precision.
    group
        "seen" or "unseen".
    """

    m: int
    n: int
    k: int
    rows: int
    columns: int
    threads: tuple[int, int]
    depth: int
    pad: int
    turned_a: bool
    turned_b: bool
    parts: int
    double: bool
    group: str

    @property
    def grid(self) -> tuple[int, int, int]:
        across, down = self.columns * self.threads[0], self.rows * self.threads[1]
        return -(-self.n // across), -(-self.m // down), self.parts

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of A, B and C as they are stored."""
        a = (self.k, self.m) if self.turned_a else (self.m, self.k)
        b = (self.n, self.k) if self.turned_b else (self.k, self.n)
        return [a, b, (self.parts, self.m, self.n)]


def kernel_of(one: Drawn) -> Any:
    """Return the kernel of a launch."""
    return _from_tiles(one) if one.depth else _from_memory(one)


def _from_memory(one: Drawn) -> Any:
    import numpy as np

    from cypresskit.today.cuda_kernels import cuda
    from tools.cuda.tiles import clear

    rows, columns, parts = one.rows, one.columns, one.parts
    turned_a, turned_b = one.turned_a, one.turned_b
    dtype = np.float64 if one.double else np.float32

    @cuda.jit
    def from_memory(a, b, c):
        x, y = cuda.grid(2)
        part = cuda.blockIdx.z
        length = a.shape[0] if turned_a else a.shape[1]
        each = (length + parts - 1) // parts
        block = cuda.local.array((rows, columns), dtype)
        clear(block)
        for k in range(part * each, min((part + 1) * each, length)):
            for i in range(rows):
                row = min(rows * y + i, c.shape[1] - 1)
                for j in range(columns):
                    column = min(columns * x + j, c.shape[2] - 1)
                    left = a[k, row] if turned_a else a[row, k]
                    right = b[column, k] if turned_b else b[k, column]
                    block[i, j] += left * right
        for i in range(rows):
            for j in range(columns):
                if rows * y + i < c.shape[1] and columns * x + j < c.shape[2]:
                    c[part, rows * y + i, columns * x + j] = block[i, j]

    return from_memory


def _filler(one: Drawn, width: int, in_rows: bool) -> Any:
    """Return a function that fills a tile from the values of k of a part, in rows or columns of
    a matrix.
    """
    from cypresskit.today.cuda_kernels import cuda

    depth = one.depth
    across, down = one.threads

    @cuda.jit(device=True, inline="always")
    def fill(tile, matrix, first, end, begin, limit):
        thread = across * cuda.threadIdx.y + cuda.threadIdx.x
        for place in range(thread, depth * width, across * down):
            k = place // width if in_rows else place % depth
            at = place % width if in_rows else place // depth
            if first + k < end and begin + at < limit:
                if in_rows:
                    tile[k, at] = matrix[first + k, begin + at]
                else:
                    tile[k, at] = matrix[begin + at, first + k]
            else:
                tile[k, at] = 0

    return fill


def _from_tiles(one: Drawn) -> Any:
    import numpy as np

    from cypresskit.today.cuda_kernels import cuda
    from tools.cuda.tiles import clear

    rows, columns, parts, depth = one.rows, one.columns, one.parts, one.depth
    across, down = one.threads
    high, wide = rows * down, columns * across
    height, width = high + one.pad, wide + one.pad
    turned_a = one.turned_a
    dtype = np.float64 if one.double else np.float32
    fill_a, fill_b = _filler(one, high, turned_a), _filler(one, wide, not one.turned_b)

    @cuda.jit
    def from_tiles(a, b, c):
        tile_a = cuda.shared.array((depth, height), dtype)
        tile_b = cuda.shared.array((depth, width), dtype)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        first_row, first_column = high * cuda.blockIdx.y, wide * cuda.blockIdx.x
        part = cuda.blockIdx.z
        length = a.shape[0] if turned_a else a.shape[1]
        each = (length + parts - 1) // parts
        end = min((part + 1) * each, length)
        block = cuda.local.array((rows, columns), dtype)
        clear(block)
        for first in range(part * each, end, depth):
            fill_a(tile_a, a, first, end, first_row, c.shape[1])
            fill_b(tile_b, b, first, end, first_column, c.shape[2])
            cuda.syncthreads()
            for k in range(depth):
                for i in range(rows):
                    for j in range(columns):
                        block[i, j] += tile_a[k, y + down * i] * tile_b[k, x + across * j]
            cuda.syncthreads()
        for i in range(rows):
            for j in range(columns):
                row, column = first_row + y + down * i, first_column + x + across * j
                if row < c.shape[1] and column < c.shape[2]:
                    c[part, row, column] = block[i, j]

    return from_tiles


def matrices(one: Drawn) -> list[Any]:
    """Return what the clock needs to know of A, B and C."""
    dtype = "float64" if one.double else "float32"
    return [SimpleNamespace(shape=shape, dtype=dtype) for shape in one.shapes]


def launches() -> list[tuple[dict, Drawn]]:
    """Return the rows of ``products.json``, and their launches."""
    rows = json.loads(WRITTEN.read_text(encoding="utf-8"))["rows"]
    return [(row, Drawn(**{name: row[name] for name in row.keys() - {"us"}})) for row in rows]


def main() -> None:
    """Print modeled time over measured of each launch, and their errors by group and kind."""
    from cypresskit.today.cuda_clock import simulate

    errors: dict[str, list[float]] = defaultdict(list)
    for row, one in launches():
        report = simulate(kernel_of(one), one.grid, (*one.threads,), *matrices(one))
        off = (1e6 * report.seconds - report.launch_overhead_us) / row["us"]
        kind = "tiles" if one.depth else "blocks" if one.rows * one.columns > 1 else "sums"
        errors[one.group].append(off)
        errors[kind].append(off)
        print(f"{off:5.2f} {one}", flush=True)
    for group, some in errors.items():
        mean = statistics.mean(abs(one - 1) for one in some)
        close = sum(1 / 1.2 <= one <= 1.2 for one in some)
        print(
            f"{group}: {len(some)}, mean error {100 * mean:.1f} %, {close} within 20 %,"
            f" {min(some):.2f} to {max(some):.2f}"
        )


if __name__ == "__main__":
    main()
