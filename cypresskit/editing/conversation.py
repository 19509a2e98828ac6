"""The conversation between pages and answers: which text counts, who works on it, what is kept.

Each text has a name, ``edit``, that its page chose. The newest counts: answers to older ones are
dropped here, and again by the page. What takes time is done by another process
(``answer_process``), so that the notebook's kernel stays free, and stays at all, whatever a text
does.

Nothing waits for ever. A process that is still busy with an older text is ended, one that ends by
itself is begun anew and asked again, and a text that takes too long is given up: whatever happens,
the last text is answered as far as it can be, and then ``done`` is said.
"""

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import Enum
from functools import partial
from typing import Any, Protocol

from cypresskit.editing.answer_process import AnswerProcess
from cypresskit.editing.answering import Message, fault_in_words
from cypresskit.editing.edits import UNWRITTEN, Edit, Edits
from cypresskit.editing.kernel_file import KernelFile, whole_letters
from cypresskit.editing.own_climb import own_climb
from cypresskit.editing.protocol import PARTS
from cypresskit.editing.pure_answers import text_answer, words
from cypresskit.editing.step_files import BEGUN, BROUGHT, fastest_step, histories, kept_edit
from cypresskit.editing.steps import STEPS, WITHIN
from cypresskit.editing.views import VIEWS
from cypresskit.kernels.convention import ELEMENTS

ASKED = ("code", "verdict", "clocks", "replay", "prices")  # "text" is answered here
HANDOVER = 5.0  # seconds after which a process that is busy with an older text is ended
LONGEST = 60.0  # seconds after which a text is given up
FIRST = 240.0  # the same where a process has just begun: it may have to compile the engine
LONGEST_PRICES = 180.0  # seconds after which prices are given up
MOST_PROCESSES = 2  # that are given a text: they end over it, or never begin with it
MOST_EARLY_ENDS = 2  # in a row; then no process is begun before there is a text for it
LONG_TEXT = 50_000  # letters: whether a longer text has faults isn't asked here, but of the process
PAGES = 4  # that hear: of a cell that is run again and again, the older ones are gone
CLIMB = "climb"  # a view that is a picture of all steps
LOOK = 0.4  # seconds between two looks at the file

#: What a pixel kernel's launch puts into its one input.
PLACE = [r"vWinCoord0", "x: column of its texel of C, + 0.5; y: row, + 0.5"]

OVER = "The process that checks kernels ended at this one, and was restarted. Edit it to try again."
SLOW = "Checking this kernel of {lines:,} lines timed out. Edit it to try again."
SLOW_PRICES = "Finding the costs of this kernel timed out. Edit it to try again."
CLOSED = (
    "this workbench has ended, since others were opened on its file. Copy what you need, and run"
    " its cell again."
)


class State(Enum):
    """How far the answers to the text that counts have come."""

    UNASKED = "no page has asked for them"
    SENT = "the process that answers was given the text"
    ANSWERING = "it works on the text"
    RESTED = "nothing more comes"


#: What may follow. Another text leads back to UNASKED from anywhere.
FOLLOWS = {
    State.UNASKED: {State.SENT, State.RESTED},
    State.SENT: {State.SENT, State.ANSWERING, State.RESTED},
    State.ANSWERING: {State.SENT, State.ANSWERING, State.RESTED},
    State.RESTED: set(),
}
OWED = (State.SENT, State.ANSWERING)  # the process owes parts of the text


class Answerer(Protocol):
    """What answers jobs: ``AnswerProcess``, or what a test has in its place."""

    def ask(self, job: Message) -> None: ...

    def stop(self) -> None: ...


class Timer(Protocol):
    """What will be done later, unless it is cancelled."""

    def cancel(self) -> None: ...


Start = Callable[[Callable[[Message], None], Callable[[], None]], Answerer]
Send = Callable[[Message], None]
Act = Callable[[], None]
Later = Callable[[float, Act], Timer]


def later(seconds: float, act: Callable[[], None]) -> Timer:
    """Do something after some seconds, in a thread of its own."""
    timer = threading.Timer(seconds, act)
    timer.daemon = True
    timer.start()
    return timer


