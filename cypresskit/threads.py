"""Run work on all processors of the host, unless it is interrupted."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Interrupted(Exception):
    """A result was not computed, since the caller has something else to do."""


def never() -> bool:
    """Return that the caller has nothing else to do."""
    return False


@dataclass(frozen=True)
class Unless:
    """Asks a caller whether it has something else to do. All are equal, so that a cache gives to
    one caller what it computed for another.
    """

    asks: Callable[[], bool] = field(compare=False)

    def __call__(self) -> bool:
        return self.asks()


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(function: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """Return a function's results for items, computed by one thread per processor."""
    if processors() == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(function, items))
