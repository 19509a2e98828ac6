"""Skip loop iterations in a steady state.

Most of the time, all wavefronts on the chip are inside a loop, and one stretch of it takes as long
as another. ``SteadyStateSkipper`` watches a simulation and skips such stretches.

How it works
------------
1. The chip is observed each time that every wavefront has run about ``STRETCH_ITERATIONS``
   iterations. After every third stretch, the observations since the last skip are divided into
   thirds. The first third lets queues settle.
2. If the last two thirds have the same pace, every wavefront is advanced by some iterations at that
   pace, at most half of its loop (``MIN_SKIPS``), and all clocks with it. Queues, and the order of
   wavefronts, stay as they are. If the pace doesn't settle, the simulation continues.
3. Changes of the pace, within the observations and across a skip, are summed with their signs
   (``drift``), so fluctuations around a mean cancel.

If lines of textures don't begin in step with the loop, the same lines recur only after a number of
iterations (phases), and only multiples of it are skipped. What a wavefront should have skipped in
addition is carried over to the next skip. Otherwise, a wavefront that is slightly ahead would gain
a phase in each.

Limitations
-----------
Caches keep the lines from before a skip, so the first iteration after it has more misses.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.chip.units.state import SNAPSHOTS, Chip, Times

CONVERGED_ERROR = 0.03  # the largest relative error of a time that counts as converged
SETTLED_CHANGE = 0.01  # the largest relative difference between two stretches of the same pace
STRETCH_ITERATIONS = 8  # between two observations, and simulated before a loop's end
MIN_SKIPS = 2  # per loop


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The chip at one time.

    Attributes
    ----------
    wavefront, segment, iteration
        Of each wavefront slot; iterations with fractions.
    clock, clauses
        The time, and the number of clauses that are over.
    done
        The counters of the units.
    """

    wavefront: np.ndarray
    segment: np.ndarray
    iteration: np.ndarray
    clock: float
    clauses: int
    done: np.ndarray


class SteadyStateSkipper:
    """Observes a chip, and skips iterations.

    Parameters
    ----------
    chip
        The simulated chip.
    farthest
        The most that is skipped at once, as a multiple of what has been observed.
    strict
        While the pace changes, nothing is skipped until this share of all clauses is simulated.

    Attributes
    ----------
    drift
        Clocks that the skipped clauses may have taken in addition.
    unsteady
        The same, if changes of the pace didn't cancel.
    logged
        Rows of the timeline from before the first skip; None before it.
    """

    def __init__(self, chip: Chip, farthest: float, strict: float):
        work = chip.jobs.work
        places = chip.jobs.wavefront.shape
        self.chip = chip
        self.farthest = farthest
        self.patience_clauses = strict * float(work.clauses_run[work.path].sum())
        self.length = np.maximum(work.clauses_per_iteration, 1)
        self.phases = int(np.lcm.reduce(work.streams["phases"], initial=1))
        self.snapshots: list[Snapshot] = []
        # Iterations of each slot in the first and the second halves of all stretches observed.
        self.early: np.ndarray = np.zeros(places)
        self.late = self.early
        self.carried = np.zeros(places, np.int64)  # iterations that each slot should still skip
        self.most_occupied = 1  # the most slots that were occupied at once
        self.skipped = 0  # clauses
        self.drift = 0.0
        self.unsteady = 0.0
        self.last_skip = 0  # clauses of the last skip, if these wavefronts are still on the chip
        self.last_pace = 0.0
        self.logged: int | None = None

    @property
    def stretch(self) -> int:
        """The clauses in which every wavefront on the chip runs ``STRETCH_ITERATIONS``."""
        jobs = self.chip.jobs
        clauses = self.length[jobs.segment[jobs.wavefront >= 0]].sum()
        return max(int(clauses) * STRETCH_ITERATIONS, 1)

    @property
    def simulated(self) -> int:
        """The number of clauses that weren't skipped."""
        return int(self.chip.log.over[0]) - self.skipped

    def observe(self) -> None:
        """Take a snapshot. If the last snapshots show a steady state, skip iterations."""
        now = self._snapshot()
        before = self.snapshots[-1] if self.snapshots else now
        if (now.wavefront != before.wavefront).any() or (now.segment != before.segment).any():
            self.snapshots.clear()
            self.last_skip = 0
            self.early = self.late = np.zeros_like(now.iteration)
            self.carried = np.zeros_like(self.carried)
        self.snapshots.append(now)
        stretches = len(self.snapshots) - 1
        if stretches == 0 or stretches % 3:
            return
        third = stretches // 3
        first, middle, last = self.snapshots[third::third]
        change = _pace(middle, last) / _pace(first, middle) - 1
        settled = abs(change) <= SETTLED_CHANGE or self.simulated >= self.patience_clauses
        if settled and self._skip(first, middle, last, change):
            self.snapshots.clear()

    def _snapshot(self) -> Snapshot:
        chip, jobs = self.chip, self.chip.jobs
        segment = np.where(jobs.wavefront >= 0, jobs.segment, 0)
        position = jobs.clause - jobs.work.segments["first"][segment]
        return Snapshot(
            wavefront=jobs.wavefront.copy(),
            segment=segment,
            iteration=jobs.iteration + position / self.length[segment],
            clock=float(chip.slots.next_clock.min()),
            clauses=int(chip.log.over[0]),
            done=chip.tally.all.copy(),
        )

    def _skip(self, first: Snapshot, middle: Snapshot, last: Snapshot, change: float) -> bool:
        """Skip iterations at the pace from ``first`` to ``last``, which has changed by a share of
        ``change``. Return whether there were any to skip.
        """
        work = self.chip.jobs.work
        occupied = last.wavefront >= 0
        engine = np.nonzero(occupied)[0]
        early = self.early + middle.iteration - first.iteration
        late = self.late + last.iteration - middle.iteration
        rate = _rates(early[occupied], late[occupied], engine)
        rate *= (last.iteration - first.iteration)[occupied].mean() / rate.mean()

        iterations = work.segments["iterations"][last.segment]
        left = (iterations - last.iteration)[occupied] - STRETCH_ITERATIONS
        longest = iterations[occupied] / MIN_SKIPS
        self.most_occupied = max(self.most_occupied, int(occupied.sum()))
        most = self.farthest * occupied.sum() / self.most_occupied
        carried = self.carried[occupied]
        # A wavefront may skip up to half of its phases in addition.
        ends = np.minimum(left, longest) - carried - self.phases // 2
        times = min((ends / rate).min(), most)
        wanted = np.floor(rate * times).astype(np.int64)
        group = last.wavefront[occupied] // work.group_wavefronts
        wanted = _together(wanted, group) + carried
        skipped = _in_phases(wanted, self.phases)
        if times < 1 or not skipped.any():
            return False

        self.early, self.late = early, late
        self.carried[occupied] = wanted - skipped
        moved = np.zeros_like(last.wavefront)
        moved[occupied] = skipped
        self.chip.jobs.iteration[...] += moved
        clauses = int((moved * self.length[last.segment]).sum())
        clocks = self._advance(first, last, clauses)
        pace = _pace(first, last)
        changes = clocks * change, self.last_skip * (pace - self.last_pace)
        self.drift += sum(changes)
        self.unsteady += sum(map(abs, changes))
        self.last_skip, self.last_pace = clauses, pace
        return True

    def _advance(self, first: Snapshot, last: Snapshot, clauses: int) -> float:
        """Advance all clocks and counters by a number of clauses. Return the clocks."""
        chip, tally, log = self.chip, self.chip.tally, self.chip.log
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
        log.over[0] += clauses
        self.skipped += clauses
        memory = (chip.memory, chip.memory.l2, chip.texture.l1)
        for unit in (chip.slots, chip.alu, chip.lds, chip.texture, chip.stores, *memory):
            for name, kind in type(unit).__annotations__.items():
                if kind is Times:
                    getattr(unit, name)[...] += clocks
        return clocks


