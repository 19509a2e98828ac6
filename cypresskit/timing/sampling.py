"""Sampling: how much of a launch is simulated, how its time follows from that, and how far the
result may be off.

A launch of up to ``Policy.whole`` cache lines and clauses is simulated whole. A longer one is
continued where it is periodic: turns of loops that go by as those before them did are skipped
(``steady``), the more the longer it is. Rounds of wavefronts (as many as the chip holds) are alike,
too. How a launch begins and how its ragged rest ends is simulated with a few rounds, and with
fewer: a round takes what these launches differ by, unless late wavefronts have other work.

``Sample.error`` is what the pace was seen to change by, and what nobody can have seen (``unseen``).
A launch with an error of more than ``STEADY``, or of which less than half can be left out, is
simulated whole, if that takes no more than ``Policy.patience`` lines and clauses.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from tqdm.auto import tqdm

from cypresskit.devices import Device
from cypresskit.timing.account import TimedLaunch
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.progress import SILENT
from cypresskit.timing.steady import STEADY, Steady
from cypresskit.timing.work import ALU, TEX, Clause, Path, clause_runs, pack

HALF = 0.5  # of the clauses: who has to simulate more saves nothing
ALIKE = 0.002  # share by which the work of a round may differ from that of the first ones


@dataclass(frozen=True)
class Policy:
    """How much is simulated: up to ``whole`` lines and clauses (an eighth of a second) everything,
    and about half as many of a longer launch; up to ``patience`` (some five seconds) everything
    where the pace isn't steady; of many rounds the first ``rounds`` or more, three at least.
    """

    whole: float = 4e6
    patience: float = 1.5e8
    rounds: int = 6


POLICY = Policy()
Bar = Callable[[range], Iterable]  # shows how many of a range's numbers are done


@dataclass(frozen=True, eq=False)
class Sample:
    """A launch's ``clocks``, from an ``outcome`` that stands for the ``part`` of its wavefronts,
    those of ``paths``.

    ``share`` of the clauses was simulated. ``error`` is the share by which ``clocks`` and ``lived``
    may be off; 0 if all was simulated. ``lived`` is for how many clocks wavefronts are on the chip,
    those of the whole launch together.
    """

    outcome: Outcome
    paths: list[Path]
    share: float
    part: float
    clocks: float
    error: float
    lived: float


def sample(
    launch: TimedLaunch, *, exact: bool, progress: bool = True, policy: Policy = POLICY
) -> Sample:
    """Simulate a launch: everything if ``exact``, else as much as ``policy`` says. Shows its
    ``progress`` if it takes more than ``SILENT`` seconds.
    """
    bar = partial(
        tqdm, desc="simulating", unit="%", delay=SILENT, leave=False, disable=not progress
    )
    if exact:
        return _whole(launch, bar)

    counts = _counts(launch, policy)
    ways = [launch.walk(count) for count in counts]
    largest = effort(ways[0])
    everything = largest * launch.wavefronts / counts[0]
    if everything <= policy.whole:
        return _whole(launch, bar)

    watch = None
    if largest > policy.whole:
        strict = policy.patience / largest
        watch = partial(Steady, farthest=8 * largest / policy.whole - 2, strict=strict)
    outcomes = [
        run(pack(paths, launch.group), launch.device, launch.active, watch, bar) for paths in ways
    ]
    sampled = _extended(launch, outcomes, ways[0])
    doubtful = sampled.error > STEADY or sampled.share > HALF
    if doubtful and everything <= policy.patience:
        return _whole(launch, bar)
    return sampled


def _whole(launch: TimedLaunch, bar: Bar) -> Sample:
    paths = launch.walk(launch.wavefronts)
    work = pack(paths, launch.group)
    outcome = run(work, launch.device, launch.active, None, bar)
    return Sample(outcome, paths, 1.0, 1.0, outcome.end_clock, 0.0, outcome.lived)


def _counts(launch: TimedLaunch, policy: Policy) -> list[int]:
    """How many of its first wavefronts are simulated: all, or three numbers that differ by whole
    rounds, the largest first.
    """
    rounds, rest = divmod(launch.wavefronts, launch.round)
    if rounds <= 3 * policy.rounds:
        return [launch.wavefronts]
    average = _work_of_a_round(launch, launch.wavefronts)
    first = max(policy.rounds, int(policy.whole / 2 / average[0]))
    count = first * launch.round + rest
    if rounds <= 3 * first:
        return [launch.wavefronts]
    changes = abs(average / np.maximum(_work_of_a_round(launch, count), 1) - 1)
    if changes.max() > ALIKE:
        return [launch.wavefronts]
    third = first // 3 * launch.round
    return [count, count - third, count - 2 * third]


def _extended(launch: TimedLaunch, outcomes: list[Outcome], paths: list[Path]) -> Sample:
    """The launch's time from ``outcomes`` of its first wavefronts, the most first, that differ by
    whole rounds: what they begin and end with is the same, so that a round costs what they differ
    by. ``paths``: those of the first outcome.
    """
    asked = asked_work(paths, launch.device)
    outcome = replace(outcomes[0], counts=outcomes[0].counts | asked)
    part = len(outcome.start) / launch.wavefronts
    share = outcome.simulated * part
    if share == 1:
        return Sample(outcome, paths, 1.0, 1.0, outcome.end_clock, 0.0, outcome.lived)

    clocks, lived = outcome.end_clock, outcome.lived
    seen = outcome.error
    if part < 1:
        times = np.array([(outcome.end_clock, outcome.lived) for outcome in outcomes])
        late, early = times[:-1] - times[1:]
        steps = (launch.wavefronts - len(outcome.start)) / (
            len(outcomes[0].start) - len(outcomes[1].start)
        )
        clocks, lived = np.maximum(times[0], times[0] + steps * (late + early) / 2)
        # Wavefronts that go in bursts show no pace: a change of all of it.
        slower = np.maximum(np.maximum(late, early), 1)
        changes = 1 - np.clip(np.minimum(late, early) / slower, 0, 1)
        seen = seen * part + changes.max() * (1 - part)
    least = least_clocks(outcome, launch.device) / part
    lived *= max(least / clocks, 1)
    clocks = max(clocks, least)
    error = seen + unseen(least / clocks)
    return Sample(outcome, paths, share, part, float(clocks), float(error), float(lived))


def unseen(busy: float) -> float:
    """The share by which a launch may be off of which half or more was left out, and whose pace
    wasn't seen to change; its busiest unit is ``busy`` for that share of the time.

    A unit that is always busy takes as long as its work does. Where none is, a few clocks decide
    who shares lines with whom and in which order wavefronts end, and that may change where nobody
    looks. Calibrated on 289 random launches, none of which was off by more (``python -m tools.fuzz
    --calibrate 1000``).
    """
    return 0.02 + 0.15 * (1 - min(busy, 1.0))


def asked_work(paths: list[Path], device: Device) -> dict[str, float]:
    """What wavefronts on ``paths`` ask for, however long they wait for it: clocks of "alu",
    "texture" and "lds", and "delivered" bytes of texels.
    """
    asked = dict.fromkeys(("alu", "texture", "lds", "delivered"), 0.0)
    for clause, turns, wavefronts in clause_runs(paths):
        asked["alu"] += turns * wavefronts * clause.bundles * device.bundle_clocks
        unit = {ALU: "lds", TEX: "texture"}.get(clause.kind)
        if unit is None:
            continue
        for stream in clause.streams:
            asked[unit] += stream.total(stream.cost, turns)
            if stream.delivered is not None:
                asked["delivered"] += stream.total(stream.delivered, turns)
    return asked


def least_clocks(outcome: Outcome, device: Device) -> float:
    """Clocks for which the busiest kind of unit is at work, on average over the units of that kind:
    no launch takes less.
    """
    counts = outcome.counts
    lines = counts["l2_asked"] + counts["l2_passed"]
    slices = lines * device.line_bytes / device.l2_slice_bytes_clock
    return max(
        *(counts[unit] / device.simd_engines for unit in ("alu", "texture", "lds")),
        counts["dram"] / device.memory_channels,
        slices / device.l2_slices,
    )


def effort(paths: list[Path]) -> float:
    """Lines and clauses that the engine will handle, roughly."""
    return float(sum(len(path.wavefronts) * path.amount(_effort) for path in paths))


def _effort(clause: Clause) -> float:
    return 1 + len(clause.streams) + _lines(clause)


def _lines(clause: Clause) -> float:
    """How many lines a wavefront asks for in a clause."""
    return sum(len(stream.line) / len(stream.cost) for stream in clause.streams)


def _work_of_a_round(launch: TimedLaunch, end: int) -> np.ndarray:
    """What a round of wavefronts has to do, taken evenly from the first ``end``: its effort, its
    bundles, and the clocks of its accesses.
    """
    numbers = np.unique(np.linspace(0, end - 1, launch.round).astype(np.int64))
    paths = launch.walk_some(numbers)
    amounts = [path.amount(_work) for path in paths]
    wavefronts = [len(path.wavefronts) for path in paths]
    return launch.round * np.average(amounts, axis=0, weights=wavefronts)


def _work(clause: Clause) -> np.ndarray:
    accesses = sum(stream.cost.mean() for stream in clause.streams)
    return np.array([_effort(clause), 1.0 + clause.bundles, accesses])
