"""The conversation between pages and answers: which text counts, who works on it, what is kept.

Each text has a name, ``edit``, that its page chose. The newest counts: answers to older ones are
dropped here, and again by the page. What takes time is done by other processes (``answering``), so
that the notebook's kernel stays free, and stays at all, whatever a text does. One of them answers;
the other looks for better code and prices lines when nobody types, and is ended as soon as somebody
does.
"""

import threading
import time
from collections.abc import Callable
from typing import Any, Protocol

from cypresskit.editing.answering import AnswerProcess, Message
from cypresskit.editing.edits import Edit, Edits
from cypresskit.editing.kernel_file import KernelFile
from cypresskit.editing.protocol import PARTS
from cypresskit.editing.pure_answers import comparison, text_answer, words

QUICK = ("code", "verdict", "clocks", "replay")  # "text" is answered here
IDLE = ("best", "prices")
PAUSE = 1.0  # seconds without a new text before the idle parts begin
LONGEST = 60.0  # seconds after which a text is given up
FIRST = 240.0  # the same where a process has just begun: it may have to compile the engine
PAGES = 4  # that hear: of a cell that is run again and again, the older ones are gone
LOOK = 0.4  # seconds between two looks at the file

OVER = "The process that answers ended at this text, and was started anew."
SLOW = "This text had no answer for too long; it was given up."


class Answerer(Protocol):
    """What answers jobs: ``AnswerProcess``, or what a test has in its place."""

    def ask(self, job: Message) -> None: ...

    def stop(self) -> None: ...


Start = Callable[[Callable[[Message], None], Callable[[], None], bool], Answerer]
Send = Callable[[Message], None]


