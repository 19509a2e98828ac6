"""Recompute the stored figures of pictures and of the choice of kernels.

``python -m tools.stored_figures`` simulates and writes them, in about ten minutes; ``python -m
tools.stored_figures draw/published`` only some.
"""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path
from typing import Any

import cypresskit as ck
from cypresskit import host
from cypresskit.blas.performance_table import KernelPerformance
from cypresskit.draw.climb_picture import IDEAS, Figure, Timed
from cypresskit.editing.dynamic_answers import report_at
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.host.rates import kernel_rate
from cypresskit.kernels import Kernel
from cypresskit.kernels.compiled import kernel_stats
from tools.curves import curves

CARD = host.Machine(ck.HD5870)
PRODUCTS = {
    "round_trip_timeline": lambda n: host.round_trip_timeline(
        n, 1e9 * CARD.host.dma_gb_s, kernel_rate("dgemm_tn", n, n, n, ck.HD5870)
    ),
    "blocked_timeline": lambda n: host.blocked_timeline(n, n, n, CARD, block=1792),
    "five_stage": lambda n: host.five_stage(n, n, 2048, host.Machine(ck.HD5970)),
}


#: The launches that are simulated whole: those of the contest.
WHOLE = {(step.reference, step.n) for step in STEPS.values() if step.whole}


def climb(launch: Timed) -> Figure:
    """Return the speed of a launch of the climb, and the limit of its busiest unit."""
    run: Any
    if launch.kernel in PRODUCTS:
        run = PRODUCTS[launch.kernel](launch.n)
        busy = run.busy
    else:
        run = report_at(reference_kernel(launch.kernel), launch.n, launch in WHOLE)
        busy = {unit: share for unit, share in run.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    gflops, ceiling = float(run.gflops), float(run.gflops / busy[unit])
    return Figure(round(gflops, 1), round(ceiling, 1), unit)


def climb_rows() -> list:
    """Return the launches of the climb and the reference kernels of its steps, with figures."""
    targets = {Timed(step.reference, step.n) for step in STEPS.values()}
    ideas = {launch for idea in IDEAS for launch in (idea.launch, idea.before) if launch}
    launches = targets | ideas
    return [[launch, climb(launch)] for launch in sorted(launches)]


N = 2048  # at which a kernel's Gflop/s are computed
FULL = 32  # side of the grid of wavefronts that fills the chip
DEPTHS = 256, 512  # the two k from whose difference the clocks per value of k follow


def kernel_figures(kernel: Kernel) -> KernelPerformance:
    """Return a kernel's figures on the HD 5870: statistics, speed at N, and pace.

    The pace, in clocks per value of k, is given for one wavefront, and for a grid that fills the
    chip.
    """
    compiled = kernel_stats(kernel)
    tile = kernel.convention.multiple
    if kernel.mode == "pixel":
        tile = 8 * kernel.block[0], 8 * kernel.block[1]
    rows = min(FULL * FULL * tile[0], ck.HD5870.texture_side)
    many = (rows, 1) if kernel.is_vector else (FULL * tile[0], FULL * tile[1])
    paces = []
    for m, n in (tile, many):
        short, long = (ck.simulate(kernel, n, m=m, k=k) for k in DEPTHS)
        per_step = (long.clocks - short.clocks) / (DEPTHS[1] - DEPTHS[0])
        start = short.clocks - DEPTHS[0] * per_step
        if start < 0:  # the first iterations, with cold caches, are no slower than the others
            start = 0.0
            per_step = long.clocks / DEPTHS[1]
        engines = 1 if short.wavefronts == 1 else ck.HD5870.simd_engines / short.wavefronts
        paces.append((round(engines * start, 1), round(engines * per_step, 2)))
    gflops = round(ck.simulate(kernel, N).gflops, 1)
    alone, full = paces
    return KernelPerformance(
        compiled.gprs, compiled.bundles_per_iteration, gflops, alone, full, short.active_wavefronts
    )


if __name__ == "__main__":
    os.environ["CYPRESSKIT_KEEP"] = "0"  # without cached times
    package = Path(ck.__file__).parent
    stored: dict[str, Callable[[], Any]] = {
        "blas/performance_table": lambda: {
            name: astuple(kernel_figures(it)) for name, it in ck.kernels.items()
        },
        "draw/climb": climb_rows,
        "draw/published": curves,
    }
    for place in sys.argv[1:] or stored:
        text = json.dumps(stored[place]())
        (package / f"{place}.json").write_text(text + "\n", encoding="utf-8")
