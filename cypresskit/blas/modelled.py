"""Figures of a kernel on any device, from the compiler and the timing model.

``python -m cypresskit.blas.modelled`` writes ``figures.json`` anew, in a minute or two.
"""

import argparse
import json
import os
from dataclasses import astuple
from functools import lru_cache

from tqdm import tqdm

from cypresskit.blas.figures import FILE, Figures
from cypresskit.compiler import compile
from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.timing.simulate import simulate

# rows of A and steps of k behind ``gflops``; columns too, but one for a kernel that takes a vector
N = 2048
FULL = 32  # a side of the grid of wavefronts on which the full chip's pace is taken
DEPTHS = 256, 512  # the two k from which a pace is taken


@lru_cache(maxsize=256)
def modelled(kernel: Kernel, device: Device = HD5870) -> Figures:
    """A kernel's figures, compiled and timed: its speed at N, and its pace for one wavefront and
    for a grid of them that fills the chip, each from two values of k.
    """
    card = compile(kernel.program, device).card()
    tile = (
        (8 * kernel.block[0], 8 * kernel.block[1])
        if kernel.mode == "pixel"
        else kernel.convention.multiple
    )
    rows = min(FULL * FULL * tile[0], device.texture_side)
    many = (rows, 1) if kernel.vector else (FULL * tile[0], FULL * tile[1])
    lines = []
    for m, n in (tile, many):
        short, long = (simulate(kernel, n, m=m, k=k, device=device) for k in DEPTHS)
        per_step = (long.clocks - short.clocks) / (DEPTHS[1] - DEPTHS[0])
        start = short.clocks - DEPTHS[0] * per_step
        if start < 0:  # the beginning, with cold caches, costs no more than the rest
            start = 0.0
            per_step = long.clocks / DEPTHS[1]
        engines = 1 if short.wavefronts == 1 else device.simd_engines / short.wavefronts
        lines.append((round(engines * start, 1), round(engines * per_step, 2)))
    gflops = round(simulate(kernel, N, device=device).gflops, 1)
    return Figures(card.gprs, card.loop_bundles, gflops, lines[0], lines[1], short.active)


if __name__ == "__main__":
    os.environ["CYPRESSKIT_KEEP"] = "0"  # all is timed anew
    argparse.ArgumentParser(description=__doc__).parse_args()
    rows = [
        f'"{kernel.name}": {json.dumps(astuple(modelled(kernel)))}'
        for kernel in tqdm(KERNELS.values())
    ]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")
