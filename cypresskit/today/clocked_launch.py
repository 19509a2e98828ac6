"""``ClockedLaunch``: the warps that a share of the chip holds at once run for some iterations of
the main loop, and for twice as many; the others are extrapolated from the difference.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import WavefrontPath, pack
from cypresskit.timing.launch_time import Use, busy_shares, use_of
from cypresskit.today.cuda_access import MAX_PHASES
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.product import MatrixProduct
from cypresskit.today.sass_trace import Segment
from cypresskit.today.warps import NOTHING, Warps, What

SHARES = 4  # of the board, of which one is run
#: How numbers of the board change in a share of it, in quarters of a clock.
SCALED = (
    (SCHEDULERS, "clock_ghz l1_clocks l2_clocks dram_clocks"),
    (1 / SCHEDULERS, "l2_slice_bytes_clock"),
    (1 / SHARES, "simd_engines l2_slices l2_bytes memory_channels memory_gb_s"),
)
#: The units of a report on a kernel in CUDA, and the engine's names for them.
UNITS = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}


@dataclass(frozen=True, eq=False)
class ClockedLaunch(Warps):
    """A launch whose blocks were followed. It is run when its clocks are needed.

    Attributes
    ----------
    product
        What it computes.
    together, limit
        How many blocks a multiprocessor holds, and what limits them.
    """

    product: MatrixProduct
    together: int
    limit: str

    @cached_property
    def main(self) -> Segment:
        """The loop in which most of the work is."""
        return max(self.trace, key=lambda one: len(one.steps) * one.count)

    @cached_property
    def share(self) -> CudaGpu:
        """The share of the board that is run, in quarters of a clock. It has no memory if L2 holds
        A and B, and has room for C's lines, as after an earlier launch.
        """
        board = self.board
        changed = {
            name: type(value)(value * factor)
            for factor, names in SCALED
            for name in names.split()
            for value in [getattr(board, name)]
        }
        share = replace(board, **changed)
        sizes = [end - begin for begin, end in self.launch.bounds]
        if sum(sizes) - sizes[self.product.result] < board.l2_bytes:
            share = replace(share, dram_clocks=share.l2_clocks, memory_gb_s=1e6)
        return share

    @cached_property
    def rounds(self) -> list[tuple[int, int]]:
        """(times, blocks): how many blocks run at once on the share, and how often."""
        full = self.together * self.share.simd_engines
        whole, rest = divmod(-(-self.launch.blocks // SHARES), full)
        return [(n, some) for n, some in ((whole, full), (1, rest)) if n * some]

    def run(self, blocks: int, free: What = NOTHING) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` blocks at once, and a simulation of some
        iterations of the main loop.
        """
        paths = [
            (
                (np.arange(blocks)[:, np.newaxis] * self.block_warps + warps).ravel(),
                [self.clauses(segment, warps, blocks, free) for segment in self.trace],
            )
            for warps in self.paths
        ]

        def run_iterations(some: int) -> Outcome:
            counts = [some if one is self.main else one.count for one in self.trace]
            made = [
                WavefrontPath(warps, tuple((some, n) for some, n in zip(clauses, counts) if some))
                for warps, clauses in paths
            ]
            slots = self.together * self.block_warps
            return run(pack(made, self.block_warps), self.share, slots)

        count = self.main.count
        long = run_iterations(min(count, 2 * MAX_PHASES))
        clocks = long.end_clock
        if count > 2 * MAX_PHASES:
            slope = (clocks - run_iterations(MAX_PHASES).end_clock) / MAX_PHASES
            clocks += slope * (count - 2 * MAX_PHASES)
        return clocks / SCHEDULERS, long

    @cached_property
    def _runs(self) -> list[tuple[float, Outcome]]:
        return [self.run(blocks) for _, blocks in self.rounds]

    @property
    def clocks(self) -> float:
        """Its clocks."""
        return sum(times * clocks for (times, _), (clocks, _) in zip(self.rounds, self._runs))

    @property
    def out(self) -> Outcome:
        """The simulation of some iterations of a full round of blocks."""
        return self._runs[0][1]

    @property
    def pictured(self) -> tuple[np.ndarray, Use]:
        """The simulation's events, and what each part of the chip did, in clocks."""
        events = self.out.timeline.copy()
        events[:, 3:] /= SCHEDULERS
        use = use_of(self.out, self.share)
        wavefronts = use.wavefronts / (1, SCHEDULERS, SCHEDULERS)
        return events, replace(use, clocks=use.clocks / SCHEDULERS, wavefronts=wavefronts)

    @cached_property
    def busy(self) -> dict[str, float]:
        """The share of the time for which each unit is busy."""
        shares = busy_shares(self.out.counts, self.out.end_clock, self.share)
        return {unit: min(shares[name], 1.0) for unit, name in UNITS.items()}
