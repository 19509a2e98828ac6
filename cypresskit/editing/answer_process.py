"""The process that answers texts, beside the notebook's kernel: what takes time, and what might
never end.

It reads jobs and writes the parts of their answers as they come. ``AnswerProcess`` is the side of
the notebook's kernel, which may end the process at any time.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import SimpleQueue
from typing import BinaryIO

from cypresskit.editing.answering import JobMemory, Message, OtherJobs, answer_job
from cypresskit.subprocesses import begin, end, python, read, write


class Jobs(OtherJobs):
    """The jobs that arrive, of which only those of the newest text count."""

    def __init__(self, stream: BinaryIO) -> None:
        self.waiting: list[Message] = []
        self.arrived = threading.Condition()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: BinaryIO) -> None:
        with suppress(OSError, ValueError):
            while job := read(stream):
                with self.arrived:
                    self.waiting.append(job)
                    self.arrived.notify()
        os._exit(0)  # whoever asked is gone

    def overtaken(self, edit: str) -> bool:
        with self.arrived:
            return any(job["edit"] != edit for job in self.waiting)

    def comes(self, seconds: float = 0.0) -> bool:
        with self.arrived:
            return self.arrived.wait_for(lambda: bool(self.waiting), seconds)

    def put_back(self, job: Message) -> None:
        """Let a job that gave way wait for the others; ``next`` drops it if a newer text came."""
        with self.arrived:
            self.waiting.insert(0, job)

    def next(self) -> Message:
        """The next job of the newest text, waiting for one; those of older texts are dropped."""
        with self.arrived:
            self.arrived.wait_for(lambda: self.waiting)
            newest = self.waiting[-1]["edit"]
            self.waiting = [job for job in self.waiting if job["edit"] == newest]
            return self.waiting.pop(0)


def main() -> None:
    """Answer jobs from the socket whose number is the last argument, until it ends."""
    channel = socket.socket(fileno=int(sys.argv[-1]))
    say = partial(write, channel.makefile("wb"))
    jobs = Jobs(channel.makefile("rb"))
    memory = JobMemory()
    say({"type": "ready"})
    while True:
        job = jobs.next()
        if left := answer_job(job, memory, say, jobs):
            jobs.put_back(job | {"parts": left})


class AnswerProcess:
    """A process that answers, from outside.

    ``hear`` is called with each message, in a thread of its own; ``ended``, when the process ends
    although nobody ended it.
    """

    def __init__(self, hear: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self.hear, self.ended = hear, ended
        self.stopped = False
        self.process, self.channel = begin(python(sys.path, __name__))
        self.jobs: SimpleQueue[Message | None] = SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()
        threading.Thread(target=self._write, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError, ValueError), self.channel.makefile("rb") as stream:
            while message := read(stream):
                with suppress(Exception):  # what one answer meets doesn't end all others
                    self.hear(message)
        self.process.wait()
        self.channel.close()
        self.jobs.put(None)
        if not self.stopped:
            self.ended()

    def _write(self) -> None:
        """Send the jobs, in a thread of its own: a process that is busy may not read for long."""
        with suppress(OSError, ValueError), self.channel.makefile("wb") as stream:
            while (job := self.jobs.get()) is not None:
                write(stream, job)

    def ask(self, job: Message) -> None:
        """Send a job, without waiting; a process that is gone says so by ``ended``."""
        self.jobs.put(job)

    def stop(self) -> None:
        """End the process at once."""
        self.stopped = True
        end(self.process)
        self.jobs.put(None)
