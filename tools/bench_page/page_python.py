"""Run ``ck.workbench`` on the page ``bench/``: its messages go to the page as JSON."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _host import call as ask_host
from stand_ins import FOLDER, AnswerInPage, post, resume, stand_in


class AnyWidget:
    """Takes the place of anywidget's class: a channel to the page."""

    callback: Any = None

    def on_msg(self, callback: Any) -> None:
        """Call a function with each message of the page."""
        self.callback = callback

    def send(self, content: dict[str, Any], buffers: object = None) -> None:
        """Send a message to the page, unless that shows another workbench by now."""
        if state.widget in (None, self):
            post(type="say", content=content)


stand_in("anywidget", AnyWidget=AnyWidget)
state = SimpleNamespace(bench=None, widget=None)

from cypresskit.editing.edit_history import LINKED  # noqa: E402
from cypresskit.editing.steps import STEPS, reference_kernel  # noqa: E402
from cypresskit.editing.workbench import workbench  # noqa: E402


def open_bench(message: dict[str, Any]) -> None:
    """Open the workbench of a ``step``, or of a kernel in a file of its own, in the place of the
    one that is open.

    The text that came with a link (``linked``) goes into the step's file. The history keeps the
    text that it replaces.
    """
    AnswerInPage.endless = message["endless"]
    AnswerInPage.last.clear()  # nothing more is asked about the workbench that was open
    if state.bench is not None:
        state.bench._conversation.close()
    state.widget = None
    step, path = message["step"], Path(FOLDER, f"{message['step']}.il")
    if step in STEPS:
        bench, given = workbench(path, step=step), STEPS[step].starter
    else:
        kernel = reference_kernel(step)
        bench, given = workbench(path, like=kernel, n=message["n"]), kernel.text
    replaced = bench.text
    if message["linked"]:
        bench._conversation.put(message["linked"], LINKED)
    state.bench, state.widget = bench, bench._begin()
    is_own = replaced not in (bench.text, given)
    post(type="opened", step=step, replaced=is_own)


def hear(message: dict[str, Any]) -> None:
    """Pass a message of the page to the workbench."""
    state.widget.callback(state.widget, message["content"], [])


def work() -> None:
    """Handle the worker's message."""
    message = json.loads(ask_host(b"message"))
    if message["type"] == "resume":
        resume()
    else:
        {"open": open_bench, "hear": hear}[message["type"]](message)
