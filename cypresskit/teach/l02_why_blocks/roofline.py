"""The roofline of the HD 5870 in single precision, and kernels under it.

A b x b block in registers needs 1/b words of four bytes per flop (Nakasato, equation 1), so it
works at b/4 flops for each byte fetched. Left out: other precisions.
"""

from collections.abc import Mapping

from cypresskit.devices import HD5870
from cypresskit.draw.line_chart import line_chart
from cypresskit.draw.player import Player
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.teach.l02_why_blocks.checks import delivered
from cypresskit.timing import Report

BLOCKS = 1, 2, 4, 8, 10, 16  # b; at 10 the texture units feed the whole peak
PUBLISHED = "sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"
WORD = 4  # bytes


def roofline(paces: Mapping[int, Report] | None = None) -> Player:
    """A chart of the Gflop/s that each memory allows by flops per byte, and of published kernels as
    they were measured; or of a kernel's reports by its block, such as ``paces`` gives. Kernels
    stand at the flops per byte of their blocks.
    """
    lines = {
        memory: {b / WORD: min(HD5870.single_gflops, rate * b / WORD) for b in BLOCKS}
        for memory, rate in delivered(HD5870).items()
    }
    if paces:
        lines["plain kernels, modelled"] = {b / WORD: paces[b].gflops for b in paces}
    for name in () if paces else PUBLISHED:
        intensity = KERNELS[name].block[0] / WORD
        lines[f"{name}, measured"] = {intensity: published(name)["gflops_max"]}
    title = "Roofline of the HD 5870, single precision"
    return line_chart(lines, "flops per byte", "Gflop/s", log="xy", title=title)
