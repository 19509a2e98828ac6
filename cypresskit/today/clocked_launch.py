"""``ClockedLaunch``: the warps that the chip holds at once run for some iterations of the main
loop, and for twice as many; the others are extrapolated from the difference.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import WavefrontPath, pack
from cypresskit.timing.launch_time import Use, busy_shares, use_of
from cypresskit.today.cuda_access import WARP
from cypresskit.today.gpus import SCHEDULERS, CudaGpu
from cypresskit.today.grid_launch import GridLaunch, bytes_of
from cypresskit.today.product import MatrixProduct
from cypresskit.today.sass import SassCode
from cypresskit.today.sass_trace import TraceStep, steps_of
from cypresskit.today.warps import (
    NOTHING,
    Segment,
    Warps,
    What,
    sectors_of,
    segments_of,
    what_of,
)

MAX_EFFORT = 1_000_000  # sectors and clauses of a run
MIN_ITERATIONS = 12  # of a run
#: The units of a report on a kernel in CUDA, and the engine's names for them.
UNITS = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}


@dataclass(frozen=True)
class Totals:
    """What a whole launch does.

    Attributes
    ----------
    grid
        How many blocks do something, along each axis.
    stored
        Elements of C that are stored.
    flops
        Floating-point operations of the product.
    """

    grid: tuple[int, int, int]
    stored: float
    flops: float

    @property
    def blocks(self) -> int:
        return math.prod(self.grid)


@dataclass(frozen=True, eq=False)
class ClockedLaunch:
    """A launch whose blocks were followed, on a board. It is run when its clocks are needed.

    Attributes
    ----------
    launch, code, product, totals
        The launch, its machine code, what it computes, and what all blocks do.
    board, shares
        The board, and the number of equal shares that it is divided into; one is run.
    together, limit
        How many blocks a multiprocessor holds, and what limits them.
    rounds
        (times, blocks): how many blocks run at once, and how often.
    items
        The trace of the blocks of the first round.
    """

    launch: GridLaunch
    code: SassCode
    product: MatrixProduct
    totals: Totals
    board: CudaGpu
    shares: int
    together: int
    limit: str
    rounds: list[tuple[float, int]]
    items: list

    @property
    def group(self) -> int:
        """The threads of a block."""
        return math.prod(self.launch.threads)

    @property
    def block_warps(self) -> int:
        return -(-self.group // WARP)

    @property
    def traced(self) -> int:
        """The blocks that were followed."""
        return self.rounds[0][1]

    @cached_property
    def warps(self) -> Warps:
        return Warps(self.launch, self.code, self.board, segments_of(self.items), self.group)

    @cached_property
    def main(self) -> Segment:
        """The loop in which most of the work is."""
        return max(self.warps.segments, key=lambda one: len(one.steps) * one.count)

    @cached_property
    def share(self) -> CudaGpu:
        """The share of the board that is run, in quarters of a clock."""
        board, shares = self.board, self.shares
        share = replace(
            board,
            simd_engines=board.simd_engines // shares,
            l2_slices=max(board.l2_slices // shares, 1),
            l2_bytes=board.l2_bytes // shares,
            memory_channels=max(board.memory_channels // shares, 1),
            memory_gb_s=board.memory_gb_s / shares,
        )
        return share.in_quarters

    @cached_property
    def served_share(self) -> CudaGpu:
        """That share, where L2 serves all loads."""
        l2_clocks = SCHEDULERS * self.board.l2_clocks
        return replace(self.share, dram_clocks=l2_clocks, memory_gb_s=1e6)

    def on_a_share(self, least: int) -> "ClockedLaunch":
        """Return the launch on one of ``least`` equal shares of the board, or of more."""
        shares = max(self.shares, least)
        rounds = [(times, -(-blocks * self.shares // shares)) for times, blocks in self.rounds]
        found = replace(self, shares=shares, rounds=rounds)
        found.__dict__["warps"] = self.warps
        return found

    # -- what L2 holds

    @property
    def fits_in_l2(self) -> bool:
        """Whether it holds all arrays."""
        return sum(map(bytes_of, self.launch.arguments)) <= self.board.l2_bytes

    @cached_property
    def loaded_bytes(self) -> int:
        """Bytes that a round of blocks loads in the main loop."""
        loads = [one for one in self.main.steps if one.step.one.is_load and one.step.array >= 0]
        if not loads:
            return 0
        line = self.board.line_bytes
        some = [(one.address // line)[one.step.on] for one in loads]
        later = [((one.address + one.move) // line)[one.step.on] for one in loads]
        first = np.unique(np.concatenate(some))
        added = len(np.unique(np.concatenate([first, *later]))) - len(first)
        return self.shares * line * (len(first) + (self.main.count - 1) * added)

    @cached_property
    def cold(self) -> float:
        """The share of its rounds that wait for memory: none if L2 holds all arrays, all if it
        doesn't hold what a round loads, and else as many as load the factors once.
        """
        if self.fits_in_l2:
            return 0.0
        if self.loaded_bytes > self.board.l2_bytes:
            return 1.0
        once = sum(bytes_of(self.launch.arguments[number]) for number in {*self.product.factors})
        rounds = max(int(sum(times for times, _ in self.rounds)), 1)
        return min(math.ceil(once / max(self.loaded_bytes, 1)) / rounds, 1.0)

    # -- runs

    def clauses(self, blocks: int, free: What = NOTHING) -> list[tuple[np.ndarray, list]]:
        """Return, for each path, the warps of the first ``blocks`` blocks that take it, and the
        clauses of each segment.
        """
        warps = self.warps
        return [
            (some, [warps.clauses(segment, some, free) for segment in warps.segments])
            for some in warps.paths(blocks * self.block_warps)
        ]

    def round(self, blocks: int, free: What = NOTHING, some: int = 0) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` blocks at once, on average over cold and other
        rounds, and a run of ``some`` iterations of the main loop, or of as many as effort allows.
        """
        paths = self.clauses(blocks, free)
        boards = ((self.cold, self.share), (1 - self.cold, self.served_share))
        runs = [(share, *self._run(paths, board, some)) for share, board in boards if share]
        most = max(runs, key=lambda each: each[0])
        return sum(share * clocks for share, clocks, _ in runs), most[2]

    def _run(self, paths: list, board: CudaGpu, some: int) -> tuple[float, Outcome]:
        at = self.warps.segments.index(self.main)
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

    def _run_iterations(self, paths: list, board: CudaGpu, count: int) -> Outcome:
        segments = self.warps.segments
        made = [
            WavefrontPath(
                warps,
                tuple(
                    (clauses, count if segment is self.main else segment.count)
                    for segment, clauses in zip(segments, every)
                    if clauses
                ),
            )
            for warps, every in paths
        ]
        return run(pack(made, self.block_warps), board, self.together * self.block_warps)

    @cached_property
    def _rounds(self) -> tuple[float, Outcome]:
        runs = [(times, self.round(blocks)) for times, blocks in self.rounds]
        return sum(times * clocks for times, (clocks, _) in runs), runs[0][1][1]

    @property
    def loop_clocks(self) -> float:
        """Its clocks without stores."""
        return self._rounds[0]

    @property
    def out(self) -> Outcome:
        """The simulation of some iterations of a full round of blocks."""
        return self._rounds[1]

    @property
    def repeats(self) -> float:
        """How many times the whole launch repeats the simulation."""
        return self.loop_clocks * SCHEDULERS / self.out.end_clock

    @property
    def pictured(self) -> tuple[np.ndarray, Use]:
        """The simulation's events, and what each part of the chip did, in clocks."""
        events = self.out.timeline.copy()
        events[:, 3:] /= SCHEDULERS
        use = use_of(self.out, self.share)
        wavefronts = use.wavefronts / (1, SCHEDULERS, SCHEDULERS)
        return events, replace(use, clocks=use.clocks / SCHEDULERS, wavefronts=wavefronts)

    @cached_property
    def stored(self) -> dict[What, float]:
        """The sectors that each line's stores request, in the whole launch."""
        found: dict[What, float] = {}
        for step, times in steps_of(self.items):
            if step.one.is_access and not step.one.is_load and not step.one.is_shared:
                sectors, _ = sectors_of(step, self.group, self.board)
                what = what_of(step, self.launch)
                whole = sectors * times * self.totals.blocks / self._traced_blocks(step)
                found[what] = found.get(what, 0.0) + whole
        return found

    def _traced_blocks(self, step: TraceStep) -> float:
        return len(step.on) / self.group

    @cached_property
    def busy(self) -> dict[str, float]:
        """Clocks for which each unit is busy."""
        board = self.board
        sectors = sum(self.stored.values())
        total = self.totals.blocks
        most = -(-total // board.simd_engines)  # blocks of a multiprocessor
        bytes_clock = board.memory_gb_s * board.dram_efficiency / board.clock_ghz
        storing = {
            "issue": 0.0,
            "L1": board.stored_sector_clocks * sectors * most / total,
            "L2": board.l2_stored_sector_clocks * sectors,
            "DRAM": 0.0 if self.fits_in_l2 else board.line_bytes * sectors / bytes_clock,
        }
        shares = busy_shares(self.out.counts, self.out.end_clock, self.share)
        found = {unit: shares[UNITS[unit]] * self.loop_clocks + storing[unit] for unit in UNITS}
        found["DRAM"] = self.cold * shares["DRAM"] * self.loop_clocks + storing["DRAM"]
        return found

    @property
    def clocks(self) -> float:
        """Its clocks."""
        starting = self.board.workgroup_clocks * math.prod(self.launch.grid)
        return max(self.loop_clocks, starting, *self.busy.values())
