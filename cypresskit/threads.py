"""The number of host threads, for the compiled engine and for simulations side by side."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")


def processors() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(function: Callable[[T], U], items: Iterable[T]) -> list[U]:
    """Apply a function to items, one thread per processor. One processor needs no thread."""
    if processors() == 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(processors()) as pool:
        return list(pool.map(function, items))
