"""Trace an incorrect element of C to the faulty instruction (``trace_element``).

The sum that the element's work-item stored is followed back to what it read (``slices``). Each term
of the sum is listed with the lines that read its factors and multiplied them. A correct sum has
each product of a row of op(A) and a column of op(B) once. Missing, repeated and other terms are
marked; if another element should have been read, the trace names it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from operator import index
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.slices import (
    NO_ELEMENT,
    UNKNOWN,
    Addend,
    Elements,
    MatrixElement,
    Reading,
    Slice,
    StoreRecorder,
    TracedElement,
    correct_products,
)
from cypresskit.diagnosis.verification import factors, verify
from cypresskit.il.dataflow import defines
from cypresskit.il.errors import shorten
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import Product, Size, blocks, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import listed, quantity

SHOWN = 40  # most terms printed


class Note(NamedTuple):
    """What is wrong with a term, or with a whole sum: ``text``, a sentence that says what was
    found; ``line``, the one to look at first, or 0; ``lines``, all that the sentence names.

    ``kind`` is "factor" if a line has an element in place of another, "unread" if no line reads an
    element, "lost" if its product isn't stored, "store" if the sum of another element is stored,
    "no store", "repeated" if a product is added again, or "".
    """

    text: str = ""
    line: int = 0
    lines: tuple[int, ...] = ()
    kind: str = ""


RIGHT = Note()
NOWHERE = Note(
    "No work-item stores this element: check the addresses, and the size of the domain.",
    kind="no store",
)
OTHER = Note(
    "The terms aren't known: the value came through the LDS or memory, depends on a branch, or is"
    " the result of another operation than sums and products."
)


@dataclass(frozen=True)
class Term:
    """A term of an element's sum.

    Attributes
    ----------
    kind
        "right"; "wrong": not in the correct sum; "repeated"; "missing"; "scaled": ``times`` is
        incorrect.
    line
        The line that multiplied its factors and added it; 0 if it is missing.
    factors
        The elements that were read.
    times
        Its scalar factor, alpha if it is correct.
    k
        Its index in the correct sum, or None.
    note
        The fault; its text is "" for a correct term.
    lines
        All lines that computed the term, the note's first.
    step
        Index of ``line`` among the executed instructions.
    """

    kind: str
    line: int
    factors: tuple[Reading, ...]
    times: float
    k: int | None
    note: Note
    lines: tuple[int, ...]
    step: int = -1

    @property
    def right(self) -> bool:
        return self.kind == "right"

    def __str__(self) -> str:
        product = _product(reading.element for reading in self.factors)
        times = "" if self.times == 1 else f"{self.times:g} · "
        at = f"line {self.line}" if self.line else "nowhere"
        prefix = "  " if self.right else "! "
        return f"{prefix}{at:>9}  {times}{product}" + (
            f"    {self.note.text}" if self.note.text else ""
        )


@dataclass(frozen=True)
class ElementTrace:
    """The terms of C[``row``, ``column``] in a product.

    Attributes
    ----------
    kernel, row, column, size
        The kernel, the element, and m, n and k of the product.
    terms
        The terms in the order in which they were added, missing ones last.
    faults
        What is wrong with the sum.
    work_item, line
        The work-item that stored the element, at ``line``; None if none did.
    got, expected
        The element, and its correct value.
    alpha, beta
        The scalars of the product.
    """

    kernel: Kernel
    row: int
    column: int
    size: Size
    terms: tuple[Term, ...]
    faults: tuple[Note, ...]
    work_item: tuple[int, int] | int | None
    line: int
    got: float
    expected: float
    alpha: float
    beta: float

    @property
    def right(self) -> bool:
        """Whether the sum has all of its terms and no others."""
        return not self.faults

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences of the faults."""
        return tuple(fault.text for fault in self.faults)

    def __str__(self) -> str:
        head = f"C[{self.row}, {self.column}] of {self.kernel.name}"
        if self.work_item is not None:
            head += f", stored by work-item {self.work_item} at line {self.line}"
        lines = [f"{head}: {self.got:.9g}"]
        lines[0] += " is correct" if self.right else f" in place of {self.expected:.9g}"
        lines += self.notes
        lines += map(str, self.terms[:SHOWN])
        if len(self.terms) > SHOWN:
            lines.append(f"... and {len(self.terms) - SHOWN} more terms")
        return "\n".join(lines)

    __repr__ = __str__


