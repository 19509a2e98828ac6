"""Make ``everyday.json``: how long everyday kernels take on a GPU, drawn at random: copies,
transposes, stencils, sums, softmax, products of a matrix and a vector, tiles with guards.

    python -m tools.cuda.everyday FOLDER       compiles, in the environment of tools.cuda.loops
    python everyday.py FOLDER > everyday.json  on the GPU's machine, which needs CuPy and measure.py
    python -m tools.cuda.everyday              compares the clock with it, by class

All of them were seen while rules were made: none is held out.
"""

import json
import math
import random
import statistics
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from time import process_time
from types import SimpleNamespace
from typing import Any

WRITTEN = Path(__file__).with_name("everyday.json")
SEED, COUNT = 61, 8  # launches of each family
RUNS, AT_LEAST_US = 9, 1000.0
FLAT = 64, 128, 256, 256, 512
SHAPES = (8, 8), (16, 16), (32, 8), (32, 32), (32, 4), (16, 8), (64, 4)
MOST = 400 << 20  # bytes of an array
MEMORY_GB_S = 3350.0  # of an H100
LAUNCH_US = 0.8  # that launches in a row don't take


def families() -> dict[str, Any]:
    """A function of each family: kernel of (precision), and its class."""
    from numba import cuda, float32, float64

    def vectors(dtype: Any, rng: random.Random) -> Any:
        kind = rng.choice(["copy", "saxpy", "triad", "root"])

        @cuda.jit
        def copy(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] = x[i]

        @cuda.jit
        def saxpy(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] = dtype(3) * x[i] + y[i]

        @cuda.jit
        def triad(x, y, z):
            i = cuda.grid(1)
            if i < x.shape[0]:
                z[i] = x[i] + y[i] * x[i]

        @cuda.jit
        def root(x, y):
            i = cuda.grid(1)
            if i < x.size:
                y[i] = math.sqrt(x[i])

        n = rng.randrange(1 << 18, 1 << 26)
        threads = rng.choice(FLAT)
        kernel = {"copy": copy, "saxpy": saxpy, "triad": triad, "root": root}[kind]
        return kernel, [(n,)] * (3 if kind == "triad" else 2), (-(-n // threads), 1), (threads, 1)

    def strided(dtype: Any, rng: random.Random) -> Any:
        @cuda.jit
        def saxpy(x, y):
            for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
                y[i] = dtype(3) * x[i] + y[i]

        @cuda.jit
        def sums(x, y):
            s = dtype(0)
            for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
                s += x[i]
            y[cuda.grid(1)] = s

        threads, blocks = rng.choice(FLAT), rng.choice([1, 66, 132, 264, 528, 1056])
        n = rng.randrange(1 << 16, 1 << 20) if blocks == 1 else rng.randrange(1 << 20, 1 << 26)
        n = max(n, threads * blocks)
        kernel = rng.choice([saxpy, sums])
        shapes = [(n,), (n,)] if kernel is saxpy else [(n,), (threads * blocks,)]
        return kernel, shapes, (blocks, 1), (threads, 1)

    def images(rng: random.Random, least: int = 300, most: int = 7000) -> tuple[int, int]:
        return rng.randrange(least, most), rng.randrange(least, most)

    def over(shape: tuple[int, int], threads: tuple[int, int]) -> tuple[int, int]:
        return -(-shape[1] // threads[0]), -(-shape[0] // threads[1])

    def transposes(dtype: Any, rng: random.Random) -> Any:
        kind = rng.choice(["rows", "columns", "copied", "copied down"])

        @cuda.jit
        def rows(a, b):
            x, y = cuda.grid(2)
            if y < a.shape[0] and x < a.shape[1]:
                b[x, y] = a[y, x]

        @cuda.jit
        def columns(a, b):
            x, y = cuda.grid(2)
            if y < b.shape[0] and x < b.shape[1]:
                b[y, x] = a[x, y]

        @cuda.jit
        def copied(a, b):
            x, y = cuda.grid(2)
            if y < a.shape[0] and x < a.shape[1]:
                b[y, x] = a[y, x]

        @cuda.jit
        def copied_down(a, b):
            y, x = cuda.grid(2)
            if y < a.shape[0] and x < a.shape[1]:
                b[y, x] = a[y, x]

        shape, threads = images(rng), rng.choice(SHAPES)
        if kind == "rows":
            return rows, [shape, shape[::-1]], over(shape, threads), threads
        if kind == "columns":
            return columns, [shape[::-1], shape], over(shape, threads), threads
        if kind == "copied":
            return copied, [shape, shape], over(shape, threads), threads
        return copied_down, [shape, shape], over(shape[::-1], threads), threads

    def tiles(dtype: Any, rng: random.Random) -> Any:
        width = rng.choice([32, 33])

        @cuda.jit
        def transposed(a, b):
            tile = cuda.shared.array((32, width), dtype)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            x, y = 32 * cuda.blockIdx.x + tx, 32 * cuda.blockIdx.y + ty
            for j in range(0, 32, 8):
                if y + j < a.shape[0] and x < a.shape[1]:
                    tile[ty + j, tx] = a[y + j, x]
            cuda.syncthreads()
            x, y = 32 * cuda.blockIdx.y + tx, 32 * cuda.blockIdx.x + ty
            for j in range(0, 32, 8):
                if y + j < b.shape[0] and x < b.shape[1]:
                    b[y + j, x] = tile[tx, ty + j]

        shape = images(rng)
        return transposed, [shape, shape[::-1]], over(shape, (32, 32)), (32, 8)

    def stencils(dtype: Any, rng: random.Random) -> Any:
        kind = rng.choice(["five", "nine", "line", "seven"])

        @cuda.jit
        def five(u, v):
            j, i = cuda.grid(2)
            if 0 < i < u.shape[0] - 1 and 0 < j < u.shape[1] - 1:
                v[i, j] = dtype(0.25) * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1])

        @cuda.jit
        def nine(u, v):
            j, i = cuda.grid(2)
            if i >= 1 and j >= 1 and i < u.shape[0] - 1 and j < u.shape[1] - 1:
                s = dtype(0)
                for k in range(-1, 2):
                    for m in range(-1, 2):
                        s += u[i + k, j + m]
                v[i, j] = s / dtype(9)

        @cuda.jit
        def line(u, v):
            i = cuda.grid(1)
            if 0 < i < u.size - 1:
                v[i] = u[i - 1] - dtype(2) * u[i] + u[i + 1]

        @cuda.jit
        def seven(u, v):
            j, i = cuda.grid(2)
            if i < u.shape[0] and j < u.shape[1]:
                s = dtype(0)
                for k in range(-3, 4):
                    s += u[i, min(max(j + k, 0), u.shape[1] - 1)]
                v[i, j] = s

        if kind == "line":
            n, threads = rng.randrange(1 << 18, 1 << 26), rng.choice(FLAT)
            return line, [(n,), (n,)], (-(-n // threads), 1), (threads, 1)
        shape, group = images(rng), rng.choice(SHAPES)
        kernel = {"five": five, "nine": nine, "seven": seven}[kind]
        return kernel, [shape, shape], over(shape, group), group

    def sums(dtype: Any, rng: random.Random) -> Any:
        @cuda.jit
        def of_rows(a, out):
            i = cuda.grid(1)
            if i < a.shape[0]:
                s = dtype(0)
                for j in range(a.shape[1]):
                    s += a[i, j]
                out[i] = s

        @cuda.jit
        def of_columns(a, out):
            j = cuda.grid(1)
            if j < a.shape[1]:
                s = dtype(0)
                for i in range(a.shape[0]):
                    s += a[i, j]
                out[j] = s

        n, k, threads = rng.randrange(1 << 10, 1 << 16), rng.randrange(64, 2048), rng.choice(FLAT)
        if rng.random() < 0.5:
            return of_rows, [(n, k), (n,)], (-(-n // threads), 1), (threads, 1)
        return of_columns, [(k, n), (n,)], (-(-n // threads), 1), (threads, 1)

    def softmax(dtype: Any, rng: random.Random) -> Any:
        @cuda.jit
        def by_rows(a, b):
            i = cuda.grid(1)
            if i < a.shape[0]:
                m = a[i, 0]
                for j in range(1, a.shape[1]):
                    m = max(m, a[i, j])
                s = dtype(0)
                for j in range(a.shape[1]):
                    s += math.exp(a[i, j] - m)
                for j in range(a.shape[1]):
                    b[i, j] = math.exp(a[i, j] - m) / s

        @cuda.jit
        def norm(a, b):
            i = cuda.grid(1)
            if i < a.shape[0]:
                s = q = dtype(0)
                for j in range(a.shape[1]):
                    s += a[i, j]
                    q += a[i, j] * a[i, j]
                mean = s / dtype(a.shape[1])
                scale = dtype(1) / math.sqrt(q / dtype(a.shape[1]) - mean * mean)
                for j in range(a.shape[1]):
                    b[i, j] = (a[i, j] - mean) * scale

        n, k, threads = rng.randrange(1 << 10, 1 << 15), rng.randrange(64, 1024), rng.choice(FLAT)
        kernel = rng.choice([by_rows, norm])
        return kernel, [(n, k), (n, k)], (-(-n // threads), 1), (threads, 1)

    def matvec(dtype: Any, rng: random.Random) -> Any:
        kind = rng.choice(["rows", "columns", "while", "reversed"])

        @cuda.jit
        def rows(a, x, y):
            i = cuda.grid(1)
            if i < a.shape[0]:
                s = dtype(0)
                for k in range(a.shape[1]):
                    s += a[i, k] * x[k]
                y[i] = s

        @cuda.jit
        def columns(a, x, y):
            i = cuda.grid(1)
            if i < a.shape[1]:
                s = dtype(0)
                for k in range(a.shape[0]):
                    s += a[k, i] * x[k]
                y[i] = s

        @cuda.jit
        def whiled(a, x, y):
            i = cuda.grid(1)
            if i < a.shape[0]:
                s = dtype(0)
                k = 0
                while k < a.shape[1]:
                    s += x[k] * a[i, k]
                    k += 1
                y[i] = s

        @cuda.jit
        def turned(a, x, y):
            i = cuda.grid(1)
            if i < a.shape[1]:
                s = dtype(0)
                k = a.shape[0] - 1
                while k >= 0:
                    s += x[k] * a[k, i]
                    k -= 1
                y[i] = s

        n, k, threads = rng.randrange(1 << 10, 1 << 15), rng.randrange(128, 4096), rng.choice(FLAT)
        grid = -(-n // threads), 1
        if kind in ("rows", "while"):
            return rows if kind == "rows" else whiled, [(n, k), (k,), (n,)], grid, (threads, 1)
        kernel = columns if kind == "columns" else turned
        return kernel, [(k, n), (k,), (n,)], grid, (threads, 1)

    def guarded(dtype: Any, rng: random.Random) -> Any:
        side = rng.choice([16, 32])

        @cuda.jit
        def naive(a, b, c):
            x, y = cuda.grid(2)
            if y < c.shape[0] and x < c.shape[1]:
                s = dtype(0)
                for k in range(a.shape[1]):
                    s += a[y, k] * b[k, x]
                c[y, x] = s

        @cuda.jit
        def tiled(a, b, c):
            sa = cuda.shared.array((side, side), dtype)
            sb = cuda.shared.array((side, side), dtype)
            x, y = cuda.grid(2)
            tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
            s = dtype(0)
            for i in range((a.shape[1] + side - 1) // side):
                sa[ty, tx] = 0
                sb[ty, tx] = 0
                if y < a.shape[0] and tx + i * side < a.shape[1]:
                    sa[ty, tx] = a[y, tx + i * side]
                if x < b.shape[1] and ty + i * side < b.shape[0]:
                    sb[ty, tx] = b[ty + i * side, x]
                cuda.syncthreads()
                for j in range(side):
                    s += sa[ty, j] * sb[j, tx]
                cuda.syncthreads()
            if y < c.shape[0] and x < c.shape[1]:
                c[y, x] = s

        n, m, k = (rng.randrange(200, 2000) for _ in range(3))
        kernel = rng.choice([naive, tiled, tiled])
        return kernel, [(n, k), (k, m), (n, m)], over((n, m), (side, side)), (side, side)

    def reductions(dtype: Any, rng: random.Random) -> Any:
        threads = rng.choice([64, 128, 256, 512])

        @cuda.jit
        def halved(x, out):
            s = cuda.shared.array(threads, dtype)
            t, i = cuda.threadIdx.x, cuda.grid(1)
            s[t] = x[i] if i < x.size else dtype(0)
            cuda.syncthreads()
            k = cuda.blockDim.x // 2
            while k > 0:
                if t < k:
                    s[t] += s[t + k]
                cuda.syncthreads()
                k //= 2
            if t == 0:
                out[cuda.blockIdx.x] = s[0]

        @cuda.jit
        def strided_first(x, out):
            s = cuda.shared.array(threads, dtype)
            t = cuda.threadIdx.x
            total = dtype(0)
            for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
                total += x[i]
            s[t] = total
            cuda.syncthreads()
            k = threads // 2
            while k > 0:
                if t < k:
                    s[t] += s[t + k]
                cuda.syncthreads()
                k //= 2
            if t == 0:
                out[cuda.blockIdx.x] = s[0]

        n = rng.randrange(1 << 19, 1 << 25)
        kernel = rng.choice([halved, strided_first])
        blocks = -(-n // threads) if kernel is halved else rng.choice([132, 264, 528, 1056])
        return kernel, [(n,), (blocks,)], (blocks, 1), (threads, 1)

    def pairs(dtype: Any, rng: random.Random) -> Any:
        @cuda.jit
        def bodies(p, out):
            i = cuda.grid(1)
            if i < p.shape[0]:
                x, y, z = p[i, 0], p[i, 1], p[i, 2]
                s = dtype(0)
                for j in range(p.shape[0]):
                    u, v, w = p[j, 0] - x, p[j, 1] - y, p[j, 2] - z
                    s += dtype(1) / math.sqrt(u * u + v * v + w * w + dtype(1))
                out[i] = s

        @cuda.jit
        def distances(p, c, out):
            i = cuda.grid(1)
            if i < p.shape[0]:
                for j in range(c.shape[0]):
                    s = dtype(0)
                    for d in range(c.shape[1]):
                        t = p[i, d] - c[j, d]
                        s += t * t
                    out[i, j] = s

        @cuda.jit
        def powers(x, y):
            i = cuda.grid(1)
            if i < x.size:
                s = t = x[i]
                for _ in range(200):
                    s = s * t + t
                y[i] = s

        kernel, threads = rng.choice([bodies, distances, powers]), rng.choice(FLAT)
        n = rng.randrange(1 << 10, 1 << 14)
        if kernel is bodies:
            shapes = [(n, 4), (n,)]
        elif kernel is distances:
            d, j = rng.randrange(8, 200), rng.randrange(4, 40)
            shapes = [(n, d), (j, d), (n, j)]
        else:
            n = rng.randrange(1 << 16, 1 << 22)
            shapes = [(n,), (n,)]
        return kernel, shapes, (-(-n // threads), 1), (threads, 1)

    made = vectors, strided, transposes, tiles, stencils, sums, softmax, matvec, guarded
    types = float32, float32, float32, float64
    return {
        one.__name__: (lambda rng, one=one: (dtype := rng.choice(types), one(dtype, rng)))
        for one in (*made, reductions, pairs)
    }


def cases() -> list[dict]:
    """Launches, as the seed draws them, each with its kernel."""
    rng = random.Random(SEED)
    rows: list[dict] = []
    for family, draw in families().items():
        for _ in range(COUNT):
            while True:
                dtype, (kernel, shapes, grid, threads) = draw(rng)
                if 8 * max(map(math.prod, shapes)) <= MOST and max(grid[1], grid[0] >> 15) < 65536:
                    break
            row = {"family": family, "kernel": kernel, "precision": str(dtype), "shapes": shapes}
            rows.append(row | {"grid": grid, "threads": threads})
    return rows


def compile_all(folder: Path) -> None:
    """Write machine code of all kernels, and what is to be launched, to ``folder``."""
    from tools.cuda.loops import compiled

    rows = cases()
    for n, row in enumerate(rows):
        kernel = row.pop("kernel")
        row["name"] = kernel.py_func.__name__
        dimensions = [len(shape) for shape in row["shapes"]]
        listing, row["registers"] = compiled(kernel, row["precision"], str(folder), dimensions)
        (folder / "kernel.cubin").rename(folder / f"{n}.cubin")
        (folder / f"{n}.sass").write_text(listing, encoding="utf-8")
        entry = (folder / "kernel.ptx").read_text(encoding="utf-8").split(".entry ")[1].split("(")
        row |= {"code": f"{n}.cubin", "entry": entry[0]}
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")


def measure_all(folder: Path) -> dict:
    """Microseconds of each launch: the median of launches one after the other."""
    import cupy

    device = import_module("measure").device_at_work(cupy)
    rng = cupy.random.default_rng(1)
    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    stream = cupy.cuda.Stream(non_blocking=True)
    for row in rows:
        kernel = cupy.RawModule(path=str(folder / row.pop("code"))).get_function(row.pop("entry"))
        arrays = [rng.random(shape, dtype=row["precision"]) for shape in row["shapes"]]
        numbers: list = []
        for one in arrays:
            numbers += [0, 0, one.size, one.itemsize, one.data.ptr, *one.shape, *one.strides]
        given = tuple(cupy.int64(number) for number in numbers)

        def launch(times: int) -> None:
            for _ in range(times):
                kernel(tuple(row["grid"]), tuple(row["threads"]), given)  # noqa: B023

        def launched(times: int) -> float:
            """Return the microseconds of one of ``times`` launches in a graph.

            The host doesn't delay a graph's launches.
            """
            with stream:
                stream.begin_capture()
                launch(times)
                graph = stream.end_capture()
                graph.launch(stream)
                found = []
                for _ in range(RUNS):
                    begin.record(stream)
                    graph.launch(stream)
                    end.record(stream)
                    end.synchronize()
                    found.append(1e3 * float(cupy.cuda.get_elapsed_time(begin, end)) / times)
            return statistics.median(found)

        cupy.cuda.Device().synchronize()
        times = max(1, min(200, math.ceil(AT_LEAST_US / launched(2))))
        row["us"] = round(launched(times), 2)
        row["times"] = times
    return {"device": device, "rows": rows}


def compared(row: dict, kernel: Any) -> Any:
    """Simulate a launch on an H200 with the memory of the H100 that measured it."""
    from dataclasses import replace

    import numpy as np

    from cypresskit.today.cuda_clock import simulate
    from cypresskit.today.gpus import H200

    board = replace(H200, memory_gb_s=MEMORY_GB_S)
    kind = np.dtype(row["precision"])
    arrays = [SimpleNamespace(shape=tuple(shape), dtype=kind) for shape in row["shapes"]]
    return simulate(kernel, tuple(row["grid"]), tuple(row["threads"]), *arrays, board=board)


def main() -> None:
    rows = json.loads(WRITTEN.read_text(encoding="utf-8"))["rows"]
    classes: dict[str, list[float]] = defaultdict(list)
    for n, (row, case) in enumerate(zip(rows, cases(), strict=True)):
        if any(json.dumps(case[name]) != json.dumps(row[name]) for name in ("shapes", "threads")):
            raise SystemExit(
                "these launches were drawn with Python 3.11, and this one draws others"
            )
        began = process_time()
        try:
            report = compared(row, case["kernel"])
        except ValueError as error:
            print(f"{n:3} {row['family']:12} {row['name']:16} refused: {error}")
            continue
        took = 1e6 * report.seconds - LAUNCH_US
        classes[report.accuracy].append(took / row["us"])
        print(
            f"{n:3} {row['family']:12} {row['name']:16} {row['precision'][5:]} {row['us']:9.1f}"
            f" {took:9.1f} {took / row['us']:6.2f} {process_time() - began:5.1f} s"
            f" {report.bound:10} {report.loop.name}",
            flush=True,
        )
    for accuracy, ratios in sorted(classes.items()):
        off = sorted(abs(ratio - 1) for ratio in ratios)
        print(
            f"{accuracy}\n  {len(off)} launches, mean error {100 * sum(off) / len(off):.0f} %,"
            f" 8 of 10 within {100 * off[int(0.79 * len(off))]:.0f} %,"
            f" {sum(one <= 0.3 for one in off)} within 30 %,"
            f" modeled : measured {min(ratios):.2f} to {max(ratios):.2f}"
        )


if __name__ == "__main__":
    if __package__ and not sys.argv[1:]:
        main()
    elif __package__:
        compile_all(Path(sys.argv[1]))
    else:
        import_module("measure").print_rows(measure_all(Path(sys.argv[1])))
