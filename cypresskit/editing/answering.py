"""Answers to a kernel's text, part by part.

``answer_job`` passes the parts on as they come. A job that a newer text has overtaken is dropped
between two parts. Costs come last, after a pause, and give way to any other job. Nothing here
starts a thread or a process: ``AnswerHere`` answers in the calling process, ``AnswerProcess``
(``answer_process``) in one of its own, which may be ended at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cypresskit.compiler import forget_code
from cypresskit.editing import measured_answers, pure_answers
from cypresskit.editing.pure_answers import Answer, Signature
from cypresskit.editing.small_product import SmallProduct, small_product
from cypresskit.editing.steps import STEPS
from cypresskit.editing.views import view_page
from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import forget_kernels
from cypresskit.kernels.verification import Verification
from cypresskit.timing.costs import Interrupted
from cypresskit.timing.simulate import forget_reports

Message = dict[str, Any]
FORGET = 20  # jobs after which what is kept of programs is forgotten
PAUSE = 1.0  # seconds without another job before lines are priced


class OtherJobs:
    """The jobs that wait beside the one that is being answered: here, none."""

    def overtaken(self, edit: str) -> bool:
        """Return whether a job of another text than ``edit`` waits."""
        return False

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a job waits, or arrives within so many seconds."""
        return False


class Case:
    """A job, and what is known about its text so far: each method makes a part of the answer from
    those before it, or None if there is nothing to be said.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; and the ``parts`` that are
    wanted. ``memory`` is kept from job to job. ``others`` interrupt the pricing of lines.
    """

    def __init__(self, job: Message, memory: "JobMemory", others: OtherJobs) -> None:
        self.job, self.memory, self.others = job, memory, others
        self.program: Program | None = None
        self.mine: Kernel | None = None
        self.seen: Verification | None = None
        self.unpriced = False

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
        small = self.small
        return measured_answers.verdict_answer(self.seen) | (
            {"small": small.answer()} if small else {}
        )

    @cached_property
    def small(self) -> SmallProduct | None:
        return None if self.mine is None else small_product(self.mine)

    def _judge(self) -> Kernel:
        """The kernel that the text is. Raises what ``ck.load_kernel`` does."""
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
        if self.mine is None or self.seen is None:
            return None
        endless = [found for found in self.seen.findings if found.kind == "endless loop"]
        if endless:  # to find it again takes a simulation long
            answer = measured_answers.untimed(ValueError(endless[0].message))
        else:
            answer = measured_answers.clocks_answer(self.mine, self.job["n"])
        self.unpriced = "problem" in answer or not self.seen.right
        return answer

    def replay_place(self) -> Sequence[int] | None:
        """The element of which the terms are asked, or the first wrong one, or None."""
        if self.job.get("element"):
            return self.job["element"]
        if self.seen is None or not self.seen.wrong:
            return None
        small = self.small
        return small.wrong if small and small.wrong else self.seen.wrong[:2]

    def replay(self) -> Answer | None:
        """Of the element that is asked for, or of the first wrong one."""
        place = self.replay_place()
        if place is None:
            return None
        self._judge()
        assert self.seen is not None
        return measured_answers.replay_answer(self.seen, self.small, *place)

    def view(self) -> Answer:
        """A view of the kernel, as a page that plays."""
        view = str(self.job.get("view"))
        try:
            return {"view": view, "page": view_page(self._judge(), view)}
        except Exception as error:  # whatever a view finds that it can't show
            last = (str(error).splitlines() or [type(error).__name__])[-1].strip()
            return {"view": view, "problem": f"It can't be played: {last}"}

    def prices(self) -> Answer | None:
        """Of a correct kernel: what another one costs tells nothing."""
        mine = self._judge()
        if self.unpriced or not (self.seen and self.seen.right):
            return None
        return measured_answers.prices_answer(mine, self.job["n"], self.others.comes)


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
    message = str(error).splitlines()[-1].strip().replace("ck.load_kernel(", "ck.workbench(")
    message = message.partition(", with block=")[0]
    message = message[:1].upper() + message[1:]
    advice = "The workbench is for kernels that multiply matrices: ck.launch runs any other."
    if like is not None:
        message = message.partition(" Say which kernel")[0]
        advice = (
            f"C is also incorrect when launched like {like}. Check what is stored, and at which"
            f" address. {advice}"
        )
    row = {"kind": "launch", "line": 0, "column": 1, "length": 1, "message": message}
    row["advice"] = advice
    return {"right": False, "message": "It can't be launched.", "findings": [row]}


def answer_job(
    job: Message,
    memory: JobMemory,
    say: Callable[[Message], None],
    others: OtherJobs | None = None,
) -> list[str]:
    """Say each part of a job's answer, then that it is done, unless a newer text overtakes it.

    Returns the parts that gave way to other jobs and are still to be made.
    """
    others = others or OtherJobs()
    edit = job["edit"]
    case = Case(job, memory, others)
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
            if others.overtaken(edit):
                return []
            if part == "prices" and not case.unpriced and others.comes(PAUSE):
                return [part]
            if part not in makers or (part == "replay" and not case.replay_place()):
                continue
            say({"type": "working", "edit": edit, "part": part})
            answer = makers[part]()
            if answer is None:
                break
            say({"type": "answer", "edit": edit, "part": part, **answer})
    except Interrupted:
        return ["prices"]
    except Exception as error:  # a fault of the package: the page says so, and goes on
        say({"type": "trouble", "edit": edit, "message": fault_in_words(error)})
    say({"type": "done", "edit": edit, "parts": job["parts"]})
    memory.count_job()
    return []


def fault_in_words(error: Exception) -> str:
    """Why a text has no answer: a fault of the package."""
    return f"This can't be answered, a fault of the package: {type(error).__name__}: {error}"


class AnswerHere:
    """Answers each job at once, in the calling process, without threads or child processes.

    ``hear`` is called with each message before ``ask`` returns. A text that never ends is not
    given up: hosts with processes take ``AnswerProcess``.
    """

    def __init__(self, hear: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self.hear = hear
        self.memory = JobMemory()

    def ask(self, job: Message) -> None:
        """Answer a job."""
        answer_job(job, self.memory, self.hear)

    def stop(self) -> None:
        """Nothing runs beside the caller."""
