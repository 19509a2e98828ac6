"""Trace an incorrect element of C to the faulty instruction (``trace_element``).

The sum that the element's work-item stored is followed back to what it read (``slices``). Each term
of the sum is listed with the lines that read its factors and multiplied them. A correct sum has
each product of a row of op(A) and a column of op(B) once. Missing, repeated and other terms are
marked; if another element should have been read, the trace names it.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from operator import index

import numpy as np

from cypresskit.diagnosis.notes import Lines, Note, Values, note
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
from cypresskit.diagnosis.verification import factors, reads_old_c, stored_elements, verify
from cypresskit.il.dataflow import Key, defines, keys, uses
from cypresskit.il.errors import shorten
from cypresskit.il.program import LETTERS
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import Product, Size, blocks, make_product
from cypresskit.machine import KernelError
from cypresskit.tables import quantity

SHOWN = 40  # most terms printed
#: Opcodes that compare floats or, with i or u before, integers.
TESTS = "ge", "lt", "eq", "ne"
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
    leads
        The lines that lead to the stored number, with tests of loops and branches, and all that is
        stored in the LDS; none if no work-item stored the element.
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
    leads: frozenset[int] = frozenset()

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
    leads: frozenset[int] = frozenset()
    if stores.writer is None:
        faults = [_nowhere(traced)]
    else:
        at, item = stores.writer
        line = kernel.program.body[at].line
        sliced = Slice(traced, item)
        leads = sliced.leads
        place = stores.shape.place(item)
        faults = [_untraced(sliced)] if got != expected else []
        if not any(UNKNOWN in elements for elements in sliced.terms):
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
        leads,
    )


def _untraced(sliced: Slice) -> Note:
    """Return why the terms of a sum aren't known: it may multiply what is no element."""
    if not sliced.opaque:
        return note("unknown")
    at = sliced.opaque[-1]
    made = [sliced.line(node[0]) for node in filter(None, [sliced.writer(at)])]
    return note("no number", sliced.line(at.step), *made, name=sliced.name(at))


