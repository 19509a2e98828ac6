"""Why a term is missing from a sum: its factors weren't read, or not multiplied, or their product
was lost on its way to the store.
"""

from dataclasses import replace
from itertools import chain

from cypresskit.diagnosis.elements import Elements, MatrixElement
from cypresskit.diagnosis.notes import Lines, Note, Values, note
from cypresskit.diagnosis.operands import Reading, TracedRun
from cypresskit.diagnosis.source_facts import reads_old_c
from cypresskit.il.dataflow import defines, keys, uses
from cypresskit.il.program import LETTERS
from cypresskit.kernels.convention import MATRICES


def explain_missing(run: TracedRun, elements: Elements) -> tuple[Note, tuple[Reading, ...]]:
    """Return why a correct term is missing, and its factors with the lines that read them."""
    steps = (run.reads.get(element) for element in elements)
    readings = tuple(
        Reading(element, run.line(read[0]) if read else 0) for element, read in zip(elements, steps)
    )
    if made := run.products.get(elements):
        return _lost(run, *made[-1]), readings
    if elements == run.traced.old:
        return _old_c(run), readings
    if all(reading.line for reading in readings):
        return _not_multiplied(run, elements), readings
    return _unread(run, readings), readings


def _lost(run: TracedRun, step: int, register: int, component: int) -> Note:
    """Return where a product that was made at a step was lost."""
    line, key = run.line(step), (register, component)
    names: Values = {"register": f"r{register}.{LETTERS[component]}"}
    for later in range(step + 1, run.store):
        i = run.instruction(later)
        if key in defines(i) and key not in keys(uses(run.program, i)):
            if i.line != line:
                return note("overwritten", line, i.line, at=1, **names)
            adds = len(i.sources) > 2
            return note("overwritten next" if adds else "only multiplied", line, **names)

    (stored, *_) = run.operands(run.store, run.traced.place.word)
    names["name"] = "" if run.key(stored) == key else run.name(stored)
    return note("elsewhere", line, run.line(run.store), at=1, **names)


def _old_c(run: TracedRun) -> Note:
    """Return why the old value of C is missing."""
    if late := find_late_read(run):
        return late
    (element,) = run.traced.old
    own = run.reads.get(element, ())
    if not own and (outside := _outside(run, element)):
        return outside
    return note("old", *sorted({*map(run.line, own)}), beta=run.traced.given.beta)


def find_late_read(run: TracedRun) -> Note | None:
    """Return the note on a read of C that got what this work-item had stored there; or None."""
    stored: dict[int, int] = {}  # the first step that stored each word
    for step, record in enumerate(run.steps):
        late = [stored[word] for word in run.read_words(step) if word in stored]
        if late and _reads(run, step, "C"):
            return note("late read", run.line(step), run.line(late[0]))
        dest = run.instruction(step).dest
        if dest and dest.register.kind == "g":
            stored = dict.fromkeys(filter(None, record.words.values()), step) | stored
    return None


def _reads(run: TracedRun, step: int, matrix: str) -> bool:
    """Return whether a step reads a matrix, wherever."""
    i = run.instruction(step)
    if matrix == "C":
        return reads_old_c(run.traced.kernel, i)
    return i.op.kind == "fetch" and MATRICES.get(i.controls.resource) == matrix


def _outside(run: TracedRun, element: MatrixElement) -> Note | None:
    """Return the note on the lines that, for want of an element, read outside of its matrix and get
    zeros: no element is 0 here. It names what set their only wrong coordinate, unless that is right
    for another term: which term a read was for isn't known.
    """
    steps = (step for step in range(len(run.steps)) if _reads(run, step, element.matrix))
    outside = [step for step in steps if not any(run.read_words(step))]
    if not outside:
        return None
    lines = sorted({*map(run.line, outside)})
    others = (e for terms in run.traced.correct for e in terms if e.matrix == element.matrix)
    why = run.set_by(run.wrong_coordinate(outside, element, others))
    names: Values = {"read": Lines(lines), "matrix": element.matrix, "why": why}
    return note("outside", *lines, *why.lines, **names)


def _not_multiplied(run: TracedRun, elements: Elements) -> Note:
    """Return why two factors that were read weren't multiplied with each other."""
    (stored, *_) = run.operands(run.store, run.traced.place.word)
    for element, other in (elements, elements[::-1]):
        made = run.products.get((element,), ())
        own = [one for one in made if one[1:] == run.key(stored)]  # others are of other sums
        for step, _, c in own[-1:]:
            factors = run.operands(step, c)
            if factors[2:]:  # it adds the product
                number = next(filter(lambda it: it is not None, map(run.number, factors)))
                names: Values = {"element": element, "number": number, "other": other}
                return note("by number", run.line(step), **names)
    lines = dict.fromkeys(run.line(run.reads[element][0]) for element in elements)
    return Note("not multiplied", 0, (*lines,))


def _unread(run: TracedRun, readings: tuple[Reading, ...]) -> Note:
    """Return which factor wasn't read, and what reads others of its matrix."""
    absent = next(reading.element for reading in readings if not reading.line)
    alike = (e for terms in run.traced.correct for e in terms if e.matrix == absent.matrix)
    reads = [*chain.from_iterable(run.reads.get(element, ()) for element in alike)]
    if outside := _outside(run, absent):
        return outside
    if not reads:  # none of this sum
        reads = [at[0] for e, at in run.reads.items() if e.matrix == absent.matrix]
    names: Values = {"element": absent, "matrix": absent.matrix}
    if not reads and (branch := _skips(run, absent.matrix)):
        return replace(branch, values=names | branch.values)
    return note("unread", *sorted({*map(run.line, reads)}), at=-1, **names)


def _skips(run: TracedRun, matrix: str) -> Note | None:
    """Return the note on a branch that skips all fetches of a matrix; None if one of them ran."""
    ran = [run.instruction(step) for step in range(len(run.steps))]
    fetches = (i for i in run.program.body if i.op.kind == "fetch")
    lines = {i.line for i in fetches if MATRICES.get(i.controls.resource) == matrix}
    skipped = Lines(sorted(lines - {i.line for i in ran}))
    branches = [n for n, i in enumerate(ran) if i.op.flow and skipped and i.line < skipped[0]]
    if not branches or len(skipped) < len(lines):
        return None
    last = max(branches, key=lambda step: (ran[step].line, step))
    tested = keys(uses(run.program, ran[last]))
    writers = [run.recorded.last_writer(key, last) for key in tested]
    sets = [ran[step].line for step in writers if step is not None]
    return note("skipped", ran[last].line, *sets[:1], skipped=skipped)
