"""Answers that run a kernel or simulate its time: is C correct, how fast is it, what do lines cost?

All results are plain data for JSON. One that can't be had says why.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from cypresskit.compiler import compile
from cypresskit.diagnosis.element_trace import MAX_SHOWN_TERMS, trace_product
from cypresskit.diagnosis.notes import Note
from cypresskit.diagnosis.verification import Fault, IncorrectElement, Verification
from cypresskit.editing.judgment import what_helps
from cypresskit.editing.small_product import SmallProduct
from cypresskit.editing.static_answers import AnswerPart, code_answer
from cypresskit.editing.steps import shown_speed
from cypresskit.il.errors import last_line
from cypresskit.kernels.products import RUN_ERRORS
from cypresskit.tables import named_lines
from cypresskit.timing.costs import MIN_SHOWN, LineCost, LineCosts, percent
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import report_on

UNIT_NAMES = {"texture": "texture unit", "stores": "store path"}  # where a cost says others
MAX_SHOWN_FAULTS = 8
MIN_COST_SHARE = 0.002  # share of the time: no line that costs less is said to cost the most
UNTIMED = ValueError, RuntimeError, MemoryError


def verdict_answer(verification: Verification, cause: Note | None = None) -> AnswerPart:
    """Return the part "verdict".

    It holds whether C is correct (``right``); ``findings`` (``fault_rows``), each with a message,
    and perhaps kind, line, column and advice; the first as a ``message``; what is said ``aside``.
    """
    findings = fault_rows(verification, cause)
    message = "y is correct." if verification.kernel.is_vector else "C is correct."
    for first in findings[:1]:
        form = "Line {line}, {kind}: {message}." if "kind" in first else "{message}"
        message = form.format(**first)
    asides = [_tested_sizes(verification), *verification.asides] if verification.is_correct else []
    aside = " ".join(asides)
    return {
        "right": verification.is_correct,
        "message": message,
        "findings": findings,
        "aside": aside,
    }


def _tested_sizes(verification: Verification) -> str:
    """Return at which sizes a kernel is correct, in a sentence."""
    sizes = verification.sizes_text
    if verification.at_size:
        m, n, k = verification.at_size.size
        compared, whole = verification.at_size.comparison.elements, m * n
        part = "all" if compared == whole else f"a sample of {compared:,} of"
        sizes += f"; {part} {whole:,} elements at {m} x {n}, k = {k}"
    return f"Tested sizes: {sizes}."


def fault_rows(verification: Verification, first: Note | None) -> list[AnswerPart]:
    """Return what is wrong, in rows; the headline is the first, a note if one is to come first."""
    faults = [*filter(None, [first]), *verification.faults]
    return [_fault_row(fault) for fault in faults[:MAX_SHOWN_FAULTS]]


def _fault_row(fault: Fault) -> AnswerPart:
    if isinstance(fault, IncorrectElement):
        return {"message": f"C is incorrect: {fault}"}
    if isinstance(fault, Note):
        return {"line": fault.line, "message": fault.sentence, "advice": fault.aside}
    fields = "kind", "line", "column", "message", "advice"
    row = {field: getattr(fault, field) for field in fields}
    if fault.kind == "endless loop":  # its advice says why
        row |= {"message": fault.advice.rstrip("."), "advice": fault.message}
    if fault.also:
        row["advice"] += f" Likewise in {named_lines(fault.also)}."
    return row


def replay_answer(
    verification: Verification,
    small: SmallProduct | None,
    place: Sequence[int],
    lead: Callable[[Sequence[Note]], Sequence[Note]],
) -> AnswerPart:
    """Return the part "replay": the terms of the element of C at a place, of the ``small`` product
    unless that doesn't show the fault.

    It holds a ``message`` with the element's place and value; of an incorrect one, ``findings``
    that replace the verdict's, unless that names a cause, and the other ``notes``, in the order in
    which they ``lead`` to it; the first ``terms``, with the ``lines`` that changed them; how many
    ``more`` there are; or a ``problem``, why there are no terms.
    """
    if small is not None and not (
        verification.is_correct or verification.at_size or small.incorrect
    ):
        small = None
    given = small.product if small else verification.product
    try:
        trace = trace_product(given, *place)
        notes = lead(trace.faults) if trace.faults else []
    except RUN_ERRORS as error:
        return {"problem": last_line(error)}
    if small is None:
        row, column = place
        expected = "" if trace.is_correct else f"; it should be {trace.correct_value:.9g}"
        scalars = f"alpha = {given.alpha:g}, beta = {given.beta:g}"
        message = f"C[{row}, {column}]: {trace.value:.9g}{expected}. The test uses {scalars}."
    else:
        message = small.describe(*place)
    if trace.work_item is not None:
        message += f" Work-item {trace.work_item} stores it."
    is_led = verification.faults[:1] == [verification.incorrect_element]
    findings = []
    if is_led and notes:  # or else more is said before it
        findings = fault_rows(replace(verification, incorrect_element=None), notes[0])
    return {
        "message": message,
        "findings": findings,
        "notes": [note.text for note in (notes[1:] if is_led else notes)],
        "terms": [
            {
                "text": term.text,
                "right": term.is_correct,
                "note": term.note.text,
                "line": term.note.line or term.line,
                "lines": list(term.lines),
            }
            for term in trace.terms[:MAX_SHOWN_TERMS]
        ],
        "more": trace.hidden_terms,
    }


def clocks_answer(verification: Verification, time: Callable[[], Report]) -> AnswerPart:
    """Return the part "clocks"; ``time`` times the launch.

    It holds ``size`` [m, n, k]; ``gflops``; what it is ``bound`` by, in words; the ``limit`` in
    them; ``busy`` (shares of the time, by unit); and ``notes`` on what would help and on its time;
    or a ``problem``, why it isn't timed. It is empty for an incorrect kernel, which may run long.
    """
    if not verification.is_correct:
        return {}
    if verification.timing_obstacle:
        return {"problem": f"It isn't timed: {verification.timing_obstacle.clause}."}
    try:
        report = time()
    except UNTIMED as error:
        return {"problem": f"It can't be timed: {last_line(error)}"}
    return {
        "size": report.size,
        "gflops": shown_speed(report.gflops),
        "bound": report.bound,
        "limit": report.limit,
        "busy": dict(report.busy),
        "notes": [what_helps(report.limit, verification.kernel), *_notes_on_time(report)],
    }


def _notes_on_time(report: Report) -> list[str]:
    """Return the clocks, in three digits, since the model is no more precise; and the hit rates."""
    clocks = float(f"{report.clocks:.3g}")
    notes = [f"{report.percent:.3g} % of peak, {clocks:,.0f} clocks{report.uncertainty}"]
    if report.hits:
        rates = (f"{cache} {100 * share:.0f} %" for cache, share in report.hits.items())
        notes.append(f"cache hits: {', '.join(rates)}")
    return notes


def llvm_answer(verification: Verification, time: Callable[[], Report]) -> AnswerPart:
    """Return the part "llvm": LLVM's code, its ``gflops`` if C is correct; ``time`` times ours."""
    program = verification.kernel.program
    answer = code_answer(program, by="llvm")
    if "refusal" in answer or not verification.is_correct:
        return answer
    with suppress(*UNTIMED):
        theirs = report_on(replace(time().launch, compiled=compile(program, by="llvm")))
        answer["gflops"] = shown_speed(theirs.gflops)
    return answer


