"""Which terms of an element's sum are correct, and which line to fix for each that isn't.

A correct sum has each product of a row of op(A) and a column of op(B) once, and the old C. A term
that is in its place is right, scaled or repeated; another one is in the place of a missing term, or
doesn't belong; and the whole sum may be another element's.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cypresskit.diagnosis.coordinates import Fetches
from cypresskit.diagnosis.elements import (
    Elements,
    MatrixElement,
    correct_products,
)
from cypresskit.diagnosis.missing import explain_missing
from cypresskit.diagnosis.notes import Lines, Note, Values, note
from cypresskit.diagnosis.operands import Reading
from cypresskit.diagnosis.slices import Addend, Slice
from cypresskit.il.dataflow import defines

RIGHT = Note()  # of a correct term


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


def judge_terms(sliced: Slice) -> tuple[list[Term], list[Note]]:
    """Return the terms of a sum in the order in which they were added, missing ones last; and its
    faults.
    """
    judge = _Judge(sliced)
    terms = judge.terms()
    if whole := judge.another_element():  # one fault affects the whole sum
        terms = [replace(term, note=Note(line=whole.line)) for term in terms]
        return [replace(term, kind="wrong") if term.right else term for term in terms], [whole]
    faults = _faults(terms)
    if number := sliced.number:
        lines = sorted({*map(sliced.run.line, sliced.numbers)})
        faults.append(note("number", *lines, at=-1, number=number))
    return terms, faults


def _faults(terms: list[Term]) -> list[Note]:
    """Return the terms' notes. Terms of one kind whose notes name the same lines, or what set the
    same coordinate, share one.
    """
    alike: dict[tuple[object, ...], list[Note]] = defaultdict(list)
    for term in terms:
        if term.note.kind:
            why = term.note.values.get("why", Note())
            alike[term.kind, why.lines or (term.note.line, term.note.lines)].append(term.note)
    found = [replace(first, more=len(others)) for first, *others in alike.values()]
    return sorted(found, key=lambda fault: not fault.lines)


class _Judge:
    """Compares the terms of a sum with those of the correct one."""

    def __init__(self, sliced: Slice) -> None:
        self.slice, self.run, self.traced = sliced, sliced.run, sliced.run.traced
        self.kernel, self.correct = self.traced.kernel, self.traced.correct
        self.store = self.run.line(self.run.store)
        added = sliced.terms
        self.missing = [elements for elements in self.correct if elements not in added]
        self.extra = [elements for elements in added if elements not in self.correct]

    def terms(self) -> list[Term]:
        """Return all terms, also those that are missing."""
        missing = [*self.missing]
        found: list[Term] = []
        for elements in self.correct:
            if elements in self.slice.terms:
                found += self._wanted(elements)
        for elements in sorted(self.extra, key=lambda each: self.slice.terms[each][0].made):
            addend = self.slice.terms[elements][0]
            replaced = self._replaced(addend, missing)
            if replaced:
                missing.remove(replaced)
                found.append(self._replacing(addend, replaced))
            else:
                found.append(self._extra(addend))
        found += map(self._missing, missing)
        return sorted(found, key=lambda term: (term.kind == "missing", term.step))

    def _line(self, addend: Addend) -> int:
        """Return the line that added a term."""
        return self.run.line(addend.made)

    def _term(self, kind: str, addend: Addend, k: int | None, fault: Note = RIGHT) -> Term:
        line = self._line(addend)
        reads = (reading.line for reading in addend.factors)
        touched = fault.line, line, *reads, *map(self.run.line, addend.scaled), self.store
        lines = tuple(dict.fromkeys(filter(None, touched)))
        return Term(kind, line, addend.factors, addend.times, k, fault, lines, addend.made)

    # The whole sum

    def another_element(self) -> Note | None:
        """Return a note if the whole sum belongs to another element.

        An element of the same block, and any of output streams, counts only if a product of the
        correct sum was made, too.
        """
        products = {elements for elements in self.extra if len(elements) == 2}
        first: Elements = min(products, default=())
        wanted = {elements for elements in self.correct if len(elements) == 2}
        if not wanted <= {*self.missing} or _letters(first) != "AB":
            return None
        a, b = first
        row = a.column if self.kernel.trans_a else a.row
        column = b.row if self.kernel.trans_b else b.column
        if products != {*correct_products(self.kernel, row, column, len(wanted))}:
            return None
        (old,), element = self.traced.old, MatrixElement("C", row, column)
        names: Values = {"element": element, "wanted": old}
        places = zip((row, column), old[1:], self.kernel.block)
        is_near = all(one // side == other // side for one, other, side in places)
        if is_near or self.kernel.convention.streams:
            if not any(elements in self.run.products for elements in self.correct):
                return None
        has_old = not self.traced.given.beta or (element,) in self.extra
        if not is_near:  # it is another one's, or stored by several work-items
            is_shared = has_old or self.run.recorded.is_shared
            return note("places", self.store, **names) if is_shared else None
        registers = {register for _, register, _ in self.run.products[first]}
        if not has_old or len(registers) > 1:
            return None  # it is made of other elements than it should be
        addend = self.slice.terms[first][0]
        taken = Lines(map(self.run.line, addend.crossed[:1]))
        names |= {"adds": self._line(addend), "stores": self.store, "taken": taken}
        return note("stores", *taken, self.store, names["adds"], **names)

    # Terms of the correct sum

    def _wanted(self, elements: Elements) -> list[Term]:
        """Return the terms with the factors of a correct one.

        The first one may be scaled incorrectly; the others are repeated.
        """
        scalar, value = self.traced.scalar(elements)
        first, *others = addends = self.slice.terms[elements]
        k = self.correct[elements]
        is_pair = self.kernel.precision == "double-double"  # whose parts are added one by one
        if others and (is_pair or any(addend.times != value for addend in addends)):
            first, others = replace(first, times=sum(addend.times for addend in addends)), []
        names: Values = {"name": self.traced.name(elements), "times": len(addends)}
        terms = [self._term("right", first, k)]
        if first.times != value:
            wrong = [addend for addend in addends if abs(addend.times) != abs(value)]
            steps = {step for addend in wrong for step in addend.scaled}
            lines = sorted({self.run.instruction(step).written_line for step in steps})
            names |= {"times": first.times, "scalar": scalar, "value": value, "see": Lines(lines)}
            found = replace(
                note("scaled", *lines, **names), line=[0, self.store * bool(wrong), *lines][-1]
            )
            terms = [self._term("scaled", first, k, found)]
        for addend in others:
            lines = sorted({self._line(first), self._line(addend)})
            names["places"] = Lines(lines)
            read = {each.line for one in (first, addend) for each in one.factors}
            names["read"] = Lines(sorted(read.difference([0, *lines])) if not lines[1:] else ())
            whys = (Fetches(self.run, element.matrix).explain(element) for element in elements)
            why = names["why"] = next((each for each in whys if each.kind), Note())
            found = note("repeated", *lines, *why.lines[::-1], at=-1, **names)
            terms.append(self._term("repeated", addend, k, found))
        return terms

    def _missing(self, elements: Elements) -> Term:
        """Return a term that was not added."""
        reason, readings = explain_missing(self.run, elements)
        product = "" if elements == self.traced.old else f", {_product(elements)},"
        found = replace(reason, term=f"{self.traced.name(elements)}{product}")
        read = (reading.line for reading in readings)
        lines = tuple(dict.fromkeys(filter(None, (reason.line, *read))))
        value = self.traced.scalar(elements)[1]
        return Term("missing", 0, readings, value, self.correct[elements], found, lines)

    # Terms of other sums

    def _extra(self, addend: Addend) -> Term:
        """Return a term that doesn't belong in the sum, nor is in the place of one that does."""
        line, product = self._line(addend), _product(addend.elements)
        if addend.crossed and self._accumulates(addend.made):
            found = note("sum", self.run.line(addend.crossed[0]), line, product=product)
        else:
            wanted = {element for elements in self.correct for element in elements}
            odd = [read for read in addend.factors if read.element not in wanted]
            lines = Lines(sorted({read.line for read in odd} - {line}))
            names: Values = {"read": lines, "odd": " and ".join(map(str, odd))}
            found = note("extra", line, *lines, product=product, **names)
        return self._term("wrong", addend, None, found)

    def _accumulates(self, step: int) -> bool:
        """Return whether a step adds a product to the register that it writes."""
        i = self.run.instruction(step)
        return i.dest is not None and i.dest.register in (s.register for s in i.sources[2:])

    def _replaced(self, addend: Addend, missing: list[Elements]) -> Elements:
        """Return the missing term in whose place a term was added, or (): one of the same matrices
        that was made nowhere; rather one that shares a factor, which no earlier iteration has left.
        """
        old = self.traced.old
        nowhere = [some for some in missing if some == old or some not in self.run.products]
        alike = [some for some in nowhere if _letters(some) == _letters(addend.elements)]
        left = {read.element for read in addend.factors if self._is_left(read, addend)}
        shared = [some for some in alike if {*some} & {*addend.elements}]
        shared.sort(key=lambda some: len(left & {*some}))
        return next(iter(shared + alike), ())

    def _replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        read = next(read for read in addend.factors if read.element not in wanted)
        belongs = next(w for w in wanted if w.matrix == read.element.matrix)
        found = self._factor(addend, read, belongs)
        return self._term("wrong", addend, self.correct[wanted], found)

    def _factor(self, addend: Addend, read: Reading, wanted: MatrixElement) -> Note:
        """Return the note on a factor in the place of another one: either a line reads it from a
        wrong place, or a line multiplies it that should multiply another one.
        """
        line, run = self._line(addend), self.run
        read_at = run.reads.get(wanted, [])
        readers = [*map(run.line, read_at)]
        own = {*defines(run.instruction(read.step))}
        others = [at for at in read_at if own.isdisjoint(defines(run.instruction(at)))]
        names: Values = {"element": read.element, "wanted": wanted}
        has_wanted = wanted in map(run.elements.get, run.read_words(read.step))
        is_left = self._is_left(read, addend) and read.line in readers
        if not (has_wanted or is_left or self._is_right_elsewhere(read, addend, bool(others))):
            why = Fetches(run, wanted.matrix).explain(wanted, [read.step])
            passed = self._stored_by(read, wanted)
            names |= {"why": why, "passed": passed}
            at = bool(passed or why.lines)
            return note("reads", read.line, *passed, *why.lines, at=at, **names)
        reader = [] if has_wanted else [each for each in readers[:1] if each != line]
        return note("multiplies", line, *reader, reader=Lines(reader), **names)

    def _stored_by(self, read: Reading, wanted: MatrixElement) -> Lines:
        """Return the line that stored what was loaded from the LDS, if it should have stored what
        is wanted: no work-item stored that.
        """
        stores = [
            (line, {*map(self.run.elements.get, words)})
            for step, line, words in self.run.recorded.passed
            if step <= read.step
        ]
        own = [(line, stored) for line, stored in stores if read.element in stored][-1:]
        is_load = self.run.instruction(read.step).op.kind == "lds"
        return Lines(line for line, stored in own if is_load and wanted not in stored)

    def _is_left(self, read: Reading, addend: Addend) -> bool:
        """Return whether a line multiplies what a line below it read in the iteration before."""
        return read.step < addend.made and read.line > self._line(addend)

    def _is_right_elsewhere(self, read: Reading, addend: Addend, is_wanted_read: bool) -> bool:
        """Return whether another line multiplies what was read as it should: it makes a correct
        term, or the same product for another sum; or if the wanted element was read, too, one of
        the same k.
        """
        for elements, made in self.run.products.items():
            is_right = elements == addend.elements or elements in self.correct
            if is_right or (is_wanted_read and self._is_of_one_k(elements)):
                for step, _, c in made:
                    is_read = read in map(self.run.reading, self.run.operands(step, c)[:2])
                    if is_read and self.run.line(step) != self._line(addend):
                        return True
        return False

    def _is_of_one_k(self, elements: Elements) -> bool:
        """Return whether elements are the factors of a product of some correct sum."""
        if _letters(elements) != "AB":
            return False
        a, b = elements
        return a[2 - self.kernel.trans_a] == b[1 + self.kernel.trans_b]


def _product(factors: Iterable[MatrixElement]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices."""
    return "".join(element.matrix for element in elements)
