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
        """Send a message to the page."""
        post(type="say", content=content)


stand_in("anywidget", AnyWidget=AnyWidget)

from cypresskit.editing.edit_history import LINKED  # noqa: E402
from cypresskit.editing.steps import FIRST, STEPS  # noqa: E402
from cypresskit.editing.workbench import workbench  # noqa: E402

state = SimpleNamespace(widget=None)


def open_bench(message: dict[str, Any]) -> None:
    """Open the workbench of a ``step``.

    The text that came with a link (``linked``) goes into the step's file. The history keeps the
    text that it replaces.
    """
    AnswerInPage.endless = message["endless"]
    step = message["step"] if message["step"] in STEPS else FIRST
    bench = workbench(Path(FOLDER, STEPS[step].file), step=step)
    replaced = bench.text
    if message["linked"]:
        bench._conversation.put(message["linked"], LINKED)
    state.widget = bench._begin()
    is_own = replaced not in (bench.text, STEPS[step].starter)
    post(type="opened", replaced=is_own)


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
