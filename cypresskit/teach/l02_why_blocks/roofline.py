"""The roofline of the HD 5870 in single precision, over the block's side, and kernels under it.

A b x b block in registers needs 1/b words of four bytes per flop (Nakasato, equation 1), so it
works at b/4 flops for each byte fetched. Left out: other precisions.
"""

from collections.abc import Iterable
from statistics import harmonic_mean

from cypresskit.devices import HD5870
from cypresskit.draw.line_chart import line_chart
from cypresskit.draw.player import Player
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.teach.l02_why_blocks.checks import memory_bandwidths
from cypresskit.timing import Report

BLOCKS = 1, 2, 4, 8, 10, 16  # b; from 10 on, the texture units suffice for the peak
PUBLISHED = "sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"
WORD = 4  # bytes


def roofline(reports: Iterable[Report] = (), name: str = "") -> Player:
    """Draw the roof of each memory: Gflop/s over b, for blocks of b x b. Below are the kernels of
    ``reports``, the chip alone, as a line with this ``name``, or else published ones, as measured.

    A block of other sides is drawn at their harmonic mean, as it needs as many words per flop.
    """
    lines: dict[str, dict[float, float]] = {
        memory: {b: min(HD5870.single_gflops, rate * b / WORD) for b in BLOCKS}
        for memory, rate in memory_bandwidths().items()
    }
    points = {
        harmonic_mean(report.gemm_kernel.block): report.gflops
        for report in reports
        if report.gemm_kernel
    }
    if points:
        lines[name] = points
    for measured in () if points else PUBLISHED:
        block = KERNELS[measured].block
        lines[f"{measured}, measured"] = {block[0]: published(measured)["gflops_max"]}
    title = "Roofline of the HD 5870, single precision"
    return line_chart(lines, "b, for a block of b x b", "Gflop/s", title=title)
