"""Sampling: how much of a launch is simulated, how its time follows from that, and how far the
result may be off.

A launch of up to ``Policy.whole`` cache lines and clauses is simulated whole. A longer one is
continued where it is periodic: turns of loops that go by as those before them did are skipped
(``steady``), the more the longer it is. Rounds of wavefronts (as many as the chip holds) are alike,
too. How a launch begins and how its ragged rest ends is simulated with some rounds, and the others
take as long as the later of these, unless late wavefronts have other work.

``Sample.error`` is what the pace was seen to change by, and what may have changed unseen: by as
much as ``unseen`` says, or to the pace of the slowest round, since wavefronts that begin in step
and then drift apart may fall back into step in any later round. A launch with an error of more than
``STEADY``, or of which less than half can be left out, is simulated whole, if that takes no more
than ``Policy.patience`` lines and clauses; the latter in any case if it takes no more than a
second.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import fsum

import numpy as np
from tqdm.auto import tqdm

from cypresskit.devices import Device
from cypresskit.progress import DELAY, is_watched
from cypresskit.timing.account import worked_clocks
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.question import POLICY, Policy
from cypresskit.timing.steady import STEADY, Steady
from cypresskit.timing.timed_launch import Spread, TimedLaunch
from cypresskit.timing.units.l2 import l2_clocks
from cypresskit.timing.work import ALU, TEX, Clause, Path, clause_runs, pack

HALF = 0.5  # of the clauses: who has to simulate more saves nothing
SECOND = 8  # times as much as is simulated whole at once
ALIKE = 0.002  # share by which the work of a round may differ from that of the first ones


Bar = Callable[[range], Iterable]  # shows how many of a range's numbers are done


@dataclass(frozen=True, eq=False)
class Sample:
    """A launch's time, from the ``outcome`` of its first wavefronts, those on ``paths``."""

    outcome: Outcome
    paths: list[Path]
    share: float  # of the launch's clauses, that were simulated
    part: float  # of the launch's wavefronts, those on ``paths``
    clocks: float  # of the launch
    error: float  # share by which ``clocks`` and ``lived`` may be off; 0 if all was simulated
    lived: float  # clocks for which wavefronts are on the chip, those of the launch together
    counts: Mapping[str, float]  # as in ``Outcome``, of the launch
    worked: float  # clocks for which wavefronts are worked on, those of the launch together


def sample(
    launch: TimedLaunch, *, exact: bool, progress: bool = True, policy: Policy = POLICY
) -> Sample:
    """Simulate a launch: everything if ``exact``, else as much as ``policy`` says. Shows its
    ``progress`` if it takes more than ``DELAY`` seconds, where that can be watched.
    """
    hidden = not (progress and is_watched())
    bar = partial(tqdm, desc="simulating", unit="%", delay=DELAY, leave=False, disable=hidden)
    if exact:
        return _whole(launch, bar)

    paths, spread = _chosen(launch, policy)
    largest = effort(paths)
    everything = largest * launch.wavefronts / _wavefronts(paths)
    if everything <= policy.whole:
        return _whole(launch, bar)

    watch = None
    if largest > policy.whole:
        strict = policy.patience / largest
        watch = partial(Steady, farthest=2 * largest / policy.whole - 1, strict=strict)
    outcome = run(pack(paths, launch.group), launch.device, launch.active, watch, bar)
    sampled = _extended(launch, outcome, paths, spread)
    patience = policy.patience
    if sampled.share > HALF:  # so that the whole takes but twice as long
        patience = max(patience, SECOND * policy.whole)
    elif sampled.error <= STEADY:
        return sampled
    if everything <= patience:
        return _whole(launch, bar)
    return sampled


def _whole(launch: TimedLaunch, bar: Bar) -> Sample:
    paths = launch.walk(launch.wavefronts)
    work = pack(paths, launch.group)
    outcome = run(work, launch.device, launch.active, None, bar)
    return _extended(launch, outcome, paths, Spread(paths))


def _chosen(launch: TimedLaunch, policy: Policy) -> tuple[list[Path], Spread]:
    """The paths of the first wavefronts, which are simulated, and those that show the work of all:
    the same, unless whole rounds are left out.
    """
    rounds, rest = divmod(launch.wavefronts, launch.round)
    if rounds > 3 * policy.rounds:
        spread = launch.walk_spread()
        average = _mean_work(spread.paths)
        first = max(policy.rounds, int(policy.whole / (launch.round * average[0])))
        if rounds > 2 * first:
            paths = launch.walk(first * launch.round + rest)
            changes = abs(average / np.maximum(_mean_work(paths), 1 / launch.round) - 1)
            if changes.max() <= ALIKE:
                return paths, spread
    paths = launch.walk(launch.wavefronts)
    return paths, Spread(paths)


