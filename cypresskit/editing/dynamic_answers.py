"""Answers that run a kernel or simulate its time: is C correct, how fast is it, what do lines cost?

All results are plain data for JSON. One that can't be had says why.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

from cypresskit.compiler import compile
from cypresskit.diagnosis.element_trace import MAX_SHOWN_TERMS, ElementTrace
from cypresskit.diagnosis.notes import Note
from cypresskit.diagnosis.product_run import IncorrectElement
from cypresskit.diagnosis.verification import Fault, Verification
from cypresskit.editing.judgment import begins_with_notes, what_helps
from cypresskit.editing.protocol import AnswerPart
from cypresskit.editing.static_answers import code_answer
from cypresskit.editing.steps import shown_speed
from cypresskit.il import Program
from cypresskit.kernels import Kernel
from cypresskit.machine.checks.findings import ENDLESS_LOOP
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

    It holds whether C is correct (``is_correct``); ``findings``, first the ``cause``, each with a
    message, and perhaps kind, line, column and advice; the first as a ``message``; and, of a
    correct kernel, at which sizes, and remarks (``aside``).
    """
    findings = fault_rows([*filter(None, [cause]), *verification.faults])
    message = "C is correct."
    if findings:
        form = "Line {line}, {kind}: {message}." if "kind" in findings[0] else "{message}"
        message = form.format(**findings[0])
    asides = [_tested_sizes(verification), *verification.asides] if verification.is_correct else []
    return {
        "is_correct": verification.is_correct,
        "message": message,
        "findings": findings,
        "aside": " ".join(asides),
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


def fault_rows(faults: Sequence[Fault]) -> list[AnswerPart]:
    """Return what is wrong, in rows, of which the first is the headline."""
    return [_fault_row(fault) for fault in faults[:MAX_SHOWN_FAULTS]]


def _fault_row(fault: Fault) -> AnswerPart:
    if isinstance(fault, IncorrectElement):
        return {"message": f"C is incorrect: {fault}"}
    if isinstance(fault, Note):
        return {"line": fault.line, "message": fault.sentence, "advice": fault.aside}
    fields = "kind", "line", "column", "message", "advice"
    row = {field: getattr(fault, field) for field in fields}
    if fault.kind == ENDLESS_LOOP:  # its advice says why
        row |= {"message": fault.advice.rstrip("."), "advice": fault.message}
    if fault.other_lines:
        row["advice"] += f" Likewise in {named_lines(fault.other_lines)}."
    return row


def describe_element(trace: ElementTrace) -> str:
    """Describe a traced element: its place, its value, the correct one, and the scalars."""
    expected = "" if trace.is_correct else f"; it should be {trace.correct_value:.9g}"
    return (
        f"C[{trace.row}, {trace.column}]: {trace.value:.9g}{expected}. The test uses alpha ="
        f" {trace.product.alpha:g}, beta = {trace.product.beta:g}."
    )


def replay_answer(
    trace: ElementTrace, message: str, verification: Verification, notes: Sequence[Note]
) -> AnswerPart:
    """Return the part "replay": the terms of a traced element of C. Of its ``notes``, the first may
    come before all faults.

    It holds a ``message`` that describes the element; of an incorrect one, ``findings`` that
    replace the verdict's, if there are any, and other ``notes``; the first ``terms``, with the
    ``lines`` that changed them; how many ``more`` there are; or a ``problem``, why there are no
    terms.
    """
    if trace.work_item is not None:
        message += f" Work-item {trace.work_item} stores it."
    faults: list[Fault] = []
    if notes and begins_with_notes(verification):
        first, *notes = notes
        faults = [first, *replace(verification, incorrect_element=None).faults]
    return {
        "message": message,
        "findings": fault_rows(faults),
        "notes": [note.text for note in notes],
        "terms": [
            {
                "text": term.text,
                "is_correct": term.is_correct,
                "note": term.note.text,
                "line": term.note.line or term.line,
                "lines": list(term.lines),
            }
            for term in trace.terms[:MAX_SHOWN_TERMS]
        ],
        "more": trace.hidden_terms,
    }


def clocks_answer(timing: Report | str, kernel: Kernel) -> AnswerPart:
    """Return the part "clocks" of a kernel, with its time, or why it has none.

    It holds ``size`` [m, n, k]; ``gflops``; what it is ``bound`` by, in words; the ``limit`` in
    them; ``busy`` (shares of the time, by unit); what would ``help``; and ``notes`` on its time; or
    a ``problem``, why it isn't timed; "" for an incorrect kernel.
    """
    if isinstance(timing, str):
        return {"problem": timing}
    return {
        "size": timing.size,
        "gflops": shown_speed(timing.gflops),
        "bound": timing.bound,
        "limit": timing.limit,
        "busy": dict(timing.busy),
        "help": what_helps(timing.limit, kernel),
        "notes": _notes_on_time(timing),
    }


def _notes_on_time(report: Report) -> list[str]:
    """Return the clocks, in three digits, since the model is no more precise; and the hit rates."""
    clocks = float(f"{report.clocks:.3g}")
    notes = [f"{report.percent:.3g} % of peak, {clocks:,.0f} clocks{report.uncertainty}"]
    if report.hits:
        rates = (f"{cache} {100 * share:.0f} %" for cache, share in report.hits.items())
        notes.append(f"cache hits: {', '.join(rates)}")
    return notes


def llvm_answer(timing: Report | str, program: Program) -> AnswerPart:
    """Return the part "llvm": LLVM's code, and its ``gflops`` if ours has a time."""
    answer = code_answer(program, by="llvm")
    if "refusal" in answer or isinstance(timing, str):
        return answer
    with suppress(*UNTIMED):
        theirs = report_on(replace(timing.launch, compiled=compile(program, by="llvm")))
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
