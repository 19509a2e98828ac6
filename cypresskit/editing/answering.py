"""Answers to a kernel's text, part by part.

``answer_job`` sends the parts one by one. It stops as soon as a newer text waits. Costs come last,
after a pause, and are interrupted by any other job. Nothing here starts a thread or a process:
``AnswerHere`` answers in the calling process, ``AnswerProcess`` (``answer_process``) in a process
of its own, which may be ended at any time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from cypresskit.compiler import forget_code
from cypresskit.editing import dynamic_answers, static_answers
from cypresskit.editing.small_product import SmallProduct, small_product
from cypresskit.editing.static_answers import Answer, Signature
from cypresskit.editing.steps import STEPS
from cypresskit.editing.views import view_page
from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import Kernel
from cypresskit.kernels.own import forget_kernels
from cypresskit.kernels.verification import Verification
from cypresskit.timing.costs import Interrupted
from cypresskit.timing.simulate import forget_reports

Message = dict[str, Any]
FORGET = 20  # jobs after which caches are cleared
PAUSE = 1.0  # seconds without another job before costs are computed


class OtherJobs:
    """The jobs that wait while one is answered: here, none."""

    def overtaken(self, edit: str) -> bool:
        """Return whether a job of another text than ``edit`` waits."""
        return False

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a job waits, or arrives within ``seconds``."""
        return False


class Case:
    """A job, and what is known about its text so far.

    Each method makes a part of the answer from those before it. None ends the answer.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; the ``parts`` to make; and
    for some parts, an ``element`` of C or a ``view``.
    """

    def __init__(self, job: Message, memory: "JobMemory", others: OtherJobs) -> None:
        self.job, self.memory, self.others = job, memory, others
        self.program: Program | None = None
        self.mine: Kernel | None = None
        self.seen: Verification | None = None
        self.unpriced = False

    def text(self) -> Answer:
        """The conversation makes this part itself, except for a long text."""
        return static_answers.text_answer(self.job["text"], self.job["name"])[0]

    def code(self) -> Answer | None:
        self.program = assembled(self.job["text"], self.job["name"])
        if self.program is None:
            return None
        answer, code, signatures = static_answers.code_answer(self.program, self.memory.signatures)
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
        return dynamic_answers.verdict_answer(self.seen) | (
            {"small": small.answer()} if small else {}
        )

    @cached_property
    def small(self) -> SmallProduct | None:
        return None if self.mine is None else small_product(self.mine)

    def _judge(self) -> Kernel:
        """Return the kernel. Raises what ``ck.load_kernel`` does."""
        if self.mine is None:
            job = self.job
            step = STEPS.get(job.get("step") or "")
            self.mine, self.seen = dynamic_answers.judged_kernel(
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
            answer = dynamic_answers.untimed(ValueError(endless[0].message))
        else:
            answer = dynamic_answers.clocks_answer(self.mine, self.job["n"])
        self.unpriced = "problem" in answer or not self.seen.right
        return answer

    def replay_place(self) -> Sequence[int] | None:
        """The element in the job, or the first incorrect one, or None."""
        if self.job.get("element"):
            return self.job["element"]
        if self.seen is None or not self.seen.wrong:
            return None
        small = self.small
        return small.wrong if small and small.wrong else self.seen.wrong[:2]

    def replay(self) -> Answer | None:
        """The terms of the element in the job, or of the first incorrect one."""
        place = self.replay_place()
        if place is None:
            return None
        self._judge()
        assert self.seen is not None
        return dynamic_answers.replay_answer(self.seen, self.small, *place)

    def view(self) -> Answer:
        """A view of the kernel, as a page that plays; or a problem."""
        view = str(self.job.get("view"))
        try:
            return {"view": view, "page": view_page(self._judge(), view)}
        except Exception as error:  # whatever a view can't show
            last = (str(error).splitlines() or [type(error).__name__])[-1].strip()
            return {"view": view, "problem": f"It can't be played: {last}"}

    def prices(self) -> Answer | None:
        """Costs are computed for a correct kernel only."""
        mine = self._judge()
        if self.unpriced or not (self.seen and self.seen.right):
            return None
        return dynamic_answers.prices_answer(mine, self.job["n"], self.others.comes)


def assembled(text: str, name: str) -> Program | None:
    """Return the program, or None if the text has faults."""
    try:
        return assemble(text, name)
    except ILError:
        return None


@dataclass
class JobMemory:
    """What is remembered between jobs."""

    signatures: list[Signature] = field(default_factory=list)  # of the last code
    right: Kernel | None = None  # the last correct kernel
    jobs: int = 0  # how many there were

    def count_job(self) -> None:
        """Count a finished job, and now and then clear the package's caches: an edited text hardly
        ever comes back.
        """
        self.jobs += 1
        if self.jobs % FORGET == 0:
            forget_code()
            forget_kernels()
            forget_reports()


def unknown_launch(error: Exception, like: str | None = None) -> Answer:
    """Return the part "verdict" of a text for which no launch is known; ``like`` was tried."""
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
    """Send each part of a job's answer, then "done", unless a newer text waits.

    Returns the parts that other jobs have interrupted, and that are still to be made.
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
    except Exception as error:  # a fault of the package
        say({"type": "trouble", "edit": edit, "message": fault_in_words(error)})
    say({"type": "done", "edit": edit, "parts": job["parts"]})
    memory.count_job()
    return []


def fault_in_words(error: Exception) -> str:
    """Return the message for a fault of the package."""
    return f"This kernel can't be answered: a bug in cypresskit. {type(error).__name__}: {error}"


class AnswerHere:
    """Answers each job at once, in the calling process, without threads or child processes.

    ``hear`` is called with each message before ``ask`` returns. A text that never ends is not
    given up.
    """

    def __init__(self, hear: Callable[[Message], None], ended: Callable[[], None]) -> None:
        self.hear = hear
        self.memory = JobMemory()

    def ask(self, job: Message) -> None:
        """Answer a job."""
        answer_job(job, self.memory, self.hear)

    def stop(self) -> None:
        """Do nothing: no process was started."""
