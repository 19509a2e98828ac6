"""Judge the answers in a notebook's source, in bare processes.

Only the cells that an answer needs are run, in the notebook's order: those that assign its name,
and the names used there. They run in a process without the lessons and their solutions (see
``cypresskit.isolated``), under bubblewrap unless the teacher chose ``--no-sandbox``; the check runs
outside of it. What happened in the student's own kernel doesn't count.

A check's random numbers are seeded by the submission, so the same work always gets the same grade.
If a check fails with an exception, the answer is incorrect.
"""

import hashlib
import re
import time
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

from cypresskit import teach
from cypresskit.isolated import NoResult, Raised, call
from cypresskit.isolated.answer import CallLimits
from cypresskit.isolated.process import ForkServer
from cypresskit.teach import check
from cypresskit.teach.answer_source import AnswerSource
from cypresskit.teach.check import Verdict, use_seed

#: Matches an `Exercise.check`: the lesson's module, the check, the name of the answer.
CALL = re.compile(r"ck\.teach\.(\w+)\.(check_\w+)\((\w+)\)")
BUDGET = 300.0  # seconds of wall-clock time for one student's answers
STUDENT = CallLimits(1_500.0, 8_000)  # for judging all answers of a student
#: Modules that a judging process imports at its start.
MODULES = ["cypresskit.grading.judging"] + [
    f"cypresskit.teach.{folder}.checks" for folder in teach.LESSONS.values()
]
SPENT = "No point: the answers before this one took {:.0f} s. All may take {:.0f} s."
CHECK_FAILED_HINT = "check the type and the size of what the answer returns."


def judge(cells: Sequence[str], call: str, server: ForkServer, seed: str = "") -> Verdict:
    """Return the verdict on an answer in a notebook's code cells.

    Parameters
    ----------
    cells
        The source of the cells, which may do anything.
    call
        The check as the lesson calls it: ``ck.teach.bus.check_seconds(seconds)``.
    server
        Starts the process.
    seed
        Seeds the check's random numbers.

    Raises
    ------
    ValueError
        If ``call`` doesn't have this form.
    """
    match = CALL.fullmatch(call)
    if not match:
        raise ValueError(f"{call} is no call of a check")
    module, name, answer = match.groups()
    run = getattr(import_module(f"cypresskit.teach.{teach.LESSONS[module]}"), name)
    try:
        with use_seed(seed):
            return run(AnswerSource(cells, answer, server))
    except Exception as error:
        return check.report_broken_check(error)


# -- the answers of one student, in a separate process


class Attempt(NamedTuple):
    """An answer to judge."""

    cells: list[str]  #: the source of the notebook's code cells
    check: str  #: the check, as the lesson calls it


def judge_all(work: list[list], seed: str, sandbox: list[str] | None) -> list[list]:
    """Judge a student's answers in this process, which ``judge_student`` starts.

    Parameters
    ----------
    work
        The fields of each ``Attempt``.
    seed
        Seeds the checks' random numbers.
    sandbox
        The sandbox's command, or None.

    Returns
    -------
    list of [right, message, hint]
        One per attempt.
    """
    server = ForkServer(sandbox)
    begun = time.monotonic()
    verdicts = []
    try:
        for cells, call in work:
            spent = time.monotonic() - begun
            verdict = Verdict(
                False, SPENT.format(spent, BUDGET), "which of your answers takes this long?"
            )
            if spent <= BUDGET:
                verdict = judge(cells, call, server, seed)
            if verdict.is_broken:
                verdict = check_failed(verdict)
            verdicts.append([verdict.right, verdict.message, verdict.hint])
    finally:
        server.end()
    return verdicts


def check_failed(verdict: Verdict) -> Verdict:
    """Return the verdict on an answer whose check raised an exception."""
    why = verdict.message.splitlines()[-1]
    return Verdict(False, f"No point: the check fails on this answer: {why}", CHECK_FAILED_HINT)


def judge_student(
    work: Sequence[Attempt], server: ForkServer, sandbox: list[str] | None = None
) -> list[Verdict]:
    """Return the verdicts on a student's answers, judged in a separate process.

    The checks' random numbers are seeded by the answers. Without ``sandbox``, answers run with the
    user's rights.
    """
    if not work:
        return []
    seed = hashlib.sha256(repr(work).encode("utf-8", "replace")).hexdigest()
    where = "cypresskit.grading.judging", "judge_all"
    try:
        results = call(*where, work, seed, sandbox, limits=STUDENT, server=server)
    except (NoResult, Raised, OSError) as error:
        return [check_failed(check.report_broken_check(error))] * len(work)
    return [Verdict(*result) for result in results]
