"""Answers judged from a notebook's text, in bare processes.

Only the cells that an answer needs are run, in the notebook's order: those that set its name, and
the names used there. They run where neither the lessons nor the right answers are (see
``cypresskit.isolated``), under bubblewrap unless the teacher insists; the check runs outside.
What happened in the kernel in which the notebook was written doesn't count.

The numbers that a check draws belong to the student, the exercise, and the class's seed, so the
same work always gets the same marks. A verdict is kept under the hash of all that it depends on,
unless the clock ended it, which may have been a busy computer's fault.

Where a check fails, rather than the answer, a known right answer is judged in a fresh process: only
if that fails, too, is the check broken, and the exercise doesn't count. Else it was the answer.
"""

import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path

from cypresskit import teach
from cypresskit.isolated import Answer, Lost, Other, Raised, Refused, call
from cypresskit.isolated.process import CallLimits, Family, Walls, walls
from cypresskit.marks import course
from cypresskit.marks.course import Cell, Exercise, Lesson
from cypresskit.teach import bindings, check
from cypresskit.teach.check import Verdict, built, lost_words, not_served, seeded

#: Takes apart an `Exercise.check`: the lesson's module, the check, the name of the answer
CALL = re.compile(r"ck\.teach\.(\w+)\.(check_\w+)\((\w+)\)")
MAKING = CallLimits(60.0, 120.0, 1_000)  # for an answer's cells
BUDGET = 300.0  # seconds by the clock for all that a student handed in
STUDENT = CallLimits(2_000.0, 1_500.0, 8_000)  # for the judge of a student, all answers together
LESSONS = [
    f"cypresskit.teach.{name}.checks" for name in teach.MODULES.values() if name[1:3].isdigit()
]
LAST = (
    "only the cells that the answer needs are run: does it use something that was set elsewhere, or"
    " by hand?"
)
SPENT = "The answers before this one took {:.0f} s; this one wasn't judged any more."
STUMBLES = "The check stumbles over this answer, and not over a right one: {}"
STUMBLES_HINT = "of which type is what the answer gives, and how large is it?"


def judge(
    cells: Sequence[str],
    asked: str,
    *,
    seed: str = "",
    family: Family | None = None,
) -> Verdict:
    """The verdict on the answer in a notebook's code ``cells``, whatever they do.

    asked : the check, spelled as in the lesson, ``ck.teach.bus.check_seconds(seconds)``.
    seed : what the numbers that the check draws belong to.
    family : where processes come from; by default a new one, in a sandbox.
    """
    match = CALL.fullmatch(asked)
    if not match:
        raise ValueError(f"{asked} is no check")
    module, name, answer = match.groups()
    run = getattr(import_module(f"cypresskit.teach.{teach.MODULES[module]}"), name)
    own = family or Family(walls())
    try:
        return _judged([bindings.plain(cell) for cell in cells], answer, run, seed, own)
    except Exception as error:
        return check.broken(error)
    finally:
        if family is None:
            own.end()


def _judged(cells: list[str], answer: str, run, seed: str, family: Family) -> Verdict:
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
        family=family,
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
    except Lost as lost:
        finding, hint = lost_words(f"the cell of {answer}", lost)
        return Verdict(False, f"The answer could not be judged: {finding}", hint)


# -- a student's work, in a process of its own


@dataclass(frozen=True)
class Attempt:
    """An answer to be judged: a notebook's code ``cells``, the ``check``, and the cells with a
    known ``right`` answer.
    """

    cells: Sequence[str]
    check: str
    right: Sequence[str] = field(default=(), compare=False)


def attempt(cells: list[Cell], lesson: Lesson, exercise: Exercise) -> Attempt:
    """What is to be judged of a student's notebook. What a workbench keeps stands for the cell that
    opens it.
    """
    code = course.answers(cells, lesson)
    kept = course.kept_steps(cells).get(exercise.step)
    if kept is not None:
        code.append(f"{exercise.answer} = {kept!r}")
    return Attempt(code, exercise.check, lesson.solved(exercise))


