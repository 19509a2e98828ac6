"""Make ``measured.json``: how long kernels of ``tools.cuda.loops`` take on a GPU, in sizes and
workgroups drawn at random, for the clock of CUDA kernels to be held against.

    python -m tools.cuda.measure FOLDER      compiles them, in the environment of tools.cuda.loops
    python measure.py FOLDER > measured.json on the GPU's machine, which needs CuPy alone
"""

import json
import random
import statistics
import sys
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

SIZES = 1024, 2048, 4096
WORKGROUPS = (8, 8), (16, 16), (32, 1), (32, 8), (8, 4), (16, 4), (4, 8), (32, 4), (64, 2)
SEED = 7
MORE = 25  # kernels that are drawn a second time
HELD_OUT = 0.4
RUNS = 9


def cases(names: list[str]) -> list[dict]:
    """Launches: each kernel in one size and workgroup, some in two, and whether it is held out."""
    rng = random.Random(SEED)
    rows = []
    for name in names + rng.sample(names, MORE):
        threads = rng.choice(WORKGROUPS)
        if name.startswith("apart"):
            threads = 8, 8
        elif name.startswith("tile"):
            side = int(name.split()[2].rstrip(","))
            threads = (side, side) if "element" in name else (side // 8, side // 8)
        rows.append({"name": name, "n": rng.choice(SIZES), "threads": threads})
    rng.shuffle(rows)
    return [row | {"held_out": n < HELD_OUT * len(rows)} for n, row in enumerate(rows)]


def block_of(name: str) -> tuple[int, int]:
    """Rows and columns of C for a thread."""
    numbers = [int(word.rstrip(",")) for word in name.split() if word.rstrip(",").isdigit()]
    if name.startswith("tile"):
        return (1, 1) if "element" in name else (8, 8)
    return (numbers[0], numbers[1]) if numbers else (1, 1)


def compile_all(folder: Path) -> None:
    """Write machine code of all kernels, and what is to be launched, to ``folder``."""
    from tools.cuda.loops import compiled, kernels

    known = {name: (kernel, precision) for name, kernel, precision, *_ in kernels()}
    rows = cases(list(known))
    for n, name in enumerate(known):
        compiled(*known[name], str(folder))
        (folder / "kernel.cubin").rename(folder / f"{n}.cubin")
        entry = (folder / "kernel.ptx").read_text(encoding="utf-8").split(".entry ")[1].split("(")
        for row in rows:
            if row["name"] == name:
                row |= {"code": f"{n}.cubin", "entry": entry[0], "precision": known[name][1]}
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")


def launched(cupy: Any, kernel: Any, arrays: tuple, n: int, grid: tuple, threads: tuple) -> float:
    """Microseconds between two events around a launch on ``arrays`` as n x n numbers."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    numbers: list = []
    for array in arrays:
        numbers += [0, 0, n * n, array.itemsize, array.data.ptr, n, n, *array.strides]
    begin.record()
    kernel(grid, threads, tuple(cupy.int64(one) for one in numbers))
    end.record()
    end.synchronize()
    return 1e3 * float(cupy.cuda.get_elapsed_time(begin, end))


def measure_all(folder: Path) -> dict:
    """Microseconds of each launch: the median, less that of a launch of one thread for N = 0."""
    import cupy

    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    rng = cupy.random.default_rng(1)
    big = rng.standard_normal((8192, 8192), dtype="float32")
    for _ in range(50):  # until the clock is up
        big @ big
    for row in rows:
        n, precision = row["n"], row.pop("precision")
        module = cupy.RawModule(path=str(folder / row.pop("code")))
        kernel = module.get_function(row.pop("entry"))
        a, b = (rng.standard_normal((n, n), dtype=precision) for _ in "ab")
        c = cupy.full((n, n), cupy.nan, precision)
        rows_, columns = block_of(row["name"])
        across, down = row["threads"]
        grid = n // (columns * across), n // (rows_ * down)

        launch = partial(launched, cupy, kernel, (a, b, c))
        launch(n, grid, (across, down))
        as_stored = "NN" in row["name"] or "an element" in row["name"]
        expected = (a if as_stored else a.T) @ b
        if not cupy.allclose(c, expected, rtol=1e-3, atol=1e-2 * n**0.5):
            raise SystemExit(f"{row}: a wrong product")
        took = statistics.median(launch(n, grid, (across, down)) for _ in range(RUNS))
        lag = statistics.median(launch(0, (1, 1), (1, 1)) for _ in range(RUNS))
        row["us"] = round(took - lag, 2)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    how = f"median of {RUNS} launches less the lag, that of one thread for N = 0; CuPy events"
    return {"device": device, "date": str(date.today()), "how": how, "seed": SEED, "rows": rows}


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if __package__:
        compile_all(folder)
    else:
        found = measure_all(folder)
        rows = ",\n".join(json.dumps(row) for row in found.pop("rows"))
        print(f'{json.dumps(found)[:-1]}, "rows": [\n{rows}\n]}}')
