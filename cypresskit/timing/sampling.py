"""Sampling: how much of a launch is simulated, how its time follows from that, and how far the
result may be off.

A launch of up to ``Policy.whole`` cache lines and clauses is simulated whole. Of a longer one,
turns of loops that go by as those before them did are skipped (``steady``), the more the longer it
is. Rounds of wavefronts (as many as the chip holds) are alike too: a launch of many is cut to its
first ``Policy.rounds`` and its ragged rest, and the others are added at the pace of the later half
of these, unless late wavefronts have other work than the first ones.

What a sample can't know is how the waiting goes on. A unit that is always busy takes as long as its
work does, however the wavefronts drift; where none is, and the memory channels are busy, a few
clocks decide which wavefronts share lines, and the pace may double later on. So the error that a
sample states is the changes of pace that were seen, and what these shares leave open
(``steady.unsure``). A launch with more than ``STEADY`` of error is simulated whole, if that takes
no more than ``Policy.patience`` lines and clauses.
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
from cypresskit.timing.steady import STEADY, Steady, unsure
from cypresskit.timing.work import ALU, TEX, Clause, Packed, Path, pack


@dataclass(frozen=True)
class Policy:
    """How much is simulated: up to ``whole`` lines and clauses (a quarter of a second) everything,
    and about as many of a longer launch; up to ``patience`` (some five seconds) everything where
    the pace isn't steady; of many rounds the first ``rounds``, which are three or more.
    """

    whole: float = 8e6
    patience: float = 1.5e8
    rounds: int = 6


POLICY = Policy()
Bar = Callable[[range], Iterable]  # shows how many of a range's numbers are done


@dataclass(frozen=True, eq=False)
class Sample:
    """A launch's ``clocks``, from an ``outcome`` that stands for the ``part`` of its wavefronts,
    those of ``paths``.

    ``share`` of the clauses was simulated. ``error`` is the share of the clocks by which these may
    be off, from what was seen; 0 if all was simulated. ``lived`` is for how many clocks wavefronts
    are on the chip, those of the whole launch together.
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

    rounds, remainder = divmod(launch.wavefronts, launch.round)
    difference = 0.0
    count = launch.wavefronts
    if rounds > 2 * policy.rounds:
        count = policy.rounds * launch.round + remainder
        difference = _difference(launch, count)
        if difference > STEADY:
            count = launch.wavefronts
            difference = 0.0

    paths = launch.walk(count)
    walked_effort = effort(paths)
    everything = walked_effort * launch.wavefronts / count
    if everything <= policy.whole:
        return _whole(launch, bar)

    sampled = _sampled(launch, paths, walked_effort, policy, bar)
    error = sampled.error + difference * (1 - sampled.part)
    if error > STEADY and everything <= policy.patience:
        return _whole(launch, bar)
    return replace(sampled, error=error)


def _whole(launch: TimedLaunch, bar: Bar) -> Sample:
    paths = launch.walk(launch.wavefronts)
    work = pack(paths, launch.group)
    outcome = run(work, launch.device, launch.active, None, bar)
    return Sample(outcome, paths, 1.0, 1.0, outcome.end_clock, 0.0, outcome.lived)


