"""The package in the reader's browser: without threads, processes, numba, LLVM and sockets.

Two modules run on it: ``page_python`` (the page ``bench/``) and ``kernel_python`` (the workbook).
The worker that runs Python calls only their function ``work``, which handles its next message. It
answers requests (``ask_host``), such as ``post`` with a message for the page.
"""

import functools
import importlib.machinery
import json
import sys
import threading
from types import ModuleType
from typing import Any, ClassVar

from _host import call as ask_host

FOLDER = "/work"  # the reader's files, which the browser saves; as in python.js


def stand_in(name: str, **contents: Any) -> ModuleType:
    """Make a module, in place of one that is missing here."""
    module = ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(module).update(contents)
    sys.modules[name] = module
    return module


def post(**message: Any) -> None:
    """Send a message to the page."""
    ask_host(b"post " + json.dumps(message, default=repr).encode())


# There are no threads. Nothing watches the files; the page ends a run that takes too long.
threading.Thread.start = lambda self: None  # type: ignore[method-assign]
stand_in("fcntl", flock=lambda file, how: None, LOCK_EX=0, LOCK_UN=8, LOCK_SH=1, LOCK_NB=4)
stand_in("resource")  # whose functions only processes call

import numpy  # noqa: E402, F401  # before there is a module ctypes

# The compiled engine's names are there while its modules are imported; what they do is below.
NAMES = "c_char", "c_int32", "c_int64", "c_void_p", "addressof"
stand_in("ctypes", **dict.fromkeys(NAMES, 0), CFUNCTYPE=lambda *_: None)

import cypresskit_native  # noqa: E402

from cypresskit.machine import compiled as compiled_engine  # noqa: E402
from cypresskit.machine import engines  # noqa: E402
from cypresskit.machine.compiled import execute, jit  # noqa: E402
from cypresskit.machine.compiled.processor import HostProcessor  # noqa: E402
from cypresskit.machine.compiled.translation import Translation  # noqa: E402

del sys.modules["ctypes"]

from cypresskit.editing import answer_process, answering, kernel_file  # noqa: E402
from cypresskit.files import result_cache  # noqa: E402

# The results of launches came with the site (worker.js). No others are saved.
result_cache.SOURCES.is_unchanged = lambda: False  # type: ignore[method-assign]

HOST = HostProcessor("generic", "", "soft")


@functools.cache
def compiled(program: Any, host: HostProcessor) -> jit.NativeCode:
    """Return a kernel that was compiled with the site. Raises ``LookupError`` for other ones."""
    key = cypresskit_native.program_key(program)
    head = ask_host(f"head {key}".encode())
    if not head:
        raise LookupError(key)
    translation = Translation(**json.loads(head))

    def call(*arguments: int) -> int:
        return int(ask_host(f"kernel {key} {' '.join(map(str, arguments))}".encode()))

    return jit.NativeCode(translation, call, None)


def run_compiled(launch: Any, batches: Any = None) -> Any:
    """Run a launch, or some batches of it, on compiled code; None if there is none, so the
    interpreter runs it.
    """
    try:
        return execute.run(launch, batches, HOST)
    except LookupError:
        return None


vars(execute).update(compiled=compiled, address=cypresskit_native.address)
compiled_engine.run = run_compiled
vars(engines).update(HAS_LLVM=True)


class PageAnswerer(answering.LocalAnswerer):
    """Answers jobs here, except for the text at which the last worker was stopped."""

    last: ClassVar["list[PageAnswerer]"] = []  # of the last workbenches
    endless = ""

    def __init__(self, send: Any) -> None:
        super().__init__(send)
        PageAnswerer.last = [*PageAnswerer.last[-3:], self]

    def has_message(self, seconds: float = 0.0) -> bool:
        """Return whether a message waits, or arrives within ``seconds``."""
        return ask_host(f"waiting {seconds}".encode()) != b""

    def ask(self, job: dict[str, Any]) -> None:
        """Answer a job."""
        if not self.endless or job["text"] != self.endless:
            super().ask(job)
            return
        message = "Checking this kernel took too long, or failed. Edit it to try again."
        about = {"edit": job["edit"], "job": job["number"]}
        self.send(about | {"type": "trouble", "message": message})
        self.send(about | {"type": "done"})


answer_process.AnswerProcess = PageAnswerer  # type: ignore[misc,assignment]
kernel_file.is_writable = lambda path: True


def resume() -> None:
    """Continue an interrupted job; no other message waits."""
    for answerer in PageAnswerer.last:
        answerer.resume()
