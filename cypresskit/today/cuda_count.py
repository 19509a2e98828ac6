"""What a whole launch does: counts of its actions, over all workgroups.

Workgroups that do the same are traced once. Where they change along the grid is searched between
workgroups that differ; if they differ everywhere, all are traced, or the launch is refused.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cypresskit.today.cuda_trace import GridLaunch, SizeLoop, Tracer, Untraceable
from cypresskit.today.cuda_values import FMA, PRODUCT, SLOW, SUM

FLOPS = {FMA: 2, PRODUCT: 1, SUM: 1, SLOW: 1}
AT_ONCE = 1 << 14  # threads that are traced to find where workgroups differ
ALL = 1 << 17  # threads of a launch that is traced whole
FINE = 48  # workgroups of an axis that may differ from their neighbours

Line = tuple[str, int, int, str]  # kind, line, bytes, array


@dataclass(frozen=True, eq=False)
class Totals:
    """``amounts`` has how often threads do each action, by kind, line, bytes and array; ``turns``
    the iterations of each loop; ``across`` and ``down`` the first of workgroups that do the same,
    and ``busy`` whether those do anything; ``shared`` bytes are declared, and arrays
    in registers if it ``has_local`` ones.
    """

    amounts: dict[Line, int]
    turns: dict
    across: np.ndarray
    down: np.ndarray
    busy: np.ndarray
    shared: int
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
        """Bytes that threads ask for by actions of a kind."""
        return sum(size * n for (what, _, size, _), n in self.amounts.items() if what == kind)


def _rows(items: list, blocks: int) -> dict[Line, np.ndarray]:
    """How often the threads of each workgroup do each action."""
    found: dict[Line, np.ndarray] = {}

    def add(items: list, times: int) -> None:
        for item in items:
            if isinstance(item, SizeLoop):
                for run, _, count in item.runs:
                    add(run, times * count)
                continue
            key = item.kind, item.line, item.size, item.array
            each = item.on.reshape(blocks, -1).sum(axis=1) * times
            found[key] = found.get(key, 0) + each

    add(items, 1)
    return found


def _changes(launch: GridLaunch, axis: int) -> np.ndarray:
    """Workgroups of an axis that do something else than the one before, and the first."""
    length = launch.grid[axis]
    wanted = np.linspace(0, length - 1, min(length, 8)).astype(np.int64)
    wanted = np.unique([*wanted, min(1, length - 1), max(length - 2, 0)])
    known: dict[int, str] = {}
    while len(wanted):
        known |= _done(launch, axis, wanted)
        places = sorted(known)
        changes = [(one, two) for one, two in pairwise(places) if known[one] != known[two]]
        gaps = [(one, two) for one, two in changes if two - one > 1]
        if len(gaps) > FINE:
            raise Untraceable(
                f"{launch.name}: its {length:,} workgroups differ in what they do: launch fewer, or"
                " let a guard depend on sizes alone"
            )
        inner = [np.linspace(one, two, 6).astype(np.int64)[1:-1] for one, two in gaps]
        wanted = np.setdiff1d(np.concatenate(inner), places) if inner else np.zeros(0, np.int64)
    return np.array([0, *(two for _, two in changes)], np.int64)


def _done(launch: GridLaunch, axis: int, wanted: np.ndarray) -> dict[int, str]:
    """What workgroups at places of an axis do: three of the other axis for each."""
    other = launch.grid[1 - axis]
    beside = np.unique([0, other // 2, other - 1])
    most = max(AT_ONCE // (math.prod(launch.threads) * len(beside)), 4)
    done = {}
    for some in np.array_split(wanted, -(-len(wanted) // most)):
        pair = np.repeat(some, len(beside)), np.tile(beside, len(some))
        tracer = Tracer(launch, *(pair if axis == 0 else pair[::-1]))
        rows = _rows(tracer.run(), len(pair[0]))
        for n, place in enumerate(some.tolist()):
            at = slice(n * len(beside), (n + 1) * len(beside))
            mine = {key: row[at].tolist() for key, row in sorted(rows.items()) if row[at].any()}
            done[place] = repr(mine)
    return done


def totals_of(launch: GridLaunch) -> Totals:
    """Trace as many workgroups as needed to count what all do. Raises ``Untraceable``."""
    across, down = launch.grid
    firsts = _firsts(launch)
    widths = np.diff(firsts[0], append=across), np.diff(firsts[1], append=down)
    weights = np.outer(widths[1], widths[0]).ravel()
    columns = np.tile(firsts[0], len(firsts[1]))
    lines = np.repeat(firsts[1], len(firsts[0]))
    tracer = Tracer(launch, columns, lines)
    items = tracer.run()
    rows = _rows(items, len(columns))
    work = [row for (kind, *_), row in rows.items() if kind != "barrier"]
    busy = np.any(work, axis=0) if work else np.zeros(len(columns), bool)
    return Totals(
        amounts={key: int((row * weights).sum()) for key, row in rows.items()},
        turns={key: round(sum(some) / len(some)) for key, some in tracer.found.items()},
        across=firsts[0],
        down=firsts[1],
        busy=busy.reshape(len(firsts[1]), -1),
        shared=tracer.shared,
        has_local=tracer.has_local,
        items=items,
    )


def _firsts(launch: GridLaunch) -> tuple[np.ndarray, np.ndarray]:
    """The workgroups, across and down, with which changes what they do; all of a small launch."""
    everything = np.arange(launch.grid[0]), np.arange(launch.grid[1])
    threads = math.prod(launch.grid) * math.prod(launch.threads)
    if threads <= AT_ONCE:
        return everything
    try:
        return _changes(launch, 0), _changes(launch, 1)
    except Untraceable:
        if threads > ALL:
            raise
        return everything
