"""A process beside the notebook's kernel that answers jobs: they take time, or might never end.

``main`` runs in that process. ``AnswerProcess`` is the notebook's side, which may end the process
at any time.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from cypresskit.editing.answering import LocalAnswerer
from cypresskit.editing.protocol import Message
from cypresskit.subprocesses import (
    kill_process,
    python_command,
    read_message,
    start_process,
    write_message,
)


class StreamAnswerer(LocalAnswerer):
    """Answers the newest job of a stream: each takes the place of those before."""

    def __init__(self, send: Callable[[Message], None], stream: BinaryIO) -> None:
        super().__init__(send)
        self.newest_job: Message | None = None  # that isn't begun
        self.arrival = threading.Condition()
        threading.Thread(target=self._read, args=(stream,), daemon=True).start()

    def _read(self, stream: BinaryIO) -> None:
        with suppress(OSError, ValueError):
            while job := read_message(stream):
                with self.arrival:
                    self.newest_job = job
                    self.arrival.notify()
        os._exit(0)  # the notebook's kernel has ended

    def has_message(self, seconds: float | None = 0.0) -> bool:
        with self.arrival:
            return self.arrival.wait_for(lambda: self.newest_job is not None, seconds)

    def work(self) -> None:
        """Wait for a job, and answer it."""
        self.has_message(None)
        with self.arrival:
            job, self.newest_job = self.newest_job, None
        if job is not None:
            self.ask(job)


def main() -> None:
    """Answer jobs from the socket whose number is the last argument, until it is closed."""
    channel = socket.socket(fileno=int(sys.argv[-1]))
    send = partial(write_message, channel.makefile("wb"))
    answerer = StreamAnswerer(send, channel.makefile("rb"))
    while True:
        answerer.work()


class AnswerProcess:
    """A process that answers jobs.

    Parameters
    ----------
    send
        Called with each message, in another thread.
    """

    def __init__(self, send: Callable[[Message], None]) -> None:
        self.send = send
        self.process, self.channel = start_process(python_command(sys.path, __name__))
        self.writer = self.channel.makefile("wb")
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        with suppress(OSError, ValueError), self.channel.makefile("rb") as stream:
            while message := read_message(stream):
                with suppress(Exception):  # one answer's error doesn't end the others
                    self.send(message)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def ask(self, job: Message) -> None:
        """Send a job. A thread there reads it at once, even while another computes."""
        with suppress(OSError, ValueError):
            write_message(self.writer, job)

    def stop(self) -> None:
        """End the process at once."""
        kill_process(self.process)
        self.channel.close()
        with suppress(OSError):
            self.writer.close()
