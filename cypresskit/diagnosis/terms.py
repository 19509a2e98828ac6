"""Which terms of an element's sum are correct, and which line to fix for each that isn't.

A correct sum has each product of a row of op(A) and a column of op(B) once, and the old C. A term
that is in its place is right, scaled or repeated; another one is in the place of a missing term, or
doesn't belong; and the whole sum may be another element's.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from cypresskit.diagnosis.elements import (
    NO_ELEMENT,
    Elements,
    MatrixElement,
    correct_products,
)
from cypresskit.diagnosis.missing import explain_missing
from cypresskit.diagnosis.notes import Lines, Note, Values, note
from cypresskit.diagnosis.operands import Reading
from cypresskit.diagnosis.slices import Addend, Slice

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
    return [replace(first, more=len(others)) for first, *others in alike.values()]


class _Judge:
    """Compares the terms of a sum with those of the correct one."""

    def __init__(self, sliced: Slice) -> None:
        self.slice, self.run, self.traced = sliced, sliced.run, sliced.run.traced
        self.kernel, self.correct = self.traced.kernel, self.traced.correct
        self.store = self.run.line(self.run.store)
        added = sliced.terms
        self.missing = [elements for elements in self.correct if elements not in added]
        self.extra = [elements for elements in added if elements not in self.correct]
        right = (added[elements] for elements in self.correct if elements in added)
        steps = {read.step for addends in right for each in addends for read in each.factors}
        #: What set the coordinates of the factors of correct terms.
        self.setters = {self.run.writer(at) for step in steps for at in self.run.coordinates(step)}

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
        if len(self.missing) < len(self.correct) or _letters(first) != "AB":
            return None
        a, b = first
        row = a.column if self.kernel.trans_a else a.row
        column = b.row if self.kernel.trans_b else b.column
        element = MatrixElement("C", row, column)
        others = {*correct_products(self.kernel, row, column, self.traced.given.size[2])}
        others |= {(element,)} if self.traced.given.beta else {*()}
        if {*self.extra} != others:
            return None
        (wanted,) = self.traced.old
        places = zip(element[1:], wanted[1:], self.kernel.block)
        is_near = all(one // side == other // side for one, other, side in places)
        streams = self.kernel.convention.streams
        if is_near or streams:
            if not any(elements in self.run.products for elements in self.correct):
                return None
        names: Values = {"element": element, "wanted": wanted}
        if is_near:
            line = self._line(self.slice.terms[first][0])
            return note("stores", line, self.store, at=1, **names)
        return note("places", self.store, **names)

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
            lines = sorted({*map(self.run.line, first.scaled)})
            names |= {"times": first.times, "scalar": scalar, "value": value}
            names["see"] = Lines(lines if first.times != -value else ())
            found = replace(note("scaled", *lines, **names), line=[self.store, *lines][-1])
            terms = [self._term("scaled", first, k, found)]
        for addend in others:
            lines = sorted({self._line(first), self._line(addend)})
            read = {reading.line for each in (first, addend) for reading in each.factors}
            names["places"] = Lines(lines)
            names["read"] = Lines(() if lines[1:] else sorted(read - {0}))
            found = note("repeated", *lines, at=-1, **names)
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
        elements, line, product = addend.elements, self._line(addend), _product(addend.elements)
        if len(elements) == 1 and elements[0].matrix != "C":
            found = note("single", line, product=product)
        elif addend.crossed and self._accumulates(addend.made):
            found = note("sum", self.run.line(addend.crossed[0]), line, product=product)
        else:
            found = note("extra", line, product=product)
        return self._term("wrong", addend, None, found)

    def _accumulates(self, step: int) -> bool:
        """Return whether a step adds a product to the register that it writes."""
        i = self.run.instruction(step)
        return i.dest is not None and i.dest.register in (s.register for s in i.sources[2:])

    def _replaced(self, addend: Addend, missing: list[Elements]) -> Elements:
        """Return the missing term in whose place a term was added, or (): one that was made nowhere
        and shares a factor, which no earlier iteration has left; or else one of the same matrices.
        """
        old = self.traced.old
        nowhere = [some for some in missing if some == old or some not in self.run.products]
        alike = [some for some in nowhere if _letters(some) == _letters(addend.elements)]
        if not alike and len(addend.elements) == 1:
            return ()
        left = {read.element for read in addend.factors if self._is_left(read, addend)}
        shared = [some for some in alike or nowhere if {*some} & {*addend.elements}]
        shared.sort(key=lambda some: len(left & {*some}))
        return next(iter(shared + alike), ())

    def _replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        line = self._line(addend)
        alike = _letters(addend.elements) == _letters(wanted)
        element = next((e for e in addend.elements if alike and e not in wanted), NO_ELEMENT)
        belongs = next((w for w in wanted if w.matrix == element.matrix), NO_ELEMENT)
        read = next((r for r in addend.factors if r.element not in wanted), addend.factors[0])
        if belongs == NO_ELEMENT:
            lines = sorted({r.line for r in addend.factors} - {line})
            products: Values = {"product": _product(addend.elements), "wanted": _product(wanted)}
            found = note("product", line, *lines, read=Lines(lines), **products)
        else:
            found = self._factor(addend, read, belongs)
        return self._term("wrong", addend, self.correct[wanted], found)

    def _factor(self, addend: Addend, read: Reading, wanted: MatrixElement) -> Note:
        """Return the note on a factor in the place of another one: either a line reads it from a
        wrong place, or a line multiplies it that should multiply another one.
        """
        line, run = self._line(addend), self.run
        readers = [*map(run.line, run.reads.get(wanted, ()))]
        names: Values = {"element": read.element, "wanted": wanted}
        has_wanted = wanted in map(run.elements.get, run.read_words(read.step))
        is_left = self._is_left(read, addend) and read.line in readers
        if not (has_wanted or is_left or self._is_right_elsewhere(read, addend)):
            why = self._set_by(read, wanted)
            return note("reads", read.line, *why.lines, why=why, **names)
        reader = [] if has_wanted else [each for each in readers[:1] if each != line]
        source = [] if has_wanted else [each for each in [read.line] if each not in (line, *reader)]
        names |= {"source": Lines(source), "reader": Lines(reader)}
        return note("multiplies", line, *source, *reader, **names)

    def _set_by(self, read: Reading, wanted: MatrixElement) -> Note:
        """Return the note on what set the wrong coordinate, unless correct terms have it, too."""
        at = self.run.wrong_coordinate([read.step], wanted)
        return self.run.set_by(None if at and self.run.writer(at) in self.setters else at)

    def _is_left(self, read: Reading, addend: Addend) -> bool:
        """Return whether a line multiplies what a line below it read in the iteration before."""
        return read.step < addend.made and read.line > self._line(addend)

    def _is_right_elsewhere(self, read: Reading, addend: Addend) -> bool:
        """Return whether another line makes a correct term of what was read, or the same product
        for another sum.
        """
        addends = sum((self.slice.terms.get(elements, ()) for elements in self.correct), ())
        steps = [other.made for other in addends if read in other.factors]
        for step, _, c in self.run.products.get(addend.elements, ()):
            steps += [step] * (read in map(self.run.reading, self.run.operands(step, c)[:2]))
        return any(self.run.line(step) != self._line(addend) for step in steps)


def _product(factors: Iterable[MatrixElement]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices."""
    return "".join(element.matrix for element in elements)
