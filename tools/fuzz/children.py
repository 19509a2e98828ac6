"""Call functions in a child process, which may hang, crash or fill the memory.

A child makes many calls, which is fast, and is replaced after ``CALLS`` of them, or when a call
ends it, so its memory stays bounded. A call may ``note`` what it is about to try; if it ends its
process, the caller still gets the note.
"""

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

FORKS = sys.platform == "linux"
CALLS = 200  # of one child
MEGABYTES = 4000  # of one child
DIE_WITH_PARENT = 1  # Linux's PR_SET_PDEATHSIG

context: Any = get_context("fork" if FORKS else "spawn")
_parent: Connection | None = None  # in a child


@dataclass(frozen=True)
class Outcome:
    """The outcome of a call: its ``result``; or the ``fault`` that ended it, a traceback or the
    process's end; and its last note.
    """

    result: Any = None
    fault: str = ""
    note: str = ""


def note(text: str) -> None:
    """Tell the caller what this child tries next."""
    if _parent:
        _parent.send(("note", text))


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process; 0 if the system doesn't report it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Children:
    """A context manager that calls functions in children, one child after another."""

    def __init__(self, seconds: float):
        self.seconds = seconds  # of processor time for a call
        self.child: Any = None
        self.calls = 0

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_) -> None:
        self._end()

    def call(self, function: Callable, *arguments) -> Outcome:
        """Return the outcome of ``function(*arguments)``."""
        if self.child is None:
            self._begin()
        self.calls += 1
        self.pipe.send((function, arguments))
        noted = ""
        worked = 0.0
        try:
            while True:
                while not self.pipe.poll(self.seconds):
                    # A child that computes for too long ends by itself; one that waits doesn't.
                    before, worked = worked, processor_seconds(self.child.pid)
                    if worked == before:
                        self._end()
                        return Outcome(fault=f"it had not ended after {self.seconds} s", note=noted)
                kind, value = self.pipe.recv()
                if kind != "note":
                    break
                noted = value
        except (EOFError, OSError):
            return Outcome(fault=self._end(), note=noted)
        if self.calls >= CALLS:
            self._end()
        return Outcome(note=noted, **{kind: value})

    def _begin(self) -> None:
        self.pipe, theirs = context.Pipe()
        self.child = context.Process(target=_serve, args=(theirs, self.seconds), daemon=True)
        self.child.start()
        theirs.close()
        self.calls = 0

    def _end(self) -> str:
        """End the child. Return how it ended."""
        if self.child is None:
            return ""
        self.pipe.close()
        self.child.join(1)
        code = self.child.exitcode
        self.child.kill()
        self.child.join()
        self.child = None
        if code in (-signal.SIGPROF, None):
            return f"it had not ended after {self.seconds} s"
        how = signal.Signals(-code).name if code < 0 else f"status {code}"
        return f"its process ended with {how}"


def _serve(calls: Connection, seconds: float) -> None:
    """Execute calls in the child, and send their outcomes."""
    global _parent
    _parent = calls
    if FORKS:
        import ctypes
        import resource

        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGKILL)
        resource.setrlimit(resource.RLIMIT_DATA, (MEGABYTES << 20, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
    faulthandler.disable()
    for stream in (1, 2):  # the caller reports crashes
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    while True:
        try:
            function, arguments = calls.recv()
        except (EOFError, OSError):
            os._exit(0)
        if FORKS:
            signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            reply = "result", function(*arguments)
        except BaseException:
            reply = "fault", traceback.format_exc()
        calls.send(reply)
