"""Lesson 14: the reader's clock, once its checks say that it is right, and comparisons with it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import numpy as np

from cypresskit.chip.work import KINDS
from cypresskit.devices import HD5870, Device
from cypresskit.draw.chart import Chart
from cypresskit.draw.line_chart import line_chart
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.editing.workbench import workbench
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.generated import generate_kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.lesson_table import Table
from cypresskit.published import kernel as published
from cypresskit.published import size_of
from cypresskit.teach.l14_build_the_clock.checks import (
    Row,
    Step,
    check_launch,
    check_run,
    check_timed,
    clauses,
    last_clock,
    printed,
    right_rows,
    right_steps,
    size_of_launch,
)
from cypresskit.timing import Report
from cypresskit.timing.simulate import simulate
from cypresskit.timing.timed_launch import TimedLaunch

ITERATIONS = 200  # of the reader's clock, after which the start hardly counts
LONG, ROUNDS = 384, 2  # iterations and rounds of the model's launches; all rounds are full
MEMORY = 320  # clocks
#: Boards without what the reader's clock lacks, by how the model's bound begins.
WITHOUT: dict[str, dict[str, Any]] = {
    "LDS": {"lds_banks": 1024},
    "DRAM": {"memory_gb_s": 1e5, "l2_slice_bytes_clock": 1e5, "dram_row_clocks": 0},
}
#: Which inputs were chosen to suit a published speed.
FITTED = {
    "sgemm_tn": "overhead",
    "sgemm_tn_37": "memory",
    "dgemm_tn": "overhead, banks",
    "dgemm_nn": "banks",
    "sgemm_64x64": "banks",
    "sgemm_64x64_lds": "banks",
    "ddgemm_tn_fma": "nothing",
    "ddgemm_tn_nofma": "nothing",
}
CONTEST = "of the contest"


def choose(timed: Callable, run: Callable, launch: Callable = right_rows) -> "Clock":
    """Return a clock of the reader's functions. In place of those that their check refuses it has
    the reference's. Print which.
    """
    given: list[tuple[Callable, Callable, Callable]] = [
        (timed, check_timed, right_steps),
        (run, check_run, right_rows),
        (launch, check_launch, right_rows),
    ]
    chosen = []
    for own, check, reference in given:
        is_right = own is reference or check(own).right
        chosen.append(own if is_right else reference)
        if own is not reference:
            whose = "yours" if is_right else "the reference's, until its check accepts yours"
            print(f"{own.__name__}: {whose}")
    return Clock(*chosen)


def modeled(kernel: Source, wavefronts: int = 0, without: str = "") -> Report:
    """Return the model's report on a launch in which all rounds are full, with so many wavefronts
    on an engine, or as many as fit; on a board without a limit.
    """
    return _modeled(resolve(kernel), wavefronts, without)


@cache
def _modeled(kernel: Kernel, wavefronts: int, without: str) -> Report:
    stats = kernel_stats(kernel)
    pool = stats.gprs * wavefronts or HD5870.register_pool
    rows = ROUNDS * (wavefronts or stats.wavefronts)
    m, n, k = size_of_launch(kernel, rows, HD5870.simd_engines, LONG)
    device = replace(HD5870, register_pool=pool, **WITHOUT.get(without, {}))
    return simulate(kernel, m=m, n=n, k=k, device=device)


class Scattered(list):
    """Steps whose data arrive early or late, at random, by up to a share of the memory's clocks."""

    def __init__(self, steps: Iterable[Step], percent: float, seed: int = 14) -> None:
        super().__init__(steps)
        self._most = percent / 100 * MEMORY
        self._random = Random(seed)

    def __getitem__(self, n: Any) -> Any:
        unit, busy, away = super().__getitem__(n)
        late = self._random.uniform(-self._most, self._most) if unit == "TEX" else 0.0
        return unit, busy, away + late