def trace_element(
    kernel: Source,
    row: int | None = None,
    column: int | None = None,
    *,
    size: Size | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> ElementTrace:
    """Return each term of an element of C, with the line that added it.

    Parameters
    ----------
    kernel
        A kernel, or its name, source, file or program.
    row, column
        The element of C; by default the first incorrect one by ``ck.verify``, or else [0, 0].
    size
        m, n and k of the product; by default the first at which ``ck.verify`` finds the kernel
        incorrect, or else the smallest that it tries.
    alpha, beta
        As for ``ck.verify``.

    Returns
    -------
    ElementTrace
        The ``terms``, and the ``faults``, with their sentences in ``notes``. A sum that passes
        through memory or the LDS, as of a kernel that adds up parts, has no terms.

    Raises
    ------
    ValueError
        For a row without a column, for an element outside of C, and for a kernel that its
        convention can't launch.
    KernelError
        For an infinite loop or a store out of range, before the element was stored.

    Examples
    --------
    >>> text = ck.kernels["sgemm_tn"].text.replace("mad r10, r2.x,", "mad r10, r2.y,", 1)
    >>> mine = ck.load_kernel(text, like="sgemm_tn")
    >>> print(ck.trace_element(mine, 0, 3).notes[0])
    Line 54 multiplies A[0, 1] in place of A[0, 0]. The same fault affects 1 more term.
    """
    known = resolve(kernel)
    _check_place(row, column)
    alpha, beta = factors(known, alpha, beta)
    if size is None or row is None or column is None:
        checked = verify(known, alpha=alpha, beta=beta)
        if size is None:
            size = checked.size or blocks(known, 1, 2, 2)
        if row is None or column is None:
            wrong = checked.wrong if checked.size == size else None
            row, column = (wrong.row, wrong.column) if wrong else (0, 0)
    row, column = int(row), int(column)
    m, n, k = map(index, size)
    if not (0 <= row < m and 0 <= column < n):
        raise ValueError(f"C is {m} x {n}: it has no element [{row}, {column}]")
    return trace_product(make_product(known, (m, n, k), alpha, beta), row, column)


def trace_product(given: Product, row: int, column: int) -> ElementTrace:
    """Return the trace of an element of a small product; the errors are ``trace_element``'s."""
    kernel, traced = given.kernel, TracedElement(given, row, column)
    stores = StoreRecorder(traced.place)
    got = float("nan")
    try:
        result = given.run(observers=[stores])
        got = float(result.reshape(-1, *given.size[:2])[0, row, column])
    except KernelError:
        if stores.writer is None:
            raise
    expected = float(given.expected.reshape(-1, *given.size[:2])[0, row, column])
    terms: list[Term] = []
    place, line = None, 0
    if stores.writer is None:
        faults = [NOWHERE]
    else:
        at, item = stores.writer
        line = kernel.program.body[at].line
        sliced = Slice(traced, item)
        place = stores.shape.place(item)
        faults = [OTHER] if got != expected else []
        if sliced.singles or not any(UNKNOWN in elements for elements in sliced.terms):
            terms, judged = _Judge(traced, sliced).judged()
            faults = judged or faults
    return ElementTrace(
        kernel,
        row,
        column,
        given.size,
        tuple(terms),
        tuple(faults),
        place,
        line,
        got,
        expected,
        given.alpha,
        given.beta,
    )


def _check_place(row: object, column: object) -> None:
    """Raise ``ValueError`` unless row and column are both integers, or both None."""
    if row is None and column is None:
        return
    for number in (row, column):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ValueError(
                "row, column are two whole numbers, the place of an element of C, such as"
                f" ck.trace_element(kernel, 2, 3); found row = {shorten(row)},"
                f" column = {shorten(column)}"
            )


class _Judge:
    """Decides which terms of an element are correct, from the slice of its sum."""

    def __init__(self, traced: TracedElement, sliced: Slice) -> None:
        self.traced, self.slice = traced, sliced
        self.kernel, self.given = traced.kernel, traced.given
        self.line = sliced.line(sliced.store)
        self.old: Elements = (MatrixElement("C", traced.row, traced.column),)
        self.terms = {e: addends for e, addends in sliced.terms.items() if UNKNOWN not in e}
        wanted = correct_products(self.kernel, traced.row, traced.column, self.given.size[2])
        self.right: dict[Elements, int | None] = {e: k for k, e in enumerate(wanted)}
        if self.given.beta:
            self.right[self.old] = None

    def judged(self) -> tuple[list[Term], list[Note]]:
        """Return the terms in the order in which they were added, missing ones last; and faults."""
        terms: list[Term] = []
        missing: list[Elements] = []
        for elements in self.right:
            if elements in self.terms:
                terms += self._wanted_terms(elements)
            else:
                missing.append(elements)
        extra = [elements for elements in self.terms if elements not in self.right]
        whole = self._note_on_halves() or self._another_element(extra, missing)
        terms += self._extra_terms(extra, missing)
        terms += [self._missing(elements) for elements in missing]
        terms.sort(key=lambda term: (term.kind == "missing", term.step))
        if whole:  # one fault affects the whole sum
            terms = [replace(term, note=Note(line=whole.line)) for term in terms]
            return [replace(t, kind="wrong") if t.right else t for t in terms], [whole]
        faults = _faults(terms)
        if number := self.slice.number:
            text = f"The sum includes {number:g}, which is from no matrix. Does the sum start at 0?"
            faults.append(Note(text))
        return terms, faults

    def _name(self, elements: Elements) -> str:
        """Return the name of a correct term."""
        if elements == self.old:
            return f"The old value of {elements[0]}"
        return f"Term k = {self.right[elements]}"

    def _scalar(self, elements: Elements) -> tuple[str, float]:
        """Return the name and value of the scalar that multiplies a correct term."""
        given = self.given
        return ("beta", given.beta) if elements == self.old else ("alpha", given.alpha)

    def _note_on_halves(self) -> Note | None:
        """Return a note if a line computes with halves of doubles."""
        if not self.slice.singles:
            return None
        line, name = self.slice.singles[0]
        text = (
            f"Line {line} multiplies with {name}, which takes its operands as floats. These are"
            f" halves of doubles: use d{name.replace('f', '')}."
        )
        return Note(text, line, (line,))

    def _another_element(self, extra: list[Elements], missing: list[Elements]) -> Note | None:
        """Return a note if the whole sum belongs to another element.

        An element of the same block counts only if the correct sum was computed, too, or if another
        line stores the same number.
        """
        products: set[Elements] = {elements for elements in extra if len(elements) == 2}
        olds = [elements for elements in extra if len(elements) == 1]
        first = min(products, default=())
        if len(missing) < len(self.right) or _letters(first) != "AB":
            return None
        a, b = first
        row = a.column if self.kernel.trans_a else a.row
        column = b.row if self.kernel.trans_b else b.column
        others = {*correct_products(self.kernel, row, column, self.given.size[2])}
        old = [(MatrixElement("C", row, column),)] if self.given.beta else []
        if products != others or olds != old:
            return None
        other = f"sum of C[{row}, {column}]"
        is_near = self._block(row, column) == self._block(*self.old[0][1:])
        if is_near and not self._is_stored_twice():
            if not any(elements in self.slice.products for elements in self.right):
                return None
        streams = self.kernel.convention.streams
        if streams and not is_near:
            text = f"The {other} is stored here: check the coordinates of the fetches."
            return Note(text, kind="store")
        check = "register" if streams else "address and register"
        text = (
            f"Line {self.line} stores the {other} in place of C[{self.traced.row},"
            f" {self.traced.column}]'s. Check the line's {check}."
        )
        return Note(text, self.line, (self.line,), "store")

    def _is_stored_twice(self) -> bool:
        """Return whether another line, too, stores the register that is stored here."""
        stored = self.slice.instruction(self.slice.store).sources[:1]
        stores = (i for i in self.kernel.program.body if i.dest and i.dest.register.kind in "go")
        return any(i.line != self.line and i.sources[:1] == stored for i in stores)

    def _block(self, row: int, column: int) -> tuple[int, int]:
        """Return the block of an element."""
        rows, columns = self.kernel.block
        return row // rows, column // columns

    # Correct terms

    def _wanted_terms(self, elements: Elements) -> list[Term]:
        """Return the terms with the factors of a correct one.

        The first one may be scaled incorrectly; the others are repeated.
        """
        scalar, value = self._scalar(elements)
        first, *others = addends = self.terms[elements]
        k = self.right[elements]
        whole = sum(addend.times for addend in addends)
        is_pair = self.kernel.precision == "double-double"  # whose parts are added one by one
        if others and (is_pair or any(addend.times != value for addend in addends)):
            first, others = replace(first, times=whole), []
        if first.times == value:
            terms = [self._term("right", first, k)]
        else:
            text = f"{self._name(elements)} is multiplied by {first.times:g}, not by {scalar} ="
            lines = [self.slice.line(step) for step in first.scaled[-1:]]
            see = f": see line {lines[0]}" if lines and first.times != -value else ""
            note = Note(f"{text} {value:g}{see}.", (*lines, self.line)[0], (*lines,))
            terms = [self._term("scaled", first, k, note)]
        again = "twice" if len(addends) == 2 else f"{len(addends)} times"
        for addend in others:
            lines = sorted({self._line(first), self._line(addend)})
            pairs = zip(first.factors, addend.factors)
            anew = [one for one, two in pairs if one.step != two.step and one.line == two.line]
            if lines[1:]:
                text = f"Term k = {k} is added {again}: at lines {listed(lines)}."
            elif anew:
                lines.append(anew[0].line)
                text = f"Line {lines[1]} reads {anew[0]} {again} for term k = {k}."
            else:
                text = f"Line {lines[0]} adds term k = {k} to the sum {again}."
            note = Note(text, lines[-1], (*lines,), "repeated")
            terms.append(self._term("repeated", addend, k, note))
        return terms

    # Terms that don't belong in the sum

    def _extra_terms(self, extra: list[Elements], missing: list[Elements]) -> list[Term]:
        """Return the terms that don't belong in the sum, each with the term that it replaces.

        Replaced terms are removed from ``missing``.
        """
        result = []
        products = self.slice.products
        nowhere = [some for some in missing if some == self.old or some not in products]
        for added in sorted(extra, key=lambda elements: self.terms[elements][0].made):
            addend = self.terms[added][0]
            alike = [elements for elements in nowhere if _letters(elements) == _letters(added)]
            shared = [elements for elements in alike or nowhere if set(elements) & set(added)]
            instead = (shared if alike or len(added) == 2 else []) + alike
            if instead:
                missing.remove(instead[0])
                nowhere.remove(instead[0])
                result.append(self._replacing(addend, instead[0]))
                continue
            line = self._line(addend)
            text = f"Line {line} adds {_product(added)}, which doesn't belong in this sum."
            if len(added) == 1 and added[0].matrix != "C":
                text = f"Line {line} adds {added[0]} without a second factor."
            result.append(self._term("wrong", addend, None, Note(text, line, (line,))))
        return result

    def _replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        line = self._line(addend)
        alike = _letters(addend.elements) == _letters(wanted)
        element = next((e for e in addend.elements if alike and e not in wanted), NO_ELEMENT)
        belongs = next((w for w in wanted if w.matrix == element.matrix), None)
        kind = "factor"
        if belongs is None:
            text = f"adds {_product(addend.elements)} in place of {_product(wanted)}"
        elif self.slice.holds(belongs, addend.made):
            text = f"multiplies {element} in place of {belongs}"
        else:
            read = next(read for read in addend.factors if read.element == element)
            if belongs not in self.slice.reads and self._is_right_elsewhere(read, addend):
                text = f"multiplies {element}; no line reads {belongs}, which belongs here"
                kind = "unread"
            else:
                line, text = read.line, f"reads {element} in place of {belongs}"
        note = Note(f"Line {line} {text}.", line, (line,), kind)
        return self._term("wrong", addend, self.right[wanted], note)

    def _is_right_elsewhere(self, read: Reading, addend: Addend) -> bool:
        """Return whether another line makes a correct term of what was read, or the same product
        for another sum.
        """
        sliced = self.slice
        addends = sum((self.terms.get(elements, ()) for elements in self.right), ())
        steps = [other.made for other in addends if read in other.factors]
        for step, _, c in sliced.products.get(addend.elements, ()):
            steps += [step] * (read in map(sliced.read, sliced.operands(step, c)[:2]))
        return any(sliced.line(step) != self._line(addend) for step in steps)

    # Missing terms

    def _missing(self, elements: Elements) -> Term:
        """Return a term that was not added."""
        readings = tuple(Reading(e, self._read_at(e)) for e in elements)
        reason = self._reason(elements, readings)
        product = "" if elements == self.old else f", {_product(elements)},"
        note = reason._replace(text=f"{self._name(elements)}{product} is missing: {reason.text}.")
        touched = dict.fromkeys([reason.line, *(reading.line for reading in readings)])
        lines = tuple(line for line in touched if line)
        return Term(
            "missing", 0, readings, self._scalar(elements)[1], self.right[elements], note, lines
        )

    def _reason(self, elements: Elements, readings: tuple[Reading, ...]) -> Note:
        """Return why a term is missing; the text is the end of a sentence."""
        sliced = self.slice
        readers = [*dict.fromkeys(reading.line for reading in readings if reading.line)]
        first = readers[0] if readers else 0
        if made := sliced.products.get(elements):
            return self._lost(*made[-1])
        if elements == self.old:
            where = f"{_readers(readers)} it; " if readers else ""
            return Note(f"{where}add it, times beta = {self.given.beta:g}", first, (*readers,))
        if all(reading.line for reading in readings):
            text = f"{_readers(readers)} its factors, but no line multiplies them in that iteration"
            return Note(text, 0, (*readers,))
        absent = next(reading.element for reading in readings if not reading.line)
        lines = [*dict.fromkeys(map(sliced.line, self._steps_of(absent.matrix)))]
        others = f"; {_readers(lines)} other elements of {absent.matrix}" if lines else ""
        line = lines[0] if lines else 0
        return Note(f"no line reads {absent}{others}", line, (*lines,), "unread")

    def _lost(self, step: int, register: int, component: int) -> Note:
        """Return where a product that was made at a step was lost; the text is the end of a
        sentence.
        """
        sliced = self.slice
        line = sliced.line(step)
        left = f"line {line} puts it into r{register}.{LETTERS[component]}, which"
        for later in range(step + 1, len(sliced.steps)):
            i = sliced.instruction(later)
            writes = (register, component) in defines(i)
            keeps = any((s.register.kind, s.register.index) == ("r", register) for s in i.sources)
            if writes and not keeps:
                again = "the next iteration" if i.line == line else f"line {i.line}"
                return Note(f"{left} {again} overwrites", i.line, (line, i.line), "lost")
        if step > sliced.store:
            text = f"line {line} adds it after line {self.line}, which stores this element"
            return Note(text, self.line, (line, self.line), "lost")
        return Note(f"{left} isn't stored to this element", line, (line,), "lost")

    def _steps_of(self, matrix: str) -> list[int]:
        """Return the steps in which the work-item read a matrix's elements of the sum."""
        wanted = {element for elements in self.right for element in elements}
        reads = self.slice.reads
        return sorted(step for e in wanted if e.matrix == matrix for step in reads.get(e, ()))

    def _read_at(self, element: MatrixElement) -> int:
        """Return the line that read an element, or 0."""
        steps = self.slice.reads.get(element)
        return self.slice.line(steps[0]) if steps else 0

    # Terms

    def _line(self, addend: Addend) -> int:
        """Return the line that added a term."""
        return self.slice.line(addend.made)

    def _term(self, kind: str, addend: Addend, k: int | None, note: Note = RIGHT) -> Term:
        line = self._line(addend)
        touched = [
            *([note.line] if note.line else []),
            line,
            *(reading.line for reading in addend.factors),
            *map(self.slice.line, addend.scaled),
            self.line,
        ]
        lines = tuple(dict.fromkeys(touched))
        return Term(kind, line, addend.factors, addend.times, k, note, lines, addend.made)


def _readers(lines: list[int]) -> str:
    """Return the beginning of a sentence on lines that read something."""
    return f"lines {listed(lines)} read" if lines[1:] else f"line {lines[0]} reads"


def _product(factors: Iterable[MatrixElement]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices, in upper case also for low parts."""
    return "".join(element.matrix for element in elements).upper()


def _faults(terms: list[Term]) -> list[Note]:
    """Return the terms' notes. Terms of one kind whose notes name the same lines share one."""
    alike: dict[tuple[object, ...], list[Note]] = defaultdict(list)
    for term in terms:
        if term.note.text:
            alike[term.kind, term.note.line, term.note.lines].append(term.note)
    faults = []
    for first, *others in alike.values():
        more = f" The same fault affects {quantity(len(others), 'more term')}." if others else ""
        faults.append(first._replace(text=first.text + more))
    return faults
