"""Which terms of an element's sum are correct, and which line to fix for each that isn't.

A correct sum has each product of a row of op(A) and a column of op(B) once, and the old C. A term
of it is correct, scaled, repeated or missing; another one is in the place of a missing term, or
doesn't belong; and the whole sum may be another element's.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import isnan

from cypresskit.diagnosis.coordinates import Fetches
from cypresskit.diagnosis.elements import (
    Elements,
    MatrixElement,
    correct_products,
    k_of,
    place_of,
)
from cypresskit.diagnosis.missing import OVERWRITTEN_KINDS, explain_missing
from cypresskit.diagnosis.notes import NO_NOTE, Lines, Note, note
from cypresskit.diagnosis.operands import Reading
from cypresskit.diagnosis.slices import Addend, Slice
from cypresskit.il.dataflow import defines


@dataclass(frozen=True)
class Term:
    """A term of an element's sum.

    Attributes
    ----------
    kind
        "correct"; "incorrect": not in the correct sum; "repeated"; "missing"; "scaled": ``times``
        is incorrect.
    line
        The line that multiplied its factors; 0 if it is missing.
    factors
        The elements that were read.
    times
        Its scalar factor: if it is correct, alpha, or beta for the old C.
    k
        Its index in the correct sum, or None.
    note
        The fault; empty of a correct term, and where one fault affects the whole sum.
    lines
        The lines of the note, and those that multiplied, read, scaled and stored the term.
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
    def is_correct(self) -> bool:
        return self.kind == "correct"

    @property
    def text(self) -> str:
        """The term as it is added, such as "2 · A[0, 1] · B[1, 0]"."""
        times = [] if self.times == 1 else [f"{self.times:g}"]
        return " · ".join([*times, *(f"{factor.element}" for factor in self.factors)])

    def __str__(self) -> str:
        where = f"line {self.line}" if self.line else "nowhere"
        prefix = "  " if self.is_correct else "! "
        return f"{prefix}{where:>9}  {self.text}    {self.note.text}".rstrip()


def judge_terms(sliced: Slice) -> tuple[list[Term], list[Note]]:
    """Return the terms of a sum in the order in which they were added, missing ones last; and its
    faults.
    """
    judge, run = _Judge(sliced), sliced.run
    terms = judge.judge_all()
    if whole := judge.find_another_element():  # one fault affects the whole sum
        terms = [
            replace(term, kind="incorrect" if term.line else "missing", note=NO_NOTE)
            for term in terms
        ]
        return terms, [whole]
    faults = _group_faults(terms)
    if number := sliced.number:
        lines = sorted({*map(run.line, sliced.number_steps)})
        kind = "spreads" if isnan(number) else "number"
        faults.append(note(kind, *lines, at=-1, number=number))
    loads = [step for step in run.empty_loads if run.instruction(step).op.kind == "lds"]
    if loads and faults:
        faults.insert(0, note("not stored", *dict.fromkeys(map(run.line, loads))))
    return terms, faults


def _group_faults(terms: list[Term]) -> list[Note]:
    """Return the terms' notes. Terms whose notes are of one kind and lead to one line share the
    first. Those that name no line come last; what doesn't belong comes after what overwrote a term.
    """
    alike: dict[tuple[object, ...], list[Note]] = defaultdict(list)
    for term in terms:
        if term.note:
            alike[term.note.kind, term.note.line or term.note.lines].append(term.note)
    found = [replace(first, more_terms=len(others)) for first, *others in alike.values()]
    is_lost = any(fault.kind in OVERWRITTEN_KINDS for fault in found)
    return sorted(found, key=lambda fault: (not fault.lines, is_lost and fault.kind == "extra"))