class Conversation:
    """Says to pages what they have to know, and hears what they say.

    file : the kernel's text. Other conversations about it follow it as any editor does.
    edits : its history.
    settings : ``like``, ``n`` and ``step`` of every job.
    start : begins a process that answers, given who hears it, and who hears of its end.
    later : does something after some seconds.
    """

    def __init__(
        self,
        file: KernelFile,
        edits: Edits,
        settings: dict[str, Any],
        start: Start = AnswerProcess,
        later: Later = later,
    ) -> None:
        self.file, self.edits, self.settings = file, edits, settings
        self.start, self.later = start, later
        self.name = file.path.name
        self.step = STEPS[settings["step"]] if settings.get("step") else None
        self.lock = threading.RLock()
        self.pages: list[Send] = []
        self.noted: list[Callable[[], None]] = []  # called when a text is judged and timed
        self.text = file.text
        self.edit = "file-0"
        self.files = 0
        self.state = State.UNASKED
        self.timer: Timer | None = None  # of what is due in this state
        self.turn = 0  # of timers: those of older ones come too late
        self.parts: tuple[str, ...] = ASKED
        self.answers: dict[str, Message] = {}
        self.note = ""
        self.history_fails = False
        self.kept = self._kept()
        self.quick: Answerer | None = None
        self.number = 0  # of processes that were begun
        self.early_ends = 0  # of processes that ended before they were ready, in a row
        self.settled = False  # whether the quick process has answered a text
        self.tries = 0  # how many processes were given the current text
        self.more: Timer | None = None  # until a part that a reader asked for besides is given up
        self.watching: threading.Thread | None = None
        self.closed = threading.Event()

    # -- pages

    def connect(self, send: Send) -> None:
        """Say everything to ``send``, too, from now on."""
        with self.lock:
            others = [page for page in self.pages if page != send]
            self.pages = [*others, send][-PAGES:]
            if self.watching is None and not self.closed.is_set():
                self.watching = threading.Thread(target=self._watch, daemon=True)
                self.watching.start()

    def close(self) -> None:
        """End the conversation, and its processes."""
        self.closed.set()
        with self.lock:
            self.pages.clear()
            self._cancel_more()
            self._set_timer()
            self._end_process()

    def say(self, message: Message) -> None:
        """Say something to all pages. One that can't hear any more is forgotten."""
        for send in tuple(self.pages):
            self._say_to(send, message)

    def _say_to(self, send: Send, message: Message) -> None:
        try:
            send(message)
        except Exception:  # whatever a page that is gone raises
            self.pages = [page for page in self.pages if page != send]

    def hear(self, message: Message, page: Send | None = None) -> None:
        """Hear what a page says; unknown messages are ignored. ``page`` hears from now on, if it
        didn't.
        """
        kind = message.get("type") if isinstance(message, dict) else None
        with self.lock:
            if page is not None and page not in self.pages:
                self.connect(page)
            answers: dict[str, Callable[[Message], None]] = {
                "hello": partial(self._hello, page),
                "text": self._take_text,
                "shown": partial(self._shown, page),
                "book": self._book,
                "recall": self._recall,
                "replay": self._replay,
                "play": self._play,
            }
            if str(kind) not in answers:
                return
            try:
                answers[str(kind)](message)
            except (KeyError, TypeError, ValueError, OverflowError, RecursionError):
                self.say({"type": "trouble", "message": "The page said something unknown."})

    def _hello(self, page: Send | None, message: Message) -> None:
        """A page is there: it is told all that it needs to begin. ``unsent``, a text that a page
        had when nobody heard it any more, counts if the file is as it was; else the history has it.
        """
        self.look()
        all_unsent = message.get("unsent")
        unsent = all_unsent.get(str(self.file.path)) if isinstance(all_unsent, dict) else None
        if unsent is not None and (text := whole_letters(str(unsent["text"]))) != self.text:
            if unsent.get("base") == self.text:
                self.put(text, "was on the page when the kernel ended")
            elif self.edits.known(text) is None:
                self._keep(text, UNWRITTEN)
        state = {
            "type": "state",
            "name": self.name,
            "file": str(self.file.path),
            "text": self.text,
            "edit": self.edit,
            "words": self._words(),
            "parts": list(PARTS),
            "history": self._history(),
            "problem": self._problem(),
            "step": self._step_state(),
        }
        if page is None:
            self.say(state)
        else:
            self._say_to(page, state)

    def _step_state(self) -> Message | None:
        """What a page shows of the step, or None."""
        if self.step is None:
            return None
        kept = self._kept()
        return {
            "name": self.step.name,
            "title": self.step.title,
            "idea": self.step.idea,
            "pars": asdict(self.step.pars),
            "within": WITHIN,
            "record": self.step.record,
            "hint": self.step.hint,
            "opens": self.step.opens,
            "guess": self.step.guess,
            "blocks": self.step.blocks,
            "begun": self._begun_with(),
            "views": [[view, VIEWS[view]] for view in self.step.views],
            "kept": None if kept is None else kept.shown(),
            "brought": BROUGHT if kept is not None and kept.note == BROUGHT else "",
        }

    def _kept(self) -> Edit | None:
        """What the step keeps, or None."""
        return None if self.step is None else kept_edit(self.edits, self.step)

    def _begun_with(self) -> str:
        """With which kernel of the reader's the step began; or where the fastest one is, if it
        began with another; or "".
        """
        assert self.step is not None
        first = next(iter(self.edits), None)
        if first is not None and first.note.startswith(BEGUN):
            return f"Begun with {first.note}."
        found = None if self.step.previous else fastest_step(self.file.path.parent)
        if found is None or found[0] == self.step:
            return ""
        step, edit = found
        return f"Your {edit.gflops:,.0f} Gflop/s from step {step.name} are in {step.file}."

    def _words(self) -> Message:
        """What words mean: of a product's launch, also what its constants hold."""
        known = words()
        constants = [
            [f"cb0[{n}] of this launch", rf"cb0\[{n}\]", text] for n, text in enumerate(ELEMENTS)
        ]
        beside = [[rf"cb0\[{n}\]", text] for n, text in enumerate(ELEMENTS)]
        return known | {"others": constants + known["others"], "beside": [PLACE, *beside]}

    def _history(self) -> list[Message]:
        return [edit.shown() for edit in self.edits]

    # -- texts

    def _take_text(self, message: Message) -> None:
        """A page has a new text: it goes into the file, and to the answer process."""
        edit, text = str(message["edit"]), whole_letters(str(message["text"]))
        base, typed = message.get("base"), float(message.get("typed", math.inf))
        if self.closed.is_set():
            self.say(self._heard_message(edit))
        elif self._has_later_text(base, typed / 1000):
            self._keep_unknown(text, "before the file was changed outside")
            self.say(self._heard_message(edit))
            self.say({"type": "text", "text": self.text, "edit": self.edit})
        else:
            self.begin(edit, text, base)

    def _has_later_text(self, base: str | None, typed: float) -> bool:
        """Whether the file has a text that another editor wrote after a reader had ``typed``, in
        seconds since 1970, and that the reader hasn't seen.
        """
        if self.file.written() <= typed:
            return False
        self.look()
        return self.edit.startswith("file-") and base != self.edit

    def begin(self, edit: str, text: str, base: str | None = None) -> None:
        """``text`` is what counts from now on, and is answered.

        ``base`` is the text that was edited. If that isn't the last one, whoever typed hadn't seen
        what stands here: it is kept.
        """
        with self.lock:
            unseen = base not in (None, self.edit)
            if text != self.text and (unseen or self.note):
                self._keep_unknown(self.text, self.note or "changed at the same time")
            self._write(text)
            self._take(edit, text)
            self._answer_text()

    def put(self, text: str, note: str) -> None:
        """Put a text into the file that no page has: of the history, or of the book. Pages show it,
        and ask for its answers.
        """
        with self.lock:
            if self.closed.is_set() or text == self.text:
                return
            self._keep_unknown(self.text, "before another text came")
            self.files += 1
            self._write(text)
            self._take(f"put-{self.files}", text)
            self.note = note

    def _keep_unknown(self, text: str, note: str) -> None:
        """A text makes room for another: the history has it."""
        if text.strip() and self.edits.known(text) is None:
            self._keep(text, note)

    def _shown(self, page: Send | None, message: Message) -> None:
        """A page shows the text that is here, and wants its answers."""
        if message["edit"] != self.edit or self.closed.is_set():
            return
        if self.state is State.UNASKED:
            self._answer_text()
        elif page is not None:
            for answer in tuple(self.answers.values()):
                self._say_to(page, answer)
            if self.state is State.RESTED:
                self._say_to(page, {"type": "done", "edit": self.edit})

    def _book(self, message: Message) -> None:
        """The reader wants the book's text of the step."""
        if self.step is not None:
            self.put(self.step.book, f"the book's {self.step.name}")

    def _take(self, edit: str, text: str) -> None:
        """Take over a text that is in the file, or should be."""
        self.say({"type": "text", "text": text, "edit": edit})
        self.note = ""
        self.edit = edit
        self.text = text
        self.answers = {}
        self.tries = 0
        self._cancel_more()
        self._go(State.UNASKED)

    def _answer_text(self) -> None:
        """Answer the text that counts."""
        edit, text = self.edit, self.text
        self.say(self._heard_message(edit))
        if len(text) > LONG_TEXT:
            self._ask(("text", *ASKED))
            return
        try:
            answer, program = text_answer(text, self.name)
        except Exception as error:  # a fault of the package: the page says so, and goes on
            self.say({"type": "trouble", "edit": edit, "message": fault_in_words(error)})
            self._say_done()
            return
        self._heard({"type": "answer", "edit": edit, "part": "text", **answer})
        if program is None:
            self._rest()
        else:
            self._ask(ASKED)

    def _heard_message(self, edit: str) -> Message:
        problem = self._problem()
        return {"type": "heard", "edit": edit, "saved": not problem, "problem": problem}

    def _problem(self) -> str:
        """Why the text isn't in the file, or ""."""
        if self.closed.is_set():
            return f"Nothing is saved any more: {CLOSED}"
        return self.file.problem

    def _write(self, text: str) -> None:
        """Put a text into the file. One that can't be written stands in the history, and is tried
        again at each look.
        """
        failed = bool(self.file.problem)
        others = self.file.save(text)
        if failed or self.file.problem:
            with self._history_said():
                self.edits.stand_in(text if self.file.problem else None)
        if others is not None:
            self._keep(others, "changed outside")
            advice = "What it held is in the history."
            self.say(
                {"type": "trouble", "message": f"The file was changed at the same time. {advice}"}
            )

    # -- how far the answers have come

    def _go(self, state: State, patience: float = 0.0, act: Act | None = None) -> None:
        """Go on to a state of ``FOLLOWS``. After ``patience`` seconds in it, ``act`` is due."""
        assert state is State.UNASKED or state in FOLLOWS[self.state], (self.state, state)
        self.state = state
        self._set_timer(patience, act)

    def _set_timer(self, patience: float = 0.0, act: Act | None = None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.turn += 1
        if act is not None:
            self.timer = self.later(patience, partial(self._due, self.turn, act))

    def _due(self, turn: int, act: Act) -> None:
        with self.lock:
            if turn == self.turn and not self.closed.is_set():
                act()

    def _say_done(self) -> None:
        """Nothing more comes for the current text."""
        self.say({"type": "done", "edit": self.edit})
        self._rest()

    def _rest(self) -> None:
        self._go(State.RESTED)

    def _end_with(self, message: str) -> None:
        """What the process owed won't come, and why; there is a process for the next text."""
        self._cancel_more()
        self.say({"type": "trouble", "edit": self.edit, "message": message})
        if self.state in OWED:
            self._say_done()
        else:
            self.say({"type": "done", "edit": self.edit})
        if self.early_ends <= MOST_EARLY_ENDS:
            self.prepare()

    # -- the process that answers

    def prepare(self) -> None:
        """Begin the process that answers, which takes a second or two, before it is needed."""
        with self.lock:
            if self.quick is None and not self.closed.is_set():
                self.settled = False
                self.number += 1
                known = self.number
                self.quick = self.start(
                    partial(self._heard_from, known), partial(self._ended, known)
                )

    def _end_process(self) -> None:
        if self.quick is not None:
            self.quick.stop()
        self.quick = None

    def _ended(self, number: int) -> None:
        """A process ended by itself. A text that was owed is asked again, unless it may be what the
        process died of.
        """
        with self.lock:
            if self.closed.is_set():
                return
            if number != self.number or self.quick is None:
                return
            self.quick = None
            self.early_ends += 1
            owed = self.state in OWED
            if owed and self.tries < MOST_PROCESSES:
                self._ask(self.parts)
            elif owed or self.more is not None:
                self._end_with(OVER)
            elif self.early_ends <= MOST_EARLY_ENDS:
                self.prepare()

    def _ask(self, parts: tuple[str, ...]) -> None:
        """Ask for parts of the answer to the current text."""
        self.parts = parts
        self.tries += 1
        self.prepare()
        assert self.quick is not None
        self._go(State.SENT, HANDOVER if self.settled else FIRST, self._hand_over)
        self.quick.ask(self._job(parts))

    def _job(self, parts: tuple[str, ...]) -> Message:
        job = {"edit": self.edit, "text": self.text, "name": self.name, "parts": list(parts)}
        return job | self.settings

    def _begun(self, part: str) -> None:
        """The process works on the current text: it is given up if that takes too long."""
        if self.state not in OWED:
            return
        if part == self.parts[0]:
            self._go(State.ANSWERING, LONGEST, self._give_up)
        elif part == "clocks" and not self.settled:
            self._go(State.ANSWERING, FIRST, self._give_up)
        elif part == "prices":
            self._go(State.ANSWERING, LONGEST_PRICES, partial(self._give_up, SLOW_PRICES))

    def _hand_over(self) -> None:
        """The process hasn't begun with a text, since it is still busy with an older one: another
        one takes over.
        """
        if self.tries >= MOST_PROCESSES:
            self._give_up()
        else:
            self._end_process()
            self._ask(self.parts)

    def _give_up(self, why: str = SLOW) -> None:
        """A text takes too long: nothing more comes for it."""
        self._end_process()
        self._end_with(why.format(lines=self.text.count("\n") + 1))

    def _heard_from(self, number: int, message: Message) -> None:
        """A process says something; one that was replaced counts no longer."""
        with self.lock:
            if number == self.number:
                self.early_ends = 0
                self._heard(message)

    def _heard(self, message: Message) -> None:
        """What concerns an older text is dropped."""
        with self.lock:
            if message.get("edit") != self.edit or self.closed.is_set():
                return
            kind = message["type"]
            if kind == "done":
                if message["parts"] in (["replay"], ["view"]):
                    self._cancel_more()
                else:
                    self._done()
                return
            if kind == "working":
                self._begun(message["part"])
            if kind == "answer" and message["part"] != "view":
                self.answers[message["part"]] = message
                if message["part"] == "clocks":
                    self.settled = True
                    self._note_edit()
            self.say(message)

    def _done(self) -> None:
        """All that was asked for is there."""
        if self.state in OWED:
            self.settled = True
            self._say_done()

    # -- history

    def _note_edit(self) -> None:
        """Keep the text that was answered in the history."""
        code, verdict = self.answers.get("code"), self.answers.get("verdict")
        if code is not None and verdict is not None and "card" in code:
            self.note_edit(code["card"], verdict["right"], self.answers["clocks"])

    def note_edit(self, card: Message, right: bool, clocks: Message) -> None:
        """Keep the text in the history, with these parts of its answer, unless its figures are
        those of the edit before it: whether it is right, its speed, N, what binds it, bundles and
        registers.
        """
        gflops = clocks.get("gflops", 0.0)
        made = Edit(
            number=0,
            text=self.text,
            right=right,
            gflops=gflops,
            n=clocks["size"][0] if gflops else 0,
            bound=clocks.get("bound", ""),
            bundles=card["loop_bundles"],
            registers=card["gprs"],
            wavefronts=card["wavefronts"],
            note=self.note,
        )
        self.note = ""
        self._read_history()
        if not self.edits or _figures(self.edits[-1]) != _figures(made):
            self.add(made)

    def _keep(self, text: str, note: str) -> None:
        """Keep a text of which nothing is known but where it came from."""
        self.add(Edit(0, text, note=note))

    def add(self, edit: Edit) -> None:
        """Keep an edit in the history, and tell pages."""
        with self._history_said():
            self.edits.add(edit)
        self._say_history()

    def _read_history(self) -> None:
        """Read the history, if another workbench has written it."""
        if self.edits.news():
            self._say_history()

    def _say_history(self) -> None:
        """The history has grown: tell pages, and what shows the step's text."""
        self.say({"type": "history", "entries": self._history()})
        if (kept := self._kept()) != self.kept:
            self.kept = kept
            self.say({"type": "step", **(self._step_state() or {})})
        _call(self.noted)

    @contextmanager
    def _history_said(self) -> Iterator[None]:
        """A change to the history: if it can't be written, that is said once."""
        problem = ""
        try:
            yield
        except OSError as error:
            problem = f"The history can't be written: {error.strerror or error}."
        if problem and not self.history_fails:
            self.say({"type": "trouble", "message": problem})
        self.history_fails = bool(problem)

    def _recall(self, message: Message) -> None:
        edit = self.edits.find(int(message["entry"]))
        if edit is not None:
            self.put(edit.text, f"edit {edit.number} again")

    def _replay(self, message: Message) -> None:
        """Which terms went into an element?"""
        place = [int(message["row"]), int(message["column"])]
        self._ask_more(message, "replay", {"element": place})

    def _play(self, message: Message) -> None:
        """A view of the kernel is wanted, or the picture of the climb."""
        view = str(message["view"])
        if view == CLIMB:
            picture = own_climb(histories(self.file.path.parent)).to_html()
            answer = {"type": "answer", "edit": self.edit, "part": "view", "view": view}
            self.say(answer | {"picture": picture})
            return
        self._ask_more(message, "view", {"view": view})

    def _ask_more(self, message: Message, part: str, more: Message) -> None:
        """Ask the process that answers for a part that a reader wants of the current text."""
        if message.get("edit", self.edit) != self.edit or self.closed.is_set():
            return
        self.prepare()
        assert self.quick is not None
        self._cancel_more()
        if self.state not in OWED:
            self.more = self.later(LONGEST, partial(self._give_up_more, self.edit))
        self.quick.ask(self._job((part,)) | more)

    def _give_up_more(self, edit: str) -> None:
        with self.lock:
            if edit == self.edit and self.more is not None and not self.closed.is_set():
                self._give_up()

    def _cancel_more(self) -> None:
        """What was asked for besides is there, or isn't wanted any more."""
        if self.more is not None:
            self.more.cancel()
        self.more = None

    # -- the file

    def _watch(self) -> None:
        """Look at the file from time to time."""
        while not self.closed.wait(LOOK):
            with suppress(Exception):  # the next look comes, whatever this one met
                self.look()

    def look(self) -> None:
        """Take over what somebody else has put into the file; a page that shows it sends it back,
        and is answered. A text that couldn't be written is tried again.
        """
        with self.lock:
            self._read_history()
            text = self.file.news()
            if text is None and self.file.problem:
                self._write(self.text)
                if not self.file.problem:
                    self.say({"type": "saved", "edit": self.edit})
            if text is not None and text != self.text:
                self._keep_unknown(self.text, "before the file was changed outside")
                self.files += 1
                self._take(f"file-{self.files}", text)
                self.note = "changed outside"


def _call(acts: list[Callable[[], None]]) -> None:
    """Do what outputs want done."""
    for act in tuple(acts):
        with suppress(Exception):  # whatever an output that is gone raises
            act()


def _figures(edit: Edit) -> tuple:
    """What makes an edit another than the one before it."""
    return edit.right, edit.gflops, edit.n, edit.bundles, edit.registers, edit.bound
