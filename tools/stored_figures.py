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
from cypresskit.draw.climb_picture import IDEAS, Figure, Timed
from cypresskit.editing.steps import STEPS
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels.generated import block_kernel
from cypresskit.teach.l04_registers.dial import point, settings, timed


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


#: The blocks of lesson 02, which the catalogue doesn't have.
BLOCKS = {f"block_{b}x{b}": block_kernel(b, b) for b in (2, 4, 8)}


def climb(launch: Timed) -> Figure:
    """What a launch of the climb reaches, and what its busiest unit would allow."""
    run: Any
    if launch.kernel in PRODUCTS:
        run = PRODUCTS[launch.kernel](launch.n)
        busy = run.busy
    else:
        kernel = BLOCKS.get(launch.kernel, launch.kernel)
        run = ck.simulate(kernel, launch.n, style=launch.style or "amd")
        runs = run.clocks / (1e9 * run.device.clock_ghz) / run.seconds  # the launch uses no unit
        busy = {unit: runs * share for unit, share in run.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    gflops, ceiling = float(run.gflops), float(run.gflops / busy[unit])
    return Figure(round(gflops, 1), round(ceiling, 1), unit)


def climb_rows() -> list:
    """Of each launch of the climb and each good par, what names it, and its figure."""
    pars = {Timed(step.good, step.n) for step in STEPS.values()}
    launches = pars | {launch for idea in IDEAS for launch in (idea.launch, idea.before) if launch}
    return [[(n.kernel, n.n, n.style), climb(n)] for n in sorted(launches, key=lambda n: n[:3])]


if __name__ == "__main__":
    package = Path(ck.__file__).parent
    for place, figures in {"draw/climb": climb_rows(), "teach/l04_registers/dial": dial()}.items():
        (package / f"{place}.json").write_text(json.dumps(figures) + "\n", encoding="utf-8")
