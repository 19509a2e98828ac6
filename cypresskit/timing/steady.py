"""Skipping turns: turns of loops that go by as the turns before them did aren't simulated.

Most of the time all wavefronts on the chip are inside a loop, and one stretch of it takes as long
as another. So the chip is run ``TURNS`` turns at a time, and looked at. After every third stretch,
all that was looked at since the last gap is cut into thirds: the first lets queues settle; once the
last had the pace of the second, every wavefront is moved on by some turns at that pace, a
``GAPS``-th of its loop at most, and all clocks with it: who is ahead of whom, what waits in which
queue, and what is counted go on from there. A pace that doesn't settle is simulated on; nothing is
started again.

By how much the pace changes while it is looked at, and from before a gap to behind it, is added up,
signs and all: a pace that sways about a mean has one.

Where lines of textures don't begin in step with the loop, its turns ask for the same lines only in
whole phases, and so many are skipped. What a wavefront is owed beyond them is remembered for the
next gap: else one that is ahead by a little would be moved by a phase more in each.

Left out: caches keep the lines of the turns before, so that the first turn behind each gap misses
more.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.timing.units.state import SNAPSHOTS, Chip, Moments

STEADY = 0.1  # share by which a time may be off, and still be called steady
SETTLED = 0.01  # share by which two stretches may differ that have one pace
TURNS = 8  # of every wavefront between two looks, and simulated before its loop's end
GAPS = 2  # in a loop, at least


@dataclass(frozen=True, eq=False)
class Look:
    """The chip at a clock: who is where, in turns, and what was done by then."""

    wavefront: np.ndarray  # [e, s]
    segment: np.ndarray
    turn: np.ndarray
    clock: float
    clauses: int
    done: np.ndarray
    ledger: np.ndarray


class Steady:
    """Watches a chip that is run for ``stretch`` clauses at a time, and moves it on: by
    ``farthest`` times what it has looked at, at most. It insists on a settled pace until a share of
    ``strict`` of all clauses is simulated.
    """

    def __init__(self, chip: Chip, farthest: float, strict: float):
        self.chip = chip
        self.farthest = farthest
        self.strict = strict * float(chip.work.clauses_run[chip.work.path].sum())
        self.looks: list[Look] = []
        self.length = np.maximum(chip.work.clauses_a_turn, 1)
        # Turns that each wavefront has taken in the halves of all stretches looked at so far.
        self.early: np.ndarray = np.zeros(chip.slots.began.shape)
        self.late = self.early
        # Turns by which each was to be moved on and wasn't, since those come in whole phases.
        self.owed = np.zeros(chip.slots.began.shape, np.int64)
        self.most = 1  # wavefronts that were seen on the chip at once
        self.passed = 0  # clauses that were skipped
        self.drift = 0.0  # clocks that they may have taken more
        self.gap = 0  # clauses of the last gap, if these wavefronts are still on the chip
        self.pace = 0.0  # before it
        # Rows of the timeline from before anything was skipped, if anything was.
        self.logged: int | None = None
        self.phases = int(np.lcm.reduce(chip.work.streams["phases"], initial=1))

    @property
    def stretch(self) -> int:
        """Clauses in which every wavefront on the chip takes so many turns."""
        slots = self.chip.slots
        return max(int(self.length[slots.segment[slots.wavefront >= 0]].sum()) * TURNS, 1)

    @property
    def simulated(self) -> int:
        """Clauses that weren't skipped."""
        return int(self.chip.log.over[0]) - self.passed

    def look(self) -> None:
        """Note what the chip has done. If the last looks show one pace, skip turns."""
        now = self._now()
        before = self.looks[-1] if self.looks else now
        if (now.wavefront != before.wavefront).any() or (now.segment != before.segment).any():
            self.looks.clear()
            self.gap = 0
            self.early = self.late = np.zeros_like(now.turn)
            self.owed = np.zeros_like(self.owed)
        self.looks.append(now)
        looks = len(self.looks) - 1
        if looks == 0 or looks % 3:
            return
        third = looks // 3
        first, middle, last = self.looks[third::third]  # the first third lets queues settle
        change = _pace(middle, last) / _pace(first, middle) - 1
        settled = abs(change) <= SETTLED or self.simulated >= self.strict
        if settled and self._move_on(first, middle, last, change):
            self.looks.clear()

    def _now(self) -> Look:
        slots = self.chip.slots
        segments = self.chip.work.segments
        segment = np.where(slots.wavefront >= 0, slots.segment, 0)
        turn = slots.turn + (slots.clause - segments["first"][segment]) / self.length[segment]
        clock = float(self.chip.engines.next_clock.min())
        clauses = int(self.chip.log.over[0])
        tally = self.chip.tally
        done = tally.all.copy()
        ledger = self.chip.ledger.all.copy()
        return Look(slots.wavefront.copy(), segment, turn, clock, clauses, done, ledger)

    def _move_on(self, first: Look, middle: Look, last: Look, change: float) -> bool:
        """Skip the turns that follow, at the pace from ``first`` to ``last``, which has changed by
        a share of ``change``. Returns whether there were any.
        """
        occupied = last.wavefront >= 0
        engine = np.nonzero(occupied)[0]
        early, late = self.early + middle.turn - first.turn, self.late + last.turn - middle.turn
        rate = _rates(early[occupied], late[occupied], engine)
        rate *= (last.turn - first.turn)[occupied].mean() / rate.mean()
        left = (self.chip.work.segments["turns"][last.segment] - last.turn)[occupied] - TURNS
        self.most = max(self.most, int(occupied.sum()))
        longest = self.chip.work.segments["turns"][last.segment][occupied] / GAPS
        most = self.farthest * occupied.sum() / self.most
        owed = self.owed[occupied]
        ends = np.minimum(left, longest) - owed - self.phases // 2  # who may get ahead by as much
        times = min((ends / rate).min(), most)
        wanted = np.floor(rate * times).astype(np.int64)
        wanted = _together(wanted, last.wavefront[occupied] // self.chip.work.group) + owed
        turns = _in_phases(wanted, self.phases)
        if times < 1 or not turns.any():
            return False
        self.early, self.late = early, late
        self.owed[occupied] = wanted - turns
        moved = np.zeros_like(last.wavefront)
        moved[occupied] = turns
        self.chip.slots.turn[...] += moved
        clauses = int((moved * self.length[last.segment]).sum())
        clocks = self._advance(first, last, clauses)
        pace = _pace(first, last)
        self.drift += clocks * change + self.gap * (pace - self.pace)
        self.gap, self.pace = clauses, pace
        return True

    def _advance(self, first: Look, last: Look, clauses: int) -> float:
        """Move all clocks on by the time that so many clauses take, which is returned, and count
        what is done in it.
        """
        _, _, engines, slots, _, memory, tally, log, ledger = self.chip
        if self.logged is None:
            self.logged = int(log.row_count[0])
        times = clauses / (last.clauses - first.clauses)
        clocks, done = times * (last.clock - first.clock), times * (last.done - first.done)
        noted = np.arange(
            log.over[0] // log.pace + 1, min((log.over[0] + clauses) // log.pace, SNAPSHOTS) + 1
        )
        share = (noted * log.pace - log.over[0]) / clauses
        log.progress[noted] = last.clock + share * clocks
        tally.snapshots[noted] = tally.all + share[:, np.newaxis] * done
        tally.all[...] += done
        ledger.all[...] += times * (last.ledger - first.ledger)
        log.over[0] += clauses
        self.passed += clauses
        for unit in (engines, slots, memory, memory.l1, memory.l2):
            for name, kind in type(unit).__annotations__.items():
                if kind is Moments:
                    getattr(unit, name)[...] += clocks
        return clocks


def _rates(early: np.ndarray, late: np.ndarray, engine: np.ndarray) -> np.ndarray:
    """Turns that each wavefront is expected to take in the time of two parts of a stretch, from
    those that it took in each. Wavefronts of a SIMD ``engine`` share its units: they go at its
    pace, and who is ahead among them now may be behind in the next part. An engine with fewer
    wavefronts than others goes on at a pace of its own; of engines with as many, who is ahead may
    change, too.
    """
    _, own, count = np.unique(engine, return_inverse=True, return_counts=True)
    _, alike = np.unique(count[own], return_inverse=True)
    means = [_means(part, own) for part in (early, late)]
    paces = [_means(part, alike) for part in (early, late)]
    engines = [mean - pace for mean, pace in zip(means, paces, strict=True)]
    around_mean = [part - mean for part, mean in zip((early, late), means, strict=True)]
    rates = sum(paces) + _lasting(*engines) + _lasting(*around_mean)
    return np.maximum(rates, 1e-3)


def _means(amounts: np.ndarray, group: np.ndarray) -> np.ndarray:
    """For each wavefront, the mean of the amounts of its ``group``."""
    means: np.ndarray = np.bincount(group, amounts) / np.bincount(group)
    return means[group]


def _lasting(early: np.ndarray, late: np.ndarray) -> np.ndarray:
    """What is likely to last of the turns by which some are ahead in two parts of a stretch: as
    much as those who got ahead in the first did in the second.
    """
    share = (early * late).sum() / max((early**2).sum(), 1e-9)
    return np.clip(share, 0, 1) * (early + late)


def _in_phases(wanted: np.ndarray, phases: int) -> np.ndarray:
    """The turns nearest to those ``wanted`` with which lines lie to each other as before: whole
    phases, and wavefronts that are less than half of them apart stay together.
    """
    least = max(wanted.min(), 0)
    turns: np.ndarray = (least // phases + (wanted - least + phases // 2) // phases) * phases
    return turns


def _together(turns: np.ndarray, group: np.ndarray) -> np.ndarray:
    """The least of each workgroup's turns for all its wavefronts, since none may pass a barrier
    before the others.
    """
    _, own = np.unique(group, return_inverse=True)
    least = np.full(own.max() + 1, turns.max())
    np.minimum.at(least, own, turns)
    return least[own]


def _pace(first: Look, last: Look) -> float:
    """Clocks per clause between two looks."""
    return (last.clock - first.clock) / (last.clauses - first.clauses)