class Conversation:
    """Says to pages what they have to know, and hears what they say.

    file : the kernel's text.
    edits : its history.
    settings : ``like``, ``block``, ``k_step`` and ``n`` of every job.
    start : begins a process that answers, given who hears it, who hears of its end, and whether it
        works idly.
    """

    def __init__(
        self,
        file: KernelFile,
        edits: Edits,
        settings: dict[str, Any],
        start: Start = AnswerProcess,
    ) -> None:
        self.file, self.edits, self.settings, self.start = file, edits, settings, start
        self.name = file.path.name
        self.lock = threading.RLock()
        self.pages: list[Send] = []
        self.text = file.text
        self.edit = "file-0"
        self.files = 0
        self.unanswered = False  # whether the text came from outside while no page was there
        self.answers: dict[str, Message] = {}
        self.note = ""
        self.quick: Answerer | None = None
        self.settled = False  # whether it has answered a text
        self.idle: Answerer | None = None
        self.idle_works = False
        self.pause: threading.Timer | None = None
        self.guard: threading.Timer | None = None
        self.watching: threading.Thread | None = None
        self.closed = threading.Event()

    # -- pages

    def connect(self, send: Send) -> None:
        """Say everything to ``send``, too, from now on."""
        with self.lock:
            self.pages = [*self.pages, send][-PAGES:]
        if self.watching is None:
            self.watching = threading.Thread(target=self._watch, daemon=True)
            self.watching.start()

    def close(self) -> None:
        """End the conversation, and its processes."""
        self.closed.set()
        with self.lock:
            self.pages.clear()
            for timer in (self.pause, self.guard):
                if timer is not None:
                    timer.cancel()
            for process in (self.quick, self.idle):
                if process is not None:
                    process.stop()
            self.quick = self.idle = None

    def say(self, message: Message) -> None:
        """Say something to all pages."""
        for send in tuple(self.pages):
            send(message)

    def hear(self, message: Message) -> None:
        """Hear what a page says; what is none of the protocol's is left alone."""
        kind = message.get("type") if isinstance(message, dict) else None
        heard = {
            "hello": self._hello,
            "text": self._take_text,
            "recall": self._recall,
            "compare": self._compare,
            "size": self._resize,
            "replay": self._replay,
        }.get(str(kind))
        if heard is None:
            return
        with self.lock:
            try:
                heard(message)
            except (KeyError, TypeError, ValueError):
                self.say({"type": "trouble", "message": "The page said something unknown."})

    def _hello(self, message: Message) -> None:
        self.look()
        self.say(
            {
                "type": "state",
                "name": self.name,
                "like": self.settings.get("like") or "",
                "text": self.text,
                "edit": self.edit,
                "words": words(),
                "parts": list(PARTS),
                "n": self.settings.get("n"),
                "history": self._history(),
            }
        )

    def _history(self) -> list[Message]:
        return [edit.shown() for edit in self.edits]

    # -- texts

    def _take_text(self, message: Message) -> None:
        """A page has a new text: it goes into the file, and to whoever answers."""
        self.begin(str(message["edit"]), str(message["text"]))

    def begin(self, edit: str, text: str) -> None:
        """``text`` is what counts from now on."""
        with self.lock:
            if text != self.text:
                if self.unanswered:
                    self._keep(self.text, "changed outside")
                    self.note = ""
                self.say({"type": "text", "text": text, "why": "page", "edit": edit})
            self.unanswered = False
            self.edit, self.text, self.answers = edit, text, {}
            self.say({"type": "heard", "edit": edit, "saved": self._write(text)})
            answer, program = text_answer(text, self.name)
            self._heard({"type": "answer", "edit": edit, "part": "text", **answer})
            self._interrupt()
            if program is not None:
                self._answer()

    def _write(self, text: str) -> bool:
        try:
            others = self.file.write(text)
        except OSError as error:
            problem = f"{self.file.path} can't be written: {error.strerror or error}."
            self.say({"type": "trouble", "message": f"{problem} Your text is kept on this page."})
            return False
        if others is not None:
            self._keep(others, "changed outside")
            advice = "What it held is in the history."
            self.say(
                {"type": "trouble", "message": f"The file was changed at the same time. {advice}"}
            )
        return True

    def _interrupt(self) -> None:
        """What is done for an older text counts no longer."""
        for timer in (self.pause, self.guard):
            if timer is not None:
                timer.cancel()
        if self.idle_works and self.idle is not None:
            self.idle.stop()
            self.idle = None
        self.idle_works = False

    def prepare(self) -> None:
        """Begin the process that answers, which takes a second or two, before it is needed."""
        with self.lock:
            if self.quick is None:
                self.quick = self.start(self._heard, self._quick_ended, False)
                self.settled = False

    def _answer(self) -> None:
        """Ask for the quick parts of the current text."""
        self.prepare()
        assert self.quick is not None
        patience = LONGEST if self.settled else FIRST
        self.quick.ask(self._job(QUICK))
        self._wait_for_answer(patience)

    def _job(self, parts: tuple[str, ...]) -> Message:
        job = {"edit": self.edit, "text": self.text, "name": self.name, "parts": list(parts)}
        return job | self.settings

    def _wait_for_answer(self, patience: float) -> None:
        """Give a text up that has no answer after ``patience``."""
        if self.guard is not None:
            self.guard.cancel()
        self.guard = threading.Timer(patience, self._give_up, (self.edit,))
        self.guard.daemon = True
        self.guard.start()

    def _give_up(self, edit: str) -> None:
        with self.lock:
            if edit != self.edit or self.quick is None or self.closed.is_set():
                return
            self.quick.stop()
            self.quick = None
            self.say({"type": "trouble", "edit": edit, "message": SLOW})
            self._say_done()

    def _quick_ended(self) -> None:
        """The process that answers died: its text isn't asked again."""
        with self.lock:
            if self.closed.is_set():
                return
            self.quick = None
            if self.guard is not None:
                self.guard.cancel()
            self.say({"type": "trouble", "edit": self.edit, "message": OVER})
            self._say_done()

    def _idle_ended(self) -> None:
        with self.lock:
            if self.closed.is_set():
                return
            if self.idle_works:
                self._say_done()
            self.idle, self.idle_works = None, False

    def _say_done(self) -> None:
        """Nothing more comes for the current text."""
        self.say({"type": "done", "edit": self.edit})

    def _heard(self, message: Message) -> None:
        """A process says something: what concerns an older text is dropped."""
        with self.lock:
            if message.get("edit") != self.edit or self.closed.is_set():
                return
            kind = message["type"]
            if kind == "done":
                if message["parts"] != ["replay"]:
                    self._done()
                return
            if kind == "answer":
                self.answers[message["part"]] = message
                if message["part"] == "clocks":
                    self._note_edit()
            self.say(message)

    def _done(self) -> None:
        """All that was asked for is there: the idle parts follow, when nobody types."""
        if self.guard is not None:
            self.guard.cancel()
        if self.idle_works:
            self.idle_works = False
            self._say_done()
            return
        self.settled = True
        if "clocks" in self.answers and "problem" not in self.answers["clocks"]:
            self.pause = threading.Timer(PAUSE, self._begin_idle, (self.edit,))
            self.pause.daemon = True
            self.pause.start()
        else:
            self._say_done()

    def _begin_idle(self, edit: str) -> None:
        with self.lock:
            if edit != self.edit or self.closed.is_set():
                return
            if self.idle is None:
                self.idle = self.start(self._heard, self._idle_ended, True)
            self.idle_works = True
            self.idle.ask(self._job(IDLE) | {"n": self.answers["clocks"]["size"][0]})

    # -- history

    def _note_edit(self) -> None:
        """Keep the text in the history, if its code isn't that of the text before it."""
        code, verdict = self.answers.get("code"), self.answers.get("verdict")
        if code is None or verdict is None or "card" not in code:
            return
        last = self.edits[-1] if len(self.edits) else None
        clocks, card = self.answers["clocks"], code["card"]
        gflops = clocks.get("gflops", 0.0)
        made = Edit(
            number=0,
            text=self.text,
            right=verdict["right"],
            gflops=gflops,
            n=clocks["size"][0] if gflops else 0,
            bound=clocks.get("bound", ""),
            bundles=card["loop_bundles"],
            registers=card["gprs"],
            wavefronts=card["wavefronts"],
            note=self.note,
        )
        self.note = ""
        if last is not None and _figures(last) == _figures(made):
            return
        self._add(made)

    def _keep(self, text: str, note: str) -> None:
        """Keep a text of which nothing is known but where it came from."""
        self._add(Edit(0, text, False, 0.0, 0, "", 0, 0, 0, note))

    def _add(self, edit: Edit) -> None:
        try:
            self.edits.add(edit)
        except OSError as error:
            problem = f"The history can't be written: {error.strerror or error}."
            self.say({"type": "trouble", "message": problem})
        self.say({"type": "history", "entries": self._history()})

    def _recall(self, message: Message) -> None:
        edit = self.edits.find(int(message["entry"]))
        if edit is not None:
            self.note = f"edit {edit.number} again"
            self.say({"type": "text", "text": edit.text, "why": "recall"})

    def _compare(self, message: Message) -> None:
        first, second = (self.edits.find(int(message[name])) for name in ("first", "second"))
        if first is not None and second is not None:
            answer = {"first": first.number, "second": second.number}
            lines = comparison(first.text, second.text)
            self.say({"type": "comparison", **answer, "lines": lines})

    def _resize(self, message: Message) -> None:
        n = int(message["n"])
        if not 8 <= n <= 8192:
            raise ValueError(n)
        self.settings["n"] = n
        self.begin(self.edit, self.text)

    def _replay(self, message: Message) -> None:
        """Which terms went into an element? Asked of the process that answers."""
        if self.quick is not None:
            place = [int(message["row"]), int(message["column"])]
            self.quick.ask(self._job(("replay",)) | {"element": place})

    # -- the file

    def _watch(self) -> None:
        """Look at the file from time to time."""
        while not self.closed.wait(LOOK):
            self.look()

    def look(self) -> None:
        """Take over what somebody else has put into the file; it is answered if a page listens."""
        with self.lock:
            text = self.file.news()
            if text is None or text == self.text:
                return
            if self.edits.known(self.text) is None:
                self._keep(self.text, "before the file was changed outside")
            self.note = "changed outside"
            self.files += 1
            edit = f"file-{self.files}"
            if self.pages:
                self.unanswered = False  # it was kept above
                self.say({"type": "text", "text": text, "why": "file"})
                self.begin(edit, text)
                return
            self._interrupt()
            self.edit, self.text, self.answers = edit, text, {}
            self.unanswered = True

    def wait(self, part: str, timeout: float = 60.0) -> Message | None:
        """The answer's ``part`` for the current text, waiting for it; None if it doesn't come."""
        end = time.monotonic() + timeout
        while time.monotonic() < end:
            with self.lock:
                if part in self.answers:
                    return self.answers[part]
            time.sleep(0.02)
        return None


def _figures(edit: Edit) -> tuple:
    """What makes an edit another than the one before it."""
    return edit.right, edit.gflops, edit.n, edit.bundles, edit.registers, edit.bound
