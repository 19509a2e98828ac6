"""A launch's parts, one after the other: straight code between loops, and each loop over a size."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cypresskit.today.cuda_count import Totals
from cypresskit.today.cuda_trace import Action, GridLaunch, SizeLoop, Tracer, Untraceable

SMALL = (
    64  # accesses and operations of an inner loop that becomes part of the outer one's iteration
)
PLACES = 24_000_000  # numbers of places that are kept at once
LEAST = 4_096  # threads below which a trace tells too little of a chip


@dataclass(frozen=True, eq=False)
class CodePart:
    """Straight code (no ``kind``) or a loop, with the actions of an iteration and how many there
    are. ``nested``: a loop's straight code around an inner loop.
    """

    actions: list[Action]
    count: int = 1
    kind: str = ""
    line: int = 0

    def of_blocks(self, blocks: int, group: int) -> "CodePart":
        """The same by the first so many workgroups."""
        end = blocks * group
        some = [
            replace(a, on=a.on[:end], place=a.place[:end] if np.ndim(a.place) else a.place)
            for a in self.actions
        ]
        return replace(self, actions=some)


def parts_of(items: list, count: int = 1, kind: str = "", line: int = 0) -> Iterator[CodePart]:
    """The parts of a trace, in order."""
    straight: list[Action] = []
    for item in items:
        if isinstance(item, Action):
            straight.append(item)
            continue
        first, second, _ = max(item.runs, key=lambda run: run[2])
        meets = any(isinstance(one, Action) and one.kind == "barrier" for one in first)
        if (kind or meets) and item.count * _size(first) <= SMALL:
            straight += _expanded(item)
            continue
        _set_steps(first, second)
        if straight:
            yield CodePart(straight, count, kind, line)
            straight = []
        yield from parts_of(first, count * item.count, item.kind, item.line)
    if straight:
        yield CodePart(straight, count, kind, line)


def _size(items: list) -> int:
    """Actions of an iteration, those of inner loops with all their iterations."""
    return sum(
        1 if isinstance(item, Action) else item.count * _size(item.runs[0][0]) for item in items
    )


def _expanded(loop: SizeLoop) -> list[Action]:
    """The actions of all iterations of a small loop."""
    found: list[Action] = []
    for first, second, count in loop.runs:
        outer = [getattr(one, "step", 0) for one in first]
        _set_steps(first, second)
        for turn in range(count):
            for one, step in zip(first, outer):
                if isinstance(one, SizeLoop):
                    found += _expanded(one)
                else:
                    found.append(replace(one, place=one.place + one.step * turn, step=step))
    return found


def _set_steps(first: list, second: list) -> None:
    """Note by how much places move from one iteration to the next."""
    for one, other in zip(first, second):
        if isinstance(one, Action):
            change = np.broadcast_to(other.place - one.place, one.on.shape)[one.on]
            one.step = int(change[0]) if len(change) else 0
        else:
            for (mine, _, _), (its, _, _) in zip(one.runs, other.runs):
                _set_steps(mine, its)


def busy_blocks(totals: Totals, launch: GridLaunch, wanted: int) -> np.ndarray:
    """The first so many workgroups that do anything, in the order of dispatch."""
    across, down = launch.grid
    found: list[np.ndarray] = []
    count = 0
    rows = np.searchsorted(totals.down, np.arange(down), "right") - 1
    columns = np.searchsorted(totals.across, np.arange(across), "right") - 1
    for row in range(down):
        some = np.flatnonzero(totals.busy[rows[row], columns])
        if len(some):
            found.append(row * across + some[: wanted - count])
            count += len(found[-1])
        if count >= wanted:
            break
    return np.concatenate(found) if found else np.zeros(0, np.int64)


def count_busy(totals: Totals, launch: GridLaunch) -> int:
    """Workgroups that do anything."""
    widths = np.diff(totals.across, append=launch.grid[0])
    heights = np.diff(totals.down, append=launch.grid[1])
    return int(heights @ totals.busy.astype(np.int64) @ widths)


def trace(launch: GridLaunch, totals: Totals, blocks: int) -> list[CodePart]:
    """The parts, as the first so many busy workgroups do them."""
    ids = busy_blocks(totals, launch, blocks)
    tracer = Tracer(launch, ids % launch.grid[0], ids // launch.grid[0], totals.turns)
    return list(parts_of(tracer.run()))


def at_most(launch: GridLaunch, totals: Totals) -> int:
    """The workgroups whose places fit into memory at once. Raises ``Untraceable``."""
    group = math.prod(launch.threads)
    most = PLACES // max(_kept(totals.items), 1) // group
    if most * group < LEAST:
        raise Untraceable(
            f"{launch.name} does too much in straight code to be traced: put it in a loop over a"
            " size"
        )
    return most


def _kept(items: list) -> int:
    """Actions that a trace keeps: of each loop two iterations."""
    return sum(1 if isinstance(item, Action) else 2 * _kept(item.runs[0][0]) for item in items)
