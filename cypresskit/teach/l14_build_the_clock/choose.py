"""Lesson 14: the reader's clock, once its checks say that it is right, and comparisons with it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import numpy as np

from cypresskit.chip.work import KINDS
from cypresskit.devices import HD5870, Device
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.editing.workbench import workbench
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.kernels.generated import generate_kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.published import kernel as published
from cypresskit.published import size_of
from cypresskit.tables import listed
from cypresskit.teach.l14_build_the_clock.checks import (
    USUAL,
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
)
from cypresskit.teach.l14_build_the_clock.modeled import WITHOUT, modeled
from cypresskit.timing import Report
from cypresskit.timing.simulate import simulate
from cypresskit.timing.timed_launch import TimedLaunch

ITERATIONS = 200  # of the reader's clock, after which the start hardly counts
MEMORY = 320  # clocks
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
#: By the names of the reader's functions.
PARTS: dict[str, tuple[Callable, Callable]] = {
    "timed": (check_timed, right_steps),
    "run": (check_run, right_rows),
    "launch": (check_launch, right_rows),
}


def choose(*functions: Callable) -> "Clock":
    """Return a clock of the reader's functions, which are known by their names. In place of those
    that their check refuses, and of those that aren't given, it has the reference's. Print which.
    """
    names = [getattr(function, "__name__", repr(function)) for function in functions]
    own = dict(zip(names, functions))
    if own.keys() - PARTS.keys() or len(own) < len(names):
        wanted = f"your functions {listed([*PARTS])}, each once"
        raise ValueError(f"choose takes {wanted}, not {listed(names)}")
    chosen = []
    for name, (check, reference) in PARTS.items():
        is_right = name in own and check(own[name]).right
        chosen.append(own[name] if is_right else reference)
        if name in own:
            whose = "yours" if is_right else "the reference's, until its check accepts yours"
            print(f"{name}: {whose}")
    return Clock(*chosen)


class Scattered(list):
    """Steps whose data arrive early or late, at random, by up to a share of the memory's clocks."""

    def __init__(self, steps: Iterable[Step], percent: float, seed: int = 14) -> None:
        super().__init__(steps)
        self.most, self.random = percent / 100 * MEMORY, Random(seed)

    def __getitem__(self, n: Any) -> Any:
        unit, busy, away = super().__getitem__(n)
        if unit == "TEX":
            away += self.random.uniform(-self.most, self.most)
        return unit, busy, away


@dataclass(frozen=True)
class Clock:
    """Three functions: the steps of clauses, the rows of wavefronts that all fit, and of others.

    Speeds are Gflop/s of an HD 5870; overhead, pause and memory are clocks.
    """

    timed: Callable[..., list[Step]]
    run: Callable[..., list[Row]]
    launch: Callable[..., list[Row]] = right_rows

    def steps(self, kernel: Source, *numbers: float) -> list[Step]:
        """Return the steps of an iteration of a kernel's loop; by default with the usual overhead,
        pause and memory.
        """
        return list(self.timed(clauses(kernel), *(numbers or USUAL)))

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
        given = {"overhead": overhead, "pause": pause, "memory": memory}
        given |= {"wavefronts": wavefronts, "scatter": scatter}
        for name, value in given.items():
            if not value >= 0:
                raise ValueError(f"{name} is {value}, and must be 0 or more")
        stats = kernel_stats(kernel)
        wavefronts = wavefronts or stats.wavefronts
        steps = self.steps(kernel, overhead, pause, memory)
        if scatter:  # an index of such steps takes five times as long
            steps = Scattered(steps, scatter)
        clocks = last_clock(self.run(steps, wavefronts, ITERATIONS)) / (ITERATIONS * wavefronts)
        flops = stats.flops * HD5870.wavefront
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

    def lowest(self, kernel: str) -> dict[str, Any]:
        """Return a kernel's lowest speed in percent of the peak: published, by this clock, and by
        the model.
        """
        row = published(kernel)
        n, (least, _) = row["range_from_n"], row["efficiency_pct_range"]
        percent = HD5870.peak_gflops(resolve(kernel).precision) / 100
        own, model = self.launched(kernel, (n, n, n)), stored_speeds(kernel)[n]
        rest = {"your clock, %": own / percent, "the model, %": model / percent}
        return {"N": str(n), "published, %": least, **rest}

    def stranger(self, kernel: str) -> dict[str, Any]:
        """Return a kernel's speed by this clock and by the model: by what that is bound and, if
        the clock doesn't have it, the model without it. ``CONTEST`` is the kernel that the reader's
        step of the contest saves, or one of ours.
        """
        met: Source = kernel
        if kernel == CONTEST:
            met = workbench(step="contest").saved_kernel or generate_kernel(12, 8, 3)
        report, own = modeled(met), self.speed(met)
        limit = report.limit
        return {
            "your clock": own,
            "the model": report.gflops,
            "off by, %": round(100 * (own / report.gflops - 1)),
            "bound by": report.bound,
            "without that": modeled(met, without=limit).gflops if limit in WITHOUT else None,
        }

    def fitted(self, kernel: str) -> dict[str, Any]:
        """Return a published speed, by this clock and by the model, and the inputs that were chosen
        to suit it.
        """
        like = "sgemm_tn" if kernel == "sgemm_tn_37" else kernel  # as published
        speeds = {"published": printed(kernel), "your clock": self.speed(kernel)}
        model = stored_speeds(kernel)[size_of(like)]
        return {**speeds, "the model": model, "chosen to suit it": FITTED[kernel]}