def judge_all(work: list[dict], seed: str, walls: list | None) -> list[list]:
    """[right, finding, hint, broken, whether it will hold] for each exercise of a student: its
    ``check`` and the ``cells``; ``walls`` are those of the sandbox, or None.
    """
    family = Family(Walls(*walls) if walls else None)
    begun = time.monotonic()
    verdicts = []
    try:
        for part in work:
            spent = time.monotonic() - begun
            if spent > BUDGET:
                late = Verdict(False, SPENT.format(spent), "which of your answers takes so long?")
                verdicts.append([False, late.finding, late.hint, False, False])
                continue
            verdict = judge(part["cells"], part["check"], seed=seed, family=family)
            holds = not verdict.broken and "by the clock" not in verdict.finding
            verdicts.append([verdict.right, verdict.finding, verdict.hint, verdict.broken, holds])
    finally:
        family.end()
    return verdicts


def judging_family() -> Family:
    """Where the judges of students come from, one after the other."""
    return Family(modules=["cypresskit.marks.judging", *LESSONS])


def judged(
    work: Sequence[Attempt],
    seed: str,
    stored: Mapping[str, list],
    family: Family,
    walls: Walls | None = None,
) -> tuple[list[Verdict], dict[str, list]]:
    """The verdicts on a student's answers, and those to be kept, by their keys: [right, finding,
    hint]. What is ``stored`` isn't judged again. ``walls`` are those of the sandbox; None for none.
    """
    keys = [key_of(one, seed, walls is not None) for one in work]
    new = [n for n, key in enumerate(keys) if not _is_verdict(stored.get(key))]
    results = dict(zip(new, _results([work[n] for n in new], seed, family, walls)))
    failed = [n for n in new if results[n][3]]
    known = [n for n in failed if work[n].right]
    right = [Attempt(work[n].right, work[n].check) for n in known]
    tried = dict(zip(known, _results(right, seed, family, walls)))
    for number in failed:
        if number not in tried or not tried[number][3]:
            why = results[number][1].splitlines()[0]
            results[number] = [False, STUMBLES.format(why), STUMBLES_HINT, False, False]
    verdicts = []
    kept = {}
    for number, key in enumerate(keys):
        right_, finding, hint, broken, holds = results.get(number) or [*stored[key], False, True]
        verdicts.append(Verdict(right_, finding, hint, broken=broken))
        if holds:
            kept[key] = [right_, finding, hint]
    return verdicts, kept


def _results(work: Sequence[Attempt], seed: str, family: Family, walls: Walls | None) -> list[list]:
    """What ``judge_all`` gives for some work, in a process of its own."""
    if not work:
        return []
    parts = [{"cells": [*one.cells], "check": one.check} for one in work]
    where = "cypresskit.marks.judging", "judge_all"
    try:
        return call(*where, parts, seed, walls and [*walls], limits=STUDENT, family=family)
    except (Lost, Raised, OSError) as error:
        failed = check.broken(error)
        return [[False, failed.finding, failed.hint, True, False]] * len(parts)


def _is_verdict(stored: object) -> bool:
    """Whether what was stored is [right, finding, hint]."""
    return isinstance(stored, list) and [type(part) for part in stored] == [bool, str, str]


def key_of(attempt: Attempt, seed: str, sandboxed: bool) -> str:
    """The hash of all that a verdict depends on."""
    words = [attempt.check, seed, version(), f"sandboxed: {sandboxed}"]
    parts = "\0".join([*words, *attempt.cells])
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()


#: What of the package decides about a verdict: not pictures, pages, commands and the editor.
JUDGES = (
    *("blas", "compiler", "data", "host", "il", "isolated", "kernels", "machine", "teach"),
    *("timing", "today", "child.py", "devices.py", "marks/judging.py", "published.py"),
)


@cache
def version() -> str:
    """The hash of the code that judges."""
    folder = Path(__file__).parents[1]
    whole = hashlib.sha256()
    for name in JUDGES:
        place = folder / name
        for file in sorted(place.rglob("*.*")) if place.is_dir() else [place]:
            if file.suffix in (".py", ".il", ".json", ".csv"):
                whole.update(file.read_bytes())
    return whole.hexdigest()
