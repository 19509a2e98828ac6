"""``ClockedLaunch``: the warps that a share of the chip holds at once run for some iterations of
the main loop, and for twice as many; the others are extrapolated from the difference.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import Clause, WavefrontPath, pack
from cypresskit.timing.launch_time import Use, busy_shares, use_of
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.product import MatrixProduct
from cypresskit.today.sass_trace import Segment
from cypresskit.today.warps import NOTHING, Warps, What

SHARES = 4  # of the board, of which one is run
MAX_EFFORT = 500_000  # sectors and clauses of a run
MIN_ITERATIONS = 4  # of a run
#: The units of a report on a kernel in CUDA, and the engine's names for them.
UNITS = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}

Paths = list[tuple[np.ndarray, list[tuple[Clause, ...]]]]


@dataclass(frozen=True, eq=False)
class ClockedLaunch(Warps):
    """A launch whose first round of blocks was followed. It is run when its clocks are needed.

    Attributes
    ----------
    product
        What it computes.
    together, limit
        How many blocks a multiprocessor holds, and what limits them.
    rounds
        (times, blocks): how many blocks run at once on a share, and how often.
    """

    product: MatrixProduct
    together: int
    limit: str
    rounds: list[tuple[float, int]]

    @property
    def blocks(self) -> int:
        """The blocks of the launch."""
        return math.prod(self.launch.grid)

    @cached_property
    def main(self) -> Segment:
        """The loop in which most of the work is."""
        return max(self.trace, key=lambda one: len(one.steps) * one.count)

    @cached_property
    def share(self) -> CudaGpu:
        """The share of the board that is run, in quarters of a clock."""
        board = self.board
        share = replace(
            board,
            simd_engines=board.simd_engines // SHARES,
            l2_slices=board.l2_slices // SHARES,
            l2_bytes=board.l2_bytes // SHARES,
            memory_channels=board.memory_channels // SHARES,
            memory_gb_s=board.memory_gb_s / SHARES,
        )
        return share.in_quarters

    @cached_property
    def cold(self) -> float:
        """The share of its rounds that wait for memory: none if L2 holds all arrays, all if it
        doesn't hold what a round loads, and else as many as load the factors once.
        """
        sizes = [end - begin for begin, end in self.launch.bounds]
        if sum(sizes) <= self.board.l2_bytes:
            return 0.0
        first, later = (
            [
                ((step.address + n * move) // self.board.line_bytes)[step.on]
                for step, move in self.main.moves()
                if step.one.is_load and not step.one.is_shared
            ]
            for n in (0, 1)
        )
        lines = len(np.unique(np.concatenate(first)))
        added = len(np.unique(np.concatenate([*first, *later]))) - lines
        loaded = SHARES * self.board.line_bytes * (lines + (self.main.count - 1) * added)
        if loaded > self.board.l2_bytes:
            return 1.0
        factors = sum(sizes) - sizes[self.product.result]
        return min(math.ceil(factors / loaded) / max(self.rounds[0][0], 1), 1.0)

    def round(self, blocks: int, free: What = NOTHING, some: int = 0) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` blocks at once, on average over cold and other
        rounds, and a run of ``some`` iterations of the main loop, or of as many as effort allows.
        """
        paths: Paths = [
            (warps, [self.clauses(segment, warps, free) for segment in self.trace])
            for warps in self.paths(blocks * self.block_warps)
        ]
        near = replace(self.share, dram_clocks=self.share.l2_clocks, memory_gb_s=1e6)
        boards = ((self.cold, self.share), (1 - self.cold, near))
        runs = [(share, *self._run(paths, board, some)) for share, board in boards if share]
        most = max(runs, key=lambda each: each[0])
        return sum(share * clocks for share, clocks, _ in runs), most[2]

    def _run(self, paths: Paths, board: CudaGpu, some: int) -> tuple[float, Outcome]:
        at = self.trace.index(self.main)
        each, phases = 0.0, 1
        for warps, clauses in paths:
            streams = [stream for clause in clauses[at] for stream in clause.streams]
            each += len(clauses[at]) * len(warps) + sum(len(s.line) / s.phases for s in streams)
            phases = max([phases, *(stream.phases for stream in streams)])
        some = some or max(int(MAX_EFFORT // max(each, 1)), MIN_ITERATIONS)
        some = -(-some // phases) * phases
        count = self.main.count
        if count <= 2 * some:
            out = self._run_iterations(paths, board, count)
            return out.end_clock / SCHEDULERS, out
        short, long = (self._run_iterations(paths, board, n) for n in (some, 2 * some))
        slope = (long.end_clock - short.end_clock) / some
        return (short.end_clock + slope * (count - some)) / SCHEDULERS, long

    def _run_iterations(self, paths: Paths, board: CudaGpu, count: int) -> Outcome:
        counts = [count if segment is self.main else segment.count for segment in self.trace]
        made = [
            WavefrontPath(warps, tuple((some, n) for some, n in zip(clauses, counts) if some))
            for warps, clauses in paths
        ]
        return run(pack(made, self.block_warps), board, self.together * self.block_warps)

    @cached_property
    def _rounds(self) -> tuple[float, Outcome]:
        runs = [(times, self.round(blocks)) for times, blocks in self.rounds]
        return sum(times * clocks for times, (clocks, _) in runs), runs[0][1][1]

    @property
    def clocks(self) -> float:
        """Its clocks."""
        return self._rounds[0]

    @property
    def out(self) -> Outcome:
        """The simulation of some iterations of a full round of blocks."""
        return self._rounds[1]

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
        found = {unit: shares[name] for unit, name in UNITS.items()}
        return found | {"DRAM": self.cold * found["DRAM"]}
