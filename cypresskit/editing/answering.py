"""The process that answers texts, beside the kernel: what takes time, and what might never end.

It hears jobs and says the parts of their answers as they come, messages as those of a student's
bare process (``isolated``). A job that was overtaken by a newer one is dropped between two parts.
Whoever started it may end it at any time: ``AnswerProcess`` is that side.
"""

import os
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import Any, BinaryIO

from cypresskit.child import begin, end, python, read, write
from cypresskit.compiler import forget_code
from cypresskit.editing import measured_answers, pure_answers
from cypresskit.editing.pure_answers import Answer, Signature
from cypresskit.editing.small_product import small_product
from cypresskit.editing.steps import STEPS
from cypresskit.editing.views import view_page
from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import forget_kernels
from cypresskit.kernels.verification import Verification
from cypresskit.timing.simulate import forget_reports

Message = dict[str, Any]
FORGET = 20  # jobs after which what is kept of programs is forgotten
IDLY = 10  # the niceness of what works while nobody types


class Case:
    """A job, and what is known about its text so far: each method makes a part of the answer from
    those before it, or None if there is nothing to be said.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; and the ``parts`` that are
    wanted. ``memory`` is kept from job to job.
    """

    def __init__(self, job: Message, memory: "JobMemory") -> None:
        self.job, self.memory = job, memory
        self.program: Program | None = None
        self.mine: Kernel | None = None
        self.seen: Verification | None = None

    def text(self) -> Answer:
        """Of a long text: a short one is answered by whoever asks."""
        return pure_answers.text_answer(self.job["text"], self.job["name"])[0]

    def code(self) -> Answer | None:
        self.program = assembled(self.job["text"], self.job["name"])
        if self.program is None:
            return None
        answer, code, signatures = pure_answers.code_answer(self.program, self.memory.signatures)
        if code is None:
            self.program = None
        else:
            self.memory.signatures = signatures
        return answer

    def verdict(self) -> Answer | None:
        if self.program is None:
            return None
        try:
            self._judge()
        except (ValueError, TypeError) as error:
            return unknown_launch(error, self.job.get("like"))
        assert self.seen is not None
        small = small_product(self.mine) if self.mine is not None else None
        return measured_answers.verdict_answer(self.seen) | ({"small": small} if small else {})

    def _judge(self) -> Kernel:
        """The kernel that the text is. Raises what ``ck.kernel`` does."""
        if self.mine is None:
            job = self.job
            step = STEPS.get(job.get("step") or "")
            self.mine, self.seen = measured_answers.judged_kernel(
                job["text"],
                job["name"],
                job.get("like"),
                self.memory.right,
                step is not None and step.old_c,
            )
            if self.seen.right:
                self.memory.right = self.mine
        return self.mine

    def clocks(self) -> Answer | None:
        if self.mine is None:
            return None
        return measured_answers.clocks_answer(self.mine, self.job["n"])

    def replay_place(self) -> Sequence[int] | None:
        """The element of which the terms are asked, or the first wrong one, or None."""
        if self.job.get("element"):
            return self.job["element"]
        return self.seen.wrong[:2] if self.seen is not None and self.seen.wrong else None

    def replay(self) -> Answer | None:
        """Of the element that is asked for, or of the first wrong one."""
        place = self.replay_place()
        if place is None:
            return None
        mine = self._judge()
        assert self.seen is not None
        return measured_answers.replay_answer(mine, self.seen, *place)

    def view(self) -> Answer:
        """A view of the kernel, as a page that plays."""
        view = str(self.job.get("view"))
        try:
            return {"view": view, "page": view_page(self._judge(), view)}
        except Exception as error:  # whatever a view finds that it can't show
            last = (str(error).splitlines() or [type(error).__name__])[-1].strip()
            return {"view": view, "problem": f"It can't be played: {last}"}

    def prices(self) -> Answer:
        return measured_answers.prices_answer(self._judge(), self.job["n"])


def assembled(text: str, name: str) -> Program | None:
    """The program, or None if the text has faults."""
    try:
        return assemble(text, name)
    except ILError:
        return None


@dataclass
class JobMemory:
    """What is kept from job to job: the ``signatures`` of the last code, the last kernel that was
    ``right``, and how many ``jobs`` there were.
    """

    signatures: list[Signature] = field(default_factory=list)
    right: Kernel | None = None
    jobs: int = 0

    def count_job(self) -> None:
        """A job is done. From time to time, what the package keeps of programs is forgotten: an
        edited text hardly ever comes back, and a long day has thousands.
        """
        self.jobs += 1
        if self.jobs % FORGET == 0:
            forget_code()
            forget_kernels()
            forget_reports()


def unknown_launch(error: Exception, like: str | None = None) -> Answer:
    """The part "verdict" of a text of which nobody knows how to launch it; ``like`` has been
    tried.
    """
    message = str(error).splitlines()[-1].strip().replace("ck.kernel(", "ck.workbench(")
    message = message.partition(", with block=")[0]
    message = message[:1].upper() + message[1:]
    advice = "The workbench is for kernels that multiply matrices: ck.launch runs any other."
    if like is not None:
        message = message.partition(" Say which kernel")[0]
        advice = f"Nor as {like}. Look at what is stored, and at its address. {advice}"
    row = {"kind": "launch", "line": 0, "column": 1, "length": 1, "message": message}
    row["advice"] = advice
    return {"right": False, "message": "It can't be launched.", "findings": [row]}


class Jobs:
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
        """Whether a job of another text waits."""
        with self.arrived:
            return any(job["edit"] != edit for job in self.waiting)

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
        answer_job(jobs.next(), memory, say, jobs.overtaken)


def answer_job(
    job: Message,
    memory: JobMemory,
    say: Callable[[Message], None],
    overtaken: Callable[[str], bool],
) -> None:
    """Say each part of a job's answer, then that it is done, until it is overtaken."""
    edit = job["edit"]
    case = Case(job, memory)
    makers: dict[str, Callable[[], Answer | None]] = {
        "text": case.text,
        "code": case.code,
        "verdict": case.verdict,
        "clocks": case.clocks,
        "prices": case.prices,
        "replay": case.replay,
        "view": case.view,
    }
    try:
        for part in job["parts"]:
            if overtaken(edit):
                return
            if part not in makers or (part == "replay" and not case.replay_place()):
                continue
            say({"type": "working", "edit": edit, "part": part})
            answer = makers[part]()
            if answer is None:
                break
            say({"type": "answer", "edit": edit, "part": part, **answer})
    except Exception as error:  # a fault of the package: the page says so, and goes on
        say({"type": "trouble", "edit": edit, "message": fault_in_words(error)})
    say({"type": "done", "edit": edit, "parts": job["parts"]})
    memory.count_job()


def fault_in_words(error: Exception) -> str:
    """Why a text has no answer: a fault of the package."""
    return f"This can't be answered, a fault of the package: {type(error).__name__}: {error}"


class AnswerProcess:
    """A process that answers, from outside.

    ``hear`` is called with each message, in a thread of its own; ``ended``, when the process ends
    although nobody ended it. ``idly``: at a low priority.
    """

    def __init__(
        self,
        hear: Callable[[Message], None],
        ended: Callable[[], None],
        idly: bool = False,
    ) -> None:
        self.hear, self.ended = hear, ended
        self.stopped = False
        self.process, self.channel = begin(python(sys.path, __name__))
        if idly:
            with suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, self.process.pid, IDLY)
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
