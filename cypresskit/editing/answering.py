"""Answers to a kernel's text, part by part.

``LocalAnswerer`` sends the parts one by one, and stops as soon as another message waits. Costs come
last, after a pause. Nothing here starts a process: ``AnswerProcess`` (``answer_process``) has one
of its own, which may be ended at any time.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from cypresskit.diagnosis.changed_lines import find_changed_fault, lead_to_fault
from cypresskit.diagnosis.notes import Note
from cypresskit.diagnosis.verification import IncorrectElement, Verification
from cypresskit.editing import dynamic_answers, judgment, static_answers
from cypresskit.editing.protocol import Message
from cypresskit.editing.small_product import SmallProduct, multiply_small
from cypresskit.editing.static_answers import AnswerPart
from cypresskit.editing.steps import STEPS
from cypresskit.il.errors import last_line
from cypresskit.kernels.catalogue import assembled
from cypresskit.threads import Interrupted
from cypresskit.timing.costs import line_costs
from cypresskit.timing.report import Report

PAUSE_SECONDS = 1.0  # without another job before costs are computed
NO_LAUNCH = "The workbench is for kernels that multiply matrices: ck.launch runs any other."


class Evaluation:
    """A job, and what is known about its text so far.

    Each method that is named like a part of the answer makes it, or None. It raises ``Interrupted``
    if a message ``comes``, as ``LocalAnswerer.comes`` says.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; a ``known_text``, from
    which the faulty lines differ; the ``parts`` to make; and for "replay", perhaps an ``element``
    of C.
    """

    def __init__(
        self, job: Message, comes: Callable[..., bool], tell: Callable[[str], None]
    ) -> None:
        self.job, self.comes, self.tell = job, comes, tell
        self.parts = [*job["parts"]]  # that aren't made yet
        self.step = STEPS.get(job.get("step") or "")

    @cached_property
    def verification(self) -> Verification:
        """Whether the text is correct, with its kernel. Raises what ``ck.load_kernel`` does. The
        size at which it is timed may take seconds: before it, ``tell`` says what is known.
        """
        job = self.job
        scales = self.step is not None and self.step.scales
        kernel = job["text"], job["name"], job.get("like")
        small = judgment.verify_text(*kernel, None, scales, self.comes)
        if not small:
            return small
        self.tell(f"Correct at small sizes; now at N = {job['n']:,} …")
        return judgment.verify_text(*kernel, job["n"], scales, self.comes)

    @cached_property
    def fault(self) -> Note | None:
        """The fault among the lines that were changed since the known text."""
        known_text = self.job.get("known_text", "")
        return find_changed_fault(self.verification, known_text, unless=self.comes)

    @cached_property
    def report(self) -> Report:
        """The time of the kernel's launch. Raises one of ``UNTIMED`` if it can't be timed."""
        whole = self.step is not None and self.step.whole_launch
        return judgment.report_at(self.verification.kernel, self.job["n"], whole)

    @cached_property
    def small(self) -> SmallProduct | None:
        return multiply_small(self.verification.kernel)

    @cached_property
    def incorrect(self) -> IncorrectElement | None:
        """The incorrect element that is shown: one of the small product, if that has one."""
        wrong = self.verification.incorrect_element
        return wrong and ((self.small and self.small.incorrect) or wrong)

    def code(self) -> AnswerPart:
        answer = static_answers.code_answer(assembled(self.job["text"], self.job["name"]))
        return answer | {"is_last": True} if "refusal" in answer else answer

    def verdict(self) -> AnswerPart:
        try:
            shown = replace(self.verification, incorrect_element=self.incorrect)
        except (ValueError, TypeError) as error:
            # No launch is known.
            message = f"It can't be launched: {last_line(error)}"
            row = {"message": message, "advice": NO_LAUNCH}
            return {"right": False, "message": message, "findings": [row], "is_last": True}
        # Otherwise the terms are shown with it.
        cause = self.fault if shown.findings or not self.small else None
        small = self.small and self.small.answer()
        return dynamic_answers.verdict_answer(shown, cause) | {"small": small}

    def clocks(self) -> AnswerPart:
        return dynamic_answers.clocks_answer(self.verification, lambda: self.report)

    def llvm(self) -> AnswerPart:
        return dynamic_answers.llvm_answer(self.verification, lambda: self.report)

    def replay(self) -> AnswerPart | None:
        """The terms of the element in the job, or of the incorrect one."""
        first = self.incorrect
        place = self.job.get("element") or (first and not first.batch_index and first[:2])
        if not place:
            return None
        text, known = self.job["text"], self.job.get("known_text", "")
        return dynamic_answers.replay_answer(
            self.verification,
            self.small,
            place,
            lambda notes: lead_to_fault(self.fault, notes, text, known),
        )

    def costs(self) -> AnswerPart | None:
        """Costs are computed after a pause, if a correct kernel can be timed."""
        if "gflops" not in self.clocks():
            return None
        if self.comes(PAUSE_SECONDS):
            raise Interrupted
        return dynamic_answers.costs_answer(line_costs(self.report, unless=self.comes))


class LocalAnswerer:
    """Answers jobs in the calling process, without child processes; threads, if there are any,
    compute costs. A text that never ends is not given up.

    Parameters
    ----------
    hear
        Called with each message.
    """

    is_alive = True

    def __init__(self, hear: Callable[[Message], None]) -> None:
        self.hear = hear
        self.unfinished: Evaluation | None = None

    def comes(self, seconds: float = 0.0) -> bool:
        """Return whether a message waits, or arrives within ``seconds``: here, none does."""
        return False

    def ask(self, job: Message) -> None:
        """Answer a job, in place of an unfinished one."""

        def tell(words: str) -> None:
            self._say(evaluation, "working", part="verdict", words=words)

        self.unfinished = evaluation = Evaluation(job, self.comes, tell)
        self.resume()

    def resume(self) -> None:
        """Send each part that isn't made yet, then "done", unless a message waits."""
        evaluation = self.unfinished
        if evaluation is None:
            return
        try:
            while evaluation.parts and not self.comes():
                part = evaluation.parts[0]
                self._say(evaluation, "working", part=part)
                answer = getattr(evaluation, part)()
                if answer is not None:
                    self._say(evaluation, "answer", part=part, **answer)
                if answer and "is_last" in answer:
                    evaluation.parts.clear()
                else:
                    del evaluation.parts[0]
        except Interrupted:
            return
        except Exception as error:  # a fault of the package
            self._say(evaluation, "trouble", message=bug_message(error))
            evaluation.parts.clear()
        if not evaluation.parts:
            self.unfinished = None
            self._say(evaluation, "done")

    def _say(self, evaluation: Evaluation, kind: str, **more: Any) -> None:
        about = {"type": kind, "edit": evaluation.job["edit"], "job": evaluation.job.get("number")}
        self.hear(about | more)

    def stop(self) -> None:
        """Do nothing: no process was started."""


def bug_message(error: Exception) -> str:
    """Return the message for a fault of the package."""
    return f"This kernel can't be answered: a bug in cypresskit. {type(error).__name__}: {error}"
