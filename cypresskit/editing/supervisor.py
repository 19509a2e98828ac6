"""Jobs for a process that may hang or end: the last one is answered or given up."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from itertools import count

from cypresskit.editing.answer_process import AnswerProcess
from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.protocol import Message

HANDOVER_SECONDS = 5.0  # until a process that is busy with an older text is replaced
MAX_SILENCE_SECONDS = 240.0  # before a message: the first part may have to compile the engine
MAX_TRIES = 2  # processes that are given the same job

NO_PROCESS = (
    "The process that checks kernels couldn't start, or ended at this one. Edit it to try again."
)
NO_ANSWER = "Checking this kernel took too long. Edit it to try again."

Answerer = AnswerProcess | LocalAnswerer
Start = Callable[[Callable[[Message], None]], Answerer]


class Supervisor:
    """Give jobs to an answerer, and replace it if it hangs or ends.

    Each job takes the place of the one before. Only messages about the last one are heard: the
    answerer repeats its ``number``.

    Parameters
    ----------
    send
        Called with each message about the last job. After the last one comes ``done``; ``trouble``
        before it says why the job was given up.
    lock
        Held by each caller, and while an answerer's thread calls.
    start
        Starts an answerer, given a function for its messages.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        send: Callable[[Message], None],
        lock: AbstractContextManager,
        start: Start,
        clock: Callable[[], float],
    ) -> None:
        self.send, self.lock = send, lock
        self.start, self.clock = start, clock
        self.answerer: Answerer | None = None
        self.has_started = False  # this answerer has sent a message
        self.job: Message | None = None
        self.numbers = count(1)  # of jobs that were handed over
        self.tries = 0  # answerers that were given jobs about this text
        self.is_begun = False  # the answerer works on them
        self.deadline = math.inf  # by the clock, for the answerer's next message

    def prepare(self) -> None:
        """Start an answerer, if there is none: it takes a second or two."""
        if self.answerer is None:
            self.has_started = False
            with suppress(OSError):  # no process can be started now: ``look`` tries again
                self.answerer = self.start(self._hear)

    def ask(self, job: Message) -> None:
        """Take a job. One that is dropped was about another text."""
        self.look()
        is_first = self.job is None
        self.job = job
        if is_first:
            self.tries = 0
            self._begin()
        else:
            self._hand_over()

    def drop(self) -> None:
        """Drop the job: its text is no longer the newest."""
        self.job = None
        self.deadline = math.inf

    def stop(self) -> None:
        """End the answerer."""
        if self.answerer is not None:
            self.answerer.stop()
        self.answerer = None

    def look(self) -> None:
        """Replace an answerer that has ended, perhaps because of its job, or that has missed its
        deadline.
        """
        is_alive = self.answerer is not None and self.answerer.is_alive
        if is_alive and self.clock() < self.deadline:
            return
        self.stop()
        if self.job is None:
            return
        if self.tries < MAX_TRIES and not (is_alive and self.is_begun):
            self._begin()
            return
        about = {"edit": self.job["edit"]}
        self.drop()
        self.send(about | {"type": "trouble", "message": NO_ANSWER if is_alive else NO_PROCESS})
        self.send(about | {"type": "done"})

    def _begin(self) -> None:
        """Give the job to an answerer that hasn't had one about this text."""
        self.tries += 1
        self.is_begun = False
        self.prepare()
        # One that has started may be busy with an older text.
        seconds = HANDOVER_SECONDS if self.has_started else MAX_SILENCE_SECONDS
        self.deadline = self.clock() + seconds
        self._hand_over()

    def _hand_over(self) -> None:
        assert self.job is not None
        self.job = self.job | {"number": next(self.numbers)}
        if self.answerer is not None:
            self.answerer.ask(self.job)

    def _hear(self, message: Message) -> None:
        with self.lock:
            if self.job is None or message["job"] != self.job["number"]:
                return
            self.has_started = True
            if message["type"] == "done":
                self.drop()
            elif message["type"] == "working":
                self.is_begun = True
                self.deadline = self.clock() + MAX_SILENCE_SECONDS
            self.send(message)
