"""Simulate a launch, whole or in part, and bound the error of the result.

How it works
------------
The wavefronts of a launch run in rounds: as many as the chip holds. Of a launch with many rounds,
some are simulated, with its beginning and its partly filled end, if late wavefronts do the same
work: ``MIN_ROUNDS`` or more, of ``SAMPLE_EFFORT`` cache lines and clauses. Each round that is left
out takes as long as the later ones of these. A launch is simulated whole if these are more than
``MAX_SHARE`` of it.

The error (``stated_error``) is how much the pace was seen to change, and how much it may have
changed unobserved. If it is above ``CONVERGED_ERROR``, a launch of an effort of at most
``MAX_WHOLE_EFFORT`` is simulated whole after all. So is, at any effort, one whose error is above
``MAX_ERROR``, after a notice of how long that takes. A launch that can't be sampled, with too few
rounds or other late work, is simulated whole at any effort.
"""

import sys
from collections.abc import Mapping
from math import fsum

import numpy as np

from cypresskit.chip.engine import Outcome, run
from cypresskit.chip.work import ALU, WRITE, Clause, WavefrontPath, clause_executions, pack
from cypresskit.devices import Device
from cypresskit.il.errors import ArgumentError
from cypresskit.timing.launch_time import (
    CONVERGED_ERROR,
    LaunchTime,
    busy_shares,
    bytes_moved,
    find_limit,
    hit_rates,
    use_of,
    use_of_channels,
)
from cypresskit.timing.line_work import products_made
from cypresskit.timing.timed_launch import Spread, TimedLaunch

# Effort is in cache lines and clauses.
SAMPLE_EFFORT = 3.2e7  # about a second: a sample has as much, or ``MIN_ROUNDS``
MAX_WHOLE_EFFORT = 3e8  # about ten seconds: to here, a sample with too large an error isn't used
MAX_ERROR = 0.1  # a time that may be off by more is no answer
MIN_ROUNDS = 6  # the fewest that may stand for all rounds of a long launch
MAX_SHARE = 0.25  # of the wavefronts: a sample that simulates more isn't worth it
WORK_TOLERANCE = 0.002  # the share by which the work of rounds that are left out may differ


def time_launch(launch: TimedLaunch) -> LaunchTime:
    """Simulate a launch; everything, if it is ``exact``. Raises ``ValueError`` for code that
    neither computes nor accesses anything.
    """
    if not any(control.operations or control.accesses for control in launch.code.controls):
        raise ArgumentError(
            f"{launch.name}: there is nothing to time, since nothing that it computes or fetches is"
            " stored. Write a result to o0 or g[]"
        )
    sample = None if launch.exact else _sample(launch)
    if sample is not None:
        paths, spread = sample
        sampled = _simulate(launch, paths, spread)
        everything = effort(spread.paths) * spread.times
        is_long = everything > MAX_WHOLE_EFFORT
        if sampled.error <= (MAX_ERROR if is_long else CONVERGED_ERROR):
            return sampled
        if is_long:
            _say_seconds(launch, everything / SAMPLE_EFFORT)
    paths = launch.trace(launch.wavefronts)
    return _simulate(launch, paths, Spread(paths))


def _say_seconds(launch: TimedLaunch, seconds: float) -> None:
    print(
        f"{launch.name}: a part of this launch doesn't tell its time within {MAX_ERROR:.0%}, so all"
        f" of it is simulated: about {seconds:.0f} s. A smaller size answers sooner.",
        file=sys.stderr,
        flush=True,
    )


def _simulate(launch: TimedLaunch, paths: list[WavefrontPath], spread: Spread) -> LaunchTime:
    """Simulate the launch's first wavefronts, which take ``paths``, and extrapolate to all."""
    work = pack(paths, launch.shape.group_wavefronts)
    outcome = run(work, launch.device, launch.active_wavefronts)
    return extrapolate(launch, outcome, spread)


def _sample(launch: TimedLaunch) -> tuple[list[WavefrontPath], Spread] | None:
    """Return the paths of the first rounds, which may stand for all, and paths whose mean work is
    the launch's; None if the launch has to be simulated whole.
    """
    size = launch.round_size
    rest = launch.wavefronts % size
    max_wavefronts = MAX_SHARE * launch.wavefronts
    if MIN_ROUNDS * size + rest > max_wavefronts:
        return None
    spread = launch.trace_spread()
    mean = _mean_work(spread.paths, launch.device)
    count = max(MIN_ROUNDS, int(SAMPLE_EFFORT / (size * mean[0]))) * size + rest
    if count > max_wavefronts:
        return None
    paths = launch.trace(count)
    first_mean = _mean_work(paths, launch.device)
    changes = abs(mean - first_mean) / np.maximum(first_mean, 1 / size)
    return (paths, spread) if changes.max() <= WORK_TOLERANCE else None


