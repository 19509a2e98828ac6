"""The figures that pictures have stored, simulated anew in some two minutes: ``python -m
tools.stored_figures``.
"""

import base64
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np

import cypresskit as ck
from cypresskit import host
from cypresskit.draw.dial import point, settings, timed
from cypresskit.draw.road import RUNGS
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels.generated import block_kernel


def dial() -> dict:
    """The grid of lesson 04's dial."""
    points = [point(timed(*setting)) for setting in settings()]
    arrays = [part for entry in points for part in (*entry.bars, entry.alu, entry.texture)]
    numbers = np.concatenate([part.ravel() for part in arrays]).astype(np.uint16)
    parts = base64.b64encode(zlib.compress(numbers.tobytes(), 9)).decode()
    return {
        "gflops": [entry.gflops for entry in points],
        "rows": [len(part) for part in arrays],
        "parts": parts,
    }


CARD = host.Machine(ck.HD5870)
PRODUCTS = {
    "round_trip": lambda n: host.round_trip(
        n, 1e9 * CARD.host.dma_gb_s, kernel_rate("dgemm_tn", n, n, n, ck.HD5870)
    ),
    "blocked_time": lambda n: host.blocked_time(n, n, n, CARD, block=1792),
    "five_stage": lambda n: host.five_stage(n, n, 2048, host.Machine(ck.HD5970)),
}


def road(launch: str) -> tuple[float, float, str]:
    """(Gflop/s, what its busiest unit would allow without a pause, that unit) of a launch of the
    road.
    """
    name, n, *style = launch.split()
    run: Any
    if name in PRODUCTS:
        run = PRODUCTS[name](int(n))
        busy = run.busy
    else:
        b = name.removeprefix("block_").partition("x")[0]
        kernel = block_kernel(int(b), int(b)) if name.startswith("block_") else name
        run = ck.simulate(kernel, int(n), style=(*style, "amd")[0])
        runs = run.clocks / (1e9 * run.device.clock_ghz) / run.seconds  # the launch uses no unit
        busy = {unit: runs * share for unit, share in run.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    return round(float(run.gflops), 1), round(float(run.gflops / busy[unit]), 1), unit


if __name__ == "__main__":
    launches = sorted({launch for rung in RUNGS for launch in (rung.launch, rung.before) if launch})
    for name, kept in {
        "road": {launch: road(launch) for launch in launches},
        "dial": dial(),
    }.items():
        (Path(ck.draw.__file__).parent / f"{name}.json").write_text(
            json.dumps(kept) + "\n", encoding="utf-8"
        )