def _nowhere(traced: TracedElement) -> Note:
    """Return the note on an element that no work-item stores."""
    (rows, columns), stored = traced.kernel.block, stored_elements(traced.kernel)
    element = MatrixElement("C", traced.row, traced.column)
    if not any(i.dest and i.dest.register.kind in "go" for i in traced.kernel.program.body):
        return note("no store")
    if stored and stored != rows * columns:
        return note("block", element=element, stored=stored, rows=rows, columns=columns)
    return note("nowhere", element=element)


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
        whole = self._another_element(extra, missing)
        terms += self._extra_terms(extra, missing)
        terms += [self._missing(elements) for elements in missing]
        terms.sort(key=lambda term: (term.kind == "missing", term.step))
        if whole:  # one fault affects the whole sum
            terms = [replace(term, note=Note(line=whole.line)) for term in terms]
            return [replace(t, kind="wrong") if t.right else t for t in terms], [whole]
        faults = [
            *filter(None, (self._left_at_once(missing), self._begun(terms), self._counted(terms))),
            *_faults(terms),
        ]
        if number := self.slice.number:
            lines = sorted({*map(self.slice.line, self.slice.numbers)})
            faults.append(note("number", *lines, at=-1, number=number))
        return terms, faults

    def _left_at_once(self, missing: list[Elements]) -> Note | None:
        """Return a note if terms are missing, and a loop is left before its products."""
        body, matching = self.kernel.program.body, self.kernel.program.matching
        if any(len(elements) == 2 for elements in self.terms):  # another loop makes products
            return None
        ran = {step.at for step in self.slice.steps}
        for start in (at for at in ran if body[at].op.flow == "loop" and missing):
            last = max(ran.intersection(range(start, matching[start])))
            if body[last].op.flow == "break" and last + 1 < matching[start]:
                step = max(n for n, each in enumerate(self.slice.steps) if each.at == last)
                steps = self.slice.run.origins([step]) if body[last].sources else ()
                tests = [
                    n for n in steps if self.slice.instruction(n).op.name.lstrip("iu") in TESTS
                ]
                return note("left", body[last].line, *map(self.slice.line, sorted(tests)[-1:]))
        return None

    def _loop(self, at: int) -> int:
        """Return where the innermost loop around an instruction begins; -1 if none is."""
        program = self.kernel.program
        starts = [n for n, i in enumerate(program.body[:at]) if i.op.flow == "loop"]
        return max((n for n in starts if program.matching[n] > at), default=-1)

    def _begun(self, terms: list[Term]) -> Note | None:
        """Return a note if the first values of k are left out, with the line that sets the first
        one: what writes the coordinate that goes on in the loop, before the first fetch.
        """
        first = next((term for term in terms if term.right and term.k), None)
        wrong = [term for term in terms if not term.right]
        if not first or {term.k for term in wrong} != {*range(first.k or 0)}:
            return None
        if any(term.note.about != "unread" for term in wrong):
            return None
        fetch, run = first.factors[0].step, self.slice.run
        counts = self._counters(fetch)
        lines = sorted({*map(self.slice.line, run.last_writers(counts, fetch))})
        if len(lines) != 1:
            return None
        return note("first k", *lines, k=first.k)

    def _counters(self, fetch: int) -> list[Key]:
        """Return the coordinates of a fetch that are written again after it."""
        run = self.slice.run
        coordinates = keys(uses(run.program, run.instruction(fetch)))
        return [key for key in coordinates if any(step > fetch for step in run.writers[key])]

    def _grown(self, fetch: int) -> tuple[int, int]:
        """Return by how much a coordinate of a fetch grows after it, and where; or zeros."""
        run, found = self.slice.run, [(0, 0)]
        for key in self._counters(fetch):
            after = next(step for step in run.writers[key] if step > fetch)
            for before in run.last_writers([key], fetch):
                words = np.array([run.steps[n].words[key[1]] for n in (before, after)], np.uint32)
                grown = float(np.subtract(*words.view(np.float32)[::-1]))
                if grown.is_integer() and self._loop(run.steps[after].at) >= 0:
                    found.append((int(grown), run.line(after)))
        return max(found)

    def _counted(self, terms: list[Term]) -> Note | None:
        """Return a note if iterations add the terms of more or fewer values of k than they go on
        by, and no term is wrong otherwise.
        """
        kinds = {(term.kind, term.note.about) for term in terms if not term.right}
        if kinds not in ({("missing", "unread")}, {("repeated", "repeated")}):
            return None
        lacking = [term for term in terms if term.kind == "missing"]
        if any(reading.line for term in lacking for reading in term.factors):
            return None  # of the same k, another factor is read
        added: dict[int, list[Term]] = defaultdict(list)
        loops = set()
        for term in terms:
            if term.line and term.k is not None:
                added[term.line].append(term)
                loops.add(self._loop(self.slice.steps[term.step].at))
        if len(loops) != 1:
            return None
        pairs = [pair for some in added.values() for pair in pairwise(some)]
        strides = {abs((last.k or 0) - (first.k or 0)) for first, last in pairs}
        count = len({some[0].k for some in added.values()})
        lines: tuple[int, ...] = ()
        if not pairs:  # one iteration makes terms
            grown = max(
                self._grown(reading.step) for some in added.values() for reading in some[0].factors
            )
            strides, lines = {grown[0]}, (grown[1],)
        if len(strides) != 1 or strides & {0, count}:
            return None
        if pairs:
            first, last = ([reading.step for reading in term.factors] for term in pairs[0])
            lines = self._leads(last, first)
        return note("count", *lines, at=-1, terms=quantity(count, "term"), k=strides.pop())

    def _leads(self, steps: Iterable[int], but: Iterable[int]) -> tuple[int, ...]:
        """Return the lines that lead to the addresses of ``steps``, and not to those of others."""
        here, there = (
            {*map(self.slice.line, self.slice.run.origins(some))} for some in (steps, but)
        )
        return tuple(sorted(here - there))

    def _name(self, elements: Elements) -> str:
        """Return the name of a correct term."""
        if elements == self.old:
            return f"The old value of {elements[0]}"
        return f"Term k = {self.right[elements]}"

    def _scalar(self, elements: Elements) -> tuple[str, float]:
        """Return the name and value of the scalar that multiplies a correct term."""
        given = self.given
        return ("beta", given.beta) if elements == self.old else ("alpha", given.alpha)

    def _another_element(self, extra: list[Elements], missing: list[Elements]) -> Note | None:
        """Return a note if the whole sum belongs to another element.

        An element of the same block counts only if the correct sum was computed, too, or if another
        line stores the same number; of output streams, another block's only if it was.
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
        places = zip((row, column), self.old[0][1:], self.kernel.block)
        is_near = all(one // side == other // side for one, other, side in places)
        streams = self.kernel.convention.streams
        if not (self._is_stored_twice() if is_near else not streams):
            if not any(elements in self.slice.products for elements in self.right):
                return None
        names: Values = {"element": MatrixElement("C", row, column), "wanted": self.old[0]}
        if is_near:
            return note("stores", self._line(self.terms[first][0]), self.line, at=1, **names)
        names["address"] = "" if streams else "its address"
        return note("places", self.line, **names)

    def _is_stored_twice(self) -> bool:
        """Return whether another line, too, stores the register that is stored here."""
        stored = self.slice.instruction(self.slice.store).sources[:1]
        stores = (i for i in self.kernel.program.body if i.dest and i.dest.register.kind in "go")
        return any(i.line != self.line and i.sources[:1] == stored for i in stores)

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
            lines = sorted({self.slice.line(step) for step in first.scaled})
            names: Values = {"name": self._name(elements), "scalar": scalar, "value": value}
            names["see"] = Lines(lines if first.times != -value else ())
            found = note("scaled", *lines, times=first.times, **names)
            found = replace(found, line=[self.line, *lines][-1])
            terms = [self._term("scaled", first, k, found)]
        times = "twice" if len(addends) == 2 else f"{len(addends)} times"
        for addend in others:
            again = self._repeated(first, addend, k, times)
            terms.append(self._term("repeated", addend, k, again))
        return terms

    def _repeated(self, first: Addend, addend: Addend, k: int | None, times: str) -> Note:
        """Return the note on a term that is added again: another line does so, or another reading
        of a factor, or none.
        """
        lines = sorted({self._line(first), self._line(addend)})
        anew = [two for one, two in zip(first.factors, addend.factors) if one.step != two.step]
        if lines[1:] or addend.made == first.made:
            return note("repeated", *lines, at=-1, k=k, times=times)
        if anew:
            names: Values = {"element": anew[0], "k": k, "times": times}
            return note("reads again", *lines, anew[0].line, at=-1, **names)
        read = sorted({factor.line for factor in first.factors} - {*lines})
        names = {"line": lines[0], "read": Lines(read), "times": times}
        both = read[1:]
        names |= {
            "factors": "both factors" if both else "a factor",
            "them": "them" if both else "it",
        }
        return note("read once", *read, *lines, at=-1, **names)

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
            old = {read.element for read in addend.factors if self._is_old(read, addend)}
            shared.sort(key=lambda elements: len(old & {*elements}))
            instead = (shared if alike or len(added) == 2 else []) + alike
            if instead:
                missing.remove(instead[0])
                nowhere.remove(instead[0])
                result.append(self._replacing(addend, instead[0]))
                continue
            line, crossed, kind = self._line(addend), tuple[int, ...](), "extra"
            if len(added) == 1 and added[0].matrix != "C":
                kind = "single"
            elif addend.crossed and self._accumulates(addend.made):
                crossed, kind = (self.slice.line(addend.crossed[0]),), "sum"
            found = note(kind, *crossed, line, product=_product(added))
            result.append(self._term("wrong", addend, None, found))
        return result

    def _accumulates(self, step: int) -> bool:
        """Return whether a step adds a product to the register that it writes."""
        i = self.slice.instruction(step)
        return i.dest is not None and i.dest.register in (s.register for s in i.sources[2:])

    def _replacing(self, addend: Addend, wanted: Elements) -> Term:
        """Return an incorrect term that was added in place of a correct one."""
        line = self._line(addend)
        alike = _letters(addend.elements) == _letters(wanted)
        element = next((e for e in addend.elements if alike and e not in wanted), NO_ELEMENT)
        belongs = next((w for w in wanted if w.matrix == element.matrix), NO_ELEMENT)
        read = next((r for r in addend.factors if r.element not in wanted), addend.factors[0])
        steps = self.slice.reads.get(belongs, [])
        both = [*map(self.slice.line, steps)]
        source = (read.line,) * (read.line not in (line, *both))
        names: Values = {"element": element, "wanted": belongs, "source": [*source, ""][0]}
        if belongs == NO_ELEMENT:
            lines = sorted({r.line for r in addend.factors} - {line})
            products: Values = {"product": _product(addend.elements), "wanted": _product(wanted)}
            found = note("product", line, *lines, read=Lines(lines), **products)
        elif self.slice.holds(belongs, addend.made):
            found = note("multiplies", line, *source, **names)
        elif self._is_right_elsewhere(read, addend) or (
            self._is_old(read, addend) and read.line in both
        ):
            kind, lines = "unread factor", [line, read.line, *both[:1]]
            if steps:
                kind = "too early" if min(steps) > addend.made else "too late"
            found = note(kind, *lines, nothing=self._nothing_reads(), **names)
        else:
            found = note("reads", read.line, **names)
        return self._term("wrong", addend, self.right[wanted], found)

    def _is_old(self, read: Reading, addend: Addend) -> bool:
        """Return whether a line multiplies what a line below it read in the iteration before."""
        return read.step < addend.made and read.line > self._line(addend)

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
        read = (self.slice.reads.get(element) for element in elements)
        at = [self.slice.line(steps[0]) if steps else 0 for steps in read]
        readings = tuple(map(Reading, elements, at))
        reason = self._reason(elements, readings)
        product = "" if elements == self.old else f", {_product(elements)},"
        found = replace(reason, term=f"{self._name(elements)}{product}")
        lines = tuple(dict.fromkeys(filter(None, (reason.line, *at))))
        return Term(
            "missing", 0, readings, self._scalar(elements)[1], self.right[elements], found, lines
        )

    def _reason(self, elements: Elements, readings: tuple[Reading, ...]) -> Note:
        """Return why a term is missing."""
        sliced = self.slice
        readers = [*dict.fromkeys(reading.line for reading in readings if reading.line)]
        if made := sliced.products.get(elements):
            return self._lost(*made[-1])
        if elements == self.old:
            if not readers and (outside := self._reads_outside_c()):
                return note("old outside", *outside)
            return note("old", *readers, beta=self.given.beta)
        if all(reading.line for reading in readings):
            for at, zero in sliced.zeroed:
                if (element := sliced.element(at)) in elements:
                    return note("by zero", sliced.line(zero.step), element=element)
            for element, other in (elements, elements[::-1]):
                for step, *_ in sliced.products.get((element,), ())[-1:]:
                    if sliced.instruction(step).op.sources[2:]:  # it adds the product
                        return note("by number", sliced.line(step), element=element, other=other)
            return Note("not multiplied", 0, (*readers,))
        absent = next(reading.element for reading in readings if not reading.line)
        alike = (e for elements in self.right for e in elements if e.matrix == absent.matrix)
        reads = [*chain.from_iterable(sliced.reads.get(element, ()) for element in alike)]
        if not reads:  # none of this sum
            reads = [at[0] for e, at in sliced.reads.items() if e.matrix == absent.matrix]
        lines = sorted({*map(sliced.line, reads)})
        names: Values = {
            "element": absent,
            "matrix": absent.matrix,
            "nothing": self._nothing_reads(),
        }
        return note("unread", *lines, at=-1, **names)

    def _reads_outside_c(self) -> list[int]:
        """Return the lines that read C, if none of them has read an element of it."""
        if any(element.matrix == "C" for element in self.slice.reads):
            return []
        ran = (self.slice.instruction(step) for step in range(len(self.slice.steps)))
        return sorted({i.line for i in ran if reads_old_c(self.kernel, i)})

    def _nothing_reads(self) -> str:
        """Return "no line reads": with LDS, other work-items may read what this one should load."""
        return "this work-item doesn't read" if self.kernel.program.lds else "no line reads"

    def _lost(self, step: int, register: int, component: int) -> Note:
        """Return where a product that was made at a step was lost."""
        sliced = self.slice
        line = sliced.line(step)
        names: Values = {"register": f"r{register}.{LETTERS[component]}"}
        for later in range(step + 1, len(sliced.steps)):
            i = sliced.instruction(later)
            writes = (register, component) in defines(i)
            keeps = (register, component) in keys(uses(self.kernel.program, i))
            if writes and not keeps:
                if i.line != line:
                    return note("overwritten", line, i.line, at=1, **names)
                multiplies = i.op.name in ("mul", "dmul")
                return note("only multiplied" if multiplies else "overwritten next", line, **names)
        if step > sliced.store:
            return note("after the store", line, self.line, at=1)
        for sum_, zero in sliced.zeroed:
            if zero.step > step and (register, component) == sliced.key(sum_):
                names["name"] = sliced.name(zero)
                return note("zeroed", line, sliced.line(zero.step), at=1, **names)
        (stored, *_) = sliced.operands(sliced.store, self.traced.place.word)
        if sliced.key(stored) == (register, component):
            return note("not shown", line, **names)
        node = sliced.writer(stored)
        made = [at for at in ([sliced.line(node[0])] if node else []) if at != line]
        names |= {"name": sliced.name(stored), "made": [*made, ""][0], "store": self.line}
        return note("elsewhere", line, *made, self.line, at=-1, **names)

    # Terms

    def _line(self, addend: Addend) -> int:
        """Return the line that added a term."""
        return self.slice.line(addend.made)

    def _term(self, kind: str, addend: Addend, k: int | None, fault: Note = RIGHT) -> Term:
        line = self._line(addend)
        reads = (reading.line for reading in addend.factors)
        touched = fault.line, line, *reads, *map(self.slice.line, addend.scaled), self.line
        lines = tuple(dict.fromkeys(filter(None, touched)))
        return Term(kind, line, addend.factors, addend.times, k, fault, lines, addend.made)


def _product(factors: Iterable[MatrixElement]) -> str:
    """Return a product as text, such as "A[0, 1] · B[1, 0]"."""
    return " · ".join(map(str, factors))


def _letters(elements: Elements) -> str:
    """Return the letters of the elements' matrices."""
    return "".join(element.matrix for element in elements)


def _faults(terms: list[Term]) -> list[Note]:
    """Return the terms' notes. Terms of one kind whose notes name the same lines share one."""
    alike: dict[tuple[object, ...], list[Note]] = defaultdict(list)
    for term in terms:
        if term.note.kind:
            alike[term.kind, term.note.line, term.note.lines].append(term.note)
    return [replace(first, more=len(others)) for first, *others in alike.values()]
