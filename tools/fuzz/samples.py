"""Check the law of samples: a partly simulated launch has the correct time, within its ``error``.

The same holds for the lifetime of its wavefronts. Each random launch is simulated partly and whole.
The launches are ragged: kernels of the catalog and with generated blocks, which fill the chip a
little more than once, and workgroups with fences, on large and small boards. The same launches
calibrate the error for the part that is left out (``sampling.stated_error``); this prints how far
they were off:

    python -m tools.fuzz --kind sampled --launches 1000
"""

import json
import random
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import numpy as np

import cypresskit as ck
from cypresskit.compiler import CompileError
from cypresskit.devices import HD5850, HD5870
from cypresskit.kernels.generated import generate_kernel
from cypresskit.timing import Report, sampling
from cypresskit.timing.sampling import Evidence, effort, stated_error
from cypresskit.timing.simulate import forget_reports, run_request
from cypresskit.timing.timed_launch import TimingRequest
from tools.fuzz.children import CALLS, context
from tools.fuzz.law import ENTRIES, SMALL, check, groups, unbalanced

BOARDS = [
    HD5870,
    HD5850,
    SMALL,
    replace(SMALL, simd_engines=1),
    replace(SMALL, l2_bytes=65536),
]
MOST = 24  # times as much as is simulated whole
SOME = 64  # wavefronts, from which the work of a launch is estimated


@dataclass(frozen=True)
class Trial:
    """A launch simulated partly, ``few``, and ``whole``; and what its error was stated from."""

    few: Report
    whole: Report
    evidence: Evidence

    @property
    def off(self) -> float:
        """The relative error of clocks or lifetimes, whichever is larger."""
        clocks = abs(self.few.clocks / self.whole.clocks - 1)
        return max(clocks, abs(self.few.resident_clocks / self.whole.resident_clocks - 1))


def trial(rng: random.Random) -> Trial:
    """Return a random launch of which a part is skipped."""
    while True:
        patience = rng.choice((0, sampling.PATIENCE))
        effort_of_whole = rng.choice((4e5, 1e6))
        question = _question(rng)
        try:
            launch = question.launch()
        except (CompileError, ValueError):
            continue
        numbers = np.unique(np.linspace(0, launch.wavefronts - 1, SOME).astype(np.int64))
        work = effort(launch.trace_some(numbers)) * launch.wavefronts / len(numbers)
        if effort_of_whole < work < MOST * effort_of_whole:
            limits: dict[str, Any] = {"WHOLE_EFFORT": effort_of_whole, "PATIENCE": patience}
            stated = Mock(wraps=stated_error)
            with patch.multiple(sampling, stated_error=stated, **limits):
                few = run_request(question)
            if few.simulated < 1:
                return Trial(
                    few, run_request(replace(question, exact=True)), stated.call_args.args[0]
                )


def _question(rng: random.Random) -> TimingRequest:
    board = rng.choice(BOARDS)
    if rng.random() < 0.5:
        shape = groups(rng, turns=(1, 8, 30, 100, 300, 1000), counts=(3, 20, 60, 150, 500, 2000))
        return TimingRequest(shape.program, shape=shape, device=board)
    kernel = rng.choice([*ck.kernels.values(), generate_kernel(*rng.choice(ENTRIES))])
    n = 1 if kernel.is_vector else rng.randint(64, 1500)
    size = rng.randint(64, 1500), n, rng.randint(64, 1500)
    return TimingRequest(kernel, size=size, device=board, precision=kernel.precision)


def faults_of(tried: Trial) -> list[str]:
    """Return how a trial breaks the law, as texts; empty if it doesn't."""
    few, whole = tried.few, tried.whole
    launch = few.launch
    faults = unbalanced(few) + unbalanced(whole)
    faults += check(launch.code, launch.shape, launch.layout, few, whole)
    if tried.off > few.error:
        clocks = 100 * (few.clocks / whole.clocks - 1)
        lived = 100 * (few.resident_clocks / whole.resident_clocks - 1)
        says = 100 * few.error
        faults.append(f"clocks {clocks:+.2f} %, lives {lived:+.2f} % off, says {says:.2f} %")
    return faults


def sampled(rng: random.Random) -> None:
    """Check that a random, partly simulated launch is within its error."""
    tried = trial(rng)
    faults = faults_of(tried)
    assert not faults, "\n".join(
        [*faults, str(tried.few.request), str(tried.few), str(tried.whole)]
    )


def survey(seed: int, launches: int, rows: Path | None = None) -> int:
    """Try ``launches`` random launches on all cores, and print one summary: of the stated error, of
    the error, and of the share of the one that the other reaches. Return how many launches broke
    the law. A line of the file ``rows`` has what is known of one.
    """
    ck.simulate("sgemm_tn", 64)  # compiles the timing engine, for all children of this process
    broken, found = [], []
    with context.Pool(maxtasksperchild=CALLS) as pool:
        for row in pool.imap_unordered(_tried, range(seed, seed + launches)):
            found.append(row)
            if row["faults"]:
                broken.append(row["seed"])
                print(f"seed {row['seed']}: {'; '.join(row['faults'])}", flush=True)
    if rows:
        rows.write_text("".join(json.dumps(row) + "\n" for row in found))
    names = "error", "off", "simulated"
    says, off, simulated = (100 * np.array([row[name] for row in found]) for name in names)
    shares = np.quantile(off / says, (0.5, 0.99, 0.999, 1))
    print(f"{launches:,} launches from seed {seed}; {len(broken)} break the law: {sorted(broken)}")
    for what, column in (("stated error", says), ("error", off), ("simulated", simulated)):
        most = np.quantile(column, (0.5, 0.9, 0.99, 1))
        print(f"{what}, %: mean {column.mean():.2f}, median {most[0]:.2f}, 90th percentile", end="")
        print(f" {most[1]:.2f}, 99th {most[2]:.2f}, most {most[3]:.2f}")
    print("error by stated error: median, 99th, 99.9th percentile, most:", *np.round(shares, 3))
    return len(broken)


def _tried(seed: int) -> dict[str, Any]:
    """Return what is known of the trial with a seed."""
    tried = trial(random.Random(seed))
    few, whole = tried.few, tried.whole
    forget_reports()
    return {
        "seed": seed,
        "faults": faults_of(tried),
        "error": few.error,
        "off": tried.off,
        "clocks": few.clocks / whole.clocks - 1,
        "lives": few.resident_clocks / whole.resident_clocks - 1,
    } | asdict(tried.evidence)
