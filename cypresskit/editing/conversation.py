"""The conversation between the pages of a workbench, its file, and what answers its texts.

The newest text counts: it is in the file, and only its answers reach the pages. A process of its
own answers the pages (``supervisor``), so the notebook's kernel stays free, whatever a text does.
``protocol`` lists the messages.
"""

import threading
import time
import warnings
from collections.abc import Callable, Collection
from dataclasses import asdict, replace
from itertools import count
from typing import Any

from cypresskit.draw.theme import SERIES
from cypresskit.editing.answer_process import AnswerProcess
from cypresskit.editing.answering import LocalAnswerer, bug_message
from cypresskit.editing.edit_history import Edit
from cypresskit.editing.kernel_file import KernelFile, replace_surrogates
from cypresskit.editing.legend import TABLES
from cypresskit.editing.own_climb import make_own_climb
from cypresskit.editing.protocol import ALL_PARTS, PARTS, Message
from cypresskit.editing.static_answers import TOKEN, text_answer
from cypresskit.editing.step_files import read_histories, saved_edit
from cypresskit.editing.steps import STEPS, find_gaps
from cypresskit.editing.stuck import ShownLines, seconds_until_help
from cypresskit.editing.supervisor import Start, Supervisor
from cypresskit.editing.watching import looks, start_watching
from cypresskit.il.host_llvm import HAS_LLVM

MAX_PAGES = 8  # that get messages: a cell that runs again leaves its old ones behind
UNSENT_NOTE = "typed on a page that was left before it was sent"
#: To the pages, if a text replaces one that its reader hasn't seen.
AT_ONCE = "This text was changed in two places at once. The earlier version is in the history."
#: What a page gets of its step, with the targets; of the solution, a press shows a line.
STEP_FIELDS = (
    "name",
    "is_numbered",
    "title",
    "idea",
    "hint",
    "open_panels",
    "has_guess",
    "record",
    "starter",
)

Send = Callable[[Message], None]