@dataclass(frozen=True)
class Clock:
    """Three functions: the steps of clauses, the rows of wavefronts that all fit, and of others.

    Speeds are Gflop/s of an HD 5870; overhead, pause and memory are clocks.
    """

    timed: Callable[..., list[Step]]
    run: Callable[..., list[Row]]
    launch: Callable[..., list[Row]] = right_rows

    def steps(
        self, kernel: Source, overhead: float = 7, pause: float = 40, memory: float = MEMORY
    ) -> list[Step]:
        """Return the steps of an iteration of a kernel's loop."""
        return list(self.timed(clauses(kernel), overhead, pause, memory))

    def speed(
        self,
        kernel: Source,
        overhead: float = 7,
        pause: float = 40,
        memory: float = MEMORY,
        wavefronts: int = 0,
        scatter: float = 0,
    ) -> float:
        """Return the speed of a kernel's loop with so many wavefronts, or as many as fit. Data are
        early or late by up to ``scatter`` percent.
        """
        return self._speed(resolve(kernel), overhead, pause, memory, wavefronts, scatter)

    @cache  # noqa: B019  (a lesson makes few clocks)
    def _speed(
        self,
        kernel: Kernel,
        overhead: float,
        pause: float,
        memory: float,
        wavefronts: int,
        scatter: float,
    ) -> float:
        wavefronts = wavefronts or kernel_stats(kernel).wavefronts
        steps = self.steps(kernel, overhead, pause, memory)
        if scatter:  # an index of such steps takes five times as long
            steps = Scattered(steps, scatter)
        clocks = last_clock(self.run(steps, wavefronts, ITERATIONS)) / (ITERATIONS * wavefronts)
        flops = kernel_stats(kernel).flops * HD5870.wavefront
        return flops / clocks * HD5870.simd_engines * HD5870.clock_ghz

    def launched(self, kernel: str, size: tuple[int, int, int], device: Device = HD5870) -> float:
        """Return the speed of a launch: it lasts as long as the loops of the wavefronts on the
        busiest engine.
        """
        given = TimedLaunch(resolve(kernel), size, device)
        wavefronts = -(-given.wavefronts // device.simd_engines)
        iterations = size[2] // (kernel_stats(kernel).k_per_iteration or 1)
        rows = self.launch(self.steps(kernel), wavefronts, iterations, given.active_wavefronts)
        return given.flops / last_clock(rows) * device.clock_ghz

    def twins(self, kernel: str = "sgemm_tn_37") -> list[Report]:
        """Return two reports for ``ck.draw.wavefronts`` without names: what this clock does, and
        what the model's engine 0 does.
        """
        model = simulate(kernel, m=3840, n=1024, k=128)
        pause = model.device.clause_switch_clocks  # not part of a fetch's way
        rows = self.run(self.steps(kernel), model.active_wavefronts, ITERATIONS)
        events = [
            (w, w, KINDS.index(unit), begin, ready - pause if unit == "TEX" else free, free)
            for w, unit, begin, free, ready in rows
        ]
        return [replace(model, kernel="A", events=np.array(events)), replace(model, kernel="B")]

    def lowest_table(self) -> Table:
        """Tabulate the lowest speeds of three kernels: published, by this clock, by the model."""
        rows = []
        for kernel in ("sgemm_tn", "dgemm_tn", "dgemm_nn"):
            row = published(kernel)
            n, (least, _) = row["range_from_n"], row["efficiency_pct_range"]
            percent = HD5870.peak_gflops(resolve(kernel).precision) / 100
            speeds = self.launched(kernel, (n, n, n)), stored_speeds(kernel)[n]
            rows.append([kernel, n, least, *(speed / percent for speed in speeds)])
        heads = ["kernel", "N", "published, %", "your clock, %", "the model, %"]
        return Table(heads, rows, 2, note="In percent of the peak. The model: timed as published.")

    def strangers_table(self, names: Sequence[str]) -> Table:
        """Tabulate kernels by this clock and by the model: by what that is bound and, if the clock
        doesn't have it, the model without it. The last kernel is the one that the reader's step of
        the contest saves, or one of ours.
        """
        entry = workbench(step="contest").saved_kernel or generate_kernel(12, 8, 3)
        kernels: dict[str, Source] = {**dict(zip(names, names)), CONTEST: entry}
        rows: list[list] = []
        for name, kernel in kernels.items():
            report, own = modeled(kernel), self.speed(kernel)
            limit = report.bound.split()[0]
            without = modeled(kernel, without=limit).gflops if limit in WITHOUT else None
            off = round(100 * (own / report.gflops - 1))
            rows.append([name, own, report.gflops, off, report.bound, without])
        heads = ["kernel", "your clock", "the model", "off by, %", "bound by", "without that"]
        return Table(heads, rows, note="Gflop/s of the chip alone; all rounds are full.")

    def fitted_table(self) -> Table:
        """Tabulate published speeds, by this clock and by the model, and the inputs that were
        chosen to suit each.
        """
        rows: list[list] = []
        for kernel, chosen in FITTED.items():
            like = "sgemm_tn" if kernel == "sgemm_tn_37" else kernel  # as published
            model = stored_speeds(kernel)[size_of(like)]
            rows.append([kernel, printed(kernel), self.speed(kernel), model, chosen])
        heads = ["kernel", "published", "your clock", "the model", "chosen to suit it"]
        fma, nofma = (row[2] for row in rows[-2:])
        note = (
            "sgemm_tn_37: published is a ratio. The model: timed as published. Your last two are"
            f" {fma:.1f} and {nofma:.1f}."
        )
        return Table(heads, rows, note=note)

    def by_wavefronts(self, overhead: float, scatter: float) -> Chart:
        """Draw the speed of sgemm_tn by the number of wavefronts, beside the model's."""
        yours = {
            w: self.speed("sgemm_tn", overhead, wavefronts=w, scatter=scatter) for w in range(4, 13)
        }
        model = {w: modeled("sgemm_tn", w).gflops for w in (4, 6, 8, 9, 10, 12)}
        six, eight, nine = (f"{yours[w]:,.0f}" for w in (6, 8, 9))
        title = f"Yours with six wavefronts: {six} Gflop/s; eight: {eight}; nine: {nine}"
        lines: dict[str, dict] = {"yours": yours, "the model": model}
        return line_chart(lines, "wavefronts", "Gflop/s", title=title)
