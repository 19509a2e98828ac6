"""Check the law of samples: a partly simulated launch has the correct time, within its ``error``.

The same holds for the lifetime of its wavefronts. Each random launch is simulated partly and whole.
The launches are ragged: kernels of the catalog and with generated blocks, which fill the chip a
little more than once, and workgroups with fences, on large and small boards. The same launches
calibrate the error for the skipped part (``sampling.unobserved_error``); this prints how far they
were off:

    python -m tools.fuzz --calibrate 1000
"""

import random
from dataclasses import dataclass, replace
from itertools import pairwise
from unittest.mock import patch

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels.generated import generate_kernel
from cypresskit.timing import Report, sampling
from cypresskit.timing.sampling import effort, unobserved_error
from cypresskit.timing.simulate import forget_reports, run_request
from cypresskit.timing.timing_request import TimingRequest
from tools.fuzz.law import ENTRIES, SMALL, check, groups, unbalanced

BOARDS = [
    HD5870,
    HD5850,
    SMALL,
    replace(SMALL, simd_engines=1),
    replace(SMALL, l2_bytes=65536),
]
MOST = 8  # times as much as is simulated whole
IDLE = (0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.01)  # shares of the time
SOME = 64  # wavefronts, from which the work of a launch is estimated


@dataclass(frozen=True)
class Trial:
    """A launch simulated partly, ``few``, and ``whole``."""

    few: Report
    whole: Report

    @property
    def off(self) -> float:
        """The relative error of clocks or lifetimes, whichever is larger."""
        clocks = abs(self.few.clocks / self.whole.clocks - 1)
        return max(clocks, abs(self.few.resident_clocks / self.whole.resident_clocks - 1))

    @property
    def idle(self) -> float:
        """The share of the time in which the busiest unit is idle."""
        return 1 - max(self.few.busy[unit] for unit in ("ALU", "texture", "LDS"))

    @property
    def unseen(self) -> float:
        """The relative error beyond the observed change of its pace."""
        may_be = unobserved_error(1 - self.idle, self.few.busy["DRAM"])
        return max(self.off - (self.few.error - may_be), 0.0)


def trial(rng: random.Random) -> Trial:
    """Return a random launch of which a part is skipped."""
    while True:
        patience = rng.choice((0, sampling.PATIENCE))
        effort_of_whole = rng.choice((4e5, 1e6, 4e6))
        question = _question(rng)
        try:
            launch = question.launch()
        except (CompileError, ValueError):
            continue
        numbers = np.unique(np.linspace(0, launch.wavefronts - 1, SOME).astype(np.int64))
        work = effort(launch.trace_some(numbers)) * launch.wavefronts / len(numbers)
        if effort_of_whole < work < MOST * effort_of_whole:
            with patch.multiple(sampling, WHOLE_EFFORT=effort_of_whole, PATIENCE=patience):
                few = run_request(question)
            if few.simulated < 1:
                return Trial(few, run_request(replace(question, exact=True)))


def _question(rng: random.Random) -> TimingRequest:
    board = rng.choice(BOARDS)
    if rng.random() < 0.5:
        shape = groups(rng, turns=(1, 8, 30, 100, 300, 1000), counts=(3, 20, 60, 150, 500, 2000))
        return TimingRequest(shape.program, shape=shape, device=board)
    kernel = rng.choice([*ck.kernels.values(), generate_kernel(*rng.choice(ENTRIES))])
    n = 1 if kernel.is_vector else rng.randint(64, 1500)
    size = rng.randint(64, 1500), n, rng.randint(64, 1500)
    return TimingRequest(kernel, size=size, device=board, precision=kernel.precision)


def sampled(rng: random.Random) -> None:
    """Check that a random, partly simulated launch is within its error."""
    tried = trial(rng)
    few = tried.few
    faults = unbalanced(few) + unbalanced(tried.whole)
    launch = few.launch
    faults += check(launch.code, launch.shape, launch.layout, few, tried.whole)
    if tried.off > few.error:
        clocks = 100 * (few.clocks / tried.whole.clocks - 1)
        lived = 100 * (few.resident_clocks / tried.whole.resident_clocks - 1)
        says = 100 * few.error
        faults.append(f"clocks {clocks:+.2f} %, lives {lived:+.2f} % off, says {says:.2f} %")
    question = few.request
    assert not faults, "\n".join([*faults, str(question), str(few), str(tried.whole)])


def calibrate(seed: int, launches: int) -> None:
    """Print the errors of random launches beyond those observed, by how idle their busiest unit is.

    For each range: how many launches, how many are off by more than ``unobserved_error``, and the
    worst.
    """
    trials = []
    for n in range(seed, seed + launches):
        trials.append(trial(random.Random(n)))
        forget_reports()
    print("idle  launches  per cent off: median, 99 of 100, worst; beyond seen: worst (may be)")
    for low, high in pairwise(IDLE):
        some = [tried for tried in trials if low <= tried.idle < high]
        if some:
            offs = np.quantile([100 * tried.off for tried in some], (0.5, 0.99, 1))
            worst = 100 * max(tried.unseen for tried in some)
            bounds = [100 * unobserved_error(1 - idle, 0) for idle in (low, high)]
            expected = f"({bounds[0]:.2f} to {bounds[1]:.2f})"
            print(
                f"{low:4} {len(some):9}",
                *(f"{off:8.3f}" for off in offs),
                f"{worst:8.2f} {expected}",
            )