def extrapolate(launch: TimedLaunch, outcome: Outcome, spread: Spread) -> LaunchTime:
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
    clocks = outcome.end_clock
    error = 0.0
    if part < 1:
        clocks, seen, slower = _with_rounds(launch, outcome, part)
        clocks = max(clocks, min_clocks(counts, device))
        worked = busy_shares(counts, 1.0, device)
        busy = max(worked[unit] for unit in ("ALU", "texture", "LDS")) / clocks
        error = stated_error(float(busy), float(worked["DRAM"] / clocks), float(seen + slower))

    clocks = float(clocks)
    busy_units = busy_shares(counts, clocks, device)
    active = launch.active_wavefronts
    occupied = outcome.resident_clocks / (outcome.end_clock * device.simd_engines * active)
    limit, bound = find_limit(
        busy_units, occupied, launch.wavefronts / launch.round_size, use_of_channels(outcome)
    )
    return LaunchTime(
        clocks=clocks,
        error=error,
        simulated=part,
        limit=limit,
        bound=bound,
        busy=busy_units,
        hits=hit_rates(counts),
        bytes=bytes_moved(counts, device),
        events=outcome.timeline,
        products=products_made(launch, spread),
        use=use_of(outcome, device),
        registers=launch.code.gprs,
        active_wavefronts=active,
    )


def _with_rounds(launch: TimedLaunch, outcome: Outcome, part: float) -> tuple[float, float, float]:
    """Add the rounds that were left out.

    Returns
    -------
    Clocks, and two relative changes: of the pace, as observed, and to the slowest round.
    """
    rounds = len(outcome.start) // launch.round_size
    start, end = (
        times[: rounds * launch.round_size].reshape(rounds, launch.round_size).mean(axis=1)
        for times in (outcome.start, outcome.end)
    )
    third = rounds // 3
    ahead = np.diff(start[rounds - 1 - 2 * third :: third]) / third
    lifetimes = (end - start)[rounds - 1 - 2 * third : -1].reshape(2, third).mean(axis=1)
    left = launch.wavefronts - len(outcome.start)
    clocks = outcome.end_clock + left / launch.round_size * ahead.mean()
    changes = [abs(np.diff(pace)[0]) / max(pace.max(), 1) for pace in (ahead, lifetimes)]
    seen = min(max(changes), 1) * (1 - part)
    slower = (np.diff(start).max() / max(ahead.mean(), 1) - 1) * (1 - part)
    return clocks, seen, slower


def stated_error(busy: float, sending: float, changes: float) -> float:
    """Return the share by which the time of a launch may be off if rounds were left out.

    It is meant as a bound. Most launches are off by much less.

    Parameters
    ----------
    busy
        The share of the time in which the busiest of the units works whose work the code
        determines.
    sending
        The share in which DRAM channels send.
    changes
        The share by which the time may be off because the pace changed, and if the rounds that were
        left out were like the slowest one.

    Notes
    -----
    A unit that is always busy takes as long as its work does. All others take, at most, the rest of
    the time: which wavefronts share lines, and how rows of DRAM are opened, may change in the part
    that is left out. If DRAM is nearly always busy as well, SIMD engines that run side by side may
    drift apart in that part, and those that fall back wait for rows: the longer, the less of the
    time is left for it, as in any queue.

    The coefficients were fitted to 1,170 random launches whose loops were also cut short. Loops are
    simulated whole now, and the coefficients were kept. Of 700 other launches (``python -m
    tools.fuzz.samples 700 1823000000``), none is off by more than 0.61 of it, and 99 % by at most
    0.51 of it; its median is 2.33 %, the mean error 0.17 %.
    """
    busy = min(busy, 1.0)
    idle = 1 / max(busy, 0.1) - 1
    both = min(max(busy + sending - 1, 0.0), 0.95)
    unobserved = 0.005 + 0.3 * idle + 0.05 * both**2 / (1 - both)
    return min(unobserved + 2 * changes, 1.0)


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


def _mean_work(paths: list[WavefrontPath], device: Device) -> np.ndarray:
    """Return a wavefront's mean work: its effort, and what it requests."""
    total = [effort(paths), *requested_work(paths, device).values()]
    return np.array(total) / sum(len(path.wavefronts) for path in paths)
