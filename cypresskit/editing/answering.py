"""Answers to a kernel's text, part by part.

``LocalAnswerer`` sends the parts one by one, and stops as soon as another message waits. Costs come
last, after a pause. Nothing here starts a process: ``AnswerProcess`` (``answer_process``) has one
of its own, which may be ended at any time.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Any

from cypresskit.diagnosis.changed_lines import find_changed_fault, find_notes
from cypresskit.diagnosis.element_trace import trace_product
from cypresskit.diagnosis.notes import Note
from cypresskit.diagnosis.product_run import IncorrectElement
from cypresskit.diagnosis.verification import Verification
from cypresskit.editing import dynamic_answers, judgment, static_answers
from cypresskit.editing.protocol import AnswerPart, Message
from cypresskit.editing.small_product import SmallProduct, multiply_small
from cypresskit.editing.steps import STEPS
from cypresskit.il.errors import last_line
from cypresskit.kernels.catalogue import assembled
from cypresskit.kernels.products import RUN_ERRORS
from cypresskit.threads import Interrupted
from cypresskit.timing.costs import line_costs
from cypresskit.timing.report import Report

PAUSE_SECONDS = 1.0  # without another job before costs are computed
NO_LAUNCH = "The workbench is for kernels that multiply matrices: ck.launch runs any other."


class Evaluation:
    """A job, and what is known about its text so far.

    Each method that is named like a part of the answer makes it, or None. It raises ``Interrupted``
    if ``has_message``, which is ``LocalAnswerer``'s.

    A job has ``edit`` and ``text``; the ``name`` of the file; ``like``, the name of a kernel, or
    None; ``n``, at which it is timed; a ``step`` of the climb, or None; a ``known_text``, from
    which the faulty lines differ; the ``parts`` to make; and for "replay", perhaps an ``element``
    of C.
    """

    def __init__(
        self, job: Message, has_message: Callable[..., bool], on_progress: Callable[[str], None]
    ) -> None:
        self.job, self.has_message, self.on_progress = job, has_message, on_progress
        self.parts = [*job["parts"]]  # that aren't made yet
        self.source = job["text"], job["name"], job.get("like")  # as ``load_text`` takes it
        self.known_text = job.get("known_text", "")

    @cached_property
    def verification(self) -> Verification:
        """Whether the text is correct, with its kernel. Raises what ``ck.load_kernel`` does. The
        size at which it is timed may take seconds: before it, ``on_progress`` gets what is known.
        """
        n, step = self.job["n"], STEPS.get(self.job.get("step") or "")
        is_scaled = bool(step and step.is_scaled)
        small = judgment.verify_text(*self.source, None, is_scaled, self.has_message)
        if not small:
            return small
        self.on_progress(f"Correct at small sizes; now at N = {n:,} …")
        return judgment.verify_text(*self.source, n, is_scaled, self.has_message)

    @cached_property
    def changed_fault(self) -> Note | None:
        """The fault among the lines that were changed since the known text."""
        return find_changed_fault(self.verification, self.known_text, unless=self.has_message)

    @cached_property
    def timing(self) -> Report | str:
        """The time of a correct kernel's launch, or why it has none; "" for an incorrect kernel,
        which may run long.
        """
        if not self.verification:
            return ""
        if obstacle := self.verification.timing_obstacle:
            return f"It isn't timed: {obstacle.clause}."
        try:
            return judgment.report_at(self.verification.kernel, self.job["n"])
        except dynamic_answers.UNTIMED as error:
            return f"It can't be timed: {last_line(error)}"

    @cached_property
    def small_product(self) -> SmallProduct | None:
        return multiply_small(self.verification.kernel)

    @cached_property
    def incorrect_element(self) -> IncorrectElement | None:
        """The incorrect element that is shown: one of the small product, if that has one."""
        first = self.verification.incorrect_element
        return (first and self.small_product and self.small_product.incorrect_element) or first

    def code(self) -> AnswerPart:
        answer = static_answers.code_answer(assembled(*self.source[:2]))
        return answer | {"is_last": True} if "refusal" in answer else answer

    def verdict(self) -> AnswerPart:
        try:
            judgment.load_text(*self.source)
        except (ValueError, TypeError) as error:
            # No launch is known.
            message = f"It can't be launched: {last_line(error)}"
            row = {"message": message, "advice": NO_LAUNCH}
            return {"is_correct": False, "message": message, "findings": [row], "is_last": True}
        small = self.small_product
        shown = replace(self.verification, incorrect_element=self.incorrect_element)
        # Otherwise the terms are shown with it.
        cause = self.changed_fault if shown.findings or not small else None
        answer = dynamic_answers.verdict_answer(shown, cause)
        return answer | {"small": small and small.answer()}

    def clocks(self) -> AnswerPart:
        return dynamic_answers.clocks_answer(self.timing, self.verification.kernel)

    def llvm(self) -> AnswerPart:
        return dynamic_answers.llvm_answer(self.timing, self.verification.kernel.program)

    def replay(self) -> AnswerPart | None:
        """The terms of the element that the page asks for, which is one of the small product if the
        page shows that; or else of the incorrect element.
        """
        small, first, place = self.small_product, self.incorrect_element, self.job.get("element")
        if not place:
            if first is None or first.batch_index:
                return None
            place = first[:2]
            if first is self.verification.incorrect_element:
                small = None  # it is correct
        try:
            trace = trace_product(small.product if small else self.verification.product, *place)
            notes = trace.faults and find_notes(
                self.verification, self.known_text, self.changed_fault, trace
            )
        except RUN_ERRORS as error:
            return {"problem": last_line(error)}
        message = small.describe(*place) if small else dynamic_answers.describe_element(trace)
        return dynamic_answers.replay_answer(trace, message, self.verification, notes)

    def costs(self) -> AnswerPart | None:
        """Costs are computed after a pause, if a correct kernel can be timed."""
        if isinstance(self.timing, str):
            return None
        if self.has_message(PAUSE_SECONDS):
            raise Interrupted
        return dynamic_answers.costs_answer(line_costs(self.timing, unless=self.has_message))


class LocalAnswerer:
    """Answers jobs in the calling process, without child processes; threads, if there are any,
    compute costs. A text that never ends is not given up.

    Parameters
    ----------
    send
        Called with each message.
    """

    is_alive = True

    def __init__(self, send: Callable[[Message], None]) -> None:
        self.send = send
        self.evaluation: Evaluation | None = None  # that isn't finished

    def has_message(self, seconds: float = 0.0) -> bool:
        """Return whether a message waits, or arrives within ``seconds``: here, none does."""
        return False

    def ask(self, job: Message) -> None:
        """Answer a job, in place of an unfinished one."""

        def send_progress(text: str) -> None:
            self._send_about(evaluation, "working", part="verdict", progress=text)

        self.evaluation = evaluation = Evaluation(job, self.has_message, send_progress)
        self.resume()

    def resume(self) -> None:
        """Send each part that isn't made yet, then "done", unless a message waits."""
        evaluation = self.evaluation
        if evaluation is None:
            return
        try:
            while evaluation.parts and not self.has_message():
                part = evaluation.parts[0]
                self._send_about(evaluation, "working", part=part)
                answer = getattr(evaluation, part)()
                if answer is not None:
                    self._send_about(evaluation, "answer", part=part, **answer)
                if answer and "is_last" in answer:
                    evaluation.parts.clear()
                else:
                    del evaluation.parts[0]
        except Interrupted:
            return
        except Exception as error:  # a fault of the package
            self._send_about(evaluation, "trouble", message=bug_message(error))
            evaluation.parts.clear()
        if not evaluation.parts:
            self.evaluation = None
            self._send_about(evaluation, "done")

    def _send_about(self, evaluation: Evaluation, kind: str, **more: Any) -> None:
        about = {"type": kind, "edit": evaluation.job["edit"], "job": evaluation.job.get("number")}
        self.send(about | more)

    def stop(self) -> None:
        """Do nothing: no process was started."""


def bug_message(error: Exception) -> str:
    """Return the message for a fault of the package."""
    return f"This kernel can't be answered: a bug in cypresskit. {type(error).__name__}: {error}"
