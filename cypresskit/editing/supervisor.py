"""Jobs for a process that may hang or end: each job is answered or given up."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import partial

from cypresskit.editing.answer_process import AnswerProcess
from cypresskit.editing.answering import AnswerHere, Message

HANDOVER = 5.0  # seconds until a process that is busy with an older text is replaced
LONGEST = 240.0  # seconds to start, and for one part: the first may have to compile the engine
MAX_TRIES = 2  # processes that are given the same jobs

OVER = "The process that checks kernels ended at this one. Edit it to try again."
SLOW = "Checking this kernel took too long. Edit it to try again."

Answerer = AnswerProcess | AnswerHere
Start = Callable[[Callable[[Message], None]], Answerer]


class Supervisor:
    """Give jobs to an answerer, and replace it if it hangs or ends.

    All jobs are about the newest text, the one that the last job names in ``edit``. Jobs whose last
    of ``parts`` is the same are answered in their order.

    Parameters
    ----------
    hear
        Called with each message about the newest text. After the last one comes ``done``;
        ``trouble`` before it says why jobs were given up.
    lock
        Held by each caller, and while an answerer's thread calls.
    start
        Starts an answerer, given a function for its messages.
    clock
        Returns the time in seconds.
    """

    def __init__(
        self,
        hear: Callable[[Message], None],
        lock: AbstractContextManager,
        start: Start,
        clock: Callable[[], float],
    ) -> None:
        self.hear, self.lock = hear, lock
        self.start, self.clock = start, clock
        self.answerer: Answerer | None = None
        self.number = 0  # of answerers that were started: only the last one is heard
        self.has_started = False  # this answerer has sent a message
        self.jobs: list[Message] = []
        self.tries = 0  # answerers that were given these jobs
        self.part = ""  # that the answerer works on; "" until it begins
        self.deadline = math.inf  # by the clock, for the answerer's next message

    def prepare(self) -> None:
        """Start an answerer, if there is none: it takes a second or two."""
        if self.answerer is None:
            self.number += 1
            self.has_started = False
            with suppress(OSError):  # no process can be started now: ``look`` tries again
                self.answerer = self.start(partial(self._hear, self.number))

    def ask(self, job: Message) -> None:
        """Take a job."""
        self.look()
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self.tries = 0
            self._hand_over()
        elif self.answerer is not None:
            self.answerer.ask(job)

    def drop(self) -> None:
        """Drop all jobs: their text is no longer the newest."""
        self.jobs = []
        self.deadline = math.inf

    def stop(self) -> None:
        """End the answerer."""
        if self.answerer is not None:
            self.answerer.stop()
        self.answerer = None

    def look(self) -> None:
        """Replace an answerer that has ended, perhaps because of its jobs, or that has missed its
        deadline.
        """
        is_alive = self.answerer is not None and self.answerer.is_alive
        if is_alive and self.clock() < self.deadline:
            return
        self.stop()
        if not self.jobs:
            return
        if self.tries < MAX_TRIES and not (is_alive and self.part):
            self._hand_over()
            return
        edit = self.jobs[0]["edit"]
        self.drop()
        self.hear({"type": "trouble", "edit": edit, "message": SLOW if is_alive else OVER})
        self.hear({"type": "done", "edit": edit})

    def _hand_over(self) -> None:
        """Give all jobs to the answerer."""
        self.tries += 1
        self.part = ""
        self.prepare()
        # One that has started may be busy with an older text.
        self.deadline = self.clock() + (HANDOVER if self.has_started else LONGEST)
        for job in tuple(self.jobs):
            if self.answerer is not None:
                self.answerer.ask(job)

    def _hear(self, number: int, message: Message) -> None:
        with self.lock:
            if number != self.number:
                return
            self.has_started = True
            if not self.jobs or message.get("edit") != self.jobs[0]["edit"]:
                return
            if message["type"] == "done":
                last = message["parts"][-1]
                ended = [job for job in self.jobs if job["parts"][-1] == last]
                for job in ended[:1]:
                    self.jobs.remove(job)
                if self.jobs:
                    return
                self.deadline = math.inf
                message = {"type": "done", "edit": message["edit"]}
            elif message["type"] == "working":
                self.part = message["part"]
                self.deadline = self.clock() + LONGEST
            self.hear(message)
