"""Measure random CUDA kernels on a GPU (``measured.json``), and compare the model's times with
these.

Blocks, layouts, workgroups and sizes are drawn at random. The model gets each kernel's own machine
code, which ``measured.json`` has in the letters of ``cypresskit.today.cuda_code``, and then the
code of the most similar kernel known.

    python -m tools.cuda.measure FOLDER      compiles them, in the environment of tools.cuda.loops
    python measure.py FOLDER > measured.json measures on the GPU's machine, which needs CuPy alone
    python -m tools.cuda.measure             prints how many are modeled within 20 %
"""

import json
import random
import statistics
import sys
from datetime import date
from functools import partial
from math import lcm
from pathlib import Path
from types import SimpleNamespace
from typing import Any

WRITTEN = Path(__file__).with_name("measured.json")
SIDES = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12
WIDE = (4, 4), (4, 8), (8, 4), (8, 8)
KINDS = (
    *("block", "block", "double", "NN", "range", "as written", "as written", "wide", "swapped"),
    *("NT", "two steps", "NN written", "double written"),
)
ACROSS = 1, 2, 4, 8, 8, 16, 16, 32, 32, 64
WARPS = 1, 1, 2, 4, 4, 8, 8, 16
SIZES = 600, 1000, 1400, 2000, 2600, 3300, 4096
SEEDS = {777: 110, 4242: 110, 99: 110}
RUNS = 9
CLOSE = 1.2


def cases() -> list[dict]:
    """Launches, as the seeds draw them."""
    rows: list[dict] = []
    for seed, count in SEEDS.items():
        rng = random.Random(seed)
        some: list[dict] = []
        while len(some) < count:
            row = _drawn(rng)
            some += [row] if row else []
        rows += some
    return rows


