"""``CudaReport``: how long a launch of a CUDA kernel takes, why, and how sure that is."""

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from linecache import getline
from typing import Any

from cypresskit.tables import plural
from cypresskit.timing.launch_time import bound, bytes_moved, hit_rates, read_only
from cypresskit.timing.limits import LAUNCH, MEMORY, Limit, WhatIf
from cypresskit.timing.report import ChipReport
from cypresskit.timing.work import ALU, BARRIER
from cypresskit.today.cuda_access import sectors_per_warp
from cypresskit.today.cuda_code import Loop
from cypresskit.today.cuda_events import NOTHING, WARP, What
from cypresskit.today.cuda_part_clock import PartRun, TracedLaunch
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu

WAITS = {ALU: "a scheduler", BARRIER: "other warps"}
COST_ITERATIONS = 32  # of a run: without a load, warps settle later
LITTLE = 1e-9  # clocks
NEAR = {"l2_clocks": H200.l1_clocks, "dram_clocks": H200.l1_clocks}
FAST = {"l2_slice_bytes_clock": 1e6, "memory_gb_s": 1e6}
STORES = dict.fromkeys(("stored_sector_clocks", "l2_stored_sector_clocks"), LITTLE)
#: What a chip may lack: a limit, the lesson about it, and how the board changes.
LIMITS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    (LAUNCH, "08", {"launch_overhead_us": 0.0, "workgroup_clocks": LITTLE}),
    ("clocks of stores in L1 and L2", "07", STORES),
    ("bytes per clock of L2 and memory", "02", FAST),
    (MEMORY, "04", NEAR),
)
#: How far modeled times are off those measured on an H200 or H100, by class (docs/model.md).
ACCURACY = {
    "own code": "blocks in registers, own machine code: all 29 products of the record within 15 %;"
    " of 55 drawn at random 48 within 20 %, modeled in 0.66 to 1.76 times the time measured",
    "blocks": "blocks in registers, similar code: 58 of 65 launches drawn at random within 20 %;"
    " modeled in 0.56 to 1.35 times the time measured",
    "tiles": "products from tiles: 7 launches, all modeled 24 to 38 % too slow",
    "loops": "loops over a size: 40 of 43 launches within 30 %; launches of few warps are modeled"
    " up to 75 % too slow",
    "straight code": "straight code: 34 of 35 launches within 30 %; the worst, a stencil that"
    " clamps its indices, in half the time measured",
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
    parts: tuple[PartRun, ...] = field(repr=False)

    @property
    def loop(self) -> Loop:
        """The machine code of the main part."""
        return self.launch.codes[self.launch.main]

    @property
    def accuracy(self) -> str:
        """How far launches of this class were off, as far as they were measured."""
        if not self.launch.assumed:
            return ACCURACY["own code"]
        if any(run.timed.loop.unroll == 0 for run in self.parts):
            kinds = {action.kind for run in self.parts for action in run.timed.part.actions}
            return ACCURACY["tiles" if "shared load" in kinds else "blocks"]
        is_looped = any(run.timed.part.kind for run in self.parts)
        return ACCURACY["loops" if is_looped else "straight code"]

    @cached_property
    def sectors(self) -> dict[What, float]:
        """Sectors of 32 bytes that a warp requests with a load, on average, by (line, "loads of"
        an array).
        """
        found: dict[What, list[float]] = defaultdict(list)
        for run in self.parts:
            for action in run.timed.part.actions:
                if action.kind == "load":
                    count = sectors_per_warp(action, run.timed.group, self.device)
                    found[action.what].append(count)
        return {what: sum(counts) / len(counts) for what, counts in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's lifetime in which it waits: for the loads of a line, for other
        warps of its workgroup, and for a scheduler.
        """
        found: dict[str, float] = defaultdict(float)
        lifetime = SCHEDULERS * sum(run.resident_clocks for run in self.parts)
        for run in self.parts:
            clauses, _ = run.timed.clauses(run.timed.part.of_blocks(1, run.timed.group))
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
        for run in self.parts:
            actions = run.timed.part.actions
            blocks = min(self.launch.rounds[0][1], len(actions[0].on) // run.timed.group)
            whole, _ = run.timed.round(blocks, NOTHING, COST_ITERATIONS)
            for what in sorted({a.what for a in actions if a.kind not in ("barrier", "store")}):
                free, _ = run.timed.round(blocks, what, COST_ITERATIONS)
                found[what] += run.clocks / self.clocks * (1 - free / whole)
        for run in self.parts:
            sectors = sum(run.stored.values())
            for what, count in run.stored.items():
                found[what] += (run.all_clocks - run.clocks) * count / sectors / self.clocks
        return CudaLineCosts(self, dict(found))

    @cached_property
    def what_if(self) -> WhatIf:
        """What ``ck.what_if`` returns."""
        steps = []
        left = self
        for name, lesson, change in LIMITS:
            alone = _report_with(change, self)
            gain = self.seconds / alone.seconds - 1
            steps.append(Limit(name, lesson, alone.gflops, gain, left.gflops))
            left = alone if left is self else _report_with(change, left)
        steps.append(Limit("all else", "", None, None, left.gflops))
        return WhatIf(self, tuple(reversed(steps)))

    def __repr__(self) -> str:
        waits = ", ".join(
            f"{100 * share:.0f} % for {name}" for name, share in self.waits.items() if share > 0.01
        )
        code = f"numba's, {self.launch.assumed}{self.loop.name}"
        waits = waits.replace("%", "% of its time", 1)
        lines = f"a warp waits {waits}", f"code: {code}", self.accuracy
        return "\n  ".join([super().__repr__(), *lines])


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
        rows = [
            f"{report.kernel} on {report.device.name}: what each line costs, without indices",
            f"{'cost':>7} {'sectors':>8}",
        ]
        for (line, what), cost in self.costs.items():
            requested = report.sectors.get((line, what), 0)
            text = getline(report.launch.source, line).strip()
            percent = round(100 * cost)
            rows.append(f"{percent:5} % {requested:8.1f}   line {line}, {what}:  {text}")
        return "\n".join(rows)


def _report_with(change: dict[str, Any], report: CudaReport) -> CudaReport:
    """Return the report on a launch on a board that differs in its rates."""
    launch = report.launch
    return report_on(replace(launch, board=replace(launch.board, **change)))


def report_on(launch: TracedLaunch) -> CudaReport:
    """Run a launch, and report on it."""
    board, totals = launch.board, launch.totals
    runs = launch.runs()
    main = runs[launch.main]
    warps = -(-launch.threads // WARP)
    clocks = max(sum(run.all_clocks for run in runs), board.workgroup_clocks * launch.groups)
    scale = board.simd_engines / launch.share.simd_engines
    counts = {
        name: scale * sum(run.repeats * run.out.counts[name] for run in runs)
        for name in main.out.counts
    }
    busy = {unit: min(sum(run.busy[unit] for run in runs) / clocks, 1.0) for unit in main.busy}
    exact = {"L1": totals.bytes("load"), "written": totals.bytes("store")}
    slots = launch.together * warps * launch.share.simd_engines
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
        registers=max(code.registers for code in launch.codes),
        active_wavefronts=launch.together * warps,
        wavefronts=launch.groups * warps,
        simulated=min(1.0, 1 / max(main.repeats, 1e-9)),
        busy=read_only(busy),
        hits=read_only(hit_rates(counts)),
        bytes=read_only(bytes_moved(counts, board.in_quarters) | exact),
        resident_clocks=scale * sum(run.resident_clocks for run in runs),
        events=events,
        use=use,
        launch=launch,
        parts=runs,
    )
