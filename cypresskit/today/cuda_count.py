"""What a whole launch does: counts of its actions, over all workgroups.

Workgroups that do the same are traced once. Along each axis of the grid, where they change is
searched between workgroups that differ. If they differ everywhere, all are traced, or the launch is
refused.
"""

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cypresskit.today.cuda_events import GridLaunch, Untraceable, actions_of
from cypresskit.today.cuda_trace import Tracer
from cypresskit.today.cuda_values import FMA, PRODUCT, SLOW, SUM

FLOPS = {FMA: 2, PRODUCT: 1, SUM: 1, SLOW: 1}
FEW_THREADS = 1 << 14  # traced at once to compare workgroups; a smaller launch is traced as a whole
MANY_THREADS = 1 << 17  # of a launch that is traced as a whole if its workgroups differ
MAX_CHANGES = 48  # workgroups of an axis that may differ from their neighbors

ActionKey = tuple[str, int, int, str]  # kind, line, bytes, array


@dataclass(frozen=True, eq=False)
class Totals:
    """What a launch does.

    Attributes
    ----------
    amounts
        How often threads do each action.
    columns, rows
        The places along each axis from which on workgroups do the same.
    widths, heights
        How many do.
    busy
        Whether they do anything: (rows, columns).
    shared_bytes
        Bytes of shared memory that the kernel declares.
    has_local
        Whether it has arrays in registers.
    items
        The trace of one workgroup of each kind.
    """

    amounts: dict[ActionKey, int]
    columns: np.ndarray
    rows: np.ndarray
    widths: np.ndarray
    heights: np.ndarray
    busy: np.ndarray
    shared_bytes: int
    has_local: bool
    items: list

    @property
    def flops(self) -> int:
        return sum(FLOPS.get(kind, 0) * n for (kind, *_), n in self.amounts.items())

    @property
    def item(self) -> int:
        """Bytes of the widest numbers that are computed with."""
        return max((size for kind, _, size, _ in self.amounts if kind in FLOPS), default=4)

    def bytes(self, kind: str) -> int:
        """Return the bytes that threads request by actions of a kind."""
        return sum(size * n for (what, _, size, _), n in self.amounts.items() if what == kind)

    @property
    def busy_count(self) -> int:
        """The number of workgroups that do anything."""
        return int(self.heights @ self.busy.astype(np.int64) @ self.widths)

    def busy_blocks(self, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns and rows of the first workgroups that do anything, in the order of
        dispatch.
        """
        found: list[tuple[np.ndarray, np.ndarray]] = [(np.zeros(0, np.int64),) * 2]
        left = wanted
        for row, height, busy in zip(self.rows, self.heights, self.busy):
            spans = [
                np.arange(column, column + min(width, wanted))
                for column, width in zip(self.columns[busy], self.widths[busy])
            ]
            columns = np.concatenate([found[0][0], *spans])[:left]
            if len(columns):
                count = min(height, -(-left // len(columns)))
                rows = np.arange(row, row + count)
                found.append((np.tile(columns, count), np.repeat(rows, len(columns))))
                left -= count * len(columns)
            if left <= 0:
                break
        across, down = (np.concatenate(parts)[:wanted] for parts in zip(*found))
        return across, down


def totals_of(launch: GridLaunch) -> Totals:
    """Trace as many workgroups as needed to count what all do. Raises ``Untraceable``."""
    columns, rows = _first_blocks(launch)
    widths = np.diff(columns, append=launch.grid[0])
    heights = np.diff(rows, append=launch.grid[1])
    weights = np.outer(heights, widths).ravel()
    tracer = Tracer(launch, np.tile(columns, len(rows)), np.repeat(rows, len(columns)))
    items = tracer.run()
    counts = _counts(items, len(weights))
    busy = np.zeros(len(weights), bool)
    for (kind, *_), count in counts.items():
        busy |= (count > 0) & (kind != "barrier")
    return Totals(
        amounts={key: int(count @ weights) for key, count in counts.items()},
        columns=columns,
        rows=rows,
        widths=widths,
        heights=heights,
        busy=busy.reshape(len(rows), -1),
        shared_bytes=tracer.shared_bytes,
        has_local=tracer.has_local,
        items=items,
    )


def _counts(items: list, blocks: int) -> dict[ActionKey, np.ndarray]:
    """Return how often the threads of each workgroup do each action."""
    counts: dict[ActionKey, np.ndarray] = defaultdict(lambda: np.zeros(blocks, np.int64))
    for action, times in actions_of(items):
        key = action.kind, action.line, action.size, action.array
        counts[key] += times * action.on.reshape(blocks, -1).sum(axis=1)
    return counts


def _first_blocks(launch: GridLaunch) -> tuple[np.ndarray, np.ndarray]:
    """Return the places along each axis from which on workgroups do something else."""
    everywhere = np.arange(launch.grid[0]), np.arange(launch.grid[1])
    threads = math.prod(launch.grid) * math.prod(launch.threads)
    if threads <= FEW_THREADS:
        return everywhere
    try:
        return _changes(launch, 0), _changes(launch, 1)
    except Untraceable:
        if threads > MANY_THREADS:
            raise
        return everywhere


def _changes(launch: GridLaunch, axis: int) -> np.ndarray:
    """Search an axis of the grid for the workgroups that differ from the one before."""
    length = launch.grid[axis]
    places = np.linspace(0, length - 1, min(length, 8)).astype(np.int64)
    places = np.unique([*places, min(1, length - 1), max(length - 2, 0)])
    known: dict[int, str] = {}
    while len(places):
        known |= _descriptions(launch, axis, places)
        changes = [(one, two) for one, two in pairwise(sorted(known)) if known[one] != known[two]]
        gaps = [np.linspace(one, two, 6).astype(np.int64) for one, two in changes if two > one + 1]
        if len(gaps) > MAX_CHANGES:
            raise Untraceable(
                f"{launch.name}: its {length:,} workgroups differ in what they do: launch fewer, or"
                " let a guard depend on sizes alone"
            )
        places = np.setdiff1d(np.concatenate([[0], *gaps]), sorted(known)).astype(np.int64)
    return np.array([0, *(two for _, two in changes)], np.int64)


def _descriptions(launch: GridLaunch, axis: int, places: np.ndarray) -> dict[int, str]:
    """Describe what workgroups at places of an axis do: of three places of the other axis."""
    other = launch.grid[1 - axis]
    beside = np.unique([0, other // 2, other - 1])
    count = len(beside)
    at_once = max(FEW_THREADS // (math.prod(launch.threads) * count), 4)
    found = {}
    for first in range(0, len(places), at_once):
        some = places[first : first + at_once]
        pair = np.repeat(some, count), np.tile(beside, len(some))
        tracer = Tracer(launch, *(pair if axis == 0 else pair[::-1]))
        counts = sorted(_counts(tracer.run(), len(pair[0])).items())
        for n, place in enumerate(some.tolist()):
            own = slice(n * count, (n + 1) * count)
            found[place] = str([(key, row[own].tolist()) for key, row in counts if row[own].any()])
    return found
