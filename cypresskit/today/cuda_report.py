"""``CudaReport``: how long a launch of a CUDA kernel takes, why, and how sure that is."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from linecache import getline
from typing import Any

from cypresskit.chip.work import ALU, BARRIER, WAIT
from cypresskit.tables import aligned, duration, plural, quantity
from cypresskit.timing.launch_time import bound, bytes_moved, hit_rates, read_only
from cypresskit.timing.limits import Limit, WhatIf
from cypresskit.timing.report import ChipReport
from cypresskit.today.cuda_access import sectors_per_warp
from cypresskit.today.cuda_code import Loop
from cypresskit.today.cuda_events import NOTHING, What
from cypresskit.today.cuda_part_clock import MIN_ITERATIONS, TimedPart, TracedLaunch
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

WAITS = {ALU: "a free scheduler", BARRIER: "a barrier", WAIT: "loads of the previous iteration"}
SHOWN_WAIT = 0.02  # of a warp's time
COST_SHARES = 4  # of a board, of which one is run
LITTLE = 1e-9  # clocks
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
#: How far modeled times were off measured ones, by class (docs/current_gpu.md).
ACCURACY = {
    "own code": "within 20 % in 306 of 326 launches of products with blocks in registers, measured"
    " on an H200; modeled times were 0.67 to 1.48",
    "blocks": "within 20 % in 289 of 326 launches of products with blocks in registers, measured"
    " on an H200; modeled times were 0.45 to 1.45",
    "tiles": "within 20 % in 6 of 7 launches of products with tiles in shared memory, measured on"
    " an H100; modeled times were 1.13 to 1.37",
    "loops": "within 30 % in 40 of 43 launches with loops over a size, measured on an H100; modeled"
    " times were 0.66 to 1.70",
    "straight code": "within 30 % in 34 of 35 launches without loops over a size, measured on an"
    " H100; modeled times were 0.49 to 1.25",
}


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CudaReport(ChipReport):
    """A timed launch of a CUDA kernel: ``ChipReport`` with warps for wavefronts, and the units
    "issue", "L1", "L2" and "DRAM".

    Attributes
    ----------
    launch
        The launch.
    parts
        What has run: straight code and loops, one after the other.
    """

    device: CudaGpu
    launch: TracedLaunch = field(repr=False)
    parts: tuple[TimedPart, ...] = field(repr=False)

    @property
    def launch_overhead_us(self) -> float:
        """The launch overhead of the board's record, in microseconds."""
        return self.device.launch_overhead_us

    @property
    def loop(self) -> Loop:
        """The machine code of the main part."""
        return main_of(self.parts).loop

    @property
    def accuracy(self) -> str:
        """How far the times of such launches were off, as far as they were measured."""
        if not self.launch.is_assumed:
            found = "own code"
        elif not all(run.loop.unroll for run in self.parts):
            found = "tiles" if self.launch.totals.bytes("shared load") else "blocks"
        else:
            found = "loops" if any(run.part.kind for run in self.parts) else "straight code"
        return f"{ACCURACY[found]} times the measured ones"

    @cached_property
    def sectors(self) -> dict[What, float]:
        """Sectors of 32 bytes that a warp requests with a load, on average, by (line, "loads of"
        an array).
        """
        found: dict[What, list[float]] = defaultdict(list)
        for run in self.parts:
            for action in run.part.actions:
                if action.kind == "load":
                    count = sectors_per_warp(action, self.launch.threads, self.device)
                    found[action.what].append(count)
        return {what: sum(counts) / len(counts) for what, counts in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's lifetime in which it waits: for the loads of a line (until the
        load unit serves them, and for their data), for other warps of its block at a barrier, for
        a scheduler, and for its stores.
        """
        found: dict[str, float] = defaultdict(float)
        storing = [run.resident_clocks * (run.all_clocks / run.clocks - 1) for run in self.parts]
        lifetime = SCHEDULERS * (sum(run.resident_clocks for run in self.parts) + sum(storing))
        found["its stores"] = SCHEDULERS * sum(storing) / lifetime
        for run in self.parts:
            clauses, _ = run.clauses(1)
            for clause, waited in zip(clauses, run.out.ledger.waited.tolist()):
                lines = sorted(set(clause.sources))
                loads = f"the loads of {plural('line', len(lines))} {' and '.join(map(str, lines))}"
                name = loads if lines else WAITS[clause.kind]
                found[name] += waited * run.repeats / lifetime
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @cached_property
    def line_costs(self) -> "CudaLineCosts":
        """What ``ck.line_costs`` returns."""
        found: dict[What, float] = defaultdict(float)
        few = self.launch.on_a_share(COST_SHARES)
        for run, (part, loop) in zip(self.parts, few.parts):
            small = TimedPart(part, loop, few)
            blocks = min(few.rounds[0][1], len(part.actions[0].on) // few.threads)
            whole, _ = small.round(blocks, NOTHING, MIN_ITERATIONS)
            actions = [a for a in part.actions if a.kind not in ("barrier", "store")]
            for what in sorted({action.what for action in actions}):
                free, _ = small.round(blocks, what, MIN_ITERATIONS)
                found[what] += run.clocks / self.clocks * (1 - free / whole)
            sectors = sum(count for count, _ in run.stored.values())
            for what, (count, _) in run.stored.items():
                found[what] += (run.all_clocks - run.clocks) * count / sectors / self.clocks
        return CudaLineCosts(self, dict(found))

    @cached_property
    def what_if(self) -> WhatIf:
        """What ``ck.what_if`` returns."""
        steps = []
        left = self
        for name, change in LIMITS.items():
            alone, less = (
                report_on(replace(self.launch, board=replace(report.device, **change)))
                for report in (self, left)
            )
            gain = self.seconds / alone.seconds - 1
            steps.append(Limit(name, "", alone.gflops, gain, left.gflops))
            left = less
        steps.append(Limit("all else", "", None, None, left.gflops))
        return WhatIf(self, tuple(reversed(steps)))

    def _rows(self) -> list[str]:
        launch, board = self.launch, self.device
        is_similar = launch.is_assumed and not self.loop.unroll
        similar = is_similar * "of the most similar compiled kernel: "
        waits = [
            f"{100 * share:.0f} for {name}"
            for name, share in self.waits.items()
            if share > SHOWN_WAIT
        ]
        return [
            f"time {duration(self.seconds)}: {self.clocks:,.0f} clocks at {board.clock_ghz:g} GHz,"
            f" and {duration(board.launch_overhead_us * 1e-6)} to launch",
            f"grid {quantity(launch.groups, 'block')} of {quantity(launch.threads, 'thread')}"
            f" ({quantity(launch.warps, 'warp')}); each of the {board.simd_engines}"
            f" multiprocessors holds up to {launch.together} at once, limited by {launch.limit}",
            *self._unit_rows(),
            f"wait (% of a warp's time) {', '.join(waits) or 0}",
            f"code {similar}{self.loop.name}; {self.registers} registers per thread",
            f"error {self.accuracy}",
        ]


@dataclass(frozen=True, repr=False)
class CudaLineCosts:
    """What each line of a CUDA kernel costs.

    Attributes
    ----------
    report
        The report on the launch.
    costs
        The share of the launch that is saved if the loads of an array, the arithmetic or the stores
        of a line take no time, by (line, what). Below 0, the launch takes longer: by up to a tenth,
        that is noise.
    """

    report: CudaReport
    costs: dict[What, float]

    def __repr__(self) -> str:
        report = self.report
        title = (
            f"{report.kernel} on {report.device.name}: what each line costs, the time saved if its"
            " arithmetic, loads or stores took none"
        )
        names = "line", "arithmetic", "loads (sectors per warp)", "stores", "source"
        return "\n".join([title, *aligned("  >  >  <  <  <", [names, *self._rows()])])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each line, with the costs of what it does."""
        cells: dict[What, list[str]] = defaultdict(list)
        for (line, what), cost in self.costs.items():
            does, _, array = what.removeprefix("shared ").partition(" of ")
            sectors = self.report.sectors.get((line, what))
            requested = f" ({sectors:.3g})" if sectors else ""
            cells[line, does].append(f"{array} {round(100 * cost)} %{requested}")
        for line in sorted({line for line, _ in cells}):
            columns = (", ".join(cells[line, does]) for does in ("arithmetic", "loads", "stores"))
            yield str(line), *columns, getline(self.report.launch.source, line).strip()