class _Judge:
    """A comparison of the terms of a sum with those of the correct one.

    Where a rule isn't a fact but a choice of the most likely fault, a comment names a row of the
    tests' ``traced_faults.toml`` or ``planted_faults.toml`` whose fault isn't found without it.
    """

    def __init__(self, sliced: Slice) -> None:
        self.slice, self.run, self.traced = sliced, sliced.run, sliced.run.traced
        self.kernel, self.correct_terms = self.traced.kernel, self.traced.correct_terms
        self.fetches = {matrix: Fetches(self.run, matrix) for matrix in "ABC"}
        self.store = self.run.line(self.run.store)
        added = sliced.terms
        self.missing_terms = [elements for elements in self.correct_terms if elements not in added]
        self.extra_terms = [elements for elements in added if elements not in self.correct_terms]
        self.summed_element = self._find_summed_element()

    def judge_all(self) -> list[Term]:
        """Return all terms, also those that are missing."""
        missing = [*self.missing_terms]
        found: list[Term] = []
        for elements in self.correct_terms:
            if elements in self.slice.terms:
                found += self._judge_correct(elements)
        for elements in sorted(self.extra_terms, key=lambda each: self.slice.terms[each][0].step):
            addend = self.slice.terms[elements][0]
            replaced = self._find_replaced(addend, missing)
            if replaced:
                missing.remove(replaced)
                found.append(self._blame_replacing(addend, replaced))
            else:
                found.append(self._blame_extra(addend))
        found.sort(key=lambda term: term.step)
        return [*found, *map(self._explain_missing, missing)]

    def _line(self, addend: Addend) -> int:
        """Return the line that multiplied a term."""
        return self.run.line(addend.step)

    def _make_term(
        self, kind: str, addend: Addend, fault: Note = NO_NOTE, wanted: Elements = ()
    ) -> Term:
        """Return a term that was added, perhaps in place of a ``wanted`` one."""
        line, k = self._line(addend), self.correct_terms.get(wanted or addend.elements)
        reads = (reading.line for reading in addend.factors)
        scaling = (self.run.line(step) for step, _ in addend.scalings)
        touched = fault.line, line, *reads, *scaling, self.store
        lines = tuple(dict.fromkeys(filter(None, touched)))
        return Term(kind, line, addend.factors, addend.times, k, fault, lines, addend.step)

    # The whole sum

    def find_another_element(self) -> Note | None:
        """Return a note if the whole sum belongs to another element of the block, also its old C,
        and adds up in one register: where it is stored is incorrect, or each of its terms.
        """
        element = self.summed_element
        if not element:
            return None
        (old,) = self.traced.old_term
        sides = zip(element[1:], old[1:], self.kernel.block)
        if any(one // side != other // side for one, other, side in sides):
            return None  # "all fetches are of another block, and C is in output streams"
        (first,) = correct_products(self.kernel, element.row, element.column, 1)
        registers = {register for _, register, _ in self.run.products[first]}
        # "a component of another row"; "a row takes one number of B"
        if len(registers) > 1 or not {*self.correct_terms} & {*self.run.products}:
            return None
        if self.traced.product.beta and (element,) not in self.extra_terms:
            return None  # its store is right: it adds its own old C ("wrong rows")
        lines = self.store, self._line(self.slice.terms[first][0])
        return note("stores", *lines, element=element, wanted=old)

    def _find_summed_element(self) -> MatrixElement | None:
        """Return the element whose products the sum has, and none of the correct ones; or None."""
        products = {elements for elements in self.extra_terms if len(elements) == 2}
        wanted = {elements for elements in self.correct_terms if len(elements) == 2}
        first: Elements = min(products, default=())
        if not wanted <= {*self.missing_terms} or _join_letters(first) != "AB":
            return None
        row, column = (place_of(self.kernel, factor) for factor in first)
        is_whole = products == {*correct_products(self.kernel, row, column, len(wanted))}
        return MatrixElement("C", row, column) if is_whole else None

    # Terms of the correct sum

    def _judge_correct(self, elements: Elements) -> list[Term]:
        """Return the terms with the factors of a correct one.

        If each has the correct scalar, the others repeat the first; else they are one term, which
        is scaled by their sum.
        """
        first, *others = addends = self.slice.terms[elements]
        _, value = self.traced.scalar(elements)
        if any(addend.times != value for addend in addends):
            first, others = replace(first, times=sum(addend.times for addend in addends)), []
        if first.times == value:
            terms = [self._make_term("correct", first)]
        else:
            terms = [self._blame_scaling(first)]
        return terms + [self._blame_repeating(addend) for addend in others]

    def _blame_scaling(self, whole: Addend) -> Term:
        """Return a term that is multiplied by another number than its scalar. The last line that
        multiplies by a number is to look at first; a wrong sign has no line.
        """
        scalar, value = self.traced.scalar(whole.elements)
        addends = self.slice.terms[whole.elements]
        incorrect = [addend for addend in addends if abs(addend.times) != abs(value)]
        lines = Lines(sorted({self.run.line(at) for one in incorrect for at, _ in one.scalings}))
        found = note(
            "scaled",
            *lines,
            at=-1,
            name=self.traced.name(whole.elements),
            times=whole.times,
            scalar=scalar,
            value=value,
        )
        return self._make_term("scaled", whole, found)

    def _blame_repeating(self, again: Addend) -> Term:
        """Return a term that was added before."""
        added = self.slice.terms[again.elements]
        lines = Lines(sorted({self._line(addend) for addend in added}))
        whys = (self.fetches[element.matrix].explain(element) for element in again.elements)
        why = next((each for each in whys if each), NO_NOTE)
        found = note(
            "repeated",
            *lines,
            *why.lines[::-1],
            at=-1,
            name=self.traced.name(again.elements),
            times=len(added),
            places=lines,
            why=why,
        )
        return self._make_term("repeated", again, found)

    def _explain_missing(self, elements: Elements) -> Term:
        """Return a term that was not added."""
        reason, readings = explain_missing(self.fetches, self.run, elements)
        product = "" if elements == self.traced.old_term else f", {_join(elements)},"
        found = replace(reason, term=f"{self.traced.name(elements)}{product}")
        read = (reading.line for reading in readings)
        lines = tuple(dict.fromkeys(filter(None, (reason.line, *read))))
        value = self.traced.scalar(elements)[1]
        return Term("missing", 0, readings, value, self.correct_terms[elements], found, lines)

    # Terms of other sums

    def _blame_extra(self, addend: Addend) -> Term:
        """Return a term that doesn't belong in the sum, nor is in the place of one that does."""
        line, product = self._line(addend), _join(addend.elements)
        if addend.moves:  # "a sum of another component is taken, row by row"
            found = note("sum", self.run.line(addend.moves[-1].step), line, product=product)
        else:
            wanted = {element for elements in self.correct_terms for element in elements}
            odd = [read for read in addend.factors if read.element not in wanted] or addend.factors
            lines = Lines(sorted({read.line for read in odd} - {line}))
            others = " and ".join(dict.fromkeys(f"{read.element}" for read in odd))
            found = note("extra", line, *lines, product=product, read=lines, odd=others)
        return self._make_term("incorrect", addend, found)

    def _find_replaced(self, addend: Addend, missing: list[Elements]) -> Elements:
        """Return the missing term in whose place a term was added, or (): the only one of the same
        matrices that was made nowhere, and shares a factor, or else is of the same k; rather one
        that no line makes of a number.
        """
        old = self.traced.old_term
        # "all fetches are of another block ..."; "an address in the LDS is of another row"
        is_whole = self.summed_element is not None and not self.run.lds_stores
        # "a sum of another component is taken, row by row"
        nowhere = [s for s in missing if is_whole or s == old or s not in self.run.products]
        # "the square of an element of A"
        alike = [some for some in nowhere if _join_letters(some) == _join_letters(addend.elements)]
        scaled = {element for some in self.run.products if not some[1:] for element in some}
        shared = [some for some in alike if {*some} & {*addend.elements}]
        ks = {k_of(self.kernel, element) for element in addend.elements}
        # "an offset that is another"; by k, "one product is missing, and both ..."
        found = shared or [some for some in alike if {self.correct_terms[some]} >= ks]
        # "a counter from 1, of which only the offset of B knows"
        found = [some for some in found if not scaled & {*some}] or found
        return found[0] if len(found) == 1 else ()

    def _blame_replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        read = next(read for read in addend.factors if read.element not in wanted)
        belongs = next(w for w in wanted if w.matrix == read.element.matrix)
        found = self._blame_factor(addend, read, belongs)
        return self._make_term("incorrect", addend, found, wanted)

    def _blame_factor(self, addend: Addend, read: Reading, wanted: MatrixElement) -> Note:
        """Return the note on a factor in the place of another one: the line that read it is blamed
        if its coordinate is known to be incorrect, or else if no register holds the wanted one and
        no use of what it read is correct; else the line that multiplies it.
        """
        line, run = self._line(addend), self.run
        why = self.fetches[wanted.matrix].explain(wanted, [read.step])
        read_kind = run.instruction(read.step).op.kind
        reads = run.reads.get(wanted, ())
        readers = [step for step in reads if run.instruction(step).op.kind == read_kind]
        places = [key for step in readers for key in defines(run.instruction(step))]
        held = {run.recorded.last_writer(key, addend.step) for key in places}
        if not why and (held & {*readers} or self._is_correct(read, addend)):
            reader = Lines([run.line(step) for step in readers if step != read.step][:1])
            kind = "multiplies" if readers else "multiplies unread"
            return note(kind, line, *reader, element=read.element, wanted=wanted, reader=reader)
        stored = self._find_lds_store(read, wanted)
        causes = [*stored, *why.lines]
        return note(
            "reads",
            read.line,
            *causes,
            at=1 if causes else 0,
            element=read.element,
            wanted=wanted,
            why=why,
            stored=stored,
        )

    def _find_lds_store(self, read: Reading, wanted: MatrixElement) -> Lines:
        """Return the line that stored what was loaded from the LDS, if it should have stored what
        is wanted: no work-item stored that.
        """
        stores = [
            (store.line, elements)
            for store, elements in self.run.lds_stores
            if store.step <= read.step and read.element in elements
        ]
        is_load = self.run.instruction(read.step).op.kind == "lds"
        return Lines(line for line, each in stores[-1:] if is_load and wanted not in each)

    def _is_correct(self, read: Reading, addend: Addend) -> bool:
        """Return whether some use of what was read is correct, so that its line is: it was read
        in an earlier iteration; or another line makes a correct term of it, or the same product,
        for another sum.
        """
        run = self.run
        if read.step < addend.step and run.steps[read.step].at > run.steps[addend.step].at:
            return True  # workbench.toml: "a fetch comes after the lines that read it"
        # "the texel of another row"; "a row of B that isn't read: what counts k is right ..."
        for elements in (addend.elements, *self.correct_terms):
            for step, _, c in run.products.get(elements, ()):
                factors = (at for pair in run.factors(step, c) for at in pair)
                if read in map(run.reading, factors) and run.line(step) != self._line(addend):
                    return True
        return False


def _join(factors: Iterable[MatrixElement]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _join_letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices."""
    return "".join(element.matrix for element in elements)