def _drawn(rng: random.Random) -> dict | None:
    rows, columns = rng.choice(SIDES), rng.choice(SIDES)
    if rows * columns > 64:
        return None
    kind = rng.choice(KINDS)
    if "double" in kind and rows * columns > 32:
        return None
    if kind == "wide":
        rows, columns = rng.choice(WIDE)
    across = rng.choice(ACROSS)
    down = 32 * rng.choice(WARPS) // across
    if not 1 <= down <= 64 or across * down > 1024:
        return None
    block = (rows, columns) if kind == "swapped" else (columns, rows)
    steps = block[0] * across, block[1] * down
    unit = lcm(*steps, 4)
    n = unit * max(1, round(rng.choice(SIZES) / unit))
    if n > 4600:
        return None
    name = f"block {rows} x {columns}, range" if kind == "range" else f"{kind} {rows} x {columns}"
    return {
        "name": name,
        "n": n,
        "threads": [across, down],
        "grid": [n // step for step in steps],
    }


def kernel_of(name: str) -> tuple[Any, str]:
    """The kernel of a name, and its precision."""
    import numpy as np

    from cypresskit.today.cuda_kernels import blocked
    from tools.cuda.loops import ranged, swapped, two_steps, written

    rows, columns = (int(word.rstrip(",")) for word in name.split() if word.rstrip(",").isdigit())
    block = rows, columns
    makers = {
        "double written": lambda: ranged(*block, False, np.float64),
        "double": lambda: blocked(*block, np.float64),
        "NN written": lambda: written(*block, turned=False),
        "NN": lambda: blocked(*block, transposed=False),
        "NT": lambda: written(*block, turned=True),
        "as written": lambda: ranged(*block, False),
        "two steps": lambda: two_steps(*block),
        "swapped": lambda: swapped(*block),
        "wide": lambda: blocked(*block, wide=True),
        "block": lambda: ranged(*block, True) if "range" in name else blocked(*block),
    }
    maker = next(maker for kind, maker in makers.items() if name.startswith(kind))
    return maker(), "float64" if "double" in name else "float32"


def compile_all(folder: Path) -> None:
    """Write machine code of all kernels, and what is to be launched, to ``folder``."""
    from tools.cuda.listing import read_listing
    from tools.cuda.loops import compiled

    rows = cases()
    for n, name in enumerate(sorted({row["name"] for row in rows})):
        kernel, precision = kernel_of(name)
        listing, registers = compiled(kernel, precision, str(folder))
        (folder / "kernel.cubin").rename(folder / f"{n}.cubin")
        entry = (folder / "kernel.ptx").read_text(encoding="utf-8").split(".entry ")[1].split("(")
        text = read_listing(listing).text
        for row in (row for row in rows if row["name"] == name):
            row |= {"code": f"{n}.cubin", "entry": entry[0], "precision": precision}
            row |= {"registers": registers, "text": text}
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")


def device_at_work(cupy: Any) -> str:
    """The GPU's name, once its clock is up."""
    big = cupy.random.default_rng(1).standard_normal((8192, 8192), dtype="float32")
    for _ in range(50):
        big @ big
    return str(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode())


def launched(cupy: Any, kernel: Any, arrays: Any, n: int, grid: tuple, threads: tuple) -> float:
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

    rows = []
    rng = cupy.random.default_rng(1)
    device = device_at_work(cupy)
    for row in json.loads((folder / "cases.json").read_text(encoding="utf-8")):
        n, precision = row["n"], row.pop("precision")
        module = cupy.RawModule(path=str(folder / row.pop("code")))
        kernel = module.get_function(row.pop("entry"))
        threads = tuple(row["threads"])
        if threads[0] * threads[1] * row["registers"] > 65536:
            continue  # has no room
        a, b = (rng.standard_normal((n, n), dtype=precision) for _ in "ab")
        c = cupy.full((n, n), cupy.nan, precision)
        launch = partial(launched, cupy, kernel, (a, b, c))
        launch(n, row["grid"], threads)
        if bool(cupy.isnan(c).any()):
            raise SystemExit(f"{row}: C isn't whole")
        took = statistics.median(launch(n, row["grid"], threads) for _ in range(RUNS))
        lag = statistics.median(launch(0, (1, 1), (1, 1)) for _ in range(RUNS))
        rows.append(row | {"us": round(took - lag, 2)})
    how = f"median of {RUNS} launches less the lag, that of one thread for N = 0; CuPy events"
    return {"device": device, "date": str(date.today()), "how": how, "rows": rows}


def ratio(row: dict, own: bool) -> float:
    """Modeled time over measured, with the kernel's own machine code, or the most similar."""
    import numpy as np

    from cypresskit.today.cuda_clock import simulate
    from cypresskit.today.cuda_code import Loop
    from cypresskit.today.gpus import H200

    kernel, precision = kernel_of(row["name"])
    matrices = [SimpleNamespace(shape=(row["n"],) * 2, dtype=np.dtype(precision))] * 3
    code = Loop("its own", row["registers"], row["text"]) if own else None
    report = simulate(kernel, tuple(row["grid"]), tuple(row["threads"]), *matrices, code=code)
    return float((1e6 * report.seconds - H200.launch_overhead_us) / row["us"])


def print_rows(found: dict) -> None:
    """Print what was measured as JSON, with a line for each row."""
    rows = ",\n".join(json.dumps(row) for row in found.pop("rows"))
    print(f'{json.dumps(found)[:-1]}, "rows": [\n{rows}\n]}}')


def main() -> None:
    rows = json.loads(WRITTEN.read_text(encoding="utf-8"))["rows"]
    for own in (True, False):
        found = sorted((ratio(row, own), f"{row['name']}, N = {row['n']}") for row in rows)
        close = sum(1 / CLOSE <= one <= CLOSE for one, _ in found)
        print(f"{'own code' if own else 'similar code'}: {close} of {len(found)} within 20 %")
        print("  ", *(f"{name} {one:.2f};" for one, name in (*found[:5], *found[-5:])))


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    elif __package__:
        compile_all(Path(sys.argv[1]))
    else:
        print_rows(measure_all(Path(sys.argv[1])))