def _extended(launch: TimedLaunch, outcome: Outcome, paths: list[Path], spread: Spread) -> Sample:
    """The launch's time from the ``outcome`` of its first wavefronts, those on ``paths``. A round
    that was left out takes as long as the later ones of these: from when its wavefronts start, on
    average, to when those of the next do. ``spread`` shows the work of all.
    """
    part = len(outcome.start) / launch.wavefronts
    asked = {what: spread.times * n for what, n in asked_work(spread.paths, launch.device).items()}
    counts = {what: count / part for what, count in outcome.counts.items()} | asked
    worked = spread.times * worked_clocks(spread.paths, launch.device)
    share = outcome.simulated * part
    clocks, lived = outcome.end_clock, outcome.lived
    if share == 1:
        return Sample(outcome, paths, 1.0, 1.0, clocks, 0.0, lived, counts, worked)

    seen, slower = outcome.error, 0.0
    if part < 1:
        rounds = len(outcome.start) // launch.round
        start, end = (
            times[: rounds * launch.round].reshape(rounds, launch.round).mean(axis=1)
            for times in (outcome.start, outcome.end)
        )
        third = rounds // 3
        ahead = np.diff(start[rounds - 1 - 2 * third :: third]) / third
        lives = (end - start)[rounds - 1 - 2 * third : -1].reshape(2, third).mean(axis=1)
        left = launch.wavefronts - len(outcome.start)
        clocks += left / launch.round * ahead.mean()
        lived += left * lives.mean()
        changes = [abs(np.diff(pace)[0]) / max(pace.max(), 1) for pace in (ahead, lives)]
        seen = seen * part + min(max(changes), 1) * (1 - part)
        slower = (np.diff(start).max() / max(ahead.mean(), 1) - 1) * (1 - part)
    least = least_clocks(counts, launch.device)
    lived *= max(least / clocks, 1)
    clocks = max(clocks, least)
    busy = _asked_clocks(counts, launch.device) / clocks
    sending = counts["dram"] / launch.device.memory_channels / clocks
    error = float(seen + max(unseen(busy, sending), slower))
    return Sample(outcome, paths, share, part, float(clocks), error, float(lived), counts, worked)


def unseen(busy: float, sending: float) -> float:
    """The share by which a launch may be off of which half or more was left out, and whose pace
    wasn't seen to change. It is meant for the worst of ten thousand; most are off by about a
    hundredth of it. The busiest of the units whose work the code knows is ``busy`` for that share
    of the time.

    A unit that is always busy takes as long as its work does. The others may, at most, take as long
    as is left: who shares lines with whom, how rows of DRAM and wavefronts fall together, may
    change in the part that is skipped. DRAM channels are ``sending`` for a share of the time, too:
    where both units are nearly always busy, SIMD engines that go on side by side may part in the
    skipped turns, and those behind then wait for rows. Of the time in which both units have to be
    busy at once, a tenth may be lost.

    Chosen on those of 3,930 random launches that were off the most; the last term on one more, off
    by 11 %, with ALUs busy for 97 % and DRAM sending for 78 % of the time. ``python -m tools.fuzz
    --calibrate 1000`` shows what others are off by.
    """
    idle = 1 / max(min(busy, 1.0), 0.1) - 1
    both = max(min(busy, 1.0) + sending - 1, 0.0)
    return min(0.04 + 0.3 * idle + 0.1 * both, 1.0)


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
            asked["delivered"] += stream.total(stream.delivered, turns)
    return asked


def least_clocks(counts: Mapping[str, float], device: Device) -> float:
    """Clocks for which the busiest kind of unit is at work or waits for a row, on average over the
    units of that kind: no launch takes less.
    """
    return max(
        _asked_clocks(counts, device),
        (counts["dram"] + counts["dram_rows"]) / device.memory_channels,
        l2_clocks(counts["l2_asked"] + counts["l2_passed"], device) / device.l2_slices,
    )


def _asked_clocks(counts: Mapping[str, float], device: Device) -> float:
    """Those of the units whose work the code knows, whatever is found in a cache."""
    return max(counts[unit] for unit in ("alu", "texture", "lds")) / device.simd_engines


def effort(paths: list[Path]) -> float:
    """Lines and clauses that the engine will handle, roughly."""
    return fsum(n * turns * _effort(clause) for clause, turns, n in clause_runs(paths))


def _effort(clause: Clause) -> float:
    return 1 + len(clause.streams) + _lines(clause)


def _lines(clause: Clause) -> float:
    """How many lines a wavefront asks for in a clause."""
    return fsum(len(stream.line) / len(stream.cost) for stream in clause.streams)


def _mean_work(paths: list[Path]) -> np.ndarray:
    """What a wavefront on ``paths`` has to do, on average: its effort, its bundles, the clocks of
    its accesses, and the bytes of texels that it gets.
    """
    amounts = [path.amount(_work) for path in paths]
    return np.average(amounts, axis=0, weights=[len(path.wavefronts) for path in paths])


def _wavefronts(paths: list[Path]) -> int:
    return sum(len(path.wavefronts) for path in paths)


def _work(clause: Clause) -> np.ndarray:
    accesses = sum(stream.cost.mean() for stream in clause.streams)
    texels = sum(stream.delivered.mean() for stream in clause.streams)
    return np.array([_effort(clause), 1.0 + clause.bundles, accesses, texels])
