"""``CudaReport``: how long a matrix product in CUDA takes, why, and how sure that is."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from linecache import getline

import numpy as np

from cypresskit.chip.work import ALU, BARRIER, WAIT
from cypresskit.tables import aligned, duration, plural, quantity
from cypresskit.timing.launch_time import bound
from cypresskit.timing.report import ChipReport
from cypresskit.today.clocked_launch import OTHER, ClockedLaunch, What
from cypresskit.today.cuda_access import WORD
from cypresskit.today.gpus import H200, SCHEDULERS, CudaGpu
from cypresskit.today.sass_trace import steps_of

WAITS = {ALU: "a free scheduler", BARRIER: "a barrier", WAIT: "loads of the previous iteration"}
SHOWN_WAIT = 0.02  # of a warp's time
#: How far modeled times were off measured ones (docs/current_gpu.md).
ACCURACY = (
    "within 20 % in 70 of 84 other products, measured on an H200; modeled times were 0.64 to 1.46"
    " times the measured ones"
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class CudaReport(ChipReport):
    """A timed launch of a CUDA kernel: ``ChipReport`` with warps for wavefronts, and the units
    "issue", "L1", "L2" and "DRAM".

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
    def conflicts(self) -> dict[What, float]:
        """For the loads of an array, or the accesses of shared memory, of a line: the clocks that
        the load unit takes, over those that it would take without bank conflicts.
        """
        found: dict[What, list[float]] = defaultdict(list)
        for step, _ in steps_of(self.launch.trace):
            warps = np.count_nonzero(step.on[0].any(axis=1))
            if (step.one.is_load or step.one.is_shared) and warps:
                clocks = float(self.launch.load_clocks(step).sum())
                found[self.launch.what_of(step)].append(clocks / warps / (step.one.size // WORD))
        return {what: sum(some) / len(some) for what, some in found.items()}

    @cached_property
    def waits(self) -> dict[str, float]:
        """The shares of a warp's lifetime in which it waits: for the loads of a line (until the
        load unit serves them, and for their data), for other warps of its block at a barrier, and
        for a scheduler.
        """
        launch = self.launch
        found: dict[str, float] = defaultdict(float)
        every = [one for body in launch.bodies(1) for one in body]
        for clause, waited in zip(every, launch.out.waited.tolist()):
            lines = sorted(set(clause.sources))
            loads = f"the loads of {plural('line', len(lines))} {' and '.join(map(str, lines))}"
            found[loads if lines else WAITS[clause.kind]] += waited / launch.out.resident_clocks
        return dict(sorted(found.items(), key=lambda each: -each[1]))

    @cached_property
    def line_costs(self) -> "CudaLineCosts":
        """What ``ck.line_costs`` returns."""
        launch = self.launch
        _, blocks, whole, _ = launch.rounds[0]
        kinds = {launch.what_of(step) for step in launch.main.steps if step.one.name != "BAR"}
        costs = {what: 1 - launch.run(blocks, what)[0] / whole for what in sorted(kinds)}
        return CudaLineCosts(self, costs)

    def _rows(self) -> list[str]:
        timed, board = self.launch, self.device
        launch = timed.launch
        waits = [
            f"{100 * share:.0f} for {name}"
            for name, share in self.waits.items()
            if share > SHOWN_WAIT
        ]
        return [
            f"time {duration(self.seconds)}: {self.clocks:,.0f} clocks at {board.clock_ghz:g} GHz,"
            f" and {duration(board.launch_overhead_us * 1e-6)} to launch",
            f"grid {quantity(launch.blocks, 'block')} of {quantity(launch.group, 'thread')}"
            f" ({quantity(timed.block_warps, 'warp')}); each of the {board.simd_engines}"
            f" multiprocessors holds up to {timed.together} at once, limited by {timed.limit}",
            *self._conflict_rows(),
            f"code as compiled: {quantity(self.registers, 'register')} per thread,"
            f" {timed.code.shared_bytes:,} bytes of shared memory per block",
            "busy " + ", ".join(f"{unit} {100 * share:.0f} %" for unit, share in self.busy.items()),
            f"wait (% of a warp's time) {', '.join(waits) or 0}",
            f"error {ACCURACY}",
        ]

    def _conflict_rows(self) -> Iterator[str]:
        """Yield a row on bank conflicts, if there are any."""
        conflicts = [
            f"line {line}, {what}: {ways:.3g}-way"
            for (line, what), ways in sorted(self.conflicts.items())
            if ways > 1.5
        ]
        if conflicts:
            yield f"bank conflicts {'; '.join(conflicts)}"


@dataclass(frozen=True, repr=False)
class CudaLineCosts:
    """What each line of a CUDA kernel costs.

    Attributes
    ----------
    report
        The report on the launch.
    costs
        The share of the launch that is saved if the loads of an array, the multiply-adds or all
        other instructions of a line of the main loop take no time, by (line, what). Below 0, the
        launch takes longer: by up to a tenth, that is noise.
    """

    report: CudaReport
    costs: dict[What, float]

    def __repr__(self) -> str:
        report = self.report
        title = (
            f"{report.kernel} on {report.device.name}: what each line of the main loop costs, the"
            " time saved if a part of it took no time"
        )
        names = "line", "what", "cost", "source"
        return "\n".join([title, *aligned("  >  <  >  <", [names, *self._rows()])])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each part of a line."""
        for (line, what), cost in sorted(self.costs.items()):
            source = getline(self.report.launch.launch.source, line).strip()
            if round(100 * cost) or what != OTHER:
                yield str(line), what, f"{100 * cost:.0f} %", source


def report_on(launch: ClockedLaunch) -> CudaReport:
    """Run a launch, and report on it."""
    out = launch.out
    events = out.timeline.copy()
    events[:, 3:] /= SCHEDULERS
    occupied = out.resident_clocks / (out.end_clock * launch.slots * launch.share.simd_engines)
    rounds = launch.launch.blocks / (launch.together * H200.simd_engines)
    c = launch.launch.arguments[launch.product.result]
    return CudaReport(
        kernel=launch.launch.name,
        device=H200,
        clocks=launch.clocks,
        flops=launch.product.flops,
        peak_gflops=H200.peak_gflops(c.itemsize),
        bound=bound(launch.busy, occupied, rounds, wavefront="warp"),
        registers=launch.code.registers,
        active_wavefronts=launch.slots,
        busy=launch.busy,
        events=events,
        launch=launch,
    )
