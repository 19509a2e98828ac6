"""Judge answers in the notebook's own process: for Python in a browser, which has no processes.

``answer.Answer`` does so by itself where Python runs in a browser, or if ``here.IS_USED`` is set to
True. Verdicts are the same as with a process of its own. But nothing is limited or kept apart: an
answer that doesn't end goes on until Python is stopped.
"""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress

from cypresskit.isolated import teach_stub
from cypresskit.isolated.plain import text
from cypresskit.isolated.serving import MAX_CHARACTERS, Server
from cypresskit.subprocesses import MAX_MESSAGE_BYTES

#: Whether answers are judged in this process.
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

    def open(self) -> None:
        """Begin: there is no process to start."""

    def close(self) -> None:
        """End: there is no process to end."""

    def exchange(self, message: dict, limits: object) -> dict:
        """Handle a message, with the stubs that an answer gets in place of the lessons, and return
        the reply.
        """
        self.outputs = sys.stdout, sys.stderr
        with _stubs():
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
    text = json.dumps(message)
    if len(text) > MAX_MESSAGE_BYTES:
        raise ValueError(f"a message of {len(text):,} bytes")
    return json.loads(text)


@contextmanager
def _stubs() -> Iterator[None]:
    """Replace the lessons, and what else an answer doesn't get, by stubs."""
    face = vars(sys.modules["cypresskit"])
    kept = {name: face[name] for name in REPLACED if name in face}
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
        face.update(kept)
        del sys.modules[LESSONS]
        sys.modules.update(lessons)
