"""Simulate a launch, whole or in part, and bound the error of the result.

How it works
------------
A launch of at most ``WHOLE_EFFORT`` cache lines and clauses is simulated whole. Parts of a longer
one are skipped where it is periodic:

- loop iterations in a steady state (``steady_state``), the more, the longer the launch is;
- rounds of wavefronts (as many as the chip holds), if late wavefronts do the same work. Some rounds
  are simulated, with the beginning and the partly filled end of the launch. Each round that is left
  out takes as long as the later ones of these.

The error (``stated_error``) is how much the pace was seen to change, and how much it may have
changed unobserved. A launch is simulated whole after all if more than a quarter of it had to be
simulated: a gap in a launch whose wavefronts are about to fall into step can change all that
follows. So it is if its effort is at most ``PATIENCE`` and its error above ``CONVERGED_ERROR``.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from math import fsum

import numpy as np
from tqdm.auto import tqdm

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.steady_state import CONVERGED_ERROR, SteadyStateSkipper
from cypresskit.chip.work import ALU, WRITE, Clause, WavefrontPath, clause_executions, pack
from cypresskit.devices import Device
from cypresskit.session import PROGRESS_DELAY, is_progress_shown
from cypresskit.timing.launch_time import (
    LaunchTime,
    bound,
    busy_shares,
    bytes_moved,
    hit_rates,
    read_only,
    use_of,
)
from cypresskit.timing.timed_launch import Spread, TimedLaunch

# Effort is in cache lines and clauses.
WHOLE_EFFORT = 3.2e7  # about a second; of a longer launch, about as much is simulated
PATIENCE = 3e8  # about ten seconds: up to here, all is simulated if the pace doesn't settle
MIN_ROUNDS = 6  # the fewest that may stand for all rounds of a long launch
MAX_SHARE = 0.25  # of the clauses: a sample that simulates more isn't worth it
WORK_TOLERANCE = 0.002  # the share by which the work of rounds that are left out may differ


@dataclass(frozen=True)
class Evidence:
    """What is known of a launch of which a part was left out.

    Attributes
    ----------
    busy
        The share of the time in which the busiest of the units works whose work the code
        determines.
    sending
        The share in which DRAM channels send.
    seen, unsteady
        The share by which the time may be off because the pace changed; and if the changes of the
        loops' pace didn't cancel.
    slower
        The same, if the rounds that were left out were like the slowest one.
    """

    busy: float
    sending: float
    seen: float
    slower: float
    unsteady: float


Bar = Callable[[range], Iterable]  # shows progress over a range


def time_launch(launch: TimedLaunch, *, exact: bool, progress: bool = True) -> LaunchTime:
    """Simulate a launch.

    Parameters
    ----------
    launch
        The launch.
    exact
        Whether everything is simulated.
    progress
        Whether a bar is shown after ``PROGRESS_DELAY`` seconds, where a person can see it.
    """
    hidden = not (progress and is_progress_shown())
    bar = partial(
        tqdm, desc="simulating", unit="%", delay=PROGRESS_DELAY, leave=False, disable=hidden
    )
    if exact:
        return _whole(launch, bar)

    paths, spread = _chosen(launch)
    largest = effort(paths)
    everything = largest * launch.wavefronts / _wavefronts(paths)
    if everything <= WHOLE_EFFORT:
        return _whole(launch, bar)

    watch = None
    if largest > WHOLE_EFFORT:
        strict = PATIENCE / largest
        farthest = 2 * largest / WHOLE_EFFORT - 1
        watch = partial(SteadyStateSkipper, farthest=farthest, strict=strict)
    outcome = _run(launch, paths, watch, bar)
    sampled = _extrapolate(launch, outcome, spread)
    settled = sampled.error <= CONVERGED_ERROR or everything > PATIENCE
    return sampled if settled and sampled.simulated <= MAX_SHARE else _whole(launch, bar)


def _whole(launch: TimedLaunch, bar: Bar) -> LaunchTime:
    paths = launch.trace(launch.wavefronts)
    return _extrapolate(launch, _run(launch, paths, None, bar), Spread(paths))


def _run(launch: TimedLaunch, paths: list[WavefrontPath], watch, bar: Bar) -> Outcome:
    work = pack(paths, launch.shape.group_wavefronts)
    return run(work, launch.device, launch.active_wavefronts, watch, bar)


def _chosen(launch: TimedLaunch) -> tuple[list[WavefrontPath], Spread]:
    """Return the paths that are simulated, and the paths whose mean work is the launch's.

    They are the same unless whole rounds are left out: then only the first rounds are simulated.
    """
    rounds, rest = divmod(launch.wavefronts, launch.round_size)
    if rounds > 3 * MIN_ROUNDS:
        spread = launch.trace_spread()
        average = _mean_work(spread.paths)
        first = max(MIN_ROUNDS, int(WHOLE_EFFORT / (launch.round_size * average[0])))
        if rounds > 2 * first:
            paths = launch.trace(first * launch.round_size + rest)
            changes = abs(average / np.maximum(_mean_work(paths), 1 / launch.round_size) - 1)
            if changes.max() <= WORK_TOLERANCE:
                return paths, spread
    paths = launch.trace(launch.wavefronts)
    return paths, Spread(paths)


def _extrapolate(launch: TimedLaunch, outcome: Outcome, spread: Spread) -> LaunchTime:
    """Return the launch's time, given the simulation of its first wavefronts.

    A round that was left out takes as long as the later ones of these: from the mean start of its
    wavefronts to the mean start in the next round.

    ``spread`` has wavefronts that represent the work of the launch.
    """
    device = launch.device
    part = len(outcome.start) / launch.wavefronts
    requested = requested_work(spread.paths, device)
    counts = {name: count / part for name, count in outcome.counts.items()}
    counts |= {name: spread.times * count for name, count in requested.items()}
    simulated = outcome.simulated * part
    clocks, seen, slower = _with_rounds(launch, outcome, part)
    error = 0.0
    if simulated < 1:
        clocks = max(clocks, min_clocks(counts, device))
        worked = busy_shares(counts, 1.0, device)
        busy = max(worked[unit] for unit in ("ALU", "texture", "LDS")) / clocks
        evidence = Evidence(
            busy=float(busy),
            sending=float(worked["DRAM"] / clocks),
            seen=float(seen),
            slower=float(slower),
            unsteady=outcome.unsteady * part,
        )
        error = stated_error(evidence)

    clocks = float(clocks)
    busy_units = busy_shares(counts, clocks, device)
    active = launch.active_wavefronts
    occupied = outcome.resident_clocks / (outcome.end_clock * device.simd_engines * active)
    sends, waits = (outcome.done[what][-1] / part / clocks for what in ("dram", "dram_rows"))
    return LaunchTime(
        clocks=clocks,
        error=error,
        simulated=float(simulated),
        bound=bound(
            busy_units,
            occupied,
            launch.wavefronts / launch.round_size,
            list(zip(sends.tolist(), waits.tolist())),
        ),
        busy=read_only(busy_units),
        hits=read_only(hit_rates(counts)),
        bytes=read_only(bytes_moved(counts, device)),
        events=outcome.timeline,
        use=use_of(outcome, device),
    )


def _with_rounds(launch: TimedLaunch, outcome: Outcome, part: float) -> tuple[float, float, float]:
    """Add the rounds that were left out.

    Returns
    -------
    Clocks, and two relative changes: of the pace, as observed, and to the slowest round.
    """
    clocks = outcome.end_clock
    if part == 1:
        return clocks, outcome.error, 0.0
    rounds = len(outcome.start) // launch.round_size
    start, end = (
        times[: rounds * launch.round_size].reshape(rounds, launch.round_size).mean(axis=1)
        for times in (outcome.start, outcome.end)
    )
    third = rounds // 3
    ahead = np.diff(start[rounds - 1 - 2 * third :: third]) / third
    lifetimes = (end - start)[rounds - 1 - 2 * third : -1].reshape(2, third).mean(axis=1)
    left = launch.wavefronts - len(outcome.start)
    clocks += left / launch.round_size * ahead.mean()
    changes = [abs(np.diff(pace)[0]) / max(pace.max(), 1) for pace in (ahead, lifetimes)]
    seen = outcome.error * part + min(max(changes), 1) * (1 - part)
    slower = (np.diff(start).max() / max(ahead.mean(), 1) - 1) * (1 - part)
    return clocks, seen, slower


def stated_error(known: Evidence) -> float:
    """Return the share by which a launch may be off.

    It is meant for the worst of a thousand launches. Most are off by about a hundredth of it.

    A unit that is always busy takes as long as its work does. All others take, at most, the rest of
    the time: which wavefronts share lines, and how rows of DRAM are opened, may change in the part
    that is left out. If DRAM is nearly always busy as well, SIMD engines that run side by side may
    drift apart in that part, and those that fall back wait for rows: the longer, the less of the
    time is left for it, as in any queue.

    Calibrated on 1,170 random launches, of which none is off by more than 0.84 of it. Of 10,000
    others, 7 are off by more than it, the worst by 2.5 times it: two that stream from the DRAM of a
    small board are off by 27 and 28 %. ``python -m tools.fuzz.samples 1000`` shows how far others
    are off.
    """
    idle = 1 / max(min(known.busy, 1.0), 0.1) - 1
    both = min(max(min(known.busy, 1.0) + known.sending - 1, 0.0), 0.95)
    unobserved = 0.005 + 0.3 * idle + 0.05 * both**2 / (1 - both)
    return min(unobserved + 2 * (known.seen + known.slower) + known.unsteady, 1.0)


def requested_work(paths: list[WavefrontPath], device: Device) -> dict[str, float]:
    """Return what wavefronts request, however long they wait for it: clocks of "alu", "texture" and
    "lds", and "delivered" bytes of texels.
    """
    requested = dict.fromkeys(("alu", "texture", "lds", "delivered"), 0.0)
    for clause, iterations, wavefronts in clause_executions(paths):
        requested["alu"] += iterations * wavefronts * clause.bundles * device.bundle_clocks
        for stream in clause.streams if clause.kind != WRITE else ():
            requested["lds" if clause.kind == ALU else "texture"] += stream.total(iterations)
            requested["delivered"] += stream.total(iterations, "delivered")
    return requested


def min_clocks(counts: Mapping[str, float], device: Device) -> float:
    """Return for how long the busiest kind of unit works or waits for a row, averaged over the
    units of that kind: the least time of the launch.
    """
    worked = busy_shares(counts, 1.0, device)
    return max(*worked.values(), worked["DRAM"] + worked["DRAM rows"])


def effort(paths: list[WavefrontPath]) -> float:
    """Estimate the lines and clauses that a simulation handles."""
    return fsum(n * times * _effort(clause) for clause, times, n in clause_executions(paths))


def _effort(clause: Clause) -> float:
    lines = fsum(len(stream.line) / len(stream.cost) for stream in clause.streams)
    return 1 + len(clause.streams) + lines


def _mean_work(paths: list[WavefrontPath]) -> np.ndarray:
    """Return a wavefront's mean work: effort, bundles, clocks of accesses, bytes of texels."""
    total = sum(n * times * _work(clause) for clause, times, n in clause_executions(paths))
    return np.asarray(total) / _wavefronts(paths)


def _wavefronts(paths: list[WavefrontPath]) -> int:
    return sum(len(path.wavefronts) for path in paths)


def _work(clause: Clause) -> np.ndarray:
    accesses = sum(stream.cost.mean() for stream in clause.streams)
    texels = sum(stream.amounts["delivered"].mean() for stream in clause.streams)
    return np.array([_effort(clause), 1.0 + clause.bundles, accesses, texels])
