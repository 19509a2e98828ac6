"""Jobs for a process that may hang or end: each job is answered or given up."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import partial
from typing import Protocol

from cypresskit.editing.answering import Message

HANDOVER = 5.0  # seconds until a process that is busy with an older text is replaced
LONGEST = 60.0  # seconds for one part of an answer
LONGEST_FIRST = 240.0  # the same while the process may have to compile the engine
LONGEST_COSTS = 180.0  # seconds for the costs of lines
MAX_PROCESSES = 2  # that are given the same jobs
MAX_EARLY_ENDS = 2  # in a row; then a process is only started for a job

OVER = "The process that checks kernels ended at this one, and was restarted. Edit it to try again."
SLOW = "Checking this kernel of {lines} lines timed out. Edit it to try again."
SLOW_COSTS = "Finding the costs of this kernel timed out. Edit it to try again."


class Answerer(Protocol):
    """Answers jobs: ``AnswerProcess``, ``AnswerHere``, or what a test uses instead."""

    def ask(self, job: Message) -> None: ...

    def stop(self) -> None: ...


class Timer(Protocol):
    """A call that is due later, unless it is cancelled."""

    def cancel(self) -> None: ...


Start = Callable[[Callable[[Message], None], Callable[[], None]], Answerer]
Later = Callable[[float, Callable[[], None]], Timer]


class Supervisor:
    """Give jobs to an answerer, and replace it if it hangs or ends.

    All jobs are about the newest text, the one that the last job names in ``edit``. The last of a
    job's ``parts`` identifies it.

    Parameters
    ----------
    hear
        Called with each message about the newest text, and with ``done`` when no job is left.
    give_up
        Called with the reason when the jobs are given up.
    lock
        Held during each call, in whatever thread.
    start
        Starts an answerer, given two functions: for its messages, and for its unexpected end.
    later
        Calls a function after some seconds.
    """

    def __init__(
        self,
        hear: Callable[[Message], None],
        give_up: Callable[[str], None],
        lock: AbstractContextManager,
        start: Start,
        later: Later,
    ) -> None:
        self.hear, self.give_up, self.lock = hear, give_up, lock
        self.start, self.later = start, later
        self.answerer: Answerer | None = None
        self.number = 0  # of answerers that were started: an older one is not heard
        self.early_ends = 0  # of answerers that sent no message, in a row
        self.has_timed = False  # this answerer has timed a kernel
        self.jobs: list[Message] = []
        self.tries = 0  # answerers that were given these jobs
        self.part = ""  # that the answerer works on; "" until it begins
        self.timer: Timer | None = None
        self.deadline = 0  # number of the last deadline: older ones don't count

    def prepare(self) -> Answerer:
        """Start an answerer, if there is none: it takes a second or two."""
        with self.lock:
            if self.answerer is None:
                self.has_timed = False
                self.number += 1
                self.answerer = self.start(
                    partial(self._hear, self.number), partial(self._ended, self.number)
                )
            return self.answerer

    def ask(self, job: Message) -> None:
        """Take a job."""
        with self.lock:
            self.jobs.append(job)
            if len(self.jobs) == 1:
                self.tries = 0
                self._hand_over()
            else:
                self.prepare().ask(job)

    def drop(self) -> None:
        """Drop all jobs: their text is no longer the newest."""
        self.jobs = []
        self._set_deadline()

    def stop(self) -> None:
        """Drop all jobs, and end the answerer."""
        with self.lock:
            self.drop()
            if self.answerer is not None:
                self.answerer.stop()
            self.answerer = None

    def _hand_over(self) -> None:
        """Give all jobs to the answerer."""
        self.tries += 1
        self.part = ""
        answerer = self.prepare()
        self._set_deadline(HANDOVER if self.has_timed else LONGEST_FIRST)
        for job in tuple(self.jobs):
            answerer.ask(job)

    def _hear(self, number: int, message: Message) -> None:
        with self.lock:
            if number != self.number:
                return
            self.early_ends = 0
            if not self.jobs or message.get("edit") != self.jobs[0]["edit"]:
                return
            if message["type"] == "done":
                self._finish(message)
                return
            if message["type"] == "working":
                self._begin(message["part"])
            elif message.get("part") == "clocks":
                self.has_timed = True
            self.hear(message)

    def _begin(self, part: str) -> None:
        self.part = part
        if part == "prices":
            self._set_deadline(LONGEST_COSTS)
        else:
            self._set_deadline(LONGEST if self.has_timed else LONGEST_FIRST)

    def _finish(self, message: Message) -> None:
        self.jobs = [job for job in self.jobs if job["parts"][-1] != message["parts"][-1]]
        if not self.jobs:
            self._set_deadline()
            self.hear({"type": "done", "edit": message["edit"]})

    def _ended(self, number: int) -> None:
        """An answerer ended by itself, perhaps because of its jobs."""
        with self.lock:
            if number != self.number or self.answerer is None:
                return
            self.answerer = None
            self.early_ends += 1
            if not self.jobs:
                self._prepare_next()
            elif self.tries < MAX_PROCESSES:
                self._hand_over()
            else:
                self._end_jobs(OVER)

    def _set_deadline(self, seconds: float = 0.0) -> None:
        """Set the deadline for the answerer's next message; 0: none."""
        if self.timer is not None:
            self.timer.cancel()
        self.timer = None
        self.deadline += 1
        if seconds:
            self.timer = self.later(seconds, partial(self._miss_deadline, self.deadline))

    def _miss_deadline(self, deadline: int) -> None:
        with self.lock:
            if deadline != self.deadline:
                return
            if self.answerer is not None:
                self.answerer.stop()
            self.answerer = None
            if self.part or self.tries >= MAX_PROCESSES:
                self._end_jobs(SLOW_COSTS if self.part == "prices" else SLOW)
            else:
                self._hand_over()

    def _end_jobs(self, reason: str) -> None:
        self.drop()
        self.give_up(reason)
        self._prepare_next()

    def _prepare_next(self) -> None:
        if self.early_ends <= MAX_EARLY_ENDS:
            self.prepare()
