"""What an instruction costs a scheduler: make ``issued.json``, compiled loops without their loads,
timed on a GPU, and fit the clocks of ``cypresskit.today.gpus`` to them.

    python -m tools.cuda.issue FOLDER       compiles, in the environment of tools.cuda.loops
    python issue.py FOLDER > issued.json    on the GPU's machine, which needs CuPy alone
    python -m tools.cuda.issue              prints the fit

Each load is replaced by a NOP. With as many warps as registers allow, up to 16, a scheduler is
assumed to be always busy: the clocks of an iteration's instructions add up to the iteration's. The
clocks of each kind of instruction are fitted by least squares.
"""

import json
import re
import statistics
import struct
import sys
from collections import Counter
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

WRITTEN = Path(__file__).with_name("issued.json")
N = 2048
LAG_US = 5.0  # between two events, of a launch of this size that does nothing
LOAD, NOP = 0x981, 0x7918
NO_BARRIERS = 0x3F << 46  # in an instruction's second word: sets none when data are read or there
KINDS = "oamupfd"  # letters of cypresskit.today.cuda_code


def compile_all(folder: Path) -> None:
    """Write the kernels' machine code without loads, and what is to be launched."""
    from tools.cuda.loops import FEW, compiled, kernels

    rows: list[dict] = []
    for name, kernel, precision, _ in kernels():
        sides = list(map(int, re.findall(r"\d+", name)))
        if "tile" in name or any(side not in FEW for side in sides):
            continue
        listing, _ = compiled(kernel, precision, str(folder))
        code = bytearray((folder / "kernel.cubin").read_bytes())
        words = [int(word, 16) for word in re.findall(r"/\* 0x([0-9a-f]{16}) \*/", listing)]
        start = code.index(struct.pack("<4Q", *words[:4]))
        for place in range(start, start + 8 * len(words), 16):
            low, high = struct.unpack_from("<2Q", code, place)
            if low & 0xFFF == LOAD:
                struct.pack_into("<2Q", code, place, NOP, high >> 41 << 41 | NO_BARRIERS)
        file = f"{len(rows)}.cubin"
        (folder / file).write_bytes(code)
        entry = (folder / "kernel.ptx").read_text(encoding="utf-8").split(".entry ")[1]
        row = {"name": name, "code": file, "entry": entry.split("(")[0], "block": sides or [1, 1]}
        rows.append(row | {"precision": precision})
    (folder / "cases.json").write_text(json.dumps(rows), encoding="utf-8")


def measure_all(folder: Path) -> dict:
    """Microseconds of each launch of N x N numbers by workgroups of 8 x 8: the median."""
    import cupy

    beside = import_module("measure")
    rows = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    device = beside.device_at_work(cupy)
    for row in rows:
        kernel = cupy.RawModule(path=str(folder / row.pop("code"))).get_function(row.pop("entry"))
        arrays = [cupy.zeros((N, N), row.pop("precision"))] * 3
        grid = tuple(N // (8 * side) for side in row["block"][::-1])
        launch = partial(beside.launched, cupy, kernel, arrays, N, grid, (8, 8))
        launch()
        row["us"] = round(statistics.median(launch() for _ in range(beside.RUNS)), 2)
    return {"device": device, "rows": rows}


def read_iterations() -> tuple[np.ndarray, np.ndarray]:
    """Return an iteration's instructions by kind (loops, KINDS), and its clocks on a scheduler."""
    from cypresskit.today.cuda_code import known
    from cypresskit.today.gpus import H200, SCHEDULERS

    clocks_us = 1e3 * H200.clock_ghz * SCHEDULERS * H200.simd_engines
    loops = {loop.name: loop.text for loop in known()}
    counts: list[Any] = []
    clocks = []
    for row in json.loads(WRITTEN.read_text(encoding="utf-8"))["rows"]:
        rows, columns = row["block"]
        letters = Counter(loops[row["name"]].replace("L", "o"))
        steps = (letters["f"] + letters["d"]) / (rows * columns)
        warps = (N / rows) * (N / columns) / 32
        took = (row["us"] - LAG_US) * clocks_us / warps / (N / steps)
        counts.append([letters[kind] for kind in KINDS])
        clocks.append(took)
    return np.array(counts, float), np.array(clocks)


def main() -> None:
    counts, clocks = read_iterations()
    fitted, *_ = np.linalg.lstsq(counts / clocks[:, np.newaxis], np.ones(len(clocks)))
    print(*(f"{kind} {clock:.2f}" for kind, clock in zip(KINDS, fitted)))
    ratio = counts @ fitted / clocks
    print(f"{len(clocks)} loops, modeled : measured {ratio.min():.2f} to {ratio.max():.2f}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        main()
    elif __package__:
        compile_all(Path(sys.argv[1]))
    else:
        print(json.dumps(measure_all(Path(sys.argv[1])), indent=1))
