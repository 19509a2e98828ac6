"""Run ``ck.workbench`` in the reader's browser, without threads, processes and Jupyter.

The host calls only ``work``, which handles its next message. The workbench's messages go to the
host as JSON.
"""

import json
import sys
import threading
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from _host import call as ask_host

FOLDER = Path("/climb")  # the browser saves its files


def stand_in(name: str, **contents: Any) -> None:
    """Make a module, in place of one that is missing here."""
    module = ModuleType(name)
    vars(module).update(contents)
    sys.modules[name] = module


class AnyWidget:
    """Takes the place of anywidget's class: a channel to the page."""

    callback: Any = None

    def on_msg(self, callback: Any) -> None:
        """Call a function with each message of the page."""
        self.callback = callback

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        """Send a message to the page, without the names of views: these need Bokeh."""
        for part in (content, content.get("step") or {}):
            if "views" in part:
                part["views"] = []
        ask_host(b"say " + json.dumps(content).encode())


# There are no threads. Nothing watches the files; the page ends a run that takes too long.
threading.Thread.start = lambda self: None  # type: ignore[method-assign]
stand_in("anywidget", AnyWidget=AnyWidget)
stand_in("fcntl", flock=lambda file, how: None, LOCK_EX=0)

import tqdm  # noqa: E402  # after the modules that it imports

from cypresskit.editing import answer_process, answering, kernel_file  # noqa: E402

tqdm.tqdm.monitor_interval = 0  # else it starts a thread


class AnswerInPage(answering.AnswerHere):
    """Answers jobs here, except for the text at which the last worker was stopped."""

    now: "AnswerInPage"
    endless = ""

    def __init__(self, hear: Any) -> None:
        super().__init__(hear)
        AnswerInPage.now = self

    def overtaken(self, edit: str) -> bool:
        """Return whether a newer text waits."""
        return ask_host(b"waiting 0") == b"text"

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a message waits, or arrives within ``seconds``."""
        return ask_host(f"waiting {seconds}".encode()) != b""

    def ask(self, job: dict[str, Any]) -> None:
        """Answer a job."""
        if job["text"] != self.endless:
            super().ask(job)
            return
        message = "Checking this kernel took too long, or failed. Edit it to try again."
        self.hear({"type": "trouble", "edit": job["edit"], "message": message})
        self.hear({"type": "done", "edit": job["edit"], "parts": job["parts"]})


answer_process.AnswerProcess = AnswerInPage  # type: ignore[misc,assignment]
kernel_file.KernelFile._obstacle = lambda self: ""  # type: ignore[method-assign]

from cypresskit.editing.steps import FIRST, STEPS  # noqa: E402
from cypresskit.editing.workbench import workbench  # noqa: E402

state = SimpleNamespace(widget=None)


def open_bench(message: dict[str, Any]) -> None:
    """Open the workbench of a ``step``. Put each of ``texts`` into the step's file; the history
    keeps the text that it replaces.
    """
    AnswerInPage.endless = message["endless"]
    step = message["step"] if message["step"] in STEPS else FIRST
    file = FOLDER / STEPS[step].file
    bench = workbench(file, step=step)
    for text in message["texts"]:
        bench._conversation.put(text, "given")
    state.widget = bench._begin()
    ask_host(b"opened " + step.encode())


def hear(message: dict[str, Any]) -> None:
    """Pass a message of the page to the workbench."""
    state.widget.callback(state.widget, message["content"], [])


def resume(message: dict[str, Any]) -> None:
    """Continue an interrupted job; no other message waits."""
    AnswerInPage.now.resume()


def work() -> None:
    """Handle the host's message."""
    message = json.loads(ask_host(b"message"))
    {"open": open_bench, "hear": hear, "resume": resume}[message["type"]](message)
