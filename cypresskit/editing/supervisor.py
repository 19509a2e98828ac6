"""Jobs for a process that may hang or end: each job is answered or given up."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager

from cypresskit.editing.answer_process import AnswerProcess
from cypresskit.editing.answering import AnswerHere, Message

HANDOVER = 5.0  # seconds until a process that is busy with an older text is replaced
LONGEST = 240.0  # seconds for one part of an answer; the first may have to compile the engine
MAX_PROCESSES = 2  # that are given the same jobs

OVER = "The process that checks kernels ended at this one. Edit it to try again."
SLOW = "Checking this kernel took longer than four minutes. Edit it to try again."


Answerer = AnswerProcess | AnswerHere
Start = Callable[[Callable[[Message], None]], Answerer]


class Supervisor:
    """Give jobs to an answerer, and replace it if it hangs or ends.

    All jobs are about the newest text, the one that the last job names in ``edit``. The last of a
    job's ``parts`` identifies it.

    Parameters
    ----------
    hear
        Called with each message about the newest text, and with ``done`` when no job is left: each
        is answered, or given up, with the reason in ``trouble``.
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
        self.has_timed = False  # an answerer has timed a kernel: the engine is compiled
        self.jobs: list[Message] = []
        self.tries = 0  # answerers that were given these jobs
        self.part = ""  # that the answerer works on; "" until it begins
        self.deadline = math.inf  # by the clock, for the answerer's next message

    def prepare(self) -> Answerer:
        """Start an answerer, if there is none: it takes a second or two."""
        if self.answerer is None:
            self.answerer = self.start(self._hear)
        return self.answerer

    def ask(self, job: Message) -> None:
        """Take a job."""
        self.look()
        self.jobs.append(job)
        if len(self.jobs) == 1:
            self.tries = 0
            self._hand_over()
        else:
            self.prepare().ask(job)

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
        if self.answerer is None:
            return
        alive = self.answerer.alive
        if alive and self.clock() < self.deadline:
            return
        self.stop()
        if self.jobs and (self.tries >= MAX_PROCESSES or (alive and self.part)):
            edit = self.jobs[0]["edit"]
            self.drop()
            self.hear({"type": "trouble", "edit": edit, "message": SLOW if alive else OVER})
            self.hear({"type": "done", "edit": edit})
        elif self.jobs:
            self._hand_over()

    def _hand_over(self) -> None:
        """Give all jobs to the answerer."""
        self.tries += 1
        self.part = ""
        is_busy = self.has_timed and self.tries == 1  # else it may be starting, or compiling
        self.deadline = self.clock() + (HANDOVER if is_busy else LONGEST)
        answerer = self.prepare()
        for job in tuple(self.jobs):
            answerer.ask(job)

    def _hear(self, message: Message) -> None:
        with self.lock:
            if not self.jobs or message.get("edit") != self.jobs[0]["edit"]:
                return
            kind, part = message["type"], message.get("part", "")
            if kind == "done":
                self.jobs = [job for job in self.jobs if job["parts"][-1] != message["parts"][-1]]
                if self.jobs:
                    return
                self.deadline = math.inf
                message = {"type": "done", "edit": message["edit"]}
            elif kind == "working":
                self.part = part
                self.deadline = self.clock() + LONGEST
            elif part == "clocks":
                self.has_timed = True
            self.hear(message)