def main_of(parts: tuple[TimedPart, ...]) -> TimedPart:
    """Return the part that does the most."""
    return max(parts, key=lambda run: run.part.size)


def report_on(launch: TracedLaunch) -> CudaReport:
    """Run a launch, and report on it."""
    board, totals = launch.board, launch.totals
    runs = tuple(TimedPart(part, loop, launch) for part, loop in launch.parts)
    main = main_of(runs)
    clocks = max(sum(run.all_clocks for run in runs), board.workgroup_clocks * launch.groups)
    scale = board.simd_engines / launch.share.simd_engines
    counts = {name: scale * sum(run.counts[name] for run in runs) for name in main.counts}
    busy = {unit: min(sum(run.busy[unit] for run in runs) / clocks, 1.0) for unit in main.busy}
    exact = {"L1": totals.bytes("load"), "written": totals.bytes("store")}
    slots = launch.together * launch.warps * launch.share.simd_engines
    occupied = main.out.resident_clocks / (main.out.end_clock * slots)
    rounds = totals.busy_count / (launch.together * board.simd_engines)
    events, use = main.pictured
    return CudaReport(
        kernel=launch.name,
        device=board,
        clocks=clocks,
        flops=float(totals.flops),
        peak_gflops=board.peak_gflops(totals.item),
        bound=bound(busy, occupied, rounds, wavefront="warp"),
        registers=max(run.loop.registers for run in runs),
        active_wavefronts=launch.together * launch.warps,
        wavefronts=launch.groups * launch.warps,
        simulated=min(1.0, 1 / max(main.repeats, 1e-9)),
        busy=read_only(busy),
        hits=read_only(hit_rates(counts)),
        bytes=read_only(bytes_moved(counts, launch.share) | exact),
        resident_clocks=scale * sum(run.resident_clocks for run in runs),
        events=events,
        use=use,
        launch=launch,
        parts=runs,
    )
