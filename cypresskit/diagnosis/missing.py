"""Why a term is missing from a sum: its factors weren't read, or not multiplied, or their product
was lost on its way to the store.
"""

from collections.abc import Collection, Mapping

from cypresskit.diagnosis.coordinates import Fetches
from cypresskit.diagnosis.elements import Elements, MatrixElement
from cypresskit.diagnosis.notes import Note, note
from cypresskit.diagnosis.operands import Reading, TracedRun
from cypresskit.il.dataflow import Key, defines
from cypresskit.il.program import LETTERS

OVERWRITTEN_KINDS = "overwritten", "overwritten next"  # kinds of notes on a product


def explain_missing(
    fetches: Mapping[str, Fetches], run: TracedRun, elements: Elements
) -> tuple[Note, tuple[Reading, ...]]:
    """Return why a correct term is missing, and its factors with the lines that read them. Of what
    is made, or read, several times, the last product counts, and the first read.
    """
    readings = tuple(
        Reading(element, run.line(run.reads[element][0]) if element in run.reads else 0)
        for element in elements
    )
    is_old = elements == run.traced.old_term
    outside = [step for step in run.empty_loads if run.instruction(step).op.kind != "lds"]
    if is_old and readings[0].line and outside:
        return note("loads outside", *map(run.line, outside)), readings
    if made := run.products.get(elements):
        return _explain_lost(run, *made[-1]), readings
    if is_old:
        return _explain_old(fetches["C"]), readings
    if all(reading.line for reading in readings):
        return _explain_unmultiplied(run, elements), readings
    absent = next(reading.element for reading in readings if not reading.line)
    return _explain_unread(fetches[absent.matrix], absent), readings


def _explain_lost(run: TracedRun, step: int, register: int, component: int) -> Note:
    """Return where a product that was made at a step was lost: of its copies that were overwritten,
    the last whose register what is stored was then computed from, or else the last of all.
    """
    key = register, component
    held = {key: step}  # where it is, and the step that wrote it there
    losses: list[tuple[int, Key, int]] = []
    for later in range(step + 1, run.store):
        written = defines(run.instruction(later))
        kept = [place for place in written if _reads_any(run, later, place, held)]
        lost = {place: held.pop(place) for place in written if place in held and place not in kept}
        held |= dict.fromkeys(kept, later)
        losses += ((at, place, later) for place, at in lost.items())
    losses_of_sum = [loss for loss in losses if (loss[2], loss[1][1]) in run.summed_nodes]
    if losses_of_sum or not held:
        return _name_overwriting(run, *(losses_of_sum or losses)[-1])
    return note("elsewhere", run.line(step), run.line(run.store), at=1, register=run.name(key))


def _reads_any(run: TracedRun, step: int, place: Key, held: Collection[Key]) -> bool:
    """Return whether a step computes a component from any of those that are held."""
    return any(run.key(at) in held for at in run.operands(step, place[1]))


def _name_overwriting(run: TracedRun, step: int, place: Key, later: int) -> Note:
    """Return the note on a product that a step put into a place, and a later one overwrote."""
    line, register = run.line(step), run.name(place)
    if run.steps[later].at == run.steps[step].at:
        return note("overwritten next", line, register=register)
    return note("overwritten", line, run.line(later), at=1, register=register)


def _explain_old(fetches: Fetches) -> Note:
    """Return why the old value of C is missing, from C's fetches."""
    run = fetches.run
    if late := find_late_read(run):
        return late
    (element,) = run.traced.old_term
    readers = run.reads.get(element, ())
    if not readers:
        if run.readers("C"):
            return _explain_unread(fetches, element)
        if skipped := fetches.explain_skipped():
            return skipped
    for step in readers:
        for key in defines(run.instruction(step)):
            if run.elements.get(run.steps[step].words[key[1]]) == element:
                lost = _explain_lost(run, step, *key)
                if lost.kind in OVERWRITTEN_KINDS:
                    return lost
    return note("old C", *sorted({*map(run.line, readers)}), beta=run.traced.product.beta)


def find_late_read(run: TracedRun) -> Note | None:
    """Return the note on a read of C from where this work-item had stored; or None."""
    readers = run.readers("C")
    for step, stored in run.recorded.late_reads.items():
        if step in readers:
            return note("late read", run.line(step), run.line(stored))
    return None


def _explain_unmultiplied(run: TracedRun, elements: Elements) -> Note:
    """Return why two factors that were read weren't multiplied with each other: the mask of a line
    leaves their component out, or the line that adds up multiplies one of them by a number.
    """
    (stored, *_) = map(run.key, run.operands(*run.stored_node))
    for step in reversed(range(run.store)):
        i, line = run.instruction(step), run.line(step)
        for c, letter in enumerate(LETTERS if i.op.multiplies else ""):
            pair = [at._replace(position=c) for at in run.operands(step, c)[:2]]
            held = {*map(run.element, pair)} & {*elements}
            numbers = [number for at in pair if (number := run.number(at)) is not None]
            if len(held) == 2:
                return note("masked", line, component=letter)
            if held and numbers and stored in defines(i) and stored[1] == c:
                (other,) = {*elements} - held
                return note("by number", line, element=held.pop(), number=numbers[0], other=other)
    lines = dict.fromkeys(run.line(run.reads[element][0]) for element in elements)
    return Note("not multiplied", 0, (*lines,))  # none is to look at first: each is right


def _explain_unread(fetches: Fetches, element: MatrixElement) -> Note:
    """Return why no line read an element, or else what reads outside of its matrix, which gives
    zeros (no element is 0 here), or others of it.
    """
    run, why = fetches.run, fetches.explain(element)
    if why:
        return note("not fetched", *why.lines, element=element, why=why)
    readers = run.readers(element.matrix)
    outside = [step for step in readers if not any(run.read_words(step))]
    lines = sorted({*map(run.line, outside or readers)})
    kind = "reads outside" if outside else "unread"
    return note(kind, *lines, at=-1, element=element, matrix=element.matrix)
