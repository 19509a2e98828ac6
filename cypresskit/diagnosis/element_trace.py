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

import numpy as np

from cypresskit.diagnosis.slices import (
    NO_ELEMENT,
    UNKNOWN,
    Addend,
    Elements,
    MatrixElement,
    ReadElement,
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
from cypresskit.kernels.products import Size, blocks, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import listed, quantity

SHOWN = 40  # most terms printed
OTHER = "The stored value isn't a sum of products of two elements: another operation changed it."


@dataclass(frozen=True)
class Reading:
    """A factor of a term: an element that was read.

    Attributes
    ----------
    element
        The element.
    line
        The line that read it.
    path
        The lines that then moved it (``mov``, stores to and loads from the LDS).
    """

    element: MatrixElement
    line: int
    path: tuple[int, ...] = ()

    def __str__(self) -> str:
        return f"{self.element}"


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
        The fault, as a sentence.
    blame
        The line to fix.
    lines
        All lines that computed the term, ``blame`` first.
    step
        Index of ``line`` among the executed instructions.
    """

    kind: str
    line: int
    factors: tuple[Reading, ...]
    times: float
    k: int | None
    note: str
    blame: int
    lines: tuple[int, ...]
    step: int = -1

    @property
    def right(self) -> bool:
        return self.kind == "right"

    def __str__(self) -> str:
        product = _product(self.factors)
        times = "" if self.times == 1 else f"{self.times:g} · "
        at = f"line {self.line}" if self.line else "nowhere"
        prefix = "  " if self.right else "! "
        return f"{prefix}{at:>9}  {times}{product}" + (f"    {self.note}" if self.note else "")


@dataclass(frozen=True)
class ElementTrace:
    """The terms of C[``row``, ``column``] in a product.

    Attributes
    ----------
    kernel, row, column, size
        The kernel, the element, and m, n and k of the product.
    terms
        The terms in the order in which they were added, missing ones last.
    notes
        The faults, each in a sentence.
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
    notes: tuple[str, ...]
    work_item: tuple[int, int] | int | None
    line: int
    got: float
    expected: float
    alpha: float
    beta: float

    @property
    def right(self) -> bool:
        """Whether the sum has all of its terms and no others."""
        return not self.notes

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
        The ``terms``, and ``notes`` on the faults.

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
    Line 54 multiplies A[0, 1]; it should multiply A[0, 0]. The same fault affects 1 more term.
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
    traced = TracedElement(make_product(known, (m, n, k), alpha, beta), row, column)
    return _traced(traced)


def _traced(traced: TracedElement) -> ElementTrace:
    """Return the trace of an element of a small product."""
    kernel, given = traced.kernel, traced.given
    row, column = traced.row, traced.column
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
        notes = [
            "No work-item stores this element: check the addresses, and the size of the domain."
        ]
    else:
        at, item = stores.writer
        line = kernel.program.body[at].line
        sliced = Slice(traced, item)
        place = sliced.whole.place(item)
        terms, notes = _Judge(traced, sliced).judged()
        is_sum = not any(UNKNOWN in elements for elements in sliced.terms)
        if got != expected and not (is_sum and notes):
            notes.append(OTHER)
    return ElementTrace(
        kernel,
        row,
        column,
        given.size,
        tuple(terms),
        tuple(notes),
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

    def judged(self) -> tuple[list[Term], list[str]]:
        """Return the terms in the order in which they were added, missing ones last; and notes."""
        terms: list[Term] = []
        missing: list[Elements] = []
        for elements in self.right:
            if elements in self.terms:
                terms += self._wanted_terms(elements)
            else:
                missing.append(elements)
        extra = [elements for elements in self.terms if elements not in self.right]
        note = self._note_on_halves() or self._another_element(extra, missing)
        terms += self._extra_terms(extra, missing)
        terms += [self._missing(elements) for elements in missing]
        terms.sort(key=lambda term: (term.kind == "missing", term.step))
        if note:  # one fault affects the whole sum
            line, _ = min(self.slice.singles, default=(self.line, ""))
            terms = [replace(term, note="", blame=line) for term in terms]
            return [replace(t, kind="wrong") if t.right else t for t in terms], [note]
        notes = _notes(terms)
        if number := self.slice.number:
            notes.append(
                f"The sum includes {number:g}, which is from no matrix. Does the sum start at 0?"
            )
        return terms, notes

    def _name(self, elements: Elements) -> str:
        """Return the name of a correct term."""
        if elements == self.old:
            return f"The old value of {elements[0]}"
        return f"Term k = {self.right[elements]}"

    def _scalar(self, elements: Elements) -> tuple[str, float]:
        """Return the name and value of the scalar that multiplies a correct term."""
        given = self.given
        return ("beta", given.beta) if elements == self.old else ("alpha", given.alpha)

    def _note_on_halves(self) -> str:
        """Return a note if a line computes with halves of doubles, else ""."""
        if not self.slice.singles:
            return ""
        line, name = min(self.slice.singles)
        return (
            f"Line {line} multiplies with {name}, which takes its operands as floats. These are"
            f" halves of doubles: use d{name.replace('f', '')}."
        )

    def _another_element(self, extra: list[Elements], missing: list[Elements]) -> str:
        """Return a note if the whole sum belongs to another element, else "".

        An element of the same block counts only if the correct sum was computed, too, or if another
        line stores the same number.
        """
        products: set[Elements] = {elements for elements in extra if len(elements) == 2}
        olds = [elements for elements in extra if len(elements) == 1]
        first = min(products, default=())
        if len(missing) < len(self.right) or _letters(first) != "AB":
            return ""
        a, b = first
        row = a.column if self.kernel.trans_a else a.row
        column = b.row if self.kernel.trans_b else b.column
        others = {*correct_products(self.kernel, row, column, self.given.size[2])}
        old = [(MatrixElement("C", row, column),)] if self.given.beta else []
        if products != others or olds != old:
            return ""
        other = f"the sum of C[{row}, {column}]"
        is_near = self._block(row, column) == self._block(*self.old[0][1:])
        if is_near and not self._is_stored_twice():
            if not any(elements in self.slice.products for elements in self.right):
                return ""
        if not self.kernel.convention.streams:
            return f"Line {self.line} stores {other} here: check its address and its register."
        if is_near:
            return f"Line {self.line} stores {other} here: check its register."
        return f"This is {other}: check the coordinates of its fetches."

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
            times = f"multiplied by {first.times:g}, not by {scalar} = {value:g}"
            lines = [self.slice.line(step) for step in first.scaled]
            blame = lines[-1] if lines else self.line
            times += f": see line {blame}." if lines and first.times != -value else "."
            terms = [self._term("scaled", first, k, f"{self._name(elements)} is {times}", blame)]
        again = "twice" if len(addends) == 2 else f"{len(addends)} times"
        for addend in others:
            line = self._line(addend)
            also = "" if line == self._line(first) else f", and at line {terms[0].line}"
            note = f"Term k = {k} is added {again}: at line {line}{also}."
            terms.append(self._term("repeated", addend, k, note, line))
        return terms

    # Terms that don't belong in the sum

    def _extra_terms(self, extra: list[Elements], missing: list[Elements]) -> list[Term]:
        """Return the terms that don't belong in the sum, each with the term that it replaces.

        Replaced terms are removed from ``missing``.
        """
        result = []
        nowhere = [elements for elements in missing if elements not in self.slice.products]
        for added in sorted(extra, key=lambda elements: self._when(self.terms[elements][0])):
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
            note = f"Line {line} adds {_product(added)}, which doesn't belong in this sum."
            if len(added) == 1 and added[0].matrix != "C":
                line = self.slice.line(addend.factors[0].step)
                note = f"{added[0]} is in this sum without a second factor; line {line} reads it."
            result.append(self._term("wrong", addend, None, note, line))
        return result

    def _replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        k = self.right[wanted]
        line = self._line(addend)
        alike = _letters(addend.elements) == _letters(wanted)
        element = next((e for e in addend.elements if alike and e not in wanted), NO_ELEMENT)
        belongs = next((w for w in wanted if w.matrix == element.matrix), None)
        if belongs is None:
            product = _product(addend.elements)
            note = f"Line {line} adds {product}; it should add {_product(wanted)}."
            return self._term("wrong", addend, k, note, line)
        read = next(r for r in addend.factors if r.element == element)
        at = self.slice.line(read.step)
        blame = line if self._was_read(belongs, addend) else at
        does, should = ("multiplies", "multiply") if blame == line else ("reads", "read")
        note = f"Line {blame} {does} {element}; it should {should} {belongs}."
        if blame != line and self.slice.is_multiplied_elsewhere(addend):
            blame = line
            note = f"Line {line} multiplies {element}; no line reads {belongs}, which belongs here."
        return self._term("wrong", addend, k, note, blame)

    def _was_read(self, element: MatrixElement, addend: Addend) -> bool:
        """Return whether the work-item had read an element before it added a term."""
        own = [step for step, item in self.slice.reads.get(element, ()) if item == self.slice.item]
        return any(step < self._when(addend) for step in own)

    # Missing terms

    def _missing(self, elements: Elements) -> Term:
        """Return a term that was not added."""
        readings = tuple(Reading(e, self._read_at(e)) for e in elements)
        reason, blame = self._reason(elements, readings)
        product = "" if elements == self.old else f", {_product(elements)},"
        note = f"{self._name(elements)}{product} is missing{reason}."
        lines = [blame, *(reading.line for reading in readings)]
        k = self.right[elements]
        times = self._scalar(elements)[1]
        touched = tuple(dict.fromkeys(line for line in lines if line))
        return Term("missing", 0, readings, times, k, note, blame, touched)

    def _reason(self, elements: Elements, readings: tuple[Reading, ...]) -> tuple[str, int]:
        """Return why a term is missing, as the end of a sentence, and the line to blame, or 0."""
        sliced = self.slice
        if elements == self.old:
            (reading,) = readings
            add = f"add it, times beta = {self.given.beta:g}"
            where = f"{_readers([reading.line])} it; " if reading.line else ""
            return f": {where}{add}", reading.line
        if made := sliced.products.get(elements):
            return self._lost(*made[-1])
        readers = list(dict.fromkeys(reading.line for reading in readings if reading.line))
        if all(reading.line for reading in readings):
            lost = "but no line multiplies them in that iteration"
            return f": {_readers(readers)} its factors, {lost}", readers[-1]
        absent = next(reading.element for reading in readings if not reading.line)
        lines = list(dict.fromkeys(map(sliced.line, self._steps_of(absent.matrix))))
        if not lines:
            return f": no line reads {absent}", 0
        others = f"{_readers(lines)} other elements of {absent.matrix}"
        return f": no line reads {absent}; {others}", lines[0]

    def _lost(self, step: int, register: int, component: int) -> tuple[str, int]:
        """Return where a product that was made at a step was lost, and the line to fix.

        The place is the end of a sentence.
        """
        sliced = self.slice
        line = sliced.line(step)
        left = f": line {line} puts it into r{register}.{LETTERS[component]}, which"
        for later in range(step + 1, len(sliced.steps)):
            i = sliced.instruction(later)
            writes = (register, component) in defines(i) and sliced.steps[later].active[sliced.item]
            keeps = any((s.register.kind, s.register.index) == ("r", register) for s in i.sources)
            if writes and not keeps:
                again = "the next iteration" if i.line == line else f"line {i.line}"
                return f"{left} {again} overwrites", i.line
        return f"{left} isn't stored to this element", line

    def _steps_of(self, matrix: str) -> list[int]:
        """Return the steps in which the work-item read a matrix's elements of the sum."""
        wanted = {element for elements in self.right for element in elements}
        return sorted(
            step
            for element, nodes in self.slice.reads.items()
            if element.matrix == matrix and element in wanted
            for step, item in nodes
            if item == self.slice.item
        )

    def _read_at(self, element: MatrixElement) -> int:
        """Return the line that read an element in the work-item, or in another of its workgroup.

        0 if there is none.
        """
        nodes = self.slice.reads.get(element, ())
        own = [step for step, item in nodes if item == self.slice.item] or [s for s, _ in nodes]
        return self.slice.line(own[0]) if own else 0

    # Terms

    def _when(self, addend: Addend) -> int:
        """Return the step that added a term."""
        if addend.made is not None:
            return addend.made
        return addend.scaled[0] if addend.scaled else max(read.step for read in addend.factors)

    def _line(self, addend: Addend) -> int:
        """Return the line that added a term."""
        return self.slice.line(self._when(addend))

    def _reading(self, read: ReadElement) -> Reading:
        """Return where an element was read, and its path to a product."""
        line = self.slice.line
        path = dict.fromkeys(line(step) for step in read.path)
        path.pop(line(read.step), None)
        return Reading(read.element, line(read.step), tuple(path))

    def _term(
        self, kind: str, addend: Addend, k: int | None, note: str = "", blame: int = 0
    ) -> Term:
        readings = tuple(map(self._reading, addend.factors))
        step = self._when(addend)
        line = self.slice.line(step)
        touched = [
            *([blame] if blame else []),
            line,
            *(at for reading in readings for at in (reading.line, *reading.path)),
            *map(self.slice.line, addend.scaled),
            self.line,
        ]
        lines = tuple(dict.fromkeys(touched))
        return Term(kind, line, readings, addend.times, k, note, blame, lines, step)


def _readers(lines: list[int]) -> str:
    """Return the beginning of a sentence on lines that read something."""
    return f"lines {listed(lines)} read" if lines[1:] else f"line {lines[0]} reads"


def _product(factors: Iterable[MatrixElement | Reading]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices, in upper case also for low parts."""
    return "".join(element.matrix for element in elements).upper()


def _notes(terms: list[Term]) -> list[str]:
    """Return a sentence per fault. Terms of one kind that blame one line share a sentence."""
    alike: dict[tuple[str, int], list[str]] = defaultdict(list)
    for term in terms:
        if term.note:
            alike[term.kind, term.blame].append(term.note)
    notes = []
    for note, *others in alike.values():
        more = f" The same fault affects {quantity(len(others), 'more term')}."
        notes.append(note + (more if others else ""))
    return notes
