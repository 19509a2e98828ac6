"""The site's workbench, as Python in the reader's browser has it: ``ck.workbench`` itself, without
threads, processes and Jupyter.

``work`` does what the host's next message asks for, and is all that the host calls. What the
workbench says goes to the host as JSON; it has no other way out.
"""

import json
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from _host import call as ask_host

FOLDER = Path("/climb")  # whose files the browser keeps


def stand_in(name: str, **contents: Any) -> None:
    """Let a module that is missing here have these contents."""
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


class AnyWidget:
    """What ``anywidget`` would be for the workbench: a channel to the page."""

    heard: Any = None

    def on_msg(self, hear: Any) -> None:
        """Call ``hear`` with what the page says."""
        self.heard = hear

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        """Send a message to the page. It offers no views that play: these need Bokeh."""
        for part in (content, content.get("step") or {}):
            if "views" in part:
                part["views"] = []
        ask_host(b"say " + json.dumps(content).encode())


# There are no threads: nothing watches the files, and what takes too long the page itself ends.
threading.Thread.start = lambda self: None  # type: ignore[method-assign]
stand_in("anywidget", AnyWidget=AnyWidget)
stand_in("fcntl", flock=lambda file, how: None, LOCK_EX=0)

import tqdm  # noqa: E402  # after what it finds missing

from cypresskit.editing import answer_process, answering, kernel_file  # noqa: E402

tqdm.tqdm.monitor_interval = 0  # or it wants a thread


class Waiting(answering.OtherJobs):
    """The messages that wait while a job is answered."""

    def overtaken(self, edit: str) -> bool:
        """Return whether a newer text waits."""
        return ask_host(b"waiting 0") == b"text"

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a message waits, or arrives within so many seconds."""
        return ask_host(f"waiting {seconds}".encode()) != b""


class AnswerInPage(answering.AnswerHere):
    """Answers jobs here, except for the text at which the last worker was stopped. The parts that a
    job still needs when another job comes are made by ``resume``.
    """

    now: "AnswerInPage"
    endless = ""

    def __init__(self, hear: Any, ended: Any) -> None:
        super().__init__(hear, ended)
        self.left: dict[str, Any] | None = None
        AnswerInPage.now = self

    def ask(self, job: dict[str, Any]) -> None:
        """Answer a job."""
        if job["text"] == self.endless:
            message = "Checking this kernel took too long, or failed. Edit it to try again."
            self.hear({"type": "trouble", "edit": job["edit"], "message": message})
            self.hear({"type": "done", "edit": job["edit"], "parts": job["parts"]})
            return
        left = answering.answer_job(job, self.memory, self.hear, Waiting())
        if left:
            self.left = job | {"parts": left}
        elif self.left and self.left["edit"] != job["edit"]:
            self.left = None

    def resume(self) -> None:
        """Go on with what is left."""
        job, self.left = self.left, None
        if job:
            self.ask(job)


answer_process.AnswerProcess = AnswerInPage  # type: ignore[misc,assignment]
kernel_file.KernelFile._check_writable = lambda self: None  # type: ignore[method-assign]

from cypresskit.editing.steps import FIRST, STEPS  # noqa: E402
from cypresskit.editing.workbench import workbench  # noqa: E402

state = SimpleNamespace(widget=None)


def open_bench(message: dict[str, Any]) -> None:
    """Open the workbench of a ``step``. Each of ``texts`` that differs from the step's file is put
    into it; the history has what it held.
    """
    AnswerInPage.endless = message["endless"]
    step = message["step"] if message["step"] in STEPS else FIRST
    file = FOLDER / STEPS[step].file
    bench = workbench(file, step=step)
    for text in message["texts"]:
        if text != bench.text:
            bench = workbench(file, step=step, text=text)
    state.widget = bench._begin()
    ask_host(b"opened " + step.encode())


def hear(message: dict[str, Any]) -> None:
    """Hand the workbench what its page says."""
    state.widget.heard(state.widget, message["content"], [])


def resume(message: dict[str, Any]) -> None:
    """Go on with what is left, when nothing else is to be done."""
    AnswerInPage.now.resume()


def work() -> None:
    """Do what the host's message asks for."""
    message = json.loads(ask_host(b"message"))
    {"open": open_bench, "hear": hear, "resume": resume}[message["type"]](message)
