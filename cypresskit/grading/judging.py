"""Answers judged from a notebook's text, in bare processes.

Only the cells that an answer needs are run, in the notebook's order: those that set its name, and
the names used there. They run where neither the lessons nor the right answers are (see
``cypresskit.isolated``), under bubblewrap unless the teacher insists; the check runs outside.
What happened in the kernel in which the notebook was written doesn't count.

The numbers that a check draws follow from what was handed in, so that the same work always gets the
same marks. Where a check stumbles over an answer, that answer is wrong.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from cypresskit import teach
from cypresskit.grading import course
from cypresskit.grading.course import Cell, Exercise, Lesson
from cypresskit.isolated import Answer, NoResult, Other, Raised, Refused, call
from cypresskit.isolated.process import CallLimits, ForkServer, Sandbox, find_sandbox
from cypresskit.teach import bindings, check
from cypresskit.teach.check import Verdict, built, lost_words, not_served, seeded

#: Takes apart an `Exercise.check`: the lesson's module, the check, the name of the answer
CALL = re.compile(r"ck\.teach\.(\w+)\.(check_\w+)\((\w+)\)")
MAKING = CallLimits(60.0, 120.0, 1_000)  # for an answer's cells
BUDGET = 300.0  # seconds by the clock for all that a student handed in
STUDENT = CallLimits(2_000.0, 1_500.0, 8_000)  # for the judge of a student, all answers together
#: What a judge of students begins with.
MODULES = ["cypresskit.grading.judging"] + [
    f"cypresskit.teach.{name}.checks" for name in teach.MODULES.values() if name[1:3].isdigit()
]
LAST = (
    "only the cells that the answer needs are run: does it use something that was set elsewhere, or"
    " by hand?"
)
SPENT = "The answers before this one took {:.0f} s; this one wasn't judged any more."
STUMBLES_HINT = "of which type is what the answer gives, and how large is it?"


def judge(
    cells: Sequence[str],
    asked: str,
    *,
    seed: str = "",
    server: ForkServer | None = None,
) -> Verdict:
    """The verdict on the answer in a notebook's code ``cells``, whatever they do.

    asked : the check, spelled as in the lesson, ``ck.teach.bus.check_seconds(seconds)``.
    seed : what the numbers that the check draws belong to.
    server : where processes come from; by default a new one, in a sandbox.
    """
    match = CALL.fullmatch(asked)
    if not match:
        raise ValueError(f"{asked} is no check")
    module, name, answer = match.groups()
    run = getattr(import_module(f"cypresskit.teach.{teach.MODULES[module]}"), name)
    own = server or ForkServer(find_sandbox())
    try:
        return _judged([bindings.plain(cell) for cell in cells], answer, run, seed, own)
    except Exception as error:
        return check.broken(error)
    finally:
        if server is None:
            own.end()


def _judged(cells: list[str], answer: str, run, seed: str, server: ForkServer) -> Verdict:
    numbers = bindings.needed(cells, answer)
    wanted = bindings.names_behind([cells[number] for number in numbers], answer)
    if not any(bindings.sets(cells[number], answer) for number in numbers):
        return Verdict(False, f"There is no {answer}.", f"a cell has to set {answer}.")
    taken = [
        {
            "source": cells[number],
            "sets": answer if bindings.sets(cells[number], answer) else "",
            "binding": bindings.binding_lines(cells[number], wanted),
        }
        for number in numbers
    ]
    limits = CallLimits(check.SECONDS, check.WALL, check.MEGABYTES)
    made = Answer(
        {"cells": taken, "name": answer},
        services=dict.fromkeys(run.services, not_served),
        limits=limits,
        making=MAKING,
        server=server,
    )
    try:
        with made, seeded(seed):
            if run.needs_function:
                return run(made)
            value = Other("function") if made.function else built(made.value)
            return run(value)
    except Refused as refused:
        where = f"The cell of {answer}" if refused.sets else f"A cell that {answer} needs"
        message = str(refused)
        if refused.sets is None:
            return Verdict(False, f"There is no {answer}.", f"a cell has to set {answer}.")
        hint = f"line {refused.line} of that cell." if "valid Python" in message else LAST
        return Verdict(False, f"{where} {message}.", hint)
    except Raised as error:
        return Verdict(False, f"The answer could not be judged: {error}.", LAST)
    except NoResult as lost:
        message, hint = lost_words(f"the cell of {answer}", lost)
        return Verdict(False, f"The answer could not be judged: {message}", hint)


# -- a student's work, in a process of its own


class Attempt(NamedTuple):
    """An answer to be judged: a notebook's code ``cells``, and the ``check``."""

    cells: list[str]
    check: str


def attempt(cells: list[Cell], lesson: Lesson, exercise: Exercise) -> Attempt:
    """What is to be judged of a student's notebook. What a workbench keeps stands for the cell that
    opens it.
    """
    code = course.answers(cells, lesson)
    kept = course.kept_steps(cells).get(exercise.step)
    if kept is not None:
        code.append(f"{exercise.answer} = {kept!r}")
    return Attempt(code, exercise.check)


def judge_all(work: list[list], seed: str, sandbox: list | None) -> list[list]:
    """[right, message, hint] for each exercise of a student: its cells and its check; ``sandbox``
    has the fields of a ``Sandbox``, or is None.
    """
    server = ForkServer(Sandbox(*sandbox) if sandbox else None)
    begun = time.monotonic()
    verdicts = []
    try:
        for cells, asked in work:
            spent = time.monotonic() - begun
            verdict = Verdict(False, SPENT.format(spent), "which of your answers takes so long?")
            if spent <= BUDGET:
                verdict = judge(cells, asked, seed=seed, server=server)
            if verdict.broken:
                verdict = stumbled(verdict)
            verdicts.append([verdict.right, verdict.message, verdict.hint])
    finally:
        server.end()
    return verdicts


def stumbled(verdict: Verdict) -> Verdict:
    """The verdict on an answer over which its check stumbles."""
    why = verdict.message.splitlines()[0]
    return Verdict(False, f"The check stumbles over this answer: {why}", STUMBLES_HINT)


def judged(
    work: Sequence[Attempt], server: ForkServer, sandbox: Sandbox | None = None
) -> list[Verdict]:
    """The verdicts on a student's answers, from a process of its own. The numbers that checks draw
    follow from the answers, so that they are the same each time. ``sandbox`` is
    None for none.
    """
    if not work:
        return []
    seed = hashlib.sha256(repr(work).encode("utf-8", "replace")).hexdigest()
    where = "cypresskit.grading.judging", "judge_all"
    try:
        results = call(*where, work, seed, sandbox and [*sandbox], limits=STUDENT, server=server)
    except (NoResult, Raised, OSError) as error:
        return [stumbled(check.broken(error))] * len(work)
    return [Verdict(*result) for result in results]
