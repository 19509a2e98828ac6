"""Judge answers in the notebook's own process: for Python in a browser, which has no processes.

``answer.Answer`` does so by itself where Python runs in a browser, or if ``here.IS_USED`` is set to
True. Verdicts are the same as with a process of its own, and a loop ends after as many seconds. But
memory isn't limited, the stubs replace the notebook's own modules for the call, and Python 3.11
can't end a loop.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import BytesIO
from time import monotonic
from typing import Any

from cypresskit.isolated import teach_stub
from cypresskit.isolated.plain import text
from cypresskit.isolated.serving import CELL, MAX_CHARACTERS, Halt, Server
from cypresskit.subprocesses import read_message, write_message

#: Whether answers are judged in this process; tests set it.
IS_USED = sys.platform == "emscripten"

LESSONS = "cypresskit.teach"
REPLACED = "teach", "workbench", "draw"  # names of the package that answers get as stubs


class ServerHere(Server):
    """Serves an answer in this process.

    Parameters
    ----------
    show
        Gets what the answer prints.
    """

    ends_at_interrupt = True

    def __init__(self, show: Callable[[str], object]) -> None:
        super().__init__(self._hear)
        self.show = show
        self.outputs = sys.stdout, sys.stderr
        self.reply: dict = {}

    def close(self) -> None:
        """End: there is no process to end."""

    def exchange(self, message: dict, limits: Any) -> dict:
        """Handle a message, with the stubs that an answer gets in place of the lessons, and return
        the reply. ``limits.seconds``: of the answer's loops.
        """
        self.outputs = sys.stdout, sys.stderr
        with _stubs(), _ended_after(limits.seconds):
            self.handle(_copy(message))
        return self.reply

    def _hear(self, message: dict) -> None:
        reply = _copy(message)
        if reply.keys() != {"print"}:
            self.reply = reply
            return
        out, errors = self.outputs
        with redirect_stdout(out), redirect_stderr(errors), suppress(OSError):
            self.show(text(reply["print"], MAX_CHARACTERS))


def _copy(message: dict) -> dict:
    """Return a message as another process would get it. Raise ``ValueError`` if it is too large."""
    stream = BytesIO()
    write_message(stream, message)
    stream.seek(0)
    return read_message(stream) or {}


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End the loops of cells after so many seconds, when they jump back (since Python 3.12)."""
    monitoring: Any = getattr(sys, "monitoring", None)
    if monitoring is None:
        yield
        return
    end, tool, jump = monotonic() + seconds, monitoring.OPTIMIZER_ID, monitoring.events.JUMP

    def jumped(code: Any, *_: int) -> Any:
        if not code.co_filename.startswith(CELL):
            return monitoring.DISABLE
        if monotonic() > end:
            raise Halt("time")
        return None

    monitoring.use_tool_id(tool, __name__)
    monitoring.register_callback(tool, jump, jumped)
    monitoring.set_events(tool, jump)
    try:
        yield
    finally:
        monitoring.set_events(tool, 0)
        monitoring.free_tool_id(tool)


@contextmanager
def _stubs() -> Iterator[None]:
    """Replace the lessons, and what else an answer doesn't get, by stubs."""
    face = vars(sys.modules["cypresskit"])
    replaced = {name: face[name] for name in REPLACED if name in face}
    lessons = {
        name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{LESSONS}.")
    }
    for name in lessons:
        del sys.modules[name]
    teach_stub.install()
    try:
        yield
    finally:
        for name in REPLACED:
            face.pop(name, None)
        face.update(replaced)
        del sys.modules[LESSONS]
        sys.modules.update(lessons)
