"""What a whole launch does: counts of its actions, over all blocks.

Blocks at some columns and rows of the grid are traced, and more of them between two that do
something else, until each change lies between neighbors. With too many, the launch is refused.
"""

import math
from dataclasses import dataclass

import numpy as np

from cypresskit.today.cuda_events import ActionKey, GridLaunch, Untraceable, executions
from cypresskit.today.cuda_trace import Tracer
from cypresskit.today.cuda_values import FMA, PRODUCT, SLOW, SUM

FLOPS = {FMA: 2, PRODUCT: 1, SUM: 1, SLOW: 1}
FEW_THREADS = 1 << 14  # of a launch that is traced as a whole
MANY_THREADS = 1 << 17  # that are traced to compare blocks
MAX_BLOCKS = 1 << 25  # of a launch
NO_ACTION: ActionKey = "barrier", 0, 0, ""


@dataclass(frozen=True, eq=False)
class Totals:
    """What a launch does.

    Attributes
    ----------
    amounts
        How often threads do each action.
    peaks
        How often the thread that does it the most does it.
    busy
        Whether each block does anything: (rows, columns).
    shared_bytes
        Bytes of shared memory that the kernel declares.
    has_local
        Whether it has arrays in registers.
    item
        Bytes of the widest real numbers.
    items
        The trace of a few blocks of each kind.
    places
        The numbers of places in it, for each thread.
    """

    amounts: dict[ActionKey, int]
    peaks: dict[ActionKey, int]
    busy: np.ndarray
    shared_bytes: int
    has_local: bool
    item: int
    items: list
    places: float

    @property
    def flops(self) -> int:
        return sum(FLOPS.get(kind, 0) * n for (kind, *_), n in self.amounts.items())

    def bytes(self, kind: str) -> int:
        """Return the bytes that threads request by actions of a kind."""
        return sum(size * n for (what, _, size, _), n in self.amounts.items() if what == kind)

    @property
    def busy_count(self) -> int:
        """The number of blocks that do anything."""
        return int(self.busy.sum())

    def busy_blocks(self, wanted: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the columns and rows of the first blocks that do anything, in the order of
        dispatch.
        """
        rows, columns = np.divmod(np.flatnonzero(self.busy)[:wanted], self.busy.shape[1])
        return columns, rows


def totals_of(launch: GridLaunch) -> Totals:
    """Trace as many blocks as needed to count what all do. Raises ``Untraceable``."""
    blocks, group = math.prod(launch.grid), math.prod(launch.threads)
    if blocks > MAX_BLOCKS:
        raise Untraceable(f"{launch.name}: a launch may have at most {MAX_BLOCKS:,} blocks here")
    is_small = blocks * group <= FEW_THREADS
    columns, rows = (np.arange(n) if is_small else _first_places(n) for n in launch.grid)
    while True:
        if len(columns) * len(rows) * group > MANY_THREADS:
            raise Untraceable(
                f"{launch.name}: its {blocks:,} blocks differ too much in what they do: launch"
                " fewer, or let guards depend on sizes alone"
            )
        tracer = Tracer(launch, np.tile(columns, len(rows)), np.repeat(rows, len(columns)))
        items = tracer.run()
        none = {NO_ACTION: np.zeros(tracer.total, np.int64)}
        by_thread = none | executions(items)
        shape = len(rows), len(columns), group
        counts = {key: times.reshape(shape).sum(axis=2) for key, times in by_thread.items()}
        table = np.array([*counts.values()])
        across, more_across = _changes(table, 2, columns)
        down, more_down = _changes(table, 1, rows)
        if not more_across and not more_down:
            break
        columns = np.unique([*across, *more_across])
        rows = np.unique([*down, *(more_down if not more_across else ())])
    widths = np.diff(columns, append=launch.grid[0])
    heights = np.diff(rows, append=launch.grid[1])
    amounts = {key: int(heights @ count @ widths) for key, count in counts.items()}
    busy = table[[kind != "barrier" for kind, *_ in counts]].any(axis=0)
    return Totals(
        amounts={key: amount for key, amount in amounts.items() if amount},
        peaks={key: int(times.max()) for key, times in by_thread.items()},
        busy=busy.repeat(heights, axis=0).repeat(widths, axis=1),
        shared_bytes=tracer.shared_bytes,
        has_local=tracer.has_local,
        item=tracer.item,
        items=items,
        places=tracer.place_count / tracer.total,
    )


def _first_places(length: int) -> np.ndarray:
    """Return places along an axis of the grid, from the first to the last block."""
    some = np.linspace(0, length - 1, min(length, 4)).astype(np.int64)
    return np.unique([*some, min(1, length - 1), max(length - 2, 0)])


def _changes(counts: np.ndarray, axis: int, places: np.ndarray) -> tuple[list, list]:
    """Return the places along an axis beside which blocks differ, and some between these.

    Parameters
    ----------
    counts
        What blocks do: (actions, rows, columns).
    """
    differ = np.diff(counts, axis=axis).any(axis=(0, 3 - axis))
    gaps = differ & (np.diff(places) > 1)
    ends = zip(places[:-1][gaps], places[1:][gaps])
    between = [place for one, two in ends for place in np.linspace(one, two, 6).astype(int)]
    is_beside = np.append(differ, True) | np.append(True, differ)
    return places[is_beside].tolist(), between