class Conversation:
    """The conversation about one file.

    Parameters
    ----------
    file
        The kernel's file, with its history. Other conversations about it follow it as any editor
        does.
    settings
        ``like``, ``n`` and ``step`` of every job.
    start, clock
        As of ``Supervisor``.

    Attributes
    ----------
    edit
        The name of the newest text.
    answers, missing_parts
        The parts of its answer so far, by name; and those that are wanted, and aren't made yet.
    edits
        The history of the file.
    pages
        The functions that send messages to pages, and to a notebook's invisible outputs.
    """

    def __init__(
        self,
        file: KernelFile,
        settings: dict[str, Any],
        start: Start = AnswerProcess,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.file, self.edits, self.settings = file, file.edits, settings
        self.edits.on_change = self._send_history
        self.name = file.path.name
        self.step = STEPS.get(settings.get("step") or "")
        self.shown_lines = ShownLines(self.edits, self.step) if self.step else None
        self.lock = threading.RLock()
        self.supervisor = Supervisor(self._take_answer, self.lock, start, clock)
        self.pages: list[Send] = []
        self.edit = "file-0"
        self.answers: dict[str, Message] = {}
        self.missing_parts = {*PARTS}
        self.element: list[int] | None = None  # whose terms the reader wants, or the first wrong
        self.numbers = count(1)  # of texts that did not come from a page

    @property
    def text(self) -> str:
        """The newest text."""
        return self.file.text

    # -- pages

    def follow(self, send: Send) -> None:
        """Send all messages to this function, too: of a page, or of a notebook's invisible output.
        Only the last few get them.
        """
        with self.lock:
            self.pages = [*self.pages, send][-MAX_PAGES:]

    def connect(self, send: Send) -> None:
        """Send all messages to this page, too. Start the process that answers, and look at the file
        from now on.
        """
        with self.lock:
            self.follow(send)
            self.supervisor.prepare()
            looks.add(self.look)
            start_watching()

    def close(self) -> None:
        """End the conversation, and its process."""
        looks.discard(self.look)
        with self.lock:
            self.pages.clear()
            self.supervisor.drop()
            self.supervisor.stop()

    def send(self, message: Message, page: Send | None = None) -> None:
        """Send a message to a page, or to all. A page that fails is removed."""
        for send in self.pages if page is None else [page]:
            try:
                send(message)
            except Exception:  # whatever a closed page raises
                self.pages = [other for other in self.pages if other != send]

    def _send_about_text(self, kind: str, page: Send | None = None, **more: Any) -> None:
        """Send a message of a type about the newest text."""
        self.send({"type": kind, "edit": self.edit} | more, page)

    def hear(self, message: Message, page: Send | None = None) -> None:
        """Take a message of a page: ``_hear_text`` takes those of the type "text", and so on.
        ``page`` is connected, if needed.
        """
        with self.lock:
            if page is not None and page not in self.pages:
                self.connect(page)
            try:
                getattr(self, f"_hear_{message['type']}")(message, page)
            except Exception as error:  # a fault of the page, or of the package
                self.send({"type": "trouble", "message": bug_message(error)})

    def _hear_hello(self, _: Message, page: Send | None) -> None:
        """Send a page all that it needs to begin."""
        self.look()
        step = self.step and {
            "targets": asdict(self.step.targets),
            **{name: getattr(self.step, name) for name in STEP_FIELDS},
        }
        self._send_about_text(
            "state",
            page,
            name=self.name,
            file=str(self.file.path),
            text=self.text,
            gap=next(iter(find_gaps(self.text)), 0),
            token=TOKEN.pattern,
            colors=len(SERIES),
            tables=TABLES,
            history=self._history(),
            problem=self.file.problem,
            step=step,
            llvm=HAS_LLVM,
        )

    # -- texts

    def _hear_text(self, message: Message, _: Send | None) -> None:
        """Take a text that was typed."""
        text = replace_surrogates(str(message["text"]))
        self.take_text(str(message["edit"]), text, message.get("base"))

    def _hear_unsent(self, message: Message, _: Send | None) -> None:
        """Keep a text that was based on an older one than the file's."""
        self.edits.keep(replace_surrogates(str(message["text"])), UNSENT_NOTE)
        if not self.edits.problem:  # or else the page keeps the text
            self._acknowledge(str(message["edit"]))

    def take_text(self, edit: str, text: str, base: str | None = None) -> None:
        """Make a text the newest one, and answer it.

        ``base`` is the edit that was changed. If it isn't the last one, the reader hasn't seen the
        last text. "": a draft of an earlier page, made of the file's text.
        """
        with self.lock:
            is_typed_on = base in (None, self.edit)
            is_at_once = bool(base) and not is_typed_on and text != self.text
            self.file.replace(text, is_typed_on=is_typed_on)
            self._begin_text(edit)
            if is_at_once:
                self.send({"type": "trouble", "message": AT_ONCE})
            self._answer_text()

    def load(self, text: str, note: str) -> None:
        """Make a text the newest one that doesn't come from a page. ``note`` says where it comes
        from.
        """
        with self.lock:
            if text != self.text:
                self.file.replace(text, note)
                self._begin_text(f"load-{next(self.numbers)}")

    def _begin_text(self, edit: str) -> None:
        """Give the newest text its name, and send it to the pages. Nothing is known about it: the
        answers to the one before are dropped, and its job.
        """
        self.edit = edit
        self._send_about_text("text", text=self.text)
        self.answers, self.missing_parts, self.element = {}, {*PARTS}, None
        self.supervisor.drop()

    def _hear_restart(self, *_: object) -> None:
        if self.step is not None:
            self.load(self.step.starter, f"step {self.step.name} from its beginning")

    def _hear_line(self, _: Message, page: Send | None) -> None:
        """Show a reader who is stuck one more line of the solution. The history says so."""
        if self.shown_lines and seconds_until_help(self.edits, self.step) == 0.0:
            self.edits.read_changes()
            self.send({"type": "line"} | self.shown_lines.press(self.text), page)

    def _hear_recall(self, message: Message, _: Send | None) -> None:
        for edit in self.edits.rows:
            if edit.number == int(message["entry"]):
                self.load(edit.text, f"edit {edit.number} again")

    def _acknowledge(self, edit: str) -> None:
        self._send_about_text("heard", edit=edit, problem=self.file.problem)

    # -- answers

    def _hear_shown(self, message: Message, page: Send | None) -> None:
        """Answer a text that a page shows."""
        if message["edit"] != self.edit:
            return
        for answer in tuple(self.answers.values()):
            self.send(answer, page)
        if not self.missing_parts:
            self._send_about_text("done", page)
        elif self.supervisor.job is None:
            self._answer_text()

    def _answer_text(self) -> None:
        """Answer the newest text: its faults at once; if it has none, all else by the process."""
        self._acknowledge(self.edit)
        answer = text_answer(self.text, self.name)
        self._take_answer({"type": "answer", "edit": self.edit, "part": "text", **answer})
        if self.missing_parts:
            self.supervisor.ask(self.job(self.missing_parts))
        else:
            self._send_about_text("done")

    def _hear_ask(self, message: Message, page: Send | None) -> None:
        """Ask for a part that the reader wants besides: the terms of an element, LLVM's code,
        or the climb.
        """
        part = message["part"]
        if message["edit"] != self.edit:
            return
        if part == "climb":
            picture = make_own_climb(read_histories(self.file.path.parent)).to_html()
            self._send_about_text("answer", page, part=part, picture=picture)
        elif part in ALL_PARTS and not any("is_last" in answer for answer in self.answers.values()):
            if "element" in message:
                self.element = [int(place) for place in message["element"]]
            self.missing_parts.add(part)
            self.supervisor.ask(self.job(self.missing_parts))

    def answer_here(self) -> None:
        """Check and time the newest text in the calling process: pages ask for the other parts. A
        fault of the package is a warning of the cell, since no page may be there to show it.
        """

        def take(message: Message) -> None:
            if message["type"] == "answer":
                self._take_answer(message)
            elif message["type"] == "trouble":
                warnings.warn(message["message"], stacklevel=2)

        with self.lock:
            if not text_answer(self.text, self.name)["faults"]:
                LocalAnswerer(take).ask(self.job(("code", "verdict", "clocks")))

    def job(self, parts: Collection[str]) -> Message:
        """Return the job to make these parts of the answer to the newest text."""
        correct = (edit.text for edit in reversed(self.edits) if edit.is_correct)
        return self.settings | {
            "edit": self.edit,
            "text": self.text,
            "name": self.name,
            "parts": [part for part in ALL_PARTS if part in parts],
            "known_text": next(correct, self.step.starter if self.step else ""),
            "element": self.element,
        }

    def _take_answer(self, message: Message) -> None:
        """Take a message about the newest text, and send it to the pages."""
        if message["type"] == "done" or "is_last" in message:
            self.missing_parts.clear()
        if message["type"] == "answer":
            self.answers[message["part"]] = message
            self.missing_parts.discard(message["part"])
            if message["part"] == "clocks":
                self._add_judged()
        self.send(message)

    def _add_judged(self) -> None:
        """Add the answered text to the history."""
        clocks = self.answers["clocks"]
        edit = Edit(
            self.text, is_correct=self.answers["verdict"]["is_correct"], note=self.file.note
        )
        if "gflops" in clocks:
            n, *_ = clocks["size"]
            edit = replace(edit, gflops=clocks["gflops"], n=n, bound=clocks["bound"])
        self.file.note = ""
        self.edits.add_judged(edit)

    def _send_history(self) -> None:
        if self.edits.problem:
            self.send({"type": "trouble", "message": self.edits.problem})
        self.send({"type": "history"} | self._history())

    def _history(self) -> Message:
        """Return what a page shows of the history."""
        saved = self.step and saved_edit(self.edits, self.step)
        return {
            "entries": [edit.shown() for edit in self.edits],
            "saved": saved and saved.gflops,
            "wait": seconds_until_help(self.edits, self.step),
        }

    # -- the file

    def look(self) -> None:
        """Let the file and the supervisor look at what has changed outside."""
        with self.lock:
            self.supervisor.look()
            problem = self.file.problem
            if self.file.look():
                self._begin_text(f"file-{next(self.numbers)}")
            elif problem and not self.file.problem:
                self._acknowledge(self.edit)
