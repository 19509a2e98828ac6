"""Sampling: how much of a launch is simulated, and how its time follows from that.

All engines are full most of the time, and every round of wavefronts (as many as the chip holds) takes about as long as
another. So a launch of many rounds is cut to its first ones and its ragged last one, and what was left out is added at
the pace of the rounds that were simulated. A launch whose late wavefronts have other work than its first ones is
simulated whole. Where that pace is uneven (wavefronts drift apart and share less and less of
L2, or a stride meets DRAM banks in turns), more is simulated, until that would take too long.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm.auto import tqdm

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.machine.shape import Shape
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.surfaces import Surfaces
from cypresskit.timing.walk import walk
from cypresskit.timing.work import Clause, Packed, Path, pack

PACE = 30e6  # cache lines and clauses a second
LONG = 60.0
HIDING = 0.8  # from this share of clocks on the ALU has enough to do while data are waited for
SURVEYED = 256  # wavefronts that are looked at to see whether a launch does the same work all over


@dataclass(frozen=True)
class Policy:
    """How much is simulated. Work is counted in cache lines and clauses, of which a second does ``PACE``.

    ``whole``: a launch of so much work is simulated whole. Of a longer one as many rounds as ``first`` allows, at least
    ``rounds``, or one where these are more than ``long``. More is simulated where the pace changes from the first half
    of the rounds to the second by more than ``uneven``, times the share that is left out, and up to ``most``; or up to
    ``most_wild`` where it changes by more than ``wild``, or where L2 misses grow by the factor ``drift`` while
    wavefronts wait for their fetches: sharing is being lost, and the pace will follow.
    A launch is simulated whole if its late wavefronts' bundles differ from the first ones' by more than ``uneven``, or
    their accesses by more than ``ragged``, which spares the last row of tiles of most sizes.
    """

    whole: float = 56e6
    first: float = 36e6
    rounds: int = 3
    long: float = 30e6
    most: float = 100e6
    most_wild: float = 250e6
    uneven: float = 0.004
    wild: float = 0.02
    drift: float = 1.05
    ragged: float = 0.02

    def first_rounds(self, work: float, rounds: float) -> float:
        """How many rounds are simulated first, of a launch of ``rounds`` with so much work in each."""
        if work * rounds <= self.whole:
            return np.inf
        return max(int(self.first // work) - 1, self.rounds if self.rounds * work < self.long else 1)


@dataclass(frozen=True, eq=False)
class Sample:
    """The ``share`` of the wavefronts that was simulated, its outcome, and the clocks of the whole launch."""

    outcome: Outcome
    share: float
    clocks: float


def sample(
    code: Code,
    shape: Shape,
    device: Device,
    layout: str,
    active: int,
    exact: bool,
    progress: bool = True,
    policy: Policy = Policy(),
) -> Sample:
    """Simulate a launch with ``active`` wavefronts on each SIMD engine, all of it if ``exact``. What takes more
    than ``LONG`` seconds says so before it starts, and shows its ``progress``."""
    surfaces = Surfaces(shape, device, layout)

    def walked(some: int) -> tuple[Packed, float]:
        paths = walk(code, surfaces, np.arange(some))
        return pack(paths, shape.group_wavefronts), _effort(paths)

    total, round_ = shape.wavefronts, active * device.simd_engines
    exact = exact or not _alike(code, surfaces, min(total, (policy.rounds + 1) * round_), total, policy)
    whole, rest = divmod(total, round_)
    work, effort = walked(total if exact else min(total, rest + policy.rounds * round_))
    each = effort / len(work.path) * round_
    rounds = np.inf if exact else policy.first_rounds(each, total / round_)
    while True:
        some = total if rounds >= whole else rest + int(rounds) * round_
        if some != len(work.path):
            work, effort = walked(some)
        outcome = run(work, device, active, _watched(effort / PACE) if progress else iter)
        if some == total:
            return Sample(outcome, 1.0, outcome.end_clock)
        pace, change, drifting = measured_pace(outcome, work, int(rounds), round_, policy)
        change *= 1 - some / total
        most = policy.most_wild if drifting or change > policy.wild else policy.most
        steady = change <= policy.uneven and not drifting
        if steady or each * (rest / round_ + rounds * 2) > most:
            return Sample(outcome, some / total, outcome.end_clock + (total - some) / round_ * pace)
        rounds = most // each if change > policy.wild else rounds * 2
        rounds = whole if each * total / round_ <= most else rounds


def _effort(paths: list[Path]) -> float:
    """Lines and clauses that the engine will handle, roughly."""
    return float(sum(len(path.wavefronts) * path.amount(lambda c: 1 + len(c.streams) + _lines(c)) for path in paths))


def _lines(clause: Clause) -> float:
    """How many lines a wavefront asks for in a clause."""
    return sum(len(stream.line) / len(stream.cost) for stream in clause.streams)


def _watched(seconds: float) -> Callable[[range], Iterable]:
    """What shows the parts of a run that will take so long."""
    if seconds < LONG:
        return iter
    return partial(tqdm, desc=f"simulating, which takes about {seconds / 60:.1f} minutes", unit="%")


def _alike(code: Code, surfaces: Surfaces, first: int, total: int, policy: Policy) -> bool:
    """Whether the first wavefronts have as much to do as the whole launch's, of which some are looked at all over."""
    if first >= total:
        return True
    work = []
    for end in (first, total):
        paths = walk(code, surfaces, np.unique(np.linspace(0, end - 1, SURVEYED).astype(np.int64)))
        each = [path.amount(_work) for path in paths]
        work.append(np.average(each, axis=0, weights=[len(path.wavefronts) for path in paths]))
    bundles, accesses = abs(work[1] / np.maximum(work[0], 1) - 1)
    return bool(bundles <= policy.uneven and accesses <= policy.ragged)


def _work(clause: Clause) -> np.ndarray:
    """Bundles of a clause, and clocks and lines of its accesses."""
    return np.array([1.0 + clause.bundles, sum(stream.cost.mean() for stream in clause.streams) + _lines(clause)])


def measured_pace(
    outcome: Outcome, work: Packed, rounds: int, round_: int, policy: Policy
) -> tuple[float, float, bool]:
    """Clocks a round, once the first one's cold caches are warm; by which share that changes from the first half to
    the second; whether L2 misses grow and are waited for."""
    first, last = {1: (0.25, 0.75), 2: (0.5, 1.5)}.get(rounds, (1.0, rounds - 0.5))
    marks = np.array([first, (first + last) / 2, last]) * work.clauses_run[work.path].mean() * round_
    clocks = outcome.when(marks, outcome.progress)
    early, late = np.diff(clocks)
    sooner, later = np.diff(outcome.when(marks, outcome.done["l2_missed"][:-1].sum(axis=1)))
    tex, alu = outcome.counts["texture"], outcome.counts["alu"]
    hidden = alu >= max(tex, HIDING * outcome.end_clock * outcome.done["alu"].shape[1])  # misses, behind the ALU's work
    drifting = rounds > 2 and later > policy.drift * sooner and not hidden
    return (clocks[2] - clocks[0]) / (last - first), abs(early - late) / late, bool(drifting)
