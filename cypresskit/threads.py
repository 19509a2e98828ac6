"""Run work on all processors of the host, unless it is interrupted."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

T = TypeVar("T")
U = TypeVar("U")

_thread = threading.local()  # in a thread of ``map_in_threads``: its ``stop``, an event


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
    """Return a function's results for items, computed by one thread per processor.

    A simulation lets other threads run, so this is how several launches are timed. An item's
    exception is raised once the items before it have ended. It ends all others, as Ctrl-C does.
    Within such a thread, another call computes one item after the other.
    """
    if processors() == 1 or hasattr(_thread, "stop"):
        return [function(item) for item in items]
    stop = threading.Event()

    def compute(item: T) -> U:
        _thread.stop = stop
        check_stop()
        return function(item)

    with ThreadPoolExecutor(processors()) as pool:
        try:
            return list(pool.map(compute, items))
        finally:
            stop.set()


def check_stop() -> None:
    """Raise ``KeyboardInterrupt`` in a thread whose result isn't needed anymore.

    Ctrl-C reaches the first thread only. What takes long calls this now and then.
    """
    if hasattr(_thread, "stop") and _thread.stop.is_set():
        raise KeyboardInterrupt