def _sampled(
    launch: TimedLaunch, paths: list[Path], walked_effort: float, policy: Policy, bar: Bar
) -> Sample:
    """The launch's time from its first wavefronts, whose ways are ``paths``."""
    work = pack(paths, launch.group)
    count = len(work.path)
    clauses = int(work.clauses_run[work.path].sum())
    watch = None
    if walked_effort > policy.whole:
        # The longer a launch, the longer its gaps: a third of the shortest is simulated, and of all
        # others about as much.
        farthest = 4 * walked_effort / policy.whole - 2
        strict = policy.patience / walked_effort * clauses
        watch = partial(Steady, farthest=farthest, strict=strict)
    outcome = run(work, launch.device, launch.active, watch, bar)
    asked = asked_work(paths, launch.device)
    error = outcome.error + _missed(outcome.counts, asked)
    outcome = replace(outcome, counts=outcome.counts | asked)
    clocks = outcome.end_clock
    lived = outcome.lived
    part = count / launch.wavefronts
    if part == outcome.simulated == 1:
        return Sample(outcome, paths, 1.0, 1.0, clocks, 0.0, lived)
    if part < 1:
        pace, change = observed_pace(outcome, work, count // launch.round, launch.round)
        clocks += (launch.wavefronts - count) / launch.round * pace
        lived += (launch.wavefronts - count) * _middle_life(outcome, launch.round)
        error = error * part + change * (1 - part)
    least = least_clocks(outcome, launch.device) / part
    lived *= max(least / clocks, 1)
    clocks = max(clocks, least)
    counts = outcome.counts
    channels = (counts["dram"] + counts["dram_rows"]) / launch.device.memory_channels / part
    error += unsure(least / clocks, channels / clocks)
    return Sample(outcome, paths, outcome.simulated * part, part, clocks, error, lived)


def _middle_life(outcome: Outcome, round_: int) -> float:
    """The clocks for which a wavefront is on the chip, on average over rounds of so many, but for
    the first, which begins with the launch, and the last whole one, which sees the chip empty. That
    is less than a round takes: wavefronts retire in order, so that a slot is empty from the end of
    its wavefront until those before it have ended.
    """
    lives = outcome.end - outcome.start
    rounds = len(lives) // round_
    return float(lives[round_ : (rounds - 1) * round_].mean())


def asked_work(paths: list[Path], device: Device) -> dict[str, float]:
    """What wavefronts on ``paths`` ask for, however long they wait for it: clocks of "alu",
    "texture" and "lds", and "delivered" bytes of texels.
    """
    asked = dict.fromkeys(("alu", "texture", "lds", "delivered"), 0.0)
    for path in paths:
        bundles = path.amount(lambda clause: clause.bundles)
        asked["alu"] += len(path.wavefronts) * bundles * device.bundle_clocks
        for clauses, turns in path.segments:
            for clause in clauses:
                unit = {ALU: "lds", TEX: "texture"}.get(clause.kind)
                if unit is None:
                    continue
                for stream in clause.streams:
                    asked[unit] += stream.total(stream.cost, turns)
                    if stream.delivered is not None:
                        asked["delivered"] += stream.total(stream.delivered, turns)
    return asked


def _missed(counts: dict[str, float], asked: dict[str, float]) -> float:
    """The share of the work ``asked`` for by which a sample's ``counts`` are off: it has seen
    clauses in another mix.
    """
    units = [unit for unit in ("alu", "texture", "lds") if asked[unit]]
    return max((abs(counts[unit] / asked[unit] - 1) for unit in units), default=0.0)


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
    return float(
        sum(
            len(path.wavefronts) * path.amount(lambda c: 1 + len(c.streams) + _lines(c))
            for path in paths
        )
    )


def _lines(clause: Clause) -> float:
    """How many lines a wavefront asks for in a clause."""
    return sum(len(stream.line) / len(stream.cost) for stream in clause.streams)


def _difference(launch: TimedLaunch, count: int) -> float:
    """By what share the work of the first ``count`` wavefronts differs from that of all, per
    wavefront: a round's number of each is looked at.
    """
    work = []
    for end in (count, launch.wavefronts):
        numbers = np.linspace(0, end - 1, launch.round).astype(np.int64)
        paths = launch.walk_some(np.unique(numbers))
        amounts = [path.amount(_work) for path in paths]
        work.append(np.average(amounts, axis=0, weights=[len(path.wavefronts) for path in paths]))
    return float(abs(work[1] / np.maximum(work[0], 1) - 1).max())


def _work(clause: Clause) -> np.ndarray:
    """Bundles of a clause, and clocks and lines of its accesses."""
    accesses = sum(stream.cost.mean() for stream in clause.streams) + _lines(clause)
    return np.array([1.0 + clause.bundles, accesses])


def observed_pace(outcome: Outcome, work: Packed, rounds: int, round_: int) -> tuple[float, float]:
    """(clocks of a round, the share by which they changed or soon will), from two thirds of so many
    ``rounds``: the first ones find caches and queues empty, and the last half of one the chip as it
    empties. A third is a whole number of rounds, as a round has slow and quick parts. Where a third
    took no time, wavefronts go in bursts and no pace was seen: the mean of all is given, and an
    error of 1.
    """
    marks = rounds - 0.5 - rounds // 3 * np.array([2, 1, 0])
    clauses = marks * work.clauses_run[work.path].mean() * round_
    clocks = np.diff(outcome.when(clauses, outcome.progress))
    if (clocks <= 0).any():
        return outcome.end_clock * round_ / len(work.path), 1.0
    channels = outcome.done["dram"] + outcome.done["dram_rows"]
    loads = np.diff(outcome.when(clauses, channels[:-1].mean(axis=1))) / clocks
    early, late = clocks / np.diff(marks)
    change = abs(late - early) / late
    # Wavefronts that drift apart miss more and more lines, which nobody feels until the channels
    # have no more time: after as much growth again, for what is beyond the whole of it.
    beyond = max(2 * loads[1] - loads[0] - 1, 0.0)
    return float((early + late) / 2), float(change + beyond)
