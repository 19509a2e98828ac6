"""What a trace of a CUDA kernel consists of: the launch, and what its threads do."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cypresskit.today.cuda_values import name_of

WARP = 32
What = tuple[int, str]  # a line, and "loads of" or "stores of" an array, or "arithmetic"
NOTHING: What = 0, ""
ActionKey = tuple[str, int, int, str]  # kind, line, bytes, array


class Untraceable(ValueError):
    """A kernel that can't be traced, with the line."""


def function_of(kernel: Any) -> Any:
    """Return the Python function of a kernel or a device function; anything else as it is."""
    return getattr(kernel, "py_func", None) or getattr(kernel, "fn", kernel)


@dataclass(frozen=True, eq=False)
class GridLaunch:
    """A launch: a kernel, its grid and blocks (across, down), its arguments, and the bytes of
    shared memory that the launch requests.
    """

    kernel: Any
    grid: tuple[int, int]
    threads: tuple[int, int]
    arguments: Sequence[Any]
    shared: int = 0

    @property
    def name(self) -> str:
        return name_of(function_of(self.kernel))


@dataclass(eq=False)
class Action:
    """An access, an arithmetic operation or a barrier.

    Attributes
    ----------
    kind
        "load", "store", "shared load", "shared store", "barrier", PRODUCT, SUM, FMA, or SLOW for a
        division or a function.
    line
        The line of the kernel.
    size
        Bytes for a thread.
    array
        The name of the array; "" without one.
    place
        The byte at which each thread's access begins: int64, one for each thread or for all.
    on
        Mask of the threads that do it.
    step
        Bytes by which the place moves with each iteration.
    """

    kind: str
    line: int
    size: int
    array: str
    place: Any
    on: np.ndarray
    step: int = 0

    def of_first(self, threads: int) -> "Action":
        """Return the same by the first threads."""
        place = self.place[:threads] if np.ndim(self.place) else self.place
        return replace(self, place=place, on=self.on[:threads])

    @property
    def key(self) -> ActionKey:
        """What it is counted by."""
        return self.kind, self.line, self.size, self.array

    @property
    def what(self) -> What:
        """What a cost is given for."""
        return self.line, f"{self.kind}s of {self.array}" if self.array else "arithmetic"


@dataclass(eq=False)
class SizeLoop:
    """A loop whose end the compiler doesn't know.

    Attributes
    ----------
    kind
        "range" or "while".
    runs
        For each run of iterations that do the same: the items of the first, those of the second if
        there is one, and how many there are.
    """

    kind: str
    runs: list[tuple[list, list, int]] = field(default_factory=list)

    @property
    def count(self) -> int:
        """The number of iterations."""
        return sum(count for _, _, count in self.runs)

    def add(self, items: list) -> bool:
        """Add an iteration. Return whether its items are part of the loop from now on."""
        if not self.runs or not same_items(self.runs[-1][0], items):
            self.runs.append((items, [], 1))
            return True
        first, second, count = self.runs[-1]
        self.runs[-1] = first, second or items, count + 1
        return not second

    def repeat_last(self, times: int) -> None:
        """Add iterations that do what the last one does."""
        first, second, count = self.runs[-1]
        self.runs[-1] = first, second, count + times


def same_items(items: list, others: list) -> bool:
    """Return whether two iterations do the same, by the same threads."""
    return _described(items) == _described(others)


def _described(items: list) -> list:
    found: list = []
    for item in items:
        if isinstance(item, Action):
            found.append((item.kind, item.line, item.array, item.on.tobytes()))
        else:
            found.append([(count, _described(first)) for first, _, count in item.runs])
    return found


def actions_of(items: list, times: int = 1) -> Iterator[tuple[Action, int]]:
    """Yield each action of a trace, inner loops included, and how often it is repeated."""
    for item in items:
        if isinstance(item, Action):
            yield item, times
            continue
        for first, _, count in item.runs:
            yield from actions_of(first, times * count)


def executions(items: list) -> dict[ActionKey, np.ndarray]:
    """Return how often each thread does each action of a trace."""
    found: dict[ActionKey, np.ndarray] = {}
    for action, times in actions_of(items):
        found[action.key] = found.get(action.key, 0) + times * action.on
    return found
