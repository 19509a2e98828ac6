"""From a student's kernel to a verdict.

``judge_kernel`` assembles it, and turns errors into verdicts; the lesson's function that it calls
runs the program and judges it.
"""

from collections.abc import Callable, Sequence
from functools import wraps

from cypresskit.compiler import CompileError
from cypresskit.il import ILError, Program
from cypresskit.il.errors import ArgumentError
from cypresskit.isolated.serving import error_text
from cypresskit.kernels.catalogue import assembled
from cypresskit.kernels.own import find_given_text
from cypresskit.kernels.statement import LaunchConventionError
from cypresskit.machine import KernelError
from cypresskit.machine.checks import Finding
from cypresskit.teach.check import (
    LOOP_HINT,
    Verdict,
    capitalize,
    exercise,
    require,
    type_with_article,
)


def judge_kernel(
    text: object,
    name: str,
    judge: Callable[[Program], Verdict],
    *,
    what: str = "kernel",
    quotes: str = "pass the IL between quotes.",
    stuck: str = "is a declaration missing, or changed?",
    crowded: str = "fewer registers: the block takes most of them.",
    before: str = "",
) -> Verdict:
    """Return the verdict of ``judge`` on the program in ``text``; or on an answer that is no text,
    doesn't assemble, compile or run. ``what`` names the answer. Hints: ``quotes`` if it is no text,
    ``stuck`` if it doesn't run, ``crowded`` if it needs too many registers. ``before`` as for
    ``assemble``.
    """
    if type(text) is not str:
        kind = type_with_article(text)
        hints = {"None": "run the cell above first.", "a Kernel": "pass its `.text`."}
        return Verdict(False, f"The {what} is {kind}, not text.", hints.get(kind, quotes))
    try:
        return judge(assembled(text, name, before=before))
    except ILError as error:
        hint = (
            "the line above the caret." if str(error).endswith("^") else "the line that it names."
        )
        return Verdict(False, f"The kernel does not assemble.\n{error}", hint)
    except CompileError as error:
        hint = crowded if "registers" in str(error) else "the line it names."
        return Verdict(False, f"The kernel does not compile: {error}", hint)
    except LaunchConventionError as error:
        return Verdict(False, f"{error}.", "look at line 1, and at its `; product:`.")
    except (KernelError, ArgumentError) as error:
        hint = LOOP_HINT if "has not ended" in str(error) else stuck
        return Verdict(False, f"The kernel does not run: {error_text(error)}", hint)


def require_own_text(text: object) -> None:
    """Stop the check of a text that is a catalog kernel's."""
    given = find_given_text(text) if isinstance(text, str) else ""
    hint = "change it, or write your own: the exercise is about what you write."
    require(not given, f"This is the text of {given}, unchanged.", hint)


def kernel_exercise(
    name: str, **how
) -> Callable[[Callable[[Program], Verdict]], Callable[[object], Verdict]]:
    """Turn a function from Program to Verdict into a check of IL text; ``how`` as for
    ``judge_kernel``.
    """

    def made(judge: Callable[[Program], Verdict]) -> Callable[[object], Verdict]:
        @exercise
        @wraps(judge)
        def check(text: object) -> Verdict:
            require_own_text(text)
            return judge_kernel(text, name, judge, **how)

        return check

    return made


def judge_findings(findings: Sequence[Finding]) -> Verdict | None:
    """Return the verdict on the first finding, or None if there is none."""
    if not findings:
        return None
    first = findings[0]
    line = f" Line {first.line} of the kernel: {first.text.strip()}" if first.text else ""
    if first.other_side:
        line += f"; the other side: {first.other_side}."
    others = len(findings) - 1
    more = (
        f" ({others} more"
        f" finding{'s follow from it, or come' if others > 1 else ' follows from it, or comes'}"
        " next.)"
    )
    return Verdict(False, f"{capitalize(first.message)}.{line}{more * (others > 0)}", first.advice)
