"""Answers judged from a notebook's text, in bare processes.

Only the cells that an answer needs are run, in the notebook's order: those that set its name, and
the names used there. They run where neither the lessons nor the right answers are (see
``cypresskit.isolated``), on Linux under bubblewrap if that is installed; the check runs outside.
What happened in the kernel in which the notebook was written doesn't count.

The numbers that a check draws belong to the student, the exercise, and the class's seed, so the
same work always gets the same marks. A verdict is kept under the hash of all that it depends on.
What the clock ended, which may have been a busy computer's fault, gets a second chance in the next
run, and then it is kept, too.
"""

import ast
import hashlib
import re
import time
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from cypresskit import teach
from cypresskit.isolated import Answer, Lost, Other, Raised, Refused, call
from cypresskit.isolated.process import CallLimits, Family, walls
from cypresskit.teach import bindings, check
from cypresskit.teach.check import Verdict, built, lost_words, not_served, seeded

#: Takes apart what `course.CHECK` finds: the lesson's module, the check, the name of the answer
CALL = re.compile(r"ck\.teach\.(\w+)\.(check_\w+)\((\w+)\)")
MAKING = CallLimits(60.0, 120.0, 1_000)  # for an answer's cells
BUDGET = 300.0  # seconds by the clock for all that a student handed in
STUDENT = CallLimits(2_000.0, 1_500.0, 8_000)  # for the judge of a student, all answers together
LESSONS = [
    f"cypresskit.teach.{name}.checks" for name in teach.MODULES.values() if name[1:3].isdigit()
]
#: How long a verdict holds: for good; until it is found a second time; for this run alone.
KEPT, ONCE_MORE, NEVER = "kept", "once more", "never"
LAST = (
    "only the cells that the answer needs are run: does it use something that was set elsewhere, or"
    " by hand?"
)
SPENT = "The answers before this one took {:.0f} s; this one wasn't judged any more."
CELLS, LENGTH = 2_000, 200_000  # of a notebook, and characters of a cell, that are looked at


def judge(
    cells: Sequence[str],
    asked: str,
    *,
    seed: str = "",
    family: Family | None = None,
    kernel: str = "",
) -> Verdict:
    """The verdict on the answer in a notebook's code ``cells``, whatever they do.

    asked : the check, spelled as in the lesson, ``ck.teach.bus.check_seconds(seconds)``.
    seed : what the numbers that the check draws belong to.
    family : where processes come from; by default a new one, in a sandbox.
    kernel : the text of the student's own kernel, ``my_kernel.il``, with which lesson 12 begins.
    """
    match = CALL.fullmatch(asked)
    if not match:
        raise ValueError(f"{asked} is no check")
    module, name, answer = match.groups()
    run = getattr(import_module(f"cypresskit.teach.{teach.MODULES[module]}"), name)
    own = family or Family(sandbox=True)
    try:
        return _judged([plain(cell) for cell in cells], answer, run, seed, own, kernel)
    except Exception as error:
        return check.broken(error)
    finally:
        if family is None:
            own.end()


def _judged(cells: list[str], answer: str, run, seed: str, family: Family, kernel: str) -> Verdict:
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
        {"cells": taken, "name": answer, "kernel": kernel},
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


def plain(cell: str) -> str:
    """A cell without the lines that IPython alone understands, such as ``%timeit`` and ``!ls``."""
    try:
        ast.parse(cell)
        return cell
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return re.sub(r"^( *)[%!].*", r"\1pass", cell, flags=re.M)


# -- a student's work, in a process of its own


def judge_all(work: list[dict], seed: str, command: list[str], warm: str) -> list[list]:
    """[right, finding, hint, broken, holds] for each exercise of a student: its ``check``, the
    ``cells`` and the ``kernel`` beside them. ``holds`` is KEPT, ONCE_MORE or NEVER; ``command`` and
    ``warm`` are those of ``isolated.process.walls``.
    """
    family = Family(sandbox=True, known=(command, warm))
    begun = time.monotonic()
    verdicts = []
    try:
        for part in work:
            spent = time.monotonic() - begun
            if spent > BUDGET:
                late = Verdict(False, SPENT.format(spent), "which of your answers takes so long?")
                verdicts.append([False, late.finding, late.hint, False, NEVER])
                continue
            verdict = judge(
                part["cells"], part["check"], seed=seed, family=family, kernel=part["kernel"]
            )
            holds = KEPT
            if verdict.broken:
                holds = NEVER
            elif "by the clock" in verdict.finding:
                holds = ONCE_MORE
            verdicts.append([verdict.right, verdict.finding, verdict.hint, verdict.broken, holds])
    finally:
        family.end()
    return verdicts


def judging_family() -> Family:
    """Where the judges of students come from, one after the other."""
    return Family(modules=["cypresskit.marks.judging", *LESSONS])


def judged(
    work: list[tuple[list[str], str, str]], seed: str, stored: Mapping[str, list], family: Family
) -> tuple[list[Verdict], dict[str, list]]:
    """The verdicts on a student's answers, each given by its notebook's code cells, its check and
    the student's own kernel ("" if none was handed in), and those to be kept, by their keys. What
    is ``stored`` as KEPT isn't judged again.
    """
    keys = [key_of(cells, asked, seed, kernel) for cells, asked, kernel in work]
    before = [_how_long(stored.get(key)) for key in keys]
    new = [n for n, holds in enumerate(before) if holds != KEPT]
    parts = [{"cells": _cut(work[n][0]), "check": work[n][1], "kernel": work[n][2]} for n in new]
    results: dict[int, list] = {}
    if parts:
        try:
            where = "cypresskit.marks.judging", "judge_all"
            made = call(*where, parts, seed, *walls(), limits=STUDENT, family=family)
            results = dict(zip(new, made))
        except (Lost, Raised, OSError) as error:
            failed = check.broken(error)
            results = {n: [False, failed.finding, failed.hint, True, NEVER] for n in new}
    verdicts = []
    kept = {}
    for number, key in enumerate(keys):
        right, finding, hint, broken, holds = results[number] if number in results else stored[key]
        verdicts.append(Verdict(right, finding, hint, broken=broken))
        if holds == before[number] == ONCE_MORE:
            holds = KEPT
        if holds != NEVER:
            kept[key] = [right, finding, hint, broken, holds]
    return verdicts, kept


def _cut(cells: Sequence[str]) -> list[str]:
    return [cell[:LENGTH] for cell in cells[:CELLS]]


def _how_long(verdict: object) -> str:
    """How long what was stored holds: KEPT or ONCE_MORE, and NEVER for what is no verdict."""
    if not isinstance(verdict, list) or len(verdict) != 5:
        return NEVER
    if [type(part) for part in verdict] != [bool, str, str, bool, str]:
        return NEVER
    return verdict[-1] if verdict[-1] in (KEPT, ONCE_MORE) else NEVER


def key_of(cells: Sequence[str], asked: str, seed: str, kernel: str = "") -> str:
    """The hash of all that a verdict depends on: cells, check, seed, kernel and package."""
    parts = "\0".join([asked, seed, version(), kernel, *_cut(cells)])
    return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()


@cache
def version() -> str:
    """The hash of the package's code."""
    folder = Path(__file__).parents[1]
    files = sorted([*folder.rglob("*.py"), *folder.rglob("*.il")])
    whole = hashlib.sha256()
    for file in files:
        whole.update(file.read_bytes())
    return whole.hexdigest()
