"""``trace_element``: from a wrong element of C to the instruction that spoiled it.

The work-item that wrote the element is replayed, and each term of its sum is listed with the lines
that read its factors and multiplied them. A right sum has each product of a row of op(A) and a
column of op(B) once; what it doesn't have, has twice or has too little is marked, and where another
element should have been read, the trace says which.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from cypresskit.il.dataflow import defines, keys, uses
from cypresskit.kernels.catalogue import BYTES, Kernel
from cypresskit.kernels.own import Source, resolve, shortened
from cypresskit.kernels.verification import Product, Size, factors, longest, product, verify
from cypresskit.machine import KernelError
from cypresskit.machine.engines import launch
from cypresskit.machine.provenance import (
    Amount,
    Factor,
    FormalSum,
    Key,
    MemoryWord,
    Node,
    Provenance,
)
from cypresskit.tables import quantity

SHOWN = 40  # terms that are printed


class MatrixElement(NamedTuple):
    """An element of A, B or C as stored: ``matrix`` is its letter."""

    matrix: str
    row: int
    column: int

    def __str__(self) -> str:
        return f"{self.matrix}[{self.row}, {self.column}]"


@dataclass(frozen=True)
class Reading:
    """A factor of a term: the ``element`` that was read, where, and on which way it came.

    ``line`` read it; ``path`` has the lines that passed it on since (``mov``, and stores to and
    loads from the LDS); ``addresses`` those that computed where ``line`` looks. ``inside`` is False
    beyond the matrix's edge, where a fetch gives 0.
    """

    element: MatrixElement
    line: int
    path: tuple[int, ...] = ()
    addresses: tuple[int, ...] = ()
    inside: bool = True

    def __str__(self) -> str:
        return f"{self.element}" if self.inside else f"{self.element} (outside: 0)"


@dataclass(frozen=True)
class Term:
    """A term of an element's sum.

    ``kind``: "right"; "wrong", the right sum doesn't have it; "repeated", it is there already;
    "missing"; or "scaled", where ``times`` is wrong. ``line`` multiplied its factors and added it;
    0 if it is missing. ``factors`` are the elements that were read. ``times`` is what it is
    multiplied with, alpha where it is right. ``k`` is its place in the right sum, or None. ``note``
    says in a sentence what is wrong, ``blame`` is the line to mend, and ``lines`` are all that
    touched the term or an address of its factors, that one first. ``step`` counts the launch's
    instructions up to ``line``.
    """

    kind: str
    line: int
    factors: tuple[Reading, ...]
    times: float
    k: int | None = None
    note: str = ""
    blame: int = 0
    lines: tuple[int, ...] = ()
    step: int = -1

    @property
    def right(self) -> bool:
        return self.kind == "right"

    def __str__(self) -> str:
        product = " ".join(map(str, self.factors))
        times = "" if self.times == 1 else f"{self.times:g} "
        at = f"line {self.line}" if self.line else "nowhere"
        mark = "  " if self.right else "! "
        return f"{mark}{at:>9}  {times}{product}" + (f"    {self.note}" if self.note else "")


@dataclass(frozen=True)
class ElementTrace:
    """What went into C[``row``, ``column``] in a product of ``size`` (m, n, k).

    ``terms`` are in the order in which they were added, missing ones last. ``work_item`` is the
    place of the one that stored the element, at ``line``, or None if nobody did. ``notes`` are the
    faults, each in a sentence, and ``blamed`` the lines to mend, the first fault's first. ``got``
    and ``expected`` are the numbers, ``alpha`` and ``beta`` the product's.
    """

    kernel: Kernel
    row: int
    column: int
    size: Size
    terms: tuple[Term, ...]
    notes: tuple[str, ...]
    blamed: tuple[int, ...]
    work_item: tuple[int, int] | int | None
    line: int
    got: float
    expected: float
    alpha: float
    beta: float

    @property
    def right(self) -> bool:
        """Whether the sum has what it should have, and nothing else."""
        return not self.notes

    def __str__(self) -> str:
        head = f"C[{self.row}, {self.column}] of {self.kernel.name}"
        if self.work_item is not None:
            head += f", stored by work-item {self.work_item} at line {self.line}"
        lines = [f"{head}: {self.got:.9g}"]
        lines[0] += " is right" if self.right else f" in place of {self.expected:.9g}"
        lines += self.notes
        lines += map(str, self.terms[:SHOWN])
        if len(self.terms) > SHOWN:
            lines.append(f"... and {len(self.terms) - SHOWN} terms more")
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
    seed: int = 12,
) -> ElementTrace:
    """Each term that went into an element of C, with the line that added it.

    Parameters
    ----------
    kernel
        A kernel, or its name, text, file or program.
    row, column
        The element of C; by default the first that ``ck.verify`` finds wrong, or else [0, 0].
    size
        m, n and k of the product: by default the first at which ``ck.verify`` finds the kernel
        wrong, or else the smallest that it tries.
    alpha, beta, seed
        As for ``ck.verify``.

    Returns
    -------
    An ``ElementTrace``: ``terms``, ``notes`` on what is wrong, and the lines that are to ``blame``.

    Raises
    ------
    ValueError
        For a row without a column, for an element that the product doesn't have, and for a kernel
        that its convention can't launch.
    KernelError
        For an endless loop and for stores out of range, before the element was stored.

    Examples
    --------
    >>> text = ck.kernels["sgemm_tn"].text.replace("mad r10, r2.x,", "mad r10, r2.y,", 1)
    >>> mine = ck.kernel(text, like="sgemm_tn")
    >>> print(ck.trace_element(mine, 0, 3).notes[0])
    Line 54 multiplies A[0, 1], where A[0, 0] belongs. So it is with 1 more term.
    """
    known = resolve(kernel)
    _check_place(row, column)
    alpha, beta = factors(known.program, alpha, beta)
    if size is None or row is None or column is None:
        checked = verify(known, alpha=alpha, beta=beta, seed=seed)
        first = _smallest(known)
        if size is None:
            size = checked.size or first
        if row is None or column is None:
            wrong = checked.wrong if checked.size == size else None
            row, column = (wrong.row, wrong.column) if wrong else (0, 0)
    m, n, _ = size
    if not (0 <= row < m and 0 <= column < n):
        raise ValueError(f"C is {m} x {n}: it has no element [{row}, {column}]")
    return _Tracer(known, product(known, size, alpha, beta, seed), row, column).trace()


def _check_place(row: object, column: object) -> None:
    """Raise ``ValueError`` for what is no element of C; numbers out of range are judged later."""
    if row is None and column is None:
        return
    for number in (row, column):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ValueError(
                "row, column are two whole numbers, the place of an element of C, such as"
                f" ck.trace_element(kernel, 2, 3); found row = {shortened(row)},"
                f" column = {shortened(column)}"
            )


def _smallest(kernel: Kernel) -> Size:
    rows, columns = kernel.multiple
    return rows, 1 if kernel.vector else 2 * columns, 2 * kernel.k_step


@dataclass(frozen=True)
class _Counted:
    """A term as it is in the sum, before it is judged."""

    key: Key
    amount: Amount
    elements: tuple[MatrixElement, ...]


class _Tracer:
    """Replays a small product and judges what went into one element."""

    def __init__(self, kernel: Kernel, given: Product, row: int, column: int) -> None:
        self.kernel, self.given, self.row, self.column = kernel, given, row, column
        self.seen = Provenance()
        self.arguments = given.arguments(kernel)
        m, n, k = kernel.padded(*given.size)
        self.padded = m, n, k
        self.words = BYTES[kernel.precision] // 4
        self.low: list[_Counted] = []
        self.error: KernelError | None = None
        try:
            launch(
                kernel.program,
                **self.arguments,
                observers=[self.seen],
                max_instructions=longest(kernel, given),
            )
        except KernelError as error:
            self.error = error

    # Places

    def _place(self) -> tuple[int, int]:
        """Which element of ``g[]``, or item of an output stream, holds the element of C, and the
        first of its words.
        """
        _, n, _ = self.padded
        word = (self.row * n + self.column) * self.words
        return divmod(word, 4)

    def _writer(self) -> tuple[Node | None, int]:
        """Who stored the element last, and the first of its words."""
        kernel = self.kernel
        if not kernel.streams:
            element, word = self._place()
            return self.seen.stored(element, word), word
        rows, columns = kernel.block
        width = self.padded[1] // kernel.block[1]
        stripes = kernel.streams // rows
        down, across = self.row % rows, self.column % columns
        stripe, within = divmod(across, columns // stripes)
        item = self.row // rows * width + self.column // columns
        word = within * self.words
        return self.seen.streamed(down * stripes + stripe, item, word), word

    def element(self, word: MemoryWord) -> MatrixElement:
        """The element of A, B or C that a word belongs to."""
        kernel = self.kernel
        m, n, k = self.padded
        per = 4 // self.words if self.words <= 4 else 1
        if word.space == "texture":
            across = kernel.texel // (4 * self.words)
            column = word.x * across + word.word // self.words
            return MatrixElement("ABC"[word.number], word.y, column)
        stored_a, stored_b = kernel.stored(m, n, k)
        number = word.x * per + word.word // self.words
        for letter, (rows, columns) in (("C", (m, n)), ("A", stored_a), ("B", stored_b)):
            if number < rows * columns or letter == "B" or not kernel.buffer:
                return MatrixElement(letter, *divmod(number, columns))
            number -= rows * columns
        raise AssertionError(word)

    def wanted(self, k: int) -> tuple[MatrixElement, MatrixElement]:
        """The elements of A and B whose product is term ``k`` of the right sum."""
        return self.product_of(self.row, self.column, k)

    def product_of(self, row: int, column: int, k: int) -> tuple[MatrixElement, MatrixElement]:
        """The elements of A and B whose product is term ``k`` of the right C[row, column]."""
        a = (k, row) if self.kernel.trans_a else (row, k)
        b = (column, k) if self.kernel.trans_b else (k, column)
        return MatrixElement("A", *a), MatrixElement("B", *b)

    # Judging

    def trace(self) -> ElementTrace:
        node, word = self._writer()
        if node is None:
            return self._unwritten()
        value = self.seen.value(node, tuple(range(word, word + min(self.words, 2))))
        self.item = node[1]
        self.line = self.seen.line(node[0])
        self.store = node[0]
        counted = self._counted(value)
        self.lost = [summand for summand in counted if not summand.amount.times]
        counted = [summand for summand in counted if summand.amount.times]
        terms, notes = self._judged(counted, value)
        faults = [term for term in terms if not term.right]
        blamed = dict.fromkeys(term.blame for term in faults if term.blame)
        place = self.seen.launch.place(node[1])
        return self._result(terms, notes, tuple(blamed), place, self.line)

    def _unwritten(self) -> ElementTrace:
        if self.error is not None:
            raise self.error
        note = "No work-item stores this element: is an address wrong, or the domain too small?"
        stores = {
            i.line
            for i in self.kernel.program.body
            if i.dest is not None and i.dest.register.kind in ("g", "o")
        }
        return self._result([], [note], tuple(sorted(stores)), None, 0)

    def _result(
        self, terms: list[Term], notes: list[str], blamed: Any, place: Any, line: Any
    ) -> ElementTrace:
        given = self.given
        expected = given.expected if given.expected.ndim == 2 else given.expected[0]
        got = float("nan")
        if self.error is None:
            result = self.kernel.result(self.arguments, *given.size[:2])
            result = result[..., 0] if self.kernel.precision == "double-double" else result
            got = float((result if result.ndim == 2 else result[0])[self.row, self.column])
        return ElementTrace(
            self.kernel,
            self.row,
            self.column,
            given.size,
            tuple(terms),
            tuple(notes),
            blamed,
            place,
            line,
            got,
            float(expected[self.row, self.column]),
            given.alpha,
            given.beta,
        )

    def _counted(self, value: FormalSum) -> list[_Counted]:
        """The terms with the elements that their factors are, in the order in which they were
        added; of double-doubles without those of low parts, which are 0.
        """
        high: list[_Counted] = []
        for key, amount in value.terms.items():
            elements = tuple(sorted(self.element(f.word) for f in key.factors))
            low = self.words == 4 and any(f.word.word >= 2 for f in key.factors)
            (self.low if low else high).append(_Counted(key, amount, elements))
        return sorted(high, key=self._when)

    def _when(self, summand: _Counted) -> int:
        if summand.key.step >= 0:
            return summand.key.step
        return max((f.step for f in summand.key.factors), default=0)

    def _judged(self, counted: list[_Counted], value: FormalSum) -> tuple[list[Term], list[str]]:
        given = self.given
        by_elements: dict[tuple[MatrixElement, ...], list[_Counted]] = defaultdict(list)
        for summand in counted:
            by_elements[summand.elements].append(summand)
        right = {self.wanted(k): k for k in range(given.size[2])}
        scale = self._scale(by_elements, right)
        terms: list[Term] = []
        missing: list[int] = []
        for elements, k in right.items():
            matching = by_elements.pop(elements, [])
            terms += self._product_terms(matching, k, scale)
            if not sum(summand.amount.times for summand in matching):
                missing.append(k)
        old = MatrixElement("C", self.row, self.column)
        matching = by_elements.pop((old,), [])
        strangers = [summand for group in by_elements.values() for summand in group]
        moved = self._old_strangers(strangers, old) if not matching and given.beta else []
        terms += self._old_terms(matching, old) if not moved else []
        if not counted and (unset := self._never_set()):
            count = quantity(len(terms) + len(missing), "term")
            note = f"No line sets {unset}, which goes into what line {self.line} stores"
            terms = [replace(term, note="", blame=self.line) for term in terms]
            terms += [self._missing(k, "", self.line) for k in missing]
            return self._ordered(terms), [f"{note}: all {count} of the sum are missing."]
        if another := self._another_element(strangers, missing, right):
            terms += [self._term("wrong", summand, None, "", self.line) for summand in strangers]
            terms += [self._missing(k, "", self.line) for k in missing]
            return self._ordered(terms), [another]
        for summand in moved:
            strangers.remove(summand)
            terms.append(self._exchanged(summand, None, (old,)))
        terms += self._strangers(strangers, missing)
        terms += [self._missing(k) for k in missing]
        ordered = self._ordered(terms)
        notes = _notes(ordered)
        if value.mixed and not notes:
            notes.append(
                "What is stored isn't a sum of products: an operation made another number."
            )
        if value.plain:
            notes.append(f"{value.plain:g} is added that comes from no matrix.")
        if scale != given.alpha and scale is not None:
            notes.insert(0, self._scaled_note(counted, scale))
        return ordered, notes

    def _ordered(self, terms: list[Term]) -> list[Term]:
        """The terms in the order in which they were added, missing ones last."""
        return sorted(terms, key=lambda term: (term.kind == "missing", term.step))

    def _never_set(self) -> str:
        """The nearest component behind the stored word that no line of the kernel sets, or ""."""
        program = self.kernel.program
        store = program.body[self.seen.steps[self.store].at]
        word = self._writer()[1]
        waiting = [
            key
            for n, source, positions in uses(program, store)
            if n >= 0 and word in positions
            for key in keys([(n, source, (word,))])
        ]
        seen = set(waiting)
        while waiting:
            number, component = waiting.pop(0)
            setters = [
                i
                for i in program.body
                if i.dest and i.dest.register.index == number and component in defines(i)
            ]
            if not setters:
                return f"r{number}.{'xyzw'[component]}"
            fresh = set().union(*(keys(uses(program, i)) for i in setters)) - seen
            seen |= fresh
            waiting += sorted(fresh)
        return ""

    def _scale(self, by_elements: Any, right: Any) -> float | None:
        """What most right products are multiplied with; it should be alpha."""
        scales: dict[float, int] = defaultdict(int)
        for elements in right:
            for summand in by_elements.get(elements, ())[:1]:
                scales[summand.amount.times] += 1
        return max(scales, key=lambda times: scales[times], default=None)

    def _scaled_note(self, counted: list[_Counted], scale: float) -> str:
        lines = dict.fromkeys(
            self.seen.line(step) for summand in counted[:1] for step in summand.amount.scaled
        )
        where = f" (line {', '.join(map(str, lines))})" if lines else ""
        return (
            f"The products are multiplied by {scale:g}{where}, not by alpha = {self.given.alpha:g}."
        )

    def _product_terms(self, summands: list[_Counted], k: int, scale: float | None) -> list[Term]:
        """The terms that are product ``k``: the first is right, others repeat it."""
        total = sum(summand.amount.times for summand in summands)
        if not summands or not total:
            return []
        if total == scale:
            return [self._scaled_or_right(summands[0], k, total)]
        shown = [summand for summand in summands if summand.amount.times == scale]
        if len(shown) == len(summands):
            first = self._scaled_or_right(summands[0], k, scale)
            again = summands[1:]
            times = "twice" if len(again) == 1 else f"{len(summands)} times"
            result = [first]
            for summand in again:
                line = self._line(summand)
                also = "" if first.line == line else f" and at line {first.line}"
                note = f"Term k = {k} was added {times}, at line {line}{also}."
                result.append(self._term("repeated", summand, k, note, line))
            return result
        note = f"Term k = {k} is multiplied by {total:g}, not by alpha = {self.given.alpha:g}."
        scaled = [self.seen.line(step) for step in summands[-1].amount.scaled]
        blame = scaled[-1] if scaled else self._line(summands[-1])
        return [self._term("scaled", summand, k, note, blame) for summand in summands]

    def _scaled_or_right(self, summand: _Counted, k: int, scale: float | None) -> Term:
        if scale == self.given.alpha:
            return self._term("right", summand, k)
        lines = [self.seen.line(step) for step in summand.amount.scaled]
        return self._term("scaled", summand, k, "", lines[-1] if lines else self.line)

    def _old_terms(self, summands: list[_Counted], old: MatrixElement) -> list[Term]:
        """The terms that are the old C: beta times, once."""
        total = sum(summand.amount.times for summand in summands)
        beta = self.given.beta
        if not beta and not summands:
            return []
        if total == beta:
            return [self._term("right", summand, None) for summand in summands[:1]]
        if not total:
            note = f"{old}, the old one, is missing: beta = {beta:g} times it belongs into the sum."
            return [replace(self._absent((old,), None), note=note, times=beta)]
        note = f"{old}, the old one, is multiplied by {total:g}, not by beta = {beta:g}."
        scaled = [self.seen.line(step) for step in summands[-1].amount.scaled]
        blame = scaled[-1] if scaled else self._line(summands[-1])
        return [self._term("scaled", summand, None, note, blame) for summand in summands]

    def _old_strangers(self, strangers: list[_Counted], old: MatrixElement) -> list[_Counted]:
        """Terms that are another element's old C."""
        return [
            summand
            for summand in strangers
            if len(summand.elements) == 1 and summand.elements[0].matrix == old.matrix
        ]

    def _another_element(self, strangers: list[_Counted], missing: list[int], right: Any) -> str:
        """A sentence if the whole sum is another element's, "" otherwise; of an element of the same
        block only if the right sum was made, too.
        """
        m, n, k = self.given.size
        olds = [summand.elements[0] for summand in strangers if len(summand.elements) == 1]
        if len(missing) < len(right) or not strangers or (self.given.beta and not olds):
            return ""
        products = [summand.elements for summand in strangers if len(summand.elements) == 2]
        a_products = {elements for elements in products if elements[0].matrix == "A"}
        made = any(tuple(sorted(elements)) in self._made for elements in right)
        for row in range(m):
            for column in range(n):
                if not made and self._block(row, column) == self._block(self.row, self.column):
                    continue
                others = {self.product_of(row, column, p) for p in range(k)}
                own = not self.given.beta or olds == [MatrixElement("C", row, column)]
                if own and a_products == others:
                    return (
                        f"Line {self.line} stores the sum that belongs to C[{row}, {column}]: is"
                        " the address or the register wrong?"
                    )
        return ""

    def _block(self, row: int, column: int) -> tuple[int, int]:
        """The block that an element is in."""
        rows, columns = self.kernel.block
        return row // rows, column // columns

    def _strangers(self, strangers: list[_Counted], missing: list[int]) -> list[Term]:
        """The terms that the right sum doesn't have, each with what belongs in its place."""
        result = []
        nowhere = [k for k in missing if tuple(sorted(self.wanted(k))) not in self._made]
        for stranger in strangers:
            k = self._instead(stranger, nowhere)
            if k is None:
                line = self._line(stranger)
                product = " ".join(map(str, stranger.elements))
                note = f"{product} was added at line {line}, and doesn't belong into the sum."
                result.append(self._term("wrong", stranger, None, note, line))
                continue
            missing.remove(k)
            nowhere.remove(k)
            result.append(self._exchanged(stranger, k, self.wanted(k)))
        return result

    def _instead(self, stranger: _Counted, missing: list[int]) -> int | None:
        """The missing term in whose place a wrong one stands: it shares a factor with it, or was
        due when it came.
        """
        if len(stranger.elements) != 2 or not missing:
            return None
        shared = [k for k in missing if set(self.wanted(k)) & set(stranger.elements)]
        return min(shared or missing)

    def _exchanged(
        self, stranger: _Counted, k: int | None, wanted: tuple[MatrixElement, ...]
    ) -> Term:
        """A wrong term in the place of a right one."""
        pairs = []
        for factor in stranger.key.factors:
            element = self.element(factor.word)
            belongs = next((w for w in wanted if w.matrix == element.matrix), None)
            if element not in wanted:
                pairs.append((factor, element, belongs))
        line = self._line(stranger)
        if not pairs or any(belongs is None for *_, belongs in pairs):
            product = " ".join(map(str, stranger.elements))
            right = " ".join(map(str, wanted))
            note = f"Line {line} adds {product}, where {right} belongs."
            return self._term("wrong", stranger, k, note, line)
        factor, element, belongs = pairs[0]
        picked = belongs is not None and self._was_read(belongs, stranger)
        blame = line if picked else self.seen.line(factor.step)
        does = "multiplies" if picked else "reads"
        outside = "" if factor.word.inside else ", outside of the matrix"
        note = f"Line {blame} {does} {element}{outside}, where {belongs} belongs."
        return self._term("wrong", stranger, k, note, blame)

    @cached_property
    def _held(self) -> dict[MatrixElement, list[int]]:
        """The elements that the work-item read, or loaded from the LDS, and the steps."""
        steps: dict[MatrixElement, list[int]] = defaultdict(list)
        for step, word in self.seen.held(self.item):
            if word.space == "g" or word.number < 3:
                steps[self.element(word)].append(step)
        return steps

    def _was_read(self, element: MatrixElement, summand: _Counted) -> bool:
        """Whether the work-item held an element when a term was added."""
        return any(step < self._when(summand) for step in self._held.get(element, ()))

    def _missing(self, k: int, note: str | None = None, blame: int = 0) -> Term:
        """The term for product ``k`` that nobody added."""
        term = self._absent(self.wanted(k), k)
        if note is None:
            reason, blame = self._reason(k, term)
            note = f"Term k = {k}, {' '.join(map(str, self.wanted(k)))}, is missing{reason}."
        lines = (blame, *term.lines) if blame else term.lines
        for matrix in {reading.element.matrix for reading in term.factors if not reading.line}:
            lines += self._addresses_of(matrix)
        return replace(term, note=note, blame=blame, lines=tuple(dict.fromkeys(lines)))

    def _reason(self, k: int, term: Term) -> tuple[str, int]:
        """Why term ``k`` is missing, as the end of a sentence, and the line that it is told of."""
        wanted = set(self.wanted(k))
        if low := self._low_at(self.wanted(k)):
            return f": line {low} takes the low part of one of them", low
        for summand in self.lost:
            if set(summand.elements) == wanted:
                line = self._line(summand)
                return f": what line {line} adds is taken away again", line
        for summand in self.lost:
            if set(summand.elements) & wanted and summand.amount.scaled:
                line = self.seen.line(summand.amount.scaled[0])
                return f": line {line} multiplies one of them by 0", line
        if made := self._made.get(tuple(sorted(wanted))):
            return self._astray(*made[-1])
        read = list(dict.fromkeys(reading.line for reading in term.factors if reading.line))
        if all(reading.line for reading in term.factors):
            lines = " and ".join(map(str, read))
            return f": what is read at line {lines} is multiplied nowhere", read[-1]
        absent = next(reading.element for reading in term.factors if not reading.line)
        fetch = self._fetch_of(absent.matrix)
        where = f", though line {fetch} reads {absent.matrix}" if fetch else ""
        return f": {absent} is never read{where}", fetch

    def _fetch_of(self, matrix: str) -> int:
        """The first line at which the work-item read a matrix, or 0."""
        steps = self._steps_of(matrix)
        return self.seen.line(min(steps)) if steps else 0

    def _steps_of(self, matrix: str) -> list[int]:
        """The steps in which the work-item read a matrix."""
        return [s for e, steps in self._held.items() if e.matrix == matrix for s in steps]

    def _addresses_of(self, matrix: str) -> tuple[int, ...]:
        """The lines that computed where the work-item reads a matrix."""
        steps = self._steps_of(matrix)
        return tuple(self.seen.addresses(max(steps), self.item)) if steps else ()

    def _astray(self, step: int, component: int) -> tuple[str, int]:
        """Where a product went that never came to the element, as the end of a sentence, and the
        line to mend.
        """
        line = self.seen.line(step)
        dest = self.kernel.program.body[self.seen.steps[step].at].dest
        assert dest is not None
        register = f"{dest.register}.{'xyzw'[component]}"
        later = self.seen.overwritten(step, component, self.item)
        if later is None:
            return f": line {line} adds it to {register}, which isn't stored here", line
        other = self.seen.line(later)
        again = "the next turn" if other == line else f"line {other}"
        return f": line {line} adds it to {register}, which {again} overwrites", other

    @cached_property
    def _made(self) -> dict[tuple[MatrixElement, ...], list[tuple[int, int]]]:
        """The steps, and components, in which the work-item multiplied two elements."""
        places: dict[tuple[MatrixElement, ...], list[tuple[int, int]]] = defaultdict(list)
        for step, component, value in self.seen.products(self.item):
            for key, amount in value.terms.items():
                if key.step == step and len(key.factors) == 2 and amount.times:
                    elements = tuple(sorted(self.element(f.word) for f in key.factors))
                    places[elements].append((step, component))
        return places

    def _low_at(self, elements: tuple[MatrixElement, ...]) -> int:
        """The line that adds a product with the low part of a double-double a second time, or 0."""
        lines: dict[tuple[int, ...], int] = {}
        for summand in sorted(self.low, key=self._when):
            if summand.elements != tuple(sorted(elements)):
                continue
            words = tuple(f.word.word for f in summand.key.factors)
            if words in lines:
                return lines[words]
            lines[words] = self._line(summand)
        return 0

    def _absent(self, elements: Iterable[MatrixElement], k: int | None) -> Term:
        readings = tuple(Reading(e, self._read_at(e)) for e in elements)
        lines = tuple(dict.fromkeys(r.line for r in readings if r.line))
        return Term("missing", 0, readings, self.given.alpha, k, lines=lines)

    def _read_at(self, element: MatrixElement) -> int:
        """The line at which the work-item read an element, or 0."""
        steps = self._held.get(element)
        return self.seen.line(steps[0]) if steps else 0

    def _line(self, summand: _Counted) -> int:
        """The line that added a term."""
        if summand.key.step >= 0:
            return self.seen.line(summand.key.step)
        steps = summand.amount.scaled or tuple(f.step for f in summand.key.factors)
        return self.seen.line(steps[-1])

    def _term(
        self, kind: str, summand: _Counted, k: int | None, note: str = "", blame: int = 0
    ) -> Term:
        readings = tuple(
            Reading(
                self.element(f.word),
                self.seen.line(f.step),
                tuple(self.seen.line(step) for step in f.path),
                tuple(self.seen.addresses(f.step, self._reader(f))),
                f.word.inside,
            )
            for f in sorted(summand.key.factors, key=lambda f: self.element(f.word))
        )
        touched = [blame] if blame else []
        touched.append(self._line(summand))
        for reading in readings:
            touched += [reading.line, *reading.path]
        touched += [self.seen.line(step) for step in summand.amount.scaled]
        touched.append(self.line)
        for reading in readings:
            touched += reading.addresses
        touched += self.seen.addresses(self.store, self.item)
        lines = tuple(dict.fromkeys(touched))
        times = summand.amount.times
        step = self._when(summand)
        return Term(kind, self._line(summand), readings, times, k, note, blame, lines, step)

    def _reader(self, factor: Factor) -> int:
        """The work-item that read a factor."""
        step = self.seen.steps[factor.step]
        if step.fetch is None:
            return self.item
        readers = step.active & (step.fetch.x == factor.word.x) & (step.fetch.y == factor.word.y)
        return self.item if readers[self.item] else int(np.argmax(readers))


def _notes(terms: list[Term]) -> list[str]:
    """A sentence for each fault: terms of one kind that are told of one line share theirs."""
    first: dict[tuple[str, int], str] = {}
    count: dict[tuple[str, int], int] = defaultdict(int)
    for term in terms:
        if term.note:
            first.setdefault((term.kind, term.blame), term.note)
            count[term.kind, term.blame] += 1
    notes = []
    for key, note in first.items():
        more = count[key] - 1
        notes.append(note + (f" So it is with {quantity(more, 'more term')}." if more else ""))
    return notes
