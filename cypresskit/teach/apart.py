"""A function call in a copy of this process, with limits of time and memory.

What the call changes, fills or crashes is gone with the copy. On Linux that is a fork; elsewhere a
new Python, which imports the function (macOS's libraries break in forks, and Windows has none).
Processor time and memory are limited on Linux, elapsed time everywhere. It keeps faults apart, not
attackers: the copy has its user's rights, and the network.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

if sys.platform != "win32":
    import resource

T = TypeVar("T")
FORKS = sys.platform == "linux"
SECONDS, MEGABYTES = 120, 4000
LONGEST = 1e6  # seconds that a process can be waited for
ENDLESS, FULL = "what ends its loop?", "what grows there, and when is it enough?"

context: Any = get_context("fork" if FORKS else "spawn")
parent: Connection | None = None  # in a copy: the way to the process that it was made of


class Lost(Exception):
    """The copy gave no result; the text says why, ``hint`` where to look, and ``signal`` what ended
    it, if one did.
    """

    def __init__(self, why: str, hint: str = "does it quit Python, or crash it?", signal: int = 0):
        super().__init__(why)
        self.hint, self.signal = hint, signal


def tell(news: object) -> None:
    """In a copy: let the parent process hear ``news``."""
    if parent:
        parent.send(("news", news))


def call(
    function: Callable[..., T],
    *arguments,
    hear: Callable = tell,
    seconds=SECONDS,
    megabytes=MEGABYTES,
) -> T:
    """The result of ``function(*arguments)``, computed in a copy; ``hear`` gets what it ``tell``s
    before. Raises ``Lost`` if it takes more than ``seconds`` of processor time (or is silent for
    four times that) or more than ``megabytes``, if it raises or crashes; and ``OSError`` if there
    is no room for a copy.
    """
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_serve, args=(theirs, function, arguments, seconds, megabytes))
    with ours:
        with theirs, warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", DeprecationWarning
            )  # of other threads, which a copy doesn't have
            child.start()
        try:
            while True:
                try:
                    silent: tuple = "lost", f"it had not ended after {4 * seconds:g} s", ENDLESS
                    what, *news = ours.recv() if ours.poll(min(4 * seconds, LONGEST)) else silent
                except (EOFError, OSError):
                    break
                except Exception as error:  # of whatever is made of the bytes here
                    raise Lost(
                        f"what it sends can't be read, {type(error).__name__}: {error}"
                    ) from None
                if what == "result":
                    return news[0]
                if what == "lost":
                    raise Lost(*news)
                hear(*news)
            child.join(1)
            end = child.exitcode or 0
        finally:
            child.kill()  # which changes nothing if it has ended
            child.join()
    if end in (-14, -27):  # SIGALRM, SIGPROF
        raise Lost("it had not ended when its time was up", ENDLESS, -end)
    why = "was killed from outside: is there enough memory?" if end == -9 else f"ended with {end}"
    raise Lost(f"its process {why}", signal=max(-end, 0))


def _serve(
    tells: Connection, function: Callable, arguments: tuple, seconds: float, megabytes: float
) -> None:
    """In the copy: call the function, send its result, end. What it prints is dropped."""
    global parent
    parent = tells
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    reply: tuple
    try:
        with limits(seconds, megabytes):
            reply = "result", function(*arguments)
    except MemoryError:
        reply = "lost", f"it needs more than {megabytes:g} MB", FULL
    except SystemExit:
        reply = "lost", "it tries to quit Python", "leave out `exit`: `return` ends a function."
    except BaseException as error:
        reply = "lost", f"{type(error).__name__}: {error}".removesuffix(": ")
    tells.send(reply)
    os._exit(0)  # whatever threads the function has left behind


@contextmanager
def limits(seconds: float, megabytes: float, wall: float = 0) -> Iterator[None]:
    """In a copy: end it after ``seconds`` of computing, or after ``wall`` by the clock unless 0,
    and make Python raise ``MemoryError`` where it would take ``megabytes`` more.
    """
    if not FORKS:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    taken = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    most = min(
        [taken + int(1e6 * megabytes), *(size for size in before if size != resource.RLIM_INFINITY)]
    )
    resource.setrlimit(resource.RLIMIT_DATA, (most, before[1]))
    timers = {
        signal.ITIMER_PROF: (signal.SIGPROF, seconds),
        signal.ITIMER_REAL: (signal.SIGALRM, wall),
    }
    for number, _ in timers.values():
        signal.signal(number, signal.SIG_DFL)
    left = {
        timer: signal.setitimer(timer, min(time, LONGEST)) for timer, (_, time) in timers.items()
    }
    try:
        yield
    finally:
        for timer, times in left.items():
            signal.setitimer(timer, *times)
        resource.setrlimit(resource.RLIMIT_DATA, before)
