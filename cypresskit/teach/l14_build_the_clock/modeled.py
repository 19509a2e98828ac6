"""Lesson 14: what the reader's clock is compared with, the model's clock."""

from dataclasses import replace
from typing import Any

from cypresskit.devices import HD5870
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.own import Source
from cypresskit.teach.l14_build_the_clock.checks import size_of_launch
from cypresskit.timing import Report, simulate

LONG, ROUNDS = 384, 2  # iterations and rounds of the model's launches; all rounds are full
NO_DRAM = {"memory_gb_s": 1e5, "l2_slice_bytes_clock": 1e5, "dram_row_clocks": 0}
#: Boards without what the reader's clock lacks, by the limit that the model reports.
WITHOUT: dict[str, dict[str, Any]] = {
    "LDS": {"lds_banks": 1024},
    "DRAM": NO_DRAM,
    "DRAM rows": NO_DRAM,
    "DRAM channel": NO_DRAM,
}


def modeled(kernel: Source, wavefronts: int = 0, without: str = "") -> Report:
    """Return the model's report on a launch in which all rounds are full, with so many wavefronts
    on an engine, or as many as fit; on a board without a limit.
    """
    stats = kernel_stats(kernel)
    rows = ROUNDS * (wavefronts or stats.wavefronts)
    m, n, k = size_of_launch(kernel, rows, HD5870.simd_engines, LONG)
    pool = stats.gprs * wavefronts or HD5870.register_pool
    device = replace(HD5870, register_pool=pool, **WITHOUT.get(without, {}))
    return simulate(kernel, m=m, n=n, k=k, device=device)
