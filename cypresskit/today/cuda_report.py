"""``CudaReport``: how long a matrix product in CUDA takes, why, and how sure that is."""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from linecache import getline
from typing import Any

import numpy as np

from cypresskit.chip.work import ALU, BARRIER, WAIT
from cypresskit.tables import aligned, duration, plural, quantity
from cypresskit.timing.launch_time import bound, read_only
from cypresskit.timing.limits import Limit, WhatIf
from cypresskit.timing.report import ChipReport
from cypresskit.today.clocked_launch import MIN_ITERATIONS, ClockedLaunch
from cypresskit.today.cuda_access import WarpAccess, requests_of, warps_of
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu
from cypresskit.today.sass_trace import TraceStep, steps_of
from cypresskit.today.warps import MULTIPLY_ADDS, OTHER, What, what_of

WAITS = {ALU: "a free scheduler", BARRIER: "a barrier", WAIT: "loads of the previous iteration"}
SHOWN_WAIT = 0.02  # of a warp's time
COST_SHARES = 4  # of a board, of which one is run
LITTLE = 1e-9  # clocks
COVERED = 0.999  # of C
#: What a chip may lack, and how the board changes.
LIMITS: dict[str, dict[str, Any]] = {
    "overhead of launch and blocks": {"launch_overhead_us": 0.0, "workgroup_clocks": LITTLE},
    "time of stores in L1 and L2": {
        "stored_sector_clocks": LITTLE,
        "l2_stored_sector_clocks": LITTLE,
    },
    "bandwidth of L2 and DRAM": {"l2_slice_bytes_clock": 1e6, "memory_gb_s": 1e6},
    "latency of L2 and DRAM": {"l2_clocks": H200.l1_clocks, "dram_clocks": H200.l1_clocks},
}
#: How far modeled times were off measured ones, by class, on products that no rule was made from
#: (docs/current_gpu.md).
ACCURACY = {
    "tiles": "within 20 % in 24 of 31 products from tiles that no rule was made from, measured on"
    " an H200; modeled times were 0.81 to 1.44 times the measured ones",
    "blocks": "within 20 % in 8 of 10 products with blocks in registers that no rule was made from,"
    " measured on an H200; modeled times were 0.87 to 1.33 times the measured ones",
    "sums": "two products with one sum per thread that no rule was made from were measured on an"
    " H200; modeled times were 0.92 and 0.94 times the measured ones",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CudaReport(ChipReport):
    """A timed launch of a CUDA kernel: ``ChipReport`` with warps for wavefronts, and the units
    "issue", "L1", "L2" and "DRAM". It has neither hit rates nor bytes: they aren't known well.

    Attributes
    ----------
    launch
        The launch.
    """

    device: CudaGpu
    launch: ClockedLaunch = field(repr=False)

    @property
    def launch_overhead_us(self) -> float:
        """The launch overhead of the board's record, in microseconds."""
        return self.device.launch_overhead_us

    @property
    def accuracy(self) -> str:
        """How far the times of such launches were off measured ones."""
        items = self.launch.items
        sums = {step.one.index for step, _ in steps_of(items) if step.is_result}
        is_tiled = any(step.one.is_shared for step, _ in steps_of(items))
        return ACCURACY["tiles" if is_tiled else "blocks" if len(sums) > 1 else "sums"]

    @cached_property
    def sectors(self) -> dict[What, float]:
        """Sectors of 32 bytes that a warp requests with a load, on average, by (line, "loads of"
        an array).
        """
        found: dict[What, list[float]] = defaultdict(list)
        for step in self._accesses("memory"):
            requested, warps = _requested(step, self.launch)
            found[what_of(step, self.launch.launch)].append(len(requested.sectors) / warps)
        return {what: sum(counts) / len(counts) for what, counts in found.items()}

    @cached_property
    def conflicts(self) -> dict[What, float]:
        """How many clocks the load unit takes for a warp's access on average, over those that it
        would take without bank conflicts, by (line, "loads of" an array).
        """
        found: dict[What, list[float]] = defaultdict(list)
        for step in self._accesses("all"):
            requested, warps = _requested(step, self.launch)
            least = max(step.one.size // 4, 1)
            found[what_of(step, self.launch.launch)].append(
                float(requested.clocks.sum()) / warps / least
            )
        return {what: sum(counts) / len(counts) for what, counts in found.items()}

    def _accesses(self, where: str) -> Iterator[TraceStep]:
        """Yield the loads of memory, or all accesses but stores to memory."""
        for step, _ in steps_of(self.launch.items):
            one = step.one
            is_wanted = (
                one.is_load and not one.is_shared
                if where == "memory"
                else (one.is_load or one.is_shared)
            )
            if one.is_access and is_wanted and step.on.any():
                yield step

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's lifetime in which it waits: for the loads of a line (until the
        load unit serves them, and for their data), for other warps of its block at a barrier, for
        a scheduler, and for its stores.
        """
        launch = self.launch
        found: dict[str, float] = defaultdict(float)
        lifetime = launch.out.resident_clocks * launch.clocks / launch.loop_clocks
        found["its stores"] = lifetime - launch.out.resident_clocks
        every = [
            c for _, segments in launch.clauses(launch.traced) for some in segments for c in some
        ]
        for clause, waited in zip(every, launch.out.ledger.waited.tolist()):
            lines = sorted(set(clause.sources))
            loads = f"the loads of {plural('line', len(lines))} {' and '.join(map(str, lines))}"
            found[loads if lines else WAITS[clause.kind]] += waited
        shares = {name: waited / lifetime for name, waited in found.items()}
        return dict(sorted(shares.items(), key=lambda each: -each[1]))

    @cached_property
    def line_costs(self) -> "CudaLineCosts":
        """What ``ck.line_costs`` returns."""
        launch = self.launch
        few = launch.on_a_share(COST_SHARES)
        blocks = few.rounds[0][1]
        whole, _ = few.round(blocks, some=MIN_ITERATIONS)
        steps = [step for step, _ in steps_of(launch.items) if not _is_stored(step)]
        found = {}
        for what in sorted({what_of(step, launch.launch) for step in steps}):
            free, _ = few.round(blocks, what, MIN_ITERATIONS)
            found[what] = launch.loop_clocks / launch.clocks * (1 - free / whole)
        sectors = sum(launch.stored.values())
        for what, count in launch.stored.items():
            found[what] = (launch.clocks - launch.loop_clocks) * count / sectors / launch.clocks
        return CudaLineCosts(self, found)

    @cached_property
    def what_if(self) -> WhatIf:
        """What ``ck.what_if`` returns."""
        few = self.launch.on_a_share(COST_SHARES)
        scale = self.gflops / report_on(few).gflops
        steps = []
        board = self.device
        reached = self.gflops
        for name, change in LIMITS.items():
            alone = scale * report_on(replace(few, board=replace(self.device, **change))).gflops
            steps.append(Limit(name, "", alone, alone / self.gflops - 1, reached))
            board = replace(board, **change)
            reached = alone
            if steps[1:]:
                reached = scale * report_on(replace(few, board=board)).gflops
        steps.append(Limit("all else", "", None, None, reached))
        return WhatIf(self, tuple(reversed(steps)))

    def _rows(self) -> list[str]:
        timed, board = self.launch, self.device
        launch, code = timed.launch, timed.code
        blocks = math.prod(launch.grid)
        waits = [
            f"{100 * share:.0f} for {name}"
            for name, share in self.waits.items()
            if share > SHOWN_WAIT
        ]
        shared = code.shared_bytes + launch.shared
        return [
            f"time {duration(self.seconds)}: {self.clocks:,.0f} clocks at {board.clock_ghz:g} GHz,"
            f" and {duration(board.launch_overhead_us * 1e-6)} to launch",
            f"grid {quantity(blocks, 'block')} of {quantity(timed.group, 'thread')}"
            f" ({quantity(timed.block_warps, 'warp')}); each of the {board.simd_engines}"
            f" multiprocessors holds up to {timed.together} at once, limited by {timed.limit}",
            *self._remarks(),
            f"code as compiled: {quantity(self.registers, 'register')} per thread,"
            f" {shared:,} bytes of shared memory per block",
            "busy " + ", ".join(f"{unit} {100 * share:.0f} %" for unit, share in self.busy.items()),
            *self._conflict_rows(),
            f"wait (% of a warp's time) {', '.join(waits) or 0}",
            f"error {self.accuracy}",
        ]

    def _remarks(self) -> Iterator[str]:
        """Yield what is unusual about the grid."""
        timed = self.launch
        blocks = math.prod(timed.launch.grid)
        c = timed.launch.arguments[timed.product.result]
        name = timed.launch.names[timed.product.result]
        covered = timed.totals.stored / math.prod(c.shape)
        if covered < COVERED:
            yield f"C    the launch stores {100 * covered:.3g} % of {name}: its grid is too small"
        if timed.totals.blocks < COVERED * blocks:
            yield f"idle {quantity(blocks - timed.totals.blocks, 'block')} beyond {name}"

    def _conflict_rows(self) -> Iterator[str]:
        """Yield a row on bank conflicts."""
        some = [
            f"line {line}, {what}: {ways:.3g}-way"
            for (line, what), ways in sorted(self.conflicts.items())
            if ways > 1.5
        ]
        if some:
            yield f"bank conflicts {'; '.join(some)}"


def _is_stored(step: TraceStep) -> bool:
    """Whether a step stores to memory, or is a barrier."""
    one = step.one
    return one.name == "BAR" or (one.is_access and not one.is_load and not one.is_shared)


def _requested(step: TraceStep, launch: ClockedLaunch) -> tuple[Any, int]:
    """Return what the first warps request with a step, and how many of them do."""
    some = slice(0, launch.group * min(launch.traced, 64))
    on = warps_of(step.on[some], launch.group)
    access = WarpAccess(step.one, warps_of(step.address[some], launch.group), on)
    return requests_of(access, launch.board), max(int(np.count_nonzero(on.any(axis=1))), 1)


@dataclass(frozen=True, repr=False)
class CudaLineCosts:
    """What each line of a CUDA kernel costs.

    Attributes
    ----------
    report
        The report on the launch.
    costs
        The share of the launch that is saved if the loads of an array, the multiply-adds, the
        stores or all other instructions of a line take no time, by (line, what). Below 0, the
        launch takes longer: by up to a tenth, that is noise.
    """

    report: CudaReport
    costs: dict[What, float]

    def __repr__(self) -> str:
        report = self.report
        title = (
            f"{report.kernel} on {report.device.name}: what each line costs, the time saved if its"
            " multiply-adds, loads, stores or other instructions took no time"
        )
        names = "line", "multiply-adds", "loads (sectors per warp)", "stores", "other", "source"
        return "\n".join([title, *aligned("  >  >  <  <  >  <", [names, *self._rows()])])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each line, with the costs of what it does."""
        cells: dict[What, list[str]] = defaultdict(list)
        for (line, what), cost in self.costs.items():
            does, _, array = what.partition(" of ")
            sectors = self.report.sectors.get((line, what))
            requested = f" ({sectors:.3g})" if sectors else ""
            percent = round(100 * cost)
            if percent or does != OTHER:
                cells[line, does].append(f"{array} {percent} %{requested}".strip())
        for line in sorted({line for line, _ in cells}):
            kinds = (MULTIPLY_ADDS, "loads", "stores", OTHER)
            columns = (", ".join(cells[line, does]) for does in kinds)
            source = getline(self.report.launch.launch.source, line).strip()
            yield str(line), *columns, source


def report_on(launch: ClockedLaunch) -> CudaReport:
    """Run a launch, and report on it."""
    board, totals = launch.board, launch.totals
    clocks = launch.clocks
    scale = board.simd_engines / launch.share.simd_engines
    busy = {unit: min(done / clocks, 1.0) for unit, done in launch.busy.items()}
    slots = launch.together * launch.block_warps * launch.share.simd_engines
    occupied = launch.out.resident_clocks / (launch.out.end_clock * slots)
    rounds = totals.blocks / (launch.together * board.simd_engines)
    events, use = launch.pictured
    resident = launch.out.resident_clocks * launch.repeats / SCHEDULERS
    return CudaReport(
        kernel=launch.launch.name,
        device=board,
        clocks=clocks,
        flops=totals.flops,
        peak_gflops=board.peak_gflops(8 if launch.product.is_double else 4),
        bound=bound(busy, occupied, rounds, wavefront="warp"),
        registers=launch.code.registers,
        active_wavefronts=launch.together * launch.block_warps,
        wavefronts=math.prod(launch.launch.grid) * launch.block_warps,
        simulated=min(1.0, 1 / max(launch.repeats, 1e-9)),
        busy=read_only(busy),
        hits=read_only({}),
        bytes=read_only({}),
        resident_clocks=scale * resident,
        events=events,
        use=use,
        launch=launch,
    )
