"""Answers to a kernel's text, part by part.

``AnswerHere`` sends the parts one by one. It stops as soon as a newer text waits. Costs come last,
after a pause, and are interrupted by any other job. Nothing here starts a thread or a process:
``AnswerProcess`` (``answer_process``) has a process of its own, which may be ended at any time.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from cypresskit.diagnosis.verification import Verification
from cypresskit.editing import dynamic_answers, static_answers
from cypresskit.editing.changed_lines import LineFault, find_changed_fault, lead_to_fault
from cypresskit.editing.leading import next_sentence
from cypresskit.editing.small_product import SmallProduct, small_product
from cypresskit.editing.static_answers import Part, last_line
from cypresskit.editing.steps import STEPS
from cypresskit.il import ILError
from cypresskit.kernels import Kernel
from cypresskit.kernels.catalogue import assembled
from cypresskit.timing.costs import Interrupted, line_costs

Message = dict[str, Any]
UNSET = ", which was never set"  # in a finding
PAUSE = 1.0  # seconds without another job before costs are computed


class Case:
    """A job, and what is known about its text so far.

    Each method is named like a part of the answer, and makes it. None ends the answer.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; a ``known`` text, from
    which the faulty lines differ; the ``parts`` to make; and for "replay", perhaps an ``element``
    of C.
    """

    def __init__(self, job: Message, answerer: "AnswerHere") -> None:
        self.job, self.answerer = job, answerer
        self.step = STEPS.get(job.get("step") or "")
        self.whole = self.step is not None and self.step.whole
        self.before = answerer.right  # the last correct kernel
        self.ended = False  # no more parts can be made

    @cached_property
    def seen(self) -> Verification:
        """Whether the text is correct, with its kernel. Raises what ``ck.load_kernel`` does."""
        job, step = self.job, self.step
        old_c = step is not None and step.old_c
        seen = dynamic_answers.judged_kernel(job["text"], job["name"], job.get("like"), old_c)
        if seen.right:
            self.answerer.right = seen.kernel
        return seen

    @cached_property
    def known(self) -> str:
        """The last correct text, or the one that the step starts from."""
        return self.before.text if self.before else self.job.get("known", "")

    @cached_property
    def fault(self) -> LineFault | None:
        """The fault among the lines that were changed since then."""
        return find_changed_fault(self.seen, self.known)

    @cached_property
    def leads(self) -> str:
        """What an incomplete kernel doesn't do yet, if the step leads its reader; or ""."""
        return next_sentence(self.seen) if self.step is not None and self.step.leads else ""

    @cached_property
    def small(self) -> SmallProduct | None:
        return small_product(self.seen.kernel)

    def text(self) -> Part:
        return static_answers.text_answer(self.job["text"], self.job["name"])

    def code(self) -> Part | None:
        try:
            program = assembled(self.job["text"], self.job["name"])
        except ILError:
            return None
        answer = static_answers.code_answer(program)
        self.ended = "refusal" in answer
        return answer

    def verdict(self) -> Part:
        try:
            answer = dynamic_answers.verdict_answer(self.seen)
        except (ValueError, TypeError) as error:
            self.ended = True
            return unknown_launch(error)
        if self.seen.findings and self.fault:
            named = {"kind": "changed", **self.fault._asdict()}
            answer |= {"message": self.fault.message, "findings": [named, *answer["findings"]]}
        if self.leads:
            answer |= {"message": self.leads}
        return answer | {"small": self.small and self.small.answer()}

    def clocks(self) -> Part:
        answer = dynamic_answers.clocks_answer(self.seen, self.job["n"], self.whole)
        self.ended = "problem" in answer
        return answer

    def replay_place(self) -> Sequence[int]:
        """The element in the job, or the first incorrect one, or none."""
        if "element" in self.job or not self.seen.wrong:
            return self.job.get("element", ())
        return (self.small and self.small.wrong) or self.seen.wrong[:2]

    def replay(self) -> Part:
        """The terms of this element; first of its notes, the fault among the changed lines. If a
        register was never set, that is said first.
        """
        answer = dynamic_answers.replay_answer(self.seen, self.small, *self.replay_place())
        notes = answer.get("notes", ())
        unset = [each for each in self.seen.findings if each.message.endswith(UNSET)]
        if notes and unset and not self.fault:
            first = unset[0]
            notes = [f"Line {first.line} uses {first.element}{UNSET}. {first.advice}"]
        if notes and (not self.leads or "correct" in self.leads):
            terms = [(term["right"], term["lines"]) for term in answer["terms"]]
            found = lead_to_fault(self.fault, notes, terms, self.known, self.seen.kernel)
            notes, answer["line"] = found
        if self.leads:
            notes = [self.leads, *notes]
        return answer | ({"notes": notes} if notes else {})

    def costs(self) -> Part | None:
        """Costs are computed for a correct kernel only."""
        if not self.seen.right:
            return None
        report = dynamic_answers.report_at(self.seen.kernel, self.job["n"], self.whole)
        costs = line_costs(report, unless=self.answerer.comes)
        return dynamic_answers.costs_answer(costs)


def unknown_launch(error: Exception) -> Part:
    """Return the part "verdict" of a text for which no launch is known."""
    message = last_line(error).replace("ck.load_kernel(", "ck.workbench(")
    message = message[:1].upper() + message[1:]
    advice = "The workbench is for kernels that multiply matrices: ck.launch runs any other."
    row = {"kind": "launch", "message": message, "advice": advice}
    return {"right": False, "message": "It can't be launched.", "findings": [row]}


class AnswerHere:
    """Answers jobs in the calling process, without threads or child processes.

    A text that never ends is not given up.

    Parameters
    ----------
    hear
        Called with each message.
    """

    is_alive = True

    def __init__(self, hear: Callable[[Message], None]) -> None:
        self.hear = hear
        self.right: Kernel | None = None  # the last correct kernel
        self.left: Message | None = None  # a job that was interrupted

    def overtaken(self, edit: str) -> bool:
        """Return whether a job of another text than ``edit`` waits: here, none does."""
        return False

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a job waits, or arrives within ``seconds``: here, none does."""
        return False

    def ask(self, job: Message) -> None:
        """Send each part of a job's answer, then "done", unless a newer text waits."""
        edit = job["edit"]
        case = Case(job, self)
        if self.left and self.left["edit"] != edit:
            self.left = None
        try:
            for part in job["parts"]:
                if self.overtaken(edit):
                    return
                if part == "costs" and case.seen.right and self.comes(PAUSE):
                    raise Interrupted
                if part == "replay" and not case.replay_place():
                    continue
                self.hear({"type": "working", "edit": edit, "part": part})
                answer = getattr(case, part)()
                if answer is not None:
                    self.hear({"type": "answer", "edit": edit, "part": part, **answer})
                if answer is None or case.ended:
                    break
        except Interrupted:
            self.left = job | {"parts": ["costs"]}
            return
        except Exception as error:  # a fault of the package
            self.hear({"type": "trouble", "edit": edit, "message": fault_in_words(error)})
        self.hear({"type": "done", "edit": edit, "parts": job["parts"]})

    def resume(self) -> None:
        """Continue the job that was interrupted, if there is one."""
        job, self.left = self.left, None
        if job is not None:
            self.ask(job)

    def stop(self) -> None:
        """Do nothing: no process was started."""


def fault_in_words(error: Exception) -> str:
    """Return the message for a fault of the package."""
    return f"This kernel can't be answered: a bug in cypresskit. {type(error).__name__}: {error}"
