"""Check the law of samples: a partly simulated launch has the correct time, within its ``error``.

The same holds for the lifetime of its wavefronts. Each random launch is simulated partly and whole.
The launches are ragged: kernels of the catalog and with generated blocks, and workgroups with
fences, on large and small boards. The same launches
calibrate the error for the part that is left out (``sampling.stated_error``); this prints how far
they were off:

    python -m tools.fuzz.samples 1000
"""

import random
import sys
from dataclasses import dataclass, replace
from multiprocessing import get_context
from unittest.mock import patch

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels.generated import generate_kernel
from cypresskit.timing import Report, sampling
from cypresskit.timing.sampling import effort
from cypresskit.timing.simulate import forget_reports, report_on
from cypresskit.timing.timed_launch import TimedLaunch
from tools.fuzz.law import ENTRIES, SMALL, check, groups

BOARDS = [
    HD5870,
    HD5850,
    SMALL,
    replace(SMALL, simd_engines=1),
    replace(SMALL, l2_bytes=65536),
]
MOST = 24  # times the effort of a sample
CALLS = 200  # of one child
SOME = 64  # wavefronts, from which the work of a launch is estimated


@dataclass(frozen=True)
class Trial:
    """A launch simulated partly, ``few``, and ``whole``."""

    few: Report
    whole: Report

    @property
    def off(self) -> float:
        """The relative error of the clocks."""
        return abs(self.few.clocks / self.whole.clocks - 1)


def trial(rng: random.Random) -> Trial:
    """Return a random launch of which a part is left out."""
    while True:
        max_whole_effort = rng.choice((0, sampling.MAX_WHOLE_EFFORT))
        sample_effort = rng.choice((4e5, 1e6))
        launch = _launch(rng)
        try:
            if sampling.MIN_ROUNDS * launch.round_size > sampling.MAX_SHARE * launch.wavefronts:
                continue  # it is simulated whole
            numbers = np.unique(np.linspace(0, launch.wavefronts - 1, SOME).astype(np.int64))
            work = effort(launch.trace_some(numbers)) * launch.wavefronts / len(numbers)
        except (CompileError, ck.KernelError, ValueError):  # no launch, or a loop that is too long
            continue
        if sample_effort < work < MOST * sample_effort:
            with (
                patch.object(sampling, "SAMPLE_EFFORT", sample_effort),
                patch.object(sampling, "MAX_WHOLE_EFFORT", max_whole_effort),
                patch.object(sampling, "MAX_ERROR", 1),
            ):
                few = report_on(launch)
            if few.simulated < 1:
                return Trial(few, report_on(replace(launch, exact=True)))


def _launch(rng: random.Random) -> TimedLaunch:
    board = rng.choice(BOARDS)
    if rng.random() < 0.5:
        shape = groups(
            rng, iterations=(1, 8, 30, 100, 300, 1000), counts=(3, 20, 60, 150, 500, 2000)
        )
        return TimedLaunch(shape, device=board)
    kernel = rng.choice([*ck.kernels.values(), generate_kernel(*rng.choice(ENTRIES))])
    n = 1 if kernel.is_vector else rng.randint(64, 1500)
    size = rng.randint(64, 1500), n, rng.randint(64, 1500)
    return TimedLaunch(kernel, size, board)


def faults_of(tried: Trial) -> list[str]:
    """Return how a trial breaks the law, as texts; empty if it doesn't."""
    few, whole = tried.few, tried.whole
    launch = few.launch
    faults = check(launch.code, launch.shape, few, whole)
    if tried.off > few.error:
        clocks = 100 * (few.clocks / whole.clocks - 1)
        faults.append(f"clocks {clocks:+.2f} % off, says {100 * few.error:.2f} %")
    return faults


def sampled(rng: random.Random) -> None:
    """Check that a random, partly simulated launch is within its error."""
    tried = trial(rng)
    faults = faults_of(tried)
    assert not faults, "\n".join([*faults, str(tried.few.launch), str(tried.few), str(tried.whole)])


def survey(seed: int, launches: int) -> int:
    """Try ``launches`` random launches on all cores, and print one summary: of the stated error, of
    the error, and of the share of the one that the other reaches. Return how many launches broke
    the law.
    """
    ck.simulate("sgemm_tn", 64)  # compiles the timing engine, for all children of this process
    broken, found = [], []
    with get_context("fork").Pool(maxtasksperchild=CALLS) as pool:
        for number, faults, row in pool.imap_unordered(_tried, range(seed, seed + launches)):
            found.append(row)
            if faults:
                broken.append(number)
                print(f"seed {number}: {'; '.join(faults)}", flush=True)
    says, off = 100 * np.array(found).T
    shares = np.quantile(off / says, (0.5, 0.99, 0.999, 1))
    print(f"{launches:,} launches from seed {seed}; {len(broken)} break the law: {sorted(broken)}")
    for what, column in (("stated error", says), ("error", off)):
        most = np.quantile(column, (0.5, 0.9, 0.99, 1))
        print(
            f"{what}, %: mean {column.mean():.2f}, median {most[0]:.2f}, 90th percentile"
            f" {most[1]:.2f}, 99th {most[2]:.2f}, most {most[3]:.2f}"
        )
    print("error by stated error: median, 99th, 99.9th percentile, most:", *np.round(shares, 3))
    return len(broken)


def _tried(seed: int) -> tuple[int, list[str], list[float]]:
    """Return a seed; the faults of its trial; its stated error and its error."""
    tried = trial(random.Random(seed))
    forget_reports()
    return seed, faults_of(tried), [tried.few.error, tried.off]


if __name__ == "__main__":
    launches, *first = map(int, sys.argv[1:] or ["1000"])
    sys.exit(survey(first[0] if first else 0, launches) > 0)
