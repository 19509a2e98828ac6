"""A Jupyter kernel in the reader's browser: IPython's shell on the package's stand-ins."""

import base64
import builtins
import io
import json
import os
import sys
import traceback
import warnings
from types import SimpleNamespace
from typing import Any, NoReturn

from _host import call as ask_host
from stand_ins import FOLDER, post, resume, stand_in


def lenient(name: str) -> None:
    """Make a module whose names are empty classes: others import them for annotations only."""

    def attribute(wanted: str) -> type:
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        return type(wanted, (), {})

    module = stand_in(name, __getattr__=attribute, __path__=[])
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)


NAMED = "PIL PIL.Image contourpy contourpy.enum_util contourpy.types tornado tornado.web"
for missing in NAMED.split():
    lenient(missing)
state = SimpleNamespace(parent={}, content={})  # the request that is being handled


def publish(msg_type: str, content: dict, metadata: Any = None, buffers: Any = None) -> None:
    """Send a message to all pages of the notebook, after what was printed."""
    sys.stdout.flush()
    packed = [base64.b64encode(bytes(buffer)).decode() for buffer in buffers or ()]
    post(
        type="publish",
        msg_type=msg_type,
        content=content,
        metadata=metadata or {},
        parent=state.parent,
        buffers=packed,
    )


class Stream(io.TextIOBase):
    """Standard output or error: text goes to the page in lines, the rest when the cell ends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        """Take a text."""
        self.parts.append(text)
        if "\n" in text or "\r" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        """Send what was written."""
        text, self.parts = "".join(self.parts), []
        if text:
            publish("stream", {"name": self.name, "text": text})


def refuse(*_: object) -> NoReturn:
    """Refuse what a page can't do: for `input`, `await` and commands of a shell."""
    raise RuntimeError(
        "no input, await, shell or pip in this page: they work where the workbook is installed"
    )


import comm  # noqa: E402


class Comm(comm.base_comm.BaseComm):
    """A channel to a widget's page."""

    def publish_msg(
        self,
        msg_type: str,
        data: Any = None,
        metadata: Any = None,
        buffers: Any = None,
        **keys: Any,
    ) -> None:
        """Send a message."""
        content = {"data": data or {}, "comm_id": self.comm_id, **keys}
        publish(msg_type, content, metadata, buffers)


manager = comm.base_comm.CommManager()
comm.create_comm = Comm
comm.get_comm_manager = lambda: manager

warnings.filterwarnings("ignore", "IPython parent .* is not a writable location")

from IPython.core.completer import provisionalcompleter, rectify_completions  # noqa: E402
from IPython.core.displayhook import DisplayHook  # noqa: E402
from IPython.core.displaypub import DisplayPublisher  # noqa: E402
from IPython.core.interactiveshell import InteractiveShell  # noqa: E402
from traitlets.config import Config  # noqa: E402


class Displays(DisplayPublisher):
    """Sends what is displayed."""

    def publish(
        self,
        data: Any,
        metadata: Any = None,
        source: Any = None,
        *,
        transient: Any = None,
        update: Any = False,
        **_: Any,
    ) -> None:
        """Send an output."""
        kind = "update_display_data" if update else "display_data"
        publish(kind, {"data": data, "metadata": metadata or {}, "transient": transient or {}})

    def clear_output(self, wait: bool = False) -> None:
        """Clear the cell's outputs."""
        publish("clear_output", {"wait": wait})


class Results(DisplayHook):
    """Sends the value of a cell's last line."""

    def write_output_prompt(self) -> None:
        """Write none: the page has it."""

    def finish_displayhook(self) -> None:
        """All is sent."""

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        """Send the value's forms."""
        count = state.content.get("execution_count", 0)
        result = {"data": format_dict, "metadata": md_dict or {}, "execution_count": count}
        publish("execute_result", result)


class Shell(InteractiveShell):
    """IPython's shell, whose errors go to the page."""

    failure: Any = None
    kernel = SimpleNamespace(  # ipywidgets asks for the request
        get_parent=lambda channel=None: {"header": state.parent, "content": state.content}
    )

    system = refuse

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        name = getattr(etype, "__name__", str(etype))
        self.failure = {"ename": name, "evalue": str(evalue), "traceback": stb}
        publish("error", self.failure)


shell = Shell.instance(
    displayhook_class=Results,
    display_pub_class=Displays,
    user_ns={},
    config=Config(HistoryManager={"enabled": False}),
)
shell.Completer.use_jedi = False  # it takes seconds here
shell.loop_runner = refuse
sys.stdout, sys.stderr = Stream("stdout"), Stream("stderr")
builtins.input = refuse

import anywidget  # noqa: E402, F401
import bokeh.models  # noqa: E402, F401
import ipywidgets  # noqa: E402

ipywidgets.register_comm_target()

import cypresskit.draw  # noqa: E402
import cypresskit.editing.steps  # noqa: E402
import cypresskit.editing.workbench  # noqa: E402
import cypresskit.teach  # noqa: E402, F401
from cypresskit.isolated import here  # noqa: E402

here.IS_USED = True  # an answer to an exercise runs in this process: Stop ends it
os.makedirs(FOLDER, exist_ok=True)
os.chdir(FOLDER)

# -- requests: each function takes the content of a request, and returns that of the reply


def execute(content: dict) -> dict:
    """Run a cell."""
    shell.failure = None
    shell.run_cell(content["code"], content["store_history"], content["silent"])
    if shell.failure is not None:
        return {"status": "error", **shell.failure}
    return {"status": "ok", "payload": [], "user_expressions": {}}


def complete(content: dict) -> dict:
    """Complete a name."""
    code, place = content["code"], content["cursor_pos"]
    with provisionalcompleter():
        found = [*rectify_completions(code, shell.Completer.completions(code, place))]
    return {
        "status": "ok",
        "matches": [each.text for each in found],
        "cursor_start": found[0].start if found else place,
        "cursor_end": found[0].end if found else place,
        "metadata": {},
    }


def channel(message: dict) -> dict:
    """Pass a message to a channel."""
    sent = message["buffers"]
    buffers = [bytes(one.values() if isinstance(one, dict) else one) for one in sent]
    held = {"content": message["content"], "buffers": buffers, "metadata": {}}
    getattr(manager, message["type"])(None, None, held)
    return {}


REQUESTS = {"execute": execute, "complete": complete}


def work() -> None:
    """Handle the worker's message."""
    message = json.loads(ask_host(b"message"))
    kind = message["type"]
    if kind == "resume":
        resume()
        return
    state.parent, state.content = message["parent"], message["content"]
    try:
        if kind in REQUESTS:
            reply = REQUESTS[kind](message["content"])
        else:
            reply = channel(message)
    except Exception as error:  # a fault of this module, or of a widget
        traceback.print_exc()
        reply = {
            "status": "error",
            "ename": type(error).__name__,
            "evalue": str(error),
            "traceback": [],
        }
    sys.stdout.flush()
    sys.stderr.flush()
    post(type="reply", id=message["id"], content=reply)