def _rates(early: np.ndarray, late: np.ndarray, engine: np.ndarray) -> np.ndarray:
    """Predict how many iterations each wavefront runs in the time of both halves of a stretch.

    Wavefronts of one SIMD engine share its units: they run at its mean pace, and a lead among them
    may be gone in the next half. An engine with fewer wavefronts keeps its own pace; among
    engines with equally many, a lead may also be temporary.

    Parameters
    ----------
    early, late
        The iterations of each wavefront in the two halves.
    engine
        The SIMD engine of each wavefront.
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
    """Return for each wavefront the mean amount of its ``group``."""
    means: np.ndarray = np.bincount(group, amounts) / np.bincount(group)
    return means[group]


def _lasting(early: np.ndarray, late: np.ndarray) -> np.ndarray:
    """Return how far each wavefront is likely to stay ahead of the others.

    ``early`` and ``late`` say how far each got ahead in the first and in the second half of a
    stretch. A lead lasts as far as the second half repeats the first.
    """
    share = (early * late).sum() / max((early**2).sum(), 1e-9)
    return np.clip(share, 0, 1) * (early + late)


def _in_phases(wanted: np.ndarray, phases: int) -> np.ndarray:
    """Round iterations down to whole phases. Wavefronts that are less than a phase apart stay as
    far apart as they are: what a skip adds to a lead, the launch may never lose again.
    """
    least = max(wanted.min(), 0)
    return (least // phases + (wanted - least) // phases) * phases


def _together(iterations: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Return the least iterations of each workgroup for all of its wavefronts, since none may pass
    a barrier before the others.
    """
    _, own = np.unique(group, return_inverse=True)
    least = np.full(own.max() + 1, iterations.max())
    np.minimum.at(least, own, iterations)
    return least[own]


def _pace(first: Snapshot, last: Snapshot) -> float:
    """Return the clocks per clause between two snapshots."""
    return (last.clock - first.clock) / (last.clauses - first.clauses)
