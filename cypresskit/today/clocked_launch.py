"""``ClockedLaunch``: the warps that a share of the chip holds at once run for some iterations of
the main loop, and for twice as many; the others are extrapolated from the difference.

All blocks do what the first one does, at addresses that grow evenly along the grid; guards at C's
edges are ignored. All warps of a block issue what any of them issues.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.units.state import SCOREBOARDS
from cypresskit.chip.work import BARRIER, Clause, Stream, WavefrontPath, pack, unit_stream
from cypresskit.timing.launch_time import busy_shares
from cypresskit.today.clause_list import ClauseList
from cypresskit.today.cuda_access import MAX_PHASES, load_clocks, memory_stream, quarters
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu
from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.product import MatrixProduct, corners
from cypresskit.today.sass import PRODUCTS, SassCode
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import WARP, Segment, TraceStep

BRANCH = 15  # clocks of a warp's branch to a label: calibrated on single warps
STORED = SCOREBOARDS - 1  # set by stores to shared memory, for which barriers wait
OTHER = "other instructions"
SHARES = 4  # of the board, of which one is run
#: How numbers of the board change in a share of it, in quarters of a clock.
SCALED = (
    (SCHEDULERS, "clock_ghz l1_clocks l2_clocks dram_clocks"),
    (1 / SCHEDULERS, "l2_slice_bytes_clock"),
    (1 / SHARES, "simd_engines l2_bytes memory_channels memory_gb_s"),
)
#: The units of a report on a kernel in CUDA, and the engine's names for them.
UNITS = {"issue": "ALU", "L1": "texture", "L2": "L2", "DRAM": "DRAM"}

What = tuple[int, str]  # a line, and "loads of" or "stores of" an array, or kinds of instructions
NOTHING: What = 0, ""


@dataclass(frozen=True, eq=False)
class ClockedLaunch:
    """A launch whose blocks were followed. It is run when its clocks are needed.

    Attributes
    ----------
    launch, code
        The launch, and its machine code.
    trace
        What the threads of its ``corners`` do.
    product
        What it computes.
    together, limit
        How many blocks a multiprocessor holds, and what limits them.
    """

    launch: GridLaunch
    code: SassCode
    trace: list[Segment]
    product: MatrixProduct
    together: int
    limit: str

    @property
    def block_warps(self) -> int:
        """The warps of a block."""
        return -(-self.launch.group // WARP)

    def what_of(self, step: TraceStep) -> What:
        """Return what a step's cost is given for."""
        one = step.one
        if not one.is_access:
            return one.line, "multiply-adds" if one.name in PRODUCTS else OTHER
        array = "shared memory" if one.is_shared else self.launch.names[step.array]
        return one.line, f"{'loads' if one.is_load else 'stores'} of {array}"

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

    def bodies(self, blocks: int, free: What = NOTHING) -> list[tuple[Clause, ...]]:
        """Return the clauses of each segment, of the first blocks, without what is ``free``."""
        return [self.clauses(segment, blocks, free) for segment in self.trace]

    def run(self, blocks: int, free: What = NOTHING) -> tuple[float, Outcome]:
        """Return the clocks of the first ``blocks`` blocks at once, and a simulation of some
        iterations of the main loop.
        """
        bodies = self.bodies(blocks, free)
        warps = np.arange(blocks * self.block_warps)

        def run_iterations(some: int) -> Outcome:
            counts = [some if one is self.main else one.count for one in self.trace]
            path = WavefrontPath(warps, tuple(each for each in zip(bodies, counts) if each[0]))
            return run(pack([path], self.block_warps), self.share, self.slots)

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

    # -- what warps do

    def clauses(self, segment: Segment, blocks: int, free: What = NOTHING) -> tuple[Clause, ...]:
        """Return the clauses of an iteration of a segment by the first blocks, without what is
        ``free``.
        """
        moves = [each for each in segment.moves() if each[0].active[0].any()]
        scoreboards = self.code.scoreboards
        set_by_loads = sum({1 << number for number in scoreboards.values()})
        made = ClauseList()
        for n, (step, move) in enumerate(moves):
            one = step.one
            is_free = self.what_of(step) == free
            if mask := one.waits & set_by_loads:
                made.wait(mask)
            if one.name == "BAR":
                made.wait(1 << STORED)
                made.clauses.append(Clause(BARRIER))
            elif (one.is_load or one.is_shared) and not is_free:
                if step.on[0].any():
                    stream = self._stream(step, move, blocks)
                    made.load(scoreboards.get(one.index, STORED), one.line, stream)
            if one.is_access or not is_free:
                issue = one.issue_clocks
                is_taken = moves[(n + 1) % len(moves)][0].one.index != one.index + 1
                made.issue += issue
                made.alone += max(issue, one.stall, 1)
                made.alone += BRANCH * (one.name == "BRA" and is_taken)
        made.flush()
        return tuple(made.clauses)

    def load_clocks(self, step: TraceStep) -> np.ndarray:
        """Return the clocks of the load unit for each warp of the first block."""
        return load_clocks(step.value[0], step.on[0], step.one.size, step.one.is_shared)

    def _stream(self, step: TraceStep, move: int, blocks: int) -> Stream:
        """Return what a load, or an access of shared memory, requests."""
        if step.one.is_shared:
            return unit_stream(np.tile(quarters(self.load_clocks(step)), blocks))
        address = self._addresses(step, blocks).reshape(-1, WARP)
        on = np.tile(step.on[0], (blocks, 1))
        return memory_stream(address, on, step.one.size, move)

    def _addresses(self, step: TraceStep, blocks: int) -> np.ndarray:
        """Return the addresses of the first blocks. Raises ``NotTimed`` if they grow unevenly."""
        first = step.value[0]
        growth = step.value[4:7] - first
        even = first + np.tensordot(corners(self.launch), growth, 1)
        if np.any((step.value != even)[7:] & step.on[7:]):
            raise NotTimed(
                f"line {step.one.line} loads from addresses that don't grow evenly along the grid:"
                " let each block begin at its number times a size"
            )
        places = np.stack(np.unravel_index(np.arange(blocks), self.launch.grid, order="F"), axis=1)
        return np.asarray(first + np.tensordot(places, growth, 1))
