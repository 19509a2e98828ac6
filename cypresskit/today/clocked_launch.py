"""``ClockedLaunch``: the warps that a share of the chip holds at once run for some iterations of
the main loop, and for twice as many; the others are extrapolated from the difference.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import Clause, WavefrontPath, pack
from cypresskit.timing.launch_time import busy_shares
from cypresskit.today.cuda_access import MAX_PHASES
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu
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

    @property
    def slots(self) -> int:
        """The warps that a multiprocessor holds."""
        return self.together * self.block_warps

    @cached_property
    def main(self) -> Segment:
        """The loop in which most of the work is."""
        return max(self.trace, key=lambda one: len(one.steps) * one.count)

    @cached_property
    def share(self) -> CudaGpu:
        """The share of the board that is run, in quarters of a clock. It has no memory if L2 holds
        A and B, and has room for C's lines, as after an earlier launch.
        """
        changed = {
            name: type(value)(value * factor)
            for factor, names in SCALED
            for name in names.split()
            for value in [getattr(H200, name)]
        }
        share = replace(H200, **changed)
        sizes = [end - begin for begin, end in self.launch.bounds]
        if sum(sizes) - sizes[self.product.result] < H200.l2_bytes:
            share = replace(share, dram_clocks=share.l2_clocks, memory_gb_s=1e6)
        return share

    @cached_property
    def rounds(self) -> list[tuple[int, int, float, Outcome]]:
        """(times, blocks, clocks, simulation): how often so many blocks run at once on the share,
        the clocks, and a simulation of some iterations.
        """
        full = self.together * self.share.simd_engines
        whole, rest = divmod(-(-self.launch.blocks // SHARES), full)
        rounds = (whole, full), (1, rest)
        return [(times, some, *self.run(some)) for times, some in rounds if times * some]

    def paths_of(
        self, blocks: int, free: What = NOTHING
    ) -> Iterator[tuple[np.ndarray, list[tuple[Clause, ...]]]]:
        """Yield warps on the same path, and their clauses in each segment of the trace."""
        for warps in self.paths:
            yield warps, [self.clauses(segment, warps, blocks, free) for segment in self.trace]

    def run(self, blocks: int, free: What = NOTHING) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` blocks at once, and a simulation of some
        iterations of the main loop.
        """
        paths = [*self.paths_of(blocks, free)]

        def run_iterations(some: int) -> Outcome:
            counts = [some if one is self.main else one.count for one in self.trace]
            made = [
                WavefrontPath(
                    (np.arange(blocks)[:, np.newaxis] * self.block_warps + warps).ravel(),
                    tuple((some, n) for some, n in zip(clauses, counts) if some),
                )
                for warps, clauses in paths
            ]
            return run(pack(made, self.block_warps), self.share, self.slots)

        count = self.main.count
        long = run_iterations(min(count, 2 * MAX_PHASES))
        clocks = long.end_clock
        if count > 2 * MAX_PHASES:
            slope = (clocks - run_iterations(MAX_PHASES).end_clock) / MAX_PHASES
            clocks += slope * (count - 2 * MAX_PHASES)
        return clocks / SCHEDULERS, long

    @property
    def clocks(self) -> float:
        """Its clocks."""
        return sum(times * clocks for times, _, clocks, _ in self.rounds)

    @property
    def out(self) -> Outcome:
        """The simulation of some iterations of a full round of blocks."""
        return self.rounds[0][3]

    @cached_property
    def busy(self) -> dict[str, float]:
        """The share of the time for which each unit is busy."""
        shares = busy_shares(self.out.counts, self.out.end_clock, self.share)
        return {unit: min(shares[name], 1.0) for unit, name in UNITS.items()}
