"""Recompute the stored figures of pictures.

``python -m tools.stored_figures`` simulates and writes them, in about ten minutes; ``python -m
tools.stored_figures draw/published`` only some.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cypresskit as ck
from cypresskit import host
from cypresskit.editing.judgment import report_at
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.gains import LAUNCHES, Figure, Timed
from cypresskit.host.rates import kernel_rate
from tools.curves import curves

CARD = host.Machine(ck.HD5870)
PRODUCTS = {
    "round_trip_timeline": lambda n: host.round_trip_timeline(
        n, 1e9 * CARD.host.dma_gb_s, kernel_rate("dgemm_tn", n, n, n, ck.HD5870)
    ),
    "blocked_timeline": lambda n: host.blocked_timeline(n, n, n, CARD, block=1792),
    "five_stage": lambda n: host.five_stage(n, n, 2048, host.Machine(ck.HD5970)),
}


def climb(launch: Timed) -> Figure:
    """Return the speed of a launch of the climb, and the limit of its busiest unit."""
    run: Any
    if launch.kernel in PRODUCTS:
        run = PRODUCTS[launch.kernel](launch.n)
        busy = run.busy
    else:
        run = report_at(reference_kernel(launch.kernel), launch.n)
        busy = {unit: share for unit, share in run.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    gflops, ceiling = float(run.gflops), float(run.gflops / busy[unit])
    return Figure(round(gflops, 1), round(ceiling, 1), unit)


def climb_rows() -> list:
    """Return the launches of the climb and the reference kernels of its steps, with figures."""
    targets = {Timed(step.reference, step.n) for step in STEPS.values()}
    return [[launch, climb(launch)] for launch in sorted(targets | LAUNCHES)]


if __name__ == "__main__":
    os.environ["CYPRESSKIT_KEEP"] = "0"  # without cached times
    package = Path(ck.__file__).parent
    stored: dict[str, Callable[[], Any]] = {
        "data/climb": climb_rows,
        "draw/published": curves,
    }
    for place in sys.argv[1:] or stored:
        text = json.dumps(stored[place]())
        (package / f"{place}.json").write_text(text + "\n", encoding="utf-8")
