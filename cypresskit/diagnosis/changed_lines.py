"""Find the fault of an incorrect kernel among the lines that its reader has changed.

The last correct text is known, or the given one that a step starts from. Changes are undone, one
at a time: a line gets the text that it had, one that was added is deleted, one that was deleted or
moved is put back. How the kernel is launched isn't undone. A change counts only if all of C is
correct then. So no line is blamed here without a run that shows it. Where no change counts, the
notes on an incorrect element remain: what its trace shows.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from typing import NamedTuple

from cypresskit.diagnosis.element_trace import ElementTrace, trace_product
from cypresskit.diagnosis.notes import Note, note
from cypresskit.diagnosis.verification import Verification, verify
from cypresskit.il.cursor import bare_line
from cypresskit.kernels.products import RUN_ERRORS
from cypresskit.machine.checks.findings import ENDLESS_LOOP, UNINITIALIZED
from cypresskit.threads import never

MAX_CHANGES = 20  # changes that are undone: each takes a verification


class Changes(NamedTuple):
    """How a text differs from a known one; lines are counted from 0.

    Attributes
    ----------
    replaced_lines
        The changed lines, each with the known line in its place, or "".
    deleted_lines
        The known lines that are missing, each with the line before which it stood.
    """

    replaced_lines: dict[int, str]
    deleted_lines: list[tuple[int, str]]


def find_changed_fault(
    verification: Verification, known: str, unless: Callable[[], bool] = never
) -> Note | None:
    """Return the fault of an incorrect kernel among the lines that differ from a ``known`` text, or
    None. ``unless`` ends the search, as in ``verify``. That a loop doesn't end, or a value was
    never set, tells more than what a line was before.
    """
    kinds = {finding.kind for finding in verification.findings}
    is_told = kinds & {ENDLESS_LOOP, UNINITIALIZED}
    if verification.is_correct or verification.at_size or is_told or not known:
        return None
    kernel = verification.kernel
    alpha, beta = verification.given_scalars
    lines = kernel.text.splitlines()
    changes = _find_changes(known, lines)
    for fault, others in islice(_undo_changes(lines, changes), MAX_CHANGES):
        undone = replace(kernel, text="\n".join(others), given=None)
        with suppress(*RUN_ERRORS):
            if verify(undone, alpha=alpha, beta=beta, unless=unless):
                return fault
    return None


def find_notes(
    incorrect: Verification, known: str, fault: Note | None, trace: ElementTrace | None = None
) -> Sequence[Note]:
    """Return the notes on an element of an incorrect kernel's C: of the first incorrect one, if no
    ``trace`` is given, unless that is of another product, or its trace fails.

    If a missing line is the known fault, that alone; if another one is, that, and those that name
    its line; else those that name a line that differs from the ``known`` text, if there are any.
    Such a line is the one to look at first, unless a cause is known.
    """
    if fault and fault.kind == "line missing":  # the line that it names is right
        return [fault]
    element = incorrect.incorrect_element
    notes = trace.faults if trace else ()
    if not trace and element and not element.batch_index:
        with suppress(*RUN_ERRORS):  # an earlier store may be out of range
            notes = trace_product(incorrect.product, *element[:2]).faults
    if fault:
        return [fault, *(each for each in notes if fault.line in each.lines)]
    changes = _find_changes(known, incorrect.kernel.text.splitlines())
    changed = {at + 1 for at in changes.replaced_lines} if known else set()
    led = []
    for each in notes:
        lines = [line for line in (each.line, *each.lines) if line in changed]
        if lines:
            is_led = each.line and not each.values.get("why")
            led.append(replace(each, line=lines[0]) if is_led else each)
    return led or notes


def _split_line(line: str) -> list[str]:
    """Return the fields of a bare line: the opcode, the result, and the sources."""
    op, _, operands = line.partition(" ")
    return [op.lower(), *operands.split(", ")]


def _find_changes(known: str, lines: Sequence[str]) -> Changes:
    """Return how lines differ from a known text. Comments, spaces and empty lines don't count."""
    before = [*filter(None, map(bare_line, known.splitlines()))]
    bare = {at: line for at, line in enumerate(map(bare_line, lines)) if line}
    places, after = [*bare], [*bare.values()]
    replaced: dict[int, str] = {}
    deleted: list[tuple[int, str]] = []
    for kind, i1, i2, j1, j2 in SequenceMatcher(None, before, after, False).get_opcodes():
        if kind != "equal":
            is_paired = i2 - i1 == j2 - j1
            of_result = {(*_split_line(line)[:2],): line for line in before[i1:i2]}
            alike = [of_result.get((*_split_line(line)[:2],), "") for line in after[j1:j2]]
            replaced |= zip(places[j1:j2], before[i1:i2] if is_paired else alike)
            deleted += [
                ((*places, len(lines))[j1], line) for line in before[i1:i2] if not is_paired
            ]

    return Changes(replaced, deleted)


def _undo_changes(lines: list[str], changes: Changes) -> Iterator[tuple[Note, list[str]]]:
    """Yield each change as the fault that it is if its undoing makes the kernel correct, and the
    lines without it: first those of deleted lines.
    """
    for at, line in reversed(changes.deleted_lines):
        put_back = [*lines[:at], line, *lines[at:]]
        yield note("line missing", at + 1, text=line), put_back
        for moved in changes.replaced_lines:
            if bare_line(lines[moved]) == line:
                place = moved + (moved >= at)
                fault = note("moved", moved + 1, before=at + 1)
                yield fault, put_back[:place] + put_back[place + 1 :]
    for at, old in sorted(changes.replaced_lines.items(), reverse=True):
        fields, correct = _split_line(bare_line(lines[at])), _split_line(old)
        wrong = [one for one, other in zip(fields, correct) if one != other]
        fault = note("undone" if old else "without", at + 1)
        if old and len(fields) == len(correct) and len(wrong) == 1:
            fault = note("changed word", at + 1, wrong=wrong[0])
        yield fault, [*lines[:at], *filter(None, [old]), *lines[at + 1 :]]
