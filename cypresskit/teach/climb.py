"""Checks of the climb: the kernel that a step's workbench saved, judged anew.

An answer is a text, or the workbench that the lesson's cell opened. Of a workbench, the text saved
for its step counts or, before one is saved, its current text. ``editing/steps.py`` has the steps.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from typing import Any

from cypresskit.diagnosis.changed_lines import find_changed_fault, find_notes
from cypresskit.diagnosis.notes import Note
from cypresskit.diagnosis.verification import Verification
from cypresskit.editing.judgment import begins_with_notes, report_at, verify_text, what_helps
from cypresskit.editing.step_files import saved_edit
from cypresskit.editing.steps import STEPS, Step, shown_speed
from cypresskit.editing.workbench import Workbench
from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.kernels.compiled import kernel_stats
from cypresskit.machine.checks import Finding
from cypresskit.teach.check import Verdict, announce_if_slow, exercise, require
from cypresskit.teach.kernels import judge_findings, judge_kernel, require_own_text

Check = Callable[..., Verdict]


def accept_workbench(step: str) -> Callable[[Check], Check]:
    """Let a check of a text also take the workbench of a step."""

    def made(check: Check) -> Check:
        @wraps(check)
        def checked(*answers: object) -> Verdict:
            texts = [read_answer(answer, step) for answer in answers]
            verdict = check(*texts)
            for answer, text in zip(answers, texts):
                if isinstance(answer, Workbench) and text != answer.text:
                    said = f"{verdict.message} (This is the saved kernel: the editor has another.)"
                    return replace(verdict, message=said)
            return verdict

        return checked

    return made


def read_answer(answer: object, step: str) -> object:
    """Return the text of a workbench that counts for a step; any other answer as it is."""
    if not isinstance(answer, Workbench):
        return answer
    saved = saved_edit(answer.history, STEPS[step])
    return answer.text if saved is None else saved.text


def require_text(text: object, step: str) -> None:
    """Stop the check of an empty text: the step's workbench saved none."""
    minimum = STEPS[step].targets.minimum
    message = f'Nothing was saved for the step "{STEPS[step].title}"'
    if minimum:
        message += f": its workbench saves correct kernels of at least {minimum:,.0f} Gflop/s"
    hint = 'type in its workbench until it says "Saved". Then save the notebook.'
    require(not isinstance(text, str) or bool(text.strip()), f"{message}.", hint)


def climb_exercise(
    step: str, hint: Callable[[Kernel], str] | None = None
) -> Callable[[Callable[[Kernel], str]], Check]:
    """Make the check of a step's kernel: correct at several shapes with every check on, and as fast
    as the step's first target. The decorated function describes a correct kernel; ``hint`` says
    what makes a slow one faster, by default the step's own hint.
    """
    chosen = STEPS[step]

    def made(describe: Callable[[Kernel], str]) -> Check:
        @accept_workbench(step)
        @exercise
        @wraps(describe)
        def check(text: Any) -> Verdict:
            require_text(text, step)
            require_own_text(text)
            return judge_kernel(text, chosen.file, partial(_judged, chosen, text, describe, hint))

        return check

    return made


def _judged(
    step: Step,
    text: str,
    describe: Callable[[Kernel], str],
    advise: Callable[[Kernel], str] | None,
    _: Program,
) -> Verdict:
    """Return the verdict on a step's text that assembles."""
    seen = verify_text(text, step.file, step.like, step.n, step.is_scaled)
    if not seen.is_correct:
        return explain_wrong_product(seen, step.starter)
    mine = seen.kernel
    with announce_if_slow(f"C is correct. Its speed at N = {step.n} is still being simulated ..."):
        report = report_at(mine, step.n)
    gflops = shown_speed(report.gflops)
    message = f"C is correct, {describe(mine)}: {gflops:,.0f} Gflop/s at N = {step.n}"
    if gflops < step.targets.minimum:
        hint = advise(mine) if advise else step.hint or what_helps(report.limit, mine)
        return Verdict(False, f"{message}; the target is {step.targets.minimum:,.0f}.", hint)
    return Verdict(True, f"{message}. {seen.remarks.text}".rstrip())


def explain_wrong_product(seen: Verification, known: str = "") -> Verdict:
    """Return the verdict on a wrong product: its first fault. The hint on a launch, on a wrong
    element, or on a wrong address is the fault among the lines that differ from the ``known`` text,
    or its wrong term.
    """
    first, *_ = seen.faults
    if isinstance(first, Note):
        hint = "say in line 1 what a work-item computes."
        if seen.at_size:
            hint = "what depends on the size, on k, or on the row or column of C?"
        elif cause := find_changed_fault(seen, known):
            hint = cause.text
        return Verdict(False, first.text, hint)
    found = judge_findings([each for each in seen.faults if isinstance(each, Finding)])
    if found and not begins_with_notes(seen):
        return found
    notes = find_notes(seen, known, find_changed_fault(seen, known))
    if found:
        more = notes[0].text if notes and notes[0].line else ""
        return replace(found, hint=f"{found.hint} {more}".rstrip())
    hint = " ".join(note.text for note in notes[:2]) or "what goes into this element, term by term?"
    return Verdict(False, f"{first}", hint)


def describe_iteration(mine: Kernel) -> str:
    """Describe an iteration: "with 2 fetches and 16 multiply-adds per iteration"."""
    made = kernel_stats(mine)
    return f"with {made.fetches} fetches and {made.multiply_adds} multiply-adds per iteration"
