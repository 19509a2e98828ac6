"""Trace an incorrect element of C to the faulty instruction (``trace_element``).

The sum that the element's work-item stored is followed back to what it read (``slices``). Each term
of the sum is listed with the lines that read its factors and multiplied them. Missing, repeated and
other terms are marked (``terms``); if another element should have been read, the trace names it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cypresskit.devices import Range
from cypresskit.diagnosis.elements import TracedElement
from cypresskit.diagnosis.missing import find_late_read
from cypresskit.diagnosis.notes import Note, note
from cypresskit.diagnosis.operands import TracedRun
from cypresskit.diagnosis.recorded import StoreRecorder
from cypresskit.diagnosis.slices import Slice
from cypresskit.diagnosis.source_facts import choose_scalars
from cypresskit.diagnosis.stated_launch import explain_block
from cypresskit.diagnosis.terms import Term, judge_terms
from cypresskit.diagnosis.verification import Side, verify, whole_size
from cypresskit.il.errors import shorten
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import Product, make_product
from cypresskit.machine import launch
from cypresskit.machine.checks.findings import named_bits

MAX_SHOWN_TERMS = 40


@dataclass(frozen=True)
class ElementTrace:
    """The terms of C[``row``, ``column``] in a product.

    Attributes
    ----------
    product, row, column
        The product, and the element.
    terms
        The terms in the order in which they were added, missing ones last.
    faults
        What is wrong with the sum.
    work_item, line
        The work-item that stored the element, at ``line``; None if none did.
    value, correct_value
        The element, and its correct value.
    """

    product: Product
    row: int
    column: int
    terms: tuple[Term, ...]
    faults: tuple[Note, ...]
    work_item: tuple[int, int] | int | None
    line: int
    value: float
    correct_value: float

    @property
    def is_correct(self) -> bool:
        """Whether the element is correct: no fault was found in its sum."""
        return not self.faults

    @property
    def hidden_terms(self) -> int:
        """How many terms aren't shown."""
        return max(0, len(self.terms) - MAX_SHOWN_TERMS)

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences of the faults."""
        return tuple(fault.text for fault in self.faults)

    def __str__(self) -> str:
        head = f"C[{self.row}, {self.column}] of {self.product.kernel.name}"
        if self.work_item is not None:
            head += f", stored by work-item {self.work_item} at line {self.line}"
        lines = [f"{head}: {self.value:.9g}"]
        lines[0] += " is correct" if self.is_correct else f" in place of {self.correct_value:.9g}"
        lines += self.notes
        lines += map(str, self.terms[:MAX_SHOWN_TERMS])
        if self.hidden_terms:
            lines.append(f"... and {self.hidden_terms} more terms")
        return "\n".join(lines)

    __repr__ = __str__


def trace_element(
    kernel: Source,
    row: int | None = None,
    column: int | None = None,
    *,
    size: Side | None = None,
    alpha: float | None = None,
    beta: float | None = None,
) -> ElementTrace:
    """Return each term of an element of C, with the line that multiplied it.

    Parameters
    ----------
    kernel
        A kernel, or its name, source, file or program.
    row, column
        The element of C, of several products that of the first; by default the first incorrect
        one by ``ck.verify``, or else [0, 0].
    size
        m = n = k, or (m, n, k); by default the first at which ``ck.verify`` finds the kernel
        incorrect, or else the smallest that it tries.
    alpha, beta
        As for ``ck.verify``; at the size at which it finds the kernel incorrect, those that it
        took there.

    Returns
    -------
    ElementTrace
        The ``terms``, and the ``faults``, with their sentences in ``notes``. A sum that passes
        through memory or the LDS, as of a kernel that adds up parts, has no terms.

    Raises
    ------
    ValueError
        For a row without a column, for an element outside of C, for a product with more elements
        than can be told apart, and for a kernel that its convention can't launch.
    KernelError
        For an infinite loop or a store out of range.

    Examples
    --------
    >>> text = ck.kernels["sgemm_tn"].text.replace("mad r10, r2.x,", "mad r10, r2.y,", 1)
    >>> mine = ck.load_kernel(text, like="sgemm_tn")
    >>> print(ck.trace_element(mine, 0, 3).notes[0])
    Line 54 multiplies A[0, 1] in place of A[0, 0]. The same fault affects 1 more term.
    """
    kernel = resolve(kernel)
    product, first = None, (0, 0)
    if size is not None:
        scalars = choose_scalars(kernel, alpha, beta)
        product = make_product(kernel, whole_size(kernel, size), *scalars)
    if product is None or row is None:
        checked = verify(kernel, alpha=alpha, beta=beta)
        if product is None or product.size == checked.size:
            product, element = checked.product, checked.incorrect_element
            if element and not element.batch_index:
                first = element[:2]
    if row is None and column is None:
        row, column = first
    return trace_product(product, row, column)


def trace_product(product: Product, row: Any, column: Any) -> ElementTrace:
    """Return the trace of an element of a small product; the errors are ``trace_element``'s."""
    m, n, _ = product.size
    if not (Range(most=m - 1).has(row, whole=True) and Range(most=n - 1).has(column, whole=True)):
        raise ValueError(f"C is {m} x {n}: it has no element [{shorten(row)}, {shorten(column)}]")
    row, column = int(row), int(column)
    kernel, traced = product.kernel, TracedElement(product, row, column)
    stores = StoreRecorder(traced.place)
    arguments = product.arguments()
    launch(kernel.program, **arguments, observers=[stores])
    value, correct_value = (
        float(c[..., row, column].flat[0]) for c in (product.result(arguments), product.expected)
    )
    terms: list[Term] = []
    work_item, line = None, 0
    if not stores.writer:
        faults = [_explain_unstored(traced, stores.lost_bits)]
    else:
        at, item = stores.writer
        line = kernel.program.body[at].written_line
        run = TracedRun(traced, item)
        sliced = Slice(run)
        work_item = stores.launch.shape.place(item)
        unknown, faults = sliced.explain_unknown(), []
        if unknown is None:
            terms, faults = judge_terms(sliced)
        if value != correct_value and not faults:
            faults = [find_late_read(run) or unknown or note("values")]
    return ElementTrace(
        product, row, column, tuple(terms), tuple(faults), work_item, line, value, correct_value
    )


def _explain_unstored(traced: TracedElement, lost: Mapping[int, Sequence[int]]) -> Note:
    """Return the note on an element that no work-item stores: see ``StoreRecorder.lost_bits``."""
    (element,) = traced.old_term
    body = traced.kernel.program.body
    if not any(i.dest and i.dest.register.kind in "go" for i in body):
        return note("no store")
    if block := explain_block(traced.product, element):
        return block
    stores = [at for at, i in enumerate(body) if i.dest and i.dest.register.kind == "g"]
    if not stores:
        return note("nowhere", element=element, bits="")
    bits = named_bits(lost[stores[0]]) if lost.get(stores[0]) else ""
    return note("nowhere", body[stores[0]].written_line, element=element, bits=bits)
