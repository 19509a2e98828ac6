"""Sampling: how much of a launch is simulated, and how its time follows from that.

A short launch is simulated whole. In a longer one, turns of loops that go by as those before them
did are passed over (``steady``): the longer the launch, the more. Rounds of wavefronts (as many as
the chip holds) are alike too: a launch of many is cut to its first ones and its ragged last one,
and what was left out is added at the pace of those that were simulated; more of them if that pace
changes, or will as more and more lines are missed in L2. Of a launch whose late wavefronts have
other work than its first ones, all rounds are simulated.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
from tqdm.auto import tqdm

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.machine.shape import Shape
from cypresskit.timing.engine import Outcome, run
from cypresskit.timing.native import SILENT
from cypresskit.timing.steady import Steady
from cypresskit.timing.surfaces import Surfaces
from cypresskit.timing.walk import walk
from cypresskit.timing.work import Clause, Packed, Path, pack

SURVEYED = 256  # wavefronts that are looked at to see whether a launch does the same work all over
# by which late wavefronts' bundles may differ from the first ones', and so may the pace of rounds
UNEVEN = 0.004
RAGGED = 0.02  # by which their accesses may, which spares the last row of tiles of most sizes
DRIFT = 0.05  # by which L2 misses may grow from the first half of the rounds to the second
# by which they may from quarter 3 to 4, at rest: a choice between 0.5 and 4 %, see docs/model.md
REST = 0.02
MOVING = (
    0.02,
    0.008,
    0.75,
)  # by which pace, or pace where DRAM has no room, or L2 misses change before all is simulated
BUSY = 0.9  # from this share of the time on a unit hides what others wait for


@dataclass(frozen=True)
class Policy:
    """How much is simulated. ``whole``: a launch of so many cache lines and clauses is simulated
    whole, and about as many of a longer one; up to about ``most`` where its pace doesn't settle. Of
    many rounds as many as the first of ``rounds``; as the next where these are uneven, and all, up
    to ``moving``, where much changes.
    """

    whole: float = 4e6
    most: float = 1e8
    moving: float = 3e8  # some ten seconds
    rounds: tuple[int, ...] = (6, 24)


@dataclass(frozen=True, eq=False)
class Sample:
    """The ``share`` of the clauses that was simulated, its outcome, which stands for the ``part``
    of the launch's wavefronts, and the clocks of the whole launch.
    """

    outcome: Outcome
    share: float
    part: float
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
    """Simulate a launch, ``active`` wavefronts an engine, all if ``exact``; past ``SILENT`` s with
    ``progress``.
    """
    surfaces = Surfaces(shape, device.geometry, layout)
    total, round_ = shape.wavefronts, active * device.simd_engines
    whole, rest = divmod(total, round_)
    parts = partial(
        tqdm, desc="simulating", unit="%", delay=SILENT, leave=False, disable=not progress
    )
    alike = not exact and _alike(code, surfaces, min(total, policy.rounds[0] * round_), total)
    for rounds in [*(r for r in policy.rounds if alike and 1.5 * r < whole), whole]:
        some = rest + rounds * round_
        paths = walk(code, surfaces, np.arange(some))
        work, effort = pack(paths, shape.group_wavefronts), _effort(paths)
        clauses = work.clauses_run[work.path].sum()
        watch = partial(
            Steady, farthest=2 * effort / policy.whole - 2, strict=policy.most / effort * clauses
        )
        outcome = run(
            work, device, active, None if exact or effort <= policy.whole else watch, parts
        )
        share = outcome.simulated * some / total
        if some == total:
            break
        pace, even, moving = observed_pace(outcome, work, rounds, round_)
        if moving and effort * total <= policy.moving * some:
            return sample(code, shape, device, layout, active, True, progress)
        if (
            even
            or rounds == policy.rounds[-1]
            or (not moving and outcome.simulated * effort > policy.most / 2)
        ):
            return Sample(
                outcome, share, some / total, outcome.end_clock + (total - some) / round_ * pace
            )
    return Sample(outcome, share, 1.0, outcome.end_clock)


def _effort(paths: list[Path]) -> float:
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


def _alike(code: Code, surfaces: Surfaces, first: int, total: int) -> bool:
    """Whether the first wavefronts have as much to do as the whole launch's, of which some are
    looked at all over.
    """
    if first >= total:
        return True
    work = []
    for end in (first, total):
        paths = walk(code, surfaces, np.unique(np.linspace(0, end - 1, SURVEYED).astype(np.int64)))
        each = [path.amount(_work) for path in paths]
        work.append(np.average(each, axis=0, weights=[len(path.wavefronts) for path in paths]))
    bundles, accesses = abs(work[1] / np.maximum(work[0], 1) - 1)
    return bool(bundles <= UNEVEN and accesses <= RAGGED)


def _work(clause: Clause) -> np.ndarray:
    """Bundles of a clause, and clocks and lines of its accesses."""
    return np.array(
        [
            1.0 + clause.bundles,
            sum(stream.cost.mean() for stream in clause.streams) + _lines(clause),
        ]
    )


def observed_pace(
    outcome: Outcome, work: Packed, rounds: int, round_: int
) -> tuple[float, bool, bool]:
    """(pace, even, moving): clocks of a round after the cold first ones, or if uneven of a late
    one; whether the pace and felt L2 misses hardly change from the first half to the second, or no
    longer; whether one changes much.
    """
    marks = np.linspace(rounds / 4, rounds - 0.5, 5)
    clauses = marks * work.clauses_run[work.path].mean() * round_
    clocks = np.diff(outcome.when(clauses, outcome.progress))
    did = {
        name: np.diff(outcome.when(clauses, of[:-1].mean(axis=1)))
        for name, of in outcome.done.items()
    }
    missed = did["l2_missed"]
    early, late, sooner, later = (
        clocks[:2].sum(),
        clocks[2:].sum(),
        missed[:2].sum(),
        missed[2:].sum(),
    )
    busy = max(did[unit][2:].sum() for unit in ("alu", "texture", "lds")) >= BUSY * late
    room = (did["dram"] + did["dram_rows"])[
        2:
    ].sum() * later <= sooner * late  # for as many more misses
    change = abs(early - late) / late
    even = change <= UNEVEN and (later <= (1 + DRIFT) * sooner or (busy and room))
    moving = not even and (change > MOVING[0 if room else 1] or later > (1 + MOVING[2]) * sooner)
    rest = abs(clocks[3] - clocks[2]) <= UNEVEN * clocks[3] and missed[3] <= (1 + REST) * missed[2]
    pace = ((early + late) / 2 if even else late) / (marks[4] - marks[2])
    return pace, bool(even or (rest and not moving)), bool(moving)
