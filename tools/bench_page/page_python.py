"""Run ``ck.workbench`` on the page ``bench/``: its messages go to the page as JSON."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from _host import call as ask_host
from stand_ins import FOLDER, PageAnswerer, post, resume

from cypresskit.editing.edit_history import LINKED_NOTE
from cypresskit.editing.steps import STEPS, reference_kernel
from cypresskit.editing.workbench import workbench

state = SimpleNamespace(bench=None, send=None, cold="")


def open_bench(message: dict[str, Any]) -> None:
    """Open the workbench of a ``step``, or of a kernel in a file of its own, in the place of the
    one that is open.

    The text that came with a link (``linked``) goes into the step's file. The history keeps the
    text that it replaces.
    """
    PageAnswerer.endless = message["endless"]
    PageAnswerer.last.clear()  # nothing more is asked about the workbench that was open
    if state.bench is not None:
        state.bench.conversation.close()
    step, path = message["step"], Path(FOLDER, f"{message['step']}.il")
    if step in STEPS:
        bench, given = workbench(path, step=step), STEPS[step].starter
    else:
        given = reference_kernel(step).text
        bench = workbench(path, like=step, n=message["n"])
    replaced = bench.text
    if message["linked"]:
        bench.conversation.load(message["linked"], LINKED_NOTE)

    def send(content: dict[str, Any]) -> None:
        if state.send is send:  # or else the page shows another workbench by now
            post(type="say", content=content)

    state.bench, state.send, state.cold = bench, send, step
    bench.conversation.connect(send)
    is_own = replaced not in (bench.text, given)
    post(type="opened", step=step, replaced=is_own)


def hear(message: dict[str, Any]) -> None:
    """Pass a message of the page to the workbench."""
    state.bench.conversation.hear(message["content"], state.send)


def warm_up() -> None:
    """Judge our solution once, while the reader thinks: the first correct kernel takes twice as
    long as the second. Their own text, if it is the same, then has its answer at once.
    """
    step, state.cold = STEPS.get(state.cold), ""
    if step is not None and (text := step.with_solution(keeps_comments=True)):
        job = state.bench.conversation.job(("code", "verdict", "clocks"))
        PageAnswerer(lambda message: None).ask(job | {"text": text})


def work() -> None:
    """Handle the worker's message."""
    message = json.loads(ask_host(b"message"))
    if message["type"] == "resume":
        resume()
        warm_up()
    else:
        {"open": open_bench, "hear": hear}[message["type"]](message)
