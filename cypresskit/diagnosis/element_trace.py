"""Trace an incorrect element of C to the faulty instruction (``trace_element``).

The sum that the element's work-item stored is followed back to what it read (``slices``). Each term
of the sum is listed with the lines that read its factors and multiplied them. A correct sum has
each product of a row of op(A) and a column of op(B) once. Missing, repeated and other terms are
marked; if another element should have been read, the trace names it.
"""

import math
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
    factors_of_term,
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
    expected = float(given.expected.reshape(-1, *given.size[:2])[0, row, column])
    if stores.writer and got != expected and not _adds_up(terms, given, got):
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


def _adds_up(terms: list[Term], given: Product, got: float) -> bool:
    """Return whether the sum of the found terms is the stored element."""
    stored = {"A": given.a, "B": given.b, "C": given.c}
    added = [
        term.times
        * math.prod(
            float(stored[letter][..., row, column].flat[0])
            for letter, row, column in (factor.element for factor in term.factors)
        )
        for term in terms
        if term.kind != "missing"
    ]
    size = math.fsum(map(abs, added))
    return math.isclose(math.fsum(added), got, rel_tol=1e-4, abs_tol=1e-4 * size)


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
        self.right: dict[Elements, int | None] = {
            traced.wanted(k): k for k in range(self.given.size[2])
        }
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
        whole = self._whole_sum(terms, extra, missing)
        if whole is not None:
            return whole
        terms += self._extra_terms(extra, missing)
        terms += [self._missing(elements) for elements in missing]
        terms = _ordered(terms)
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

    def _whole_sum(
        self, terms: list[Term], extra: list[Elements], missing: list[Elements]
    ) -> tuple[list[Term], list[str]] | None:
        """Return the terms and a note if a single fault affects the whole sum, else None."""
        note, line = self._another_element(extra, missing)
        if self.slice.singles:
            line = min(self.slice.singles)
            i = next(i for i in self.kernel.program.body if i.line == line)
            note = (
                f"Line {line} multiplies with {i.op.name}, which takes its operands as floats."
                f" These are halves of doubles: use d{i.op.name.replace('f', '')}."
            )
        if not note:
            return None
        terms = [replace(term, note="", blame=line, kind="wrong") for term in terms]
        terms += [self._term("wrong", self.terms[e][0], None, "", line) for e in extra]
        terms += [self._missing(elements, "", line) for elements in missing]
        return _ordered(terms), [note]

    def _another_element(self, extra: list[Elements], missing: list[Elements]) -> tuple[str, int]:
        """Return a note if the whole sum belongs to another element, else "", and a line.

        An element of the same block counts only if the correct sum was computed, too, or if another
        line stores the same number.
        """
        m, n, k = self.given.size
        products: set[Elements] = {elements for elements in extra if len(elements) == 2}
        olds = [elements[0] for elements in extra if len(elements) == 1]
        if len(missing) < len(self.right) or not extra or (self.given.beta and not olds):
            return "", self.line
        made = self._is_stored_twice() or any(e in self.slice.products for e in self.right)
        for row in range(m):
            for column in range(n):
                if not made and self._block(row, column) == self._block(*self.old[0][1:]):
                    continue
                others = {factors_of_term(self.kernel, row, column, p) for p in range(k)}
                own = not self.given.beta or olds == [MatrixElement("C", row, column)]
                if own and products == others:
                    return self._note_on_another(row, column, extra)
        return "", self.line

    def _note_on_another(self, row: int, column: int, extra: list[Elements]) -> tuple[str, int]:
        """Return a note on the element whose sum is stored, and the line to blame. An output stream
        has no address: the sum of another work-item is made of what the fetches read.
        """
        other = f"the sum of C[{row}, {column}]"
        check = "check its address and its register."
        _, *here = self.old[0]
        if self.kernel.convention.streams:
            check = "check its register."
            if self._block(row, column) != self._block(*here):
                matrices = "A" * (row != here[0]) + "B" * (column != here[1])
                factors = [read for e in extra for read in self.terms[e][0].factors]
                lines = {self.slice.line(r.step) for r in factors if r.element.matrix in matrices}
                where = f"lines {listed(sorted(lines))}" if len(lines) > 1 else f"line {min(lines)}"
                return f"This is {other}: check the coordinates in {where}.", min(lines)
        return f"Line {self.line} stores {other} here: {check}", self.line

    def _is_stored_twice(self) -> bool:
        """Return whether another line, too, stores the number that is stored here."""
        sliced = self.slice
        number = sliced.instruction(sliced.store).sources[:1]
        for step in range(sliced.store - 1, -1, -1):
            i = sliced.instruction(step)
            if {register for register, _ in defines(i)} & {s.register.index for s in number}:
                break
            stores = i.dest and i.dest.register.kind in ("g", "o")
            if stores and i.line != self.line and i.sources[:1] == number:
                return True
        return False

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

    def _missing(self, elements: Elements, note: str | None = None, blame: int = 0) -> Term:
        """Return a term that was not added."""
        readings = tuple(Reading(e, self._read_at(e)) for e in elements)
        if note is None:
            reason, blame = self._reason(elements, readings)
            name = self._name(elements)
            product = "" if elements == self.old else f", {_product(elements)},"
            note = f"{name}{product} is missing{reason}."
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
            read = f"line {reading.line} reads it; " if reading.line else ""
            return f": {read}{add}", reading.line
        if made := sliced.products.get(elements):
            return self._lost(*made[-1])
        readers = list(dict.fromkeys(reading.line for reading in readings if reading.line))
        if all(reading.line for reading in readings):
            reads = (
                f"lines {readers[0]} and {readers[1]} read"
                if len(readers) > 1
                else f"line {readers[0]} reads"
            )
            times = self._times(readers[-1])
            for step, *_ in (made for e in self.right for made in sliced.products.get(e, ())):
                if self._times(line := sliced.line(step)) == 1 < times:
                    late = f"but line {line}, which multiplies, runs only once"
                    return f": {reads} its factors, {late}", line
            return f": {reads} its factors, but no line multiplies them", readers[-1]
        absent = next(reading.element for reading in readings if not reading.line)
        lines = list(dict.fromkeys(map(sliced.line, self._steps_of(absent.matrix))))
        if not lines:
            return f": no line reads {absent}", 0
        reads = f"lines {listed(lines)} read" if lines[1:] else f"line {lines[0]} reads"
        others = f"{reads} other elements of {absent.matrix}"
        return f": no line reads {absent}; {others}", lines[0]

    def _times(self, line: int) -> int:
        """Return how often the work-item ran a line."""
        item, steps = self.slice.item, self.slice.steps
        return sum(self.slice.line(n) == line for n, step in enumerate(steps) if step.active[item])

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


def _product(factors: Iterable[MatrixElement | Reading]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices, in upper case also for low parts."""
    return "".join(element.matrix for element in elements).upper()


def _ordered(terms: list[Term]) -> list[Term]:
    return sorted(terms, key=lambda term: (term.kind == "missing", term.step))


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
