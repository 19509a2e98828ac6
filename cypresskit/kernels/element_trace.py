"""Trace an incorrect element of C to the faulty instruction (``trace_element``).

The work-item that stored the element is replayed (``probes``). Each term of its sum is listed with
the lines that read its factors and multiplied them. A correct sum has each product of a row of
op(A) and a column of op(B) once. Missing, repeated and other terms are marked; if another element
should have been read, the trace names it.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index

import numpy as np

from cypresskit.il.dataflow import defines
from cypresskit.il.errors import shorten
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.probes import (
    MULTIPLY,
    NO_ELEMENT,
    Elements,
    MatrixElement,
    Probes,
    StoreRecorder,
    TracedElement,
    factors_of_term,
    low_part,
)
from cypresskit.kernels.products import Product, Size, blocks, make_product
from cypresskit.kernels.verification import factors, verify
from cypresskit.machine import KernelError
from cypresskit.tables import quantity

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
    addresses
        The lines that computed the address of ``line``.
    """

    element: MatrixElement
    line: int
    path: tuple[int, ...] = ()
    addresses: tuple[int, ...] = ()

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
        All lines that computed the term or an address of its factors, ``blame`` first.
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
    return _traced(TracedElement(make_product(known, (m, n, k), alpha, beta), row, column))


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
        probes = Probes(traced, item)
        place = probes.whole.place(item)
        terms, notes = _Judge(traced, probes, line).judged()
    expected = float(given.expected.reshape(-1, *given.size[:2])[0, row, column])
    if got != expected and not _adds_up(terms, given, got):
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
    """Decides which terms of an element are correct, from its work-item's probes."""

    def __init__(self, traced: TracedElement, probes: Probes, line: int) -> None:
        self.traced, self.probes, self.line = traced, probes, line
        self.kernel, self.given = traced.kernel, traced.given
        self.old: Elements = (MatrixElement("C", traced.row, traced.column),)
        self.times = dict(probes.terms)
        self.right: dict[Elements, int | None] = {
            probes.wanted(k): k for k in range(self.given.size[2])
        }
        if self.given.beta:
            self.right[self.old] = None

    def judged(self) -> tuple[list[Term], list[str]]:
        """Return the terms in the order in which they were added, missing ones last; and notes."""
        terms: list[Term] = []
        missing: list[Elements] = []
        for elements in self.right:
            if times := self.times.get(elements):
                terms += self._wanted_terms(elements, times)
            else:
                missing.append(elements)
        extra = [elements for elements in self.times if elements not in self.right]
        whole = self._whole_sum(terms, extra, missing)
        if whole is not None:
            return whole
        terms += self._extra_terms(extra, missing)
        terms += [self._missing(elements) for elements in missing]
        terms = _ordered(terms)
        notes = _notes(terms)
        if self.probes.plain:
            notes.append(
                f"The sum includes {self.probes.plain:g}, which is from no matrix. Does the sum"
                " start at 0?"
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
        singles = self._computed_as_singles()
        if singles:
            line = singles[0]
            i = next(i for i in self.kernel.program.body if i.line == line)
            note = (
                f"Line {line} multiplies with {i.op.name}, which takes its operands as floats."
                f" These are halves of doubles: use d{i.op.name.replace('f', '')}."
            )
            terms = [replace(term, note="", blame=line, kind="wrong") for term in terms]
            terms += [self._missing(elements, "", line) for elements in missing]
            return _ordered(terms), [note]
        if another := self._another_element(extra, missing):
            terms += [self._term("wrong", e, None, "", self.line) for e in extra]
            terms += [self._missing(elements, "", self.line) for elements in missing]
            return _ordered(terms), [another]
        return None

    def _computed_as_singles(self) -> list[int]:
        """Return the lines on the path that multiply halves of doubles as floats."""
        if self.kernel.precision == "single":
            return []
        probes = self.probes
        multiplied = {
            step
            for elements in probes.copy
            for step, item in probes.factors_read(elements)
            if item == probes.item and step in probes.path
        }
        return sorted({probes.line(s) for s in multiplied if not probes.instruction(s).op.double})

    def _another_element(self, extra: list[Elements], missing: list[Elements]) -> str:
        """Return a note if the whole sum belongs to another element, else "".

        An element of the same block counts only if the correct sum was computed, too.
        """
        m, n, k = self.given.size
        products = {elements for elements in extra if len(elements) == 2}
        olds = [elements[0] for elements in extra if len(elements) == 1]
        if len(missing) < len(self.right) or not extra or (self.given.beta and not olds):
            return ""
        made = any(map(self.probes.products, self.right))
        for row in range(m):
            for column in range(n):
                if not made and self._block(row, column) == self._block(*self.old[0][1:]):
                    continue
                others = {factors_of_term(self.kernel, row, column, p) for p in range(k)}
                own = not self.given.beta or olds == [MatrixElement("C", row, column)]
                if own and products == others:
                    return (
                        f"Line {self.line} stores the sum of C[{row}, {column}] here: check its"
                        " address and its register."
                    )
        return ""

    def _block(self, row: int, column: int) -> tuple[int, int]:
        """Return the block of an element."""
        rows, columns = self.kernel.block
        return row // rows, column // columns

    # Correct terms

    def _wanted_terms(self, elements: Elements, times: float) -> list[Term]:
        """Return the terms with the factors of a correct one.

        The first one may be scaled incorrectly; the others are repeated.
        """
        scalar, value = self._scalar(elements)
        steps = [step for step, _ in self.probes.products(elements) if step in self.probes.path]
        added = len(steps) if times == len(steps) * value else 1
        first, *others = steps[:added] or [-1]
        each = times / added
        k = self.right[elements]
        if each == value:
            terms = [self._term("right", elements, k, times=each, step=first)]
        else:
            note = f"{self._name(elements)} is multiplied by {each:g}, not by {scalar} = {value:g}."
            scaling = self.probes.scaling(elements)
            line = self.line if each == 1 else self._line(elements)  # unscaled, or scaled as a sum
            blame = self.probes.line(scaling[-1]) if scaling else line
            terms = [self._term("scaled", elements, k, note, blame, each, first)]
        again = "twice" if added == 2 else f"{added} times"
        for step in others:
            line = self.probes.line(step)
            also = "" if line == self.probes.line(first) else f", and at line {terms[0].line}"
            note = f"Term k = {k} is added {again}: at line {line}{also}."
            terms.append(self._term("repeated", elements, k, note, line, each, step))
        return terms

    # Terms that don't belong in the sum

    def _extra_terms(self, extra: list[Elements], missing: list[Elements]) -> list[Term]:
        """Return the terms that don't belong in the sum, each with the term that it replaces.

        Replaced terms are removed from ``missing``.
        """
        result = []
        nowhere = [elements for elements in missing if not self.probes.products(elements)]
        for added in sorted(extra, key=self._when):
            alike = [elements for elements in nowhere if _letters(elements) == _letters(added)]
            shared = [elements for elements in alike or nowhere if set(elements) & set(added)]
            instead = (shared if alike or len(added) == 2 else []) + alike
            if instead:
                missing.remove(instead[0])
                nowhere.remove(instead[0])
                result.append(self._replacing(added, instead[0]))
                continue
            line = self._line(added)
            note = f"Line {line} adds {_product(added)}, which doesn't belong in this sum."
            result.append(self._term("wrong", added, None, note, line))
        return result

    def _replacing(self, added: Elements, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        k = self.right[wanted]
        alike = _letters(added) == _letters(wanted)
        element = next((e for e in added if alike and e not in wanted), NO_ELEMENT)
        belongs = next((w for w in wanted if w.matrix == element.matrix), None)
        if belongs is None:
            line = self._line(added)
            note = f"Line {line} adds {_product(added)}; it should add {_product(wanted)}."
            return self._term("wrong", added, k, note, line)
        was_read = any(step < self._when(added) for step in self.probes.own_steps((belongs,)))
        blame = self._line(added) if was_read else self._reading(element, added).line
        does, should = ("multiplies", "multiply") if was_read else ("reads", "read")
        note = f"Line {blame} {does} {element}; it should {should} {belongs}."
        return self._term("wrong", added, k, note, blame)

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
        for reading in readings:
            lines += () if reading.line else self._addresses_of(reading.element.matrix)
        k = self.right[elements]
        times = self._scalar(elements)[1]
        touched = tuple(dict.fromkeys(line for line in lines if line))
        return Term("missing", 0, readings, times, k, note, blame, touched)

    def _reason(self, elements: Elements, readings: tuple[Reading, ...]) -> tuple[str, int]:
        """Return why a term is missing, as the end of a sentence, and the line to blame, or 0."""
        probes = self.probes
        if elements == self.old:
            return f": add it, times beta = {self.given.beta:g}", 0
        if line := self._low_at(elements):
            return f": line {line} uses the low part of one factor", line
        if made := probes.products(elements):
            return self._lost(elements, *made[-1])
        read = list(dict.fromkeys(reading.line for reading in readings if reading.line))
        if all(reading.line for reading in readings):
            reads = (
                f"lines {read[0]} and {read[1]} read" if len(read) > 1 else f"line {read[0]} reads"
            )
            return f": {reads} its factors, but no line multiplies them", read[-1]
        absent = next(reading.element for reading in readings if not reading.line)
        for step, element in self._outside():
            if element.matrix == absent.matrix:
                line = probes.line(step)
                return f": line {line} reads {element}, outside of the matrix", line
        steps = self._steps_of(absent.matrix)
        fetch = probes.line(steps[0]) if steps else 0
        others = f"; line {fetch} reads other elements of {absent.matrix}" if fetch else ""
        return f": no line reads {absent}{others}", fetch

    def _low_at(self, elements: Elements) -> int:
        """Return the line that multiplies a factor by the low part of the other; or 0.

        It counts only if a later line multiplies them, too.
        """
        a, b = elements
        for pair in ((low_part(a), b), (a, low_part(b))):
            made = self.probes.products(pair) if pair in self.probes.copy else []
            if len(made) > 1:
                return self.probes.line(made[0][0])
        return 0

    def _lost(self, elements: Elements, step: int, item: int) -> tuple[str, int]:
        """Return where the product that a work-item made at a step was lost, and the line to fix.

        The place is the end of a sentence.
        """
        probes = self.probes
        line = probes.line(step)
        dest = probes.instruction(step).dest
        assert dest is not None
        changes = {(c.step, c.item): c.what for c in probes.written(elements)}
        component = next(c for c in range(4) if changes[step, item] >> c & 1)
        left = f": line {line} puts it into {dest.register}.{LETTERS[component]}, which"
        for later in range(step + 1, len(probes.steps.at)):
            i = probes.instruction(later)
            has_it = changes.get((later, item), 0) >> component & 1
            if has_it or not probes.steps.active[later][item]:
                continue
            same = i.dest and i.dest.register == dest.register
            if same and (dest.register.index, component) in defines(i):
                other = probes.line(later)
                again = "the next iteration" if other == line else f"line {other}"
                return f"{left} {again} overwrites", other
        return f"{left} isn't stored to this element", line

    def _steps_of(self, matrix: str) -> list[int]:
        """Return the steps in which the work-item read a matrix's elements of the sum."""
        probes = self.probes
        return sorted(
            steps[0]
            for elements in probes.copy
            if len(elements) == 1 and elements[0].matrix == matrix
            if (steps := probes.own_steps(elements))
        )

    def _addresses_of(self, matrix: str) -> tuple[int, ...]:
        """Return the lines that computed the address at which the work-item reads a matrix."""
        steps = self._steps_of(matrix)
        return tuple(self.probes.addresses(steps[-1], self.probes.item)) if steps else ()

    def _outside(self) -> list[tuple[int, MatrixElement]]:
        """Return the work-item's fetches outside of a matrix:

        the step, and the requested element.
        """
        kernel, probes = self.kernel, self.probes
        across = kernel.convention.texel // (4 * self.traced.words)
        return [
            (fetch.step, MatrixElement("ABC"[fetch.resource], fetch.y, fetch.x * across))
            for fetch in probes.steps.outside
            if fetch.item == probes.item and fetch.resource < len("ABC")
        ]

    def _read_at(self, element: MatrixElement) -> int:
        """Return the line that read an element in the work-item, or in another of its workgroup.

        0 if there is none.
        """
        probes = self.probes
        steps = probes.own_steps((element,)) or [
            change.step for change in probes.written((element,))
        ]
        return probes.line(steps[0]) if steps else 0

    # Terms

    def _when(self, elements: Elements) -> int:
        """Return the step that added a term."""
        probes = self.probes
        if made := probes.products(elements):
            return made[0][0]
        on_path = [step for step in probes.own_steps(elements) if step in probes.path]
        multiplied = [step for step in on_path if probes.instruction(step).op.name in MULTIPLY]
        return (multiplied or on_path or probes.own_steps(elements) or [probes.steps.store])[0]

    def _line(self, elements: Elements) -> int:
        """Return the line that added a term."""
        return self.probes.line(self._when(elements))

    def _reading(self, element: MatrixElement, term: Elements) -> Reading:
        """Return where an element was read, and its path to a product."""
        probes = self.probes
        end = self._when(term)
        made = probes.products(term)
        item = made[0][1] if made else probes.item
        changes = [change for change in probes.written((element,)) if change.step < end]
        data_steps = probes.data_steps(end, item)
        own = [change for change in changes if change.item == item and change.step in data_steps]
        if not own:
            return Reading(element, probes.line(end))
        first = own[0]
        if probes.instruction(first.step).op.kind == "lds":  # another work-item stored it there
            own = [change for change in changes if change.step < first.step] + own
            first = own[0]
        path = dict.fromkeys(probes.line(change.step) for change in own)
        line = probes.line(first.step)
        path.pop(line)
        addresses = probes.addresses(first.step, first.item)
        return Reading(element, line, tuple(path), tuple(addresses))

    def _term(
        self,
        kind: str,
        elements: Elements,
        k: int | None,
        note: str = "",
        blame: int = 0,
        times: float | None = None,
        step: int = -1,
    ) -> Term:
        probes = self.probes
        readings = tuple(self._reading(element, elements) for element in elements)
        step = self._when(elements) if step < 0 else step
        line = probes.line(step)
        touched = [
            *([blame] if blame else []),
            line,
            *(at for reading in readings for at in (reading.line, *reading.path)),
            *map(probes.line, probes.scaling(elements)),
            self.line,
            *(at for reading in readings for at in reading.addresses),
            *self._store_addresses,
        ]
        lines = tuple(dict.fromkeys(touched))
        times = self.times[elements] if times is None else times
        return Term(kind, line, readings, times, k, note, blame, lines, step)

    @cached_property
    def _store_addresses(self) -> list[int]:
        return self.probes.addresses(self.probes.steps.store, self.probes.item)


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