def costs_answer(found: LineCosts) -> AnswerPart:
    """Return the part "costs": what lines cost.

    It holds ``lines``: line, ``cost`` (as a share of the time), the cost as it is ``shown``, and a
    ``text``; ``costliest``, the lines that cost the most, if they cost much; and a ``message``.
    """
    rows = [_cost_row(line) for line in found.lines]
    if not rows or found.most_expensive.cost < MIN_COST_SHARE:
        return {"lines": rows, "costliest": [], "message": "No single line costs much."}
    first = found.most_expensive
    alike = [line.line for line in found.lines if line.is_close_to(first)]
    message = f"Line {first.line} costs the most: {first} of the time."
    if len(alike) > 1:
        message = f"{len(alike)} lines cost the most, such as line {alike[0]}: {first} each."
    return {"lines": rows, "costliest": alike, "message": message}


def _cost_row(cost: LineCost) -> AnswerPart:
    """Return a line's cost, and the unit that works for it."""
    name = UNIT_NAMES.get(cost.unit, cost.unit)
    text = f"Cost {cost}. The {name} works on this line {percent(cost.share)} of the time."
    shown = percent(cost.cost).removesuffix(" %") if cost.cost >= MIN_SHOWN else ""
    same_everywhere = round(cost.cost, 5)  # also in the page's Python, whose last digits differ
    return {"line": cost.line, "cost": same_everywhere, "shown": shown, "text": text}
