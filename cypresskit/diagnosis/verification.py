"""Verify that a kernel multiplies correctly, and find the first incorrect element if it doesn't.

The kernel runs at small sizes under all checks (``ck.check``), on random integers whose sums are
exact; of double-doubles, also with low parts. At larger sizes, of which the last has another number
of iterations, it runs without checks, unless the last has another beta than the others; then
perhaps at the size at which it is timed (``at_size``). A limit on instructions ends infinite loops.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.diagnosis.at_size import NO_COMPARISON, SizedComparison, compare_at
from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.diagnosis.outside_reads import find_overlong
from cypresskit.diagnosis.source_facts import (
    choose_scalars,
    scalars_read,
    stored_elements,
)
from cypresskit.il.errors import shorten
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import ProductComparison
from cypresskit.kernels.compiled import values_taken
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import (
    RUN_ERRORS,
    Product,
    Size,
    blocks,
    has_correct_low_parts,
    make_product,
)
from cypresskit.kernels.statement import EXAMPLE, find_statement, state
from cypresskit.machine.arguments import LackedError
from cypresskit.machine.checks import Finding, Findings, check
from cypresskit.tables import quantity
from cypresskit.threads import Interrupted, never

CHECKED_PRODUCTS = 2  # the first products, of 1 x 2 and 2 x 1 blocks, run under all checks
ITERATIONS = 2  # of the loop in the smallest product
ODD_ITERATIONS = 3  # of the second of them: a loop may be unrolled by two
NO_FINDINGS = Findings()
HARMLESS_KINDS = "fetch outside", "load outside"  # the kinds of findings that a correct C may have
Side = int | Size


class IncorrectElement(NamedTuple):
    """An element of C that a kernel computes incorrectly: of the first ``product``, number 0, or of
    another one of a launch.
    """

    row: int
    column: int
    value: float
    correct_value: float
    batch_index: int = 0

    def __str__(self) -> str:
        place = f"C[{self.row}, {self.column}]"
        if self.batch_index:
            place += f" of product {self.batch_index + 1}"
        return f"{place} is {self.value:.9g} in place of {self.correct_value:.9g}."


Fault = Note | Finding | IncorrectElement


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found.

    Attributes
    ----------
    kernel, is_correct
        The kernel, and whether it is correct.
    sizes
        The sizes (m, n, k) at which it was correct.
    size
        The next, at which it wasn't; None if there is none.
    incorrect_element
        The first incorrect element there.
    fault
        Why there is no comparison, or that a work-item stores more than the block it is launched
        for; or that C is incorrect in its low parts, or at the given size.
    findings
        The findings of ``ck.check``; none of a correct kernel.
    remarks
        What a correct kernel reads outside of an array, or that an iteration takes fewer values of
        k than the kernel is launched for.
    timing_obstacle
        Which line fetches outside in more than a third of its runs, or how the kernel fails at a
        larger k (``find_overlong``).
    comparison
        The elements at all ``sizes``, or else those at ``size``, compared with numpy's.
    at_size
        C at the size that was given, or None.
    alpha, beta
        The scalars of the products; at the given size an alpha of 0 is replaced by 1.
    given_scalars
        alpha and beta as they were given to ``verify``: None, if ``verify`` chose them.
    """

    kernel: Kernel
    is_correct: bool
    sizes: tuple[Size, ...]
    size: Size | None = None
    incorrect_element: IncorrectElement | None = None
    fault: Note = NO_NOTE
    findings: Findings = NO_FINDINGS
    remarks: Note = NO_NOTE
    timing_obstacle: Note = NO_NOTE
    comparison: ProductComparison = NO_COMPARISON
    at_size: SizedComparison | None = None
    alpha: float = 1.0
    beta: float = 0.0
    given_scalars: tuple[float | None, float | None] = (None, None)

    def __bool__(self) -> bool:
        return self.is_correct

    @property
    def product(self) -> Product:
        """The product at ``size``, or else the smallest."""
        size = self.size or _sizes(self.kernel)[0]
        return make_product(self.kernel, size, self.alpha, self.beta)

    @property
    def sizes_text(self) -> str:
        """All sizes, at which C was correct, as text: "2 x 4, 4 x 2 and 4 x 6, k from 2 to 5"."""
        *others, last = [f"{m} x {n}" for m, n, _ in self.sizes]
        ks = [k for *_, k in self.sizes]
        return f"{', '.join(others)} and {last}, k from {min(ks)} to {max(ks)}"

    @property
    def faults(self) -> list[Fault]:
        """All that is wrong, in the order in which it is to be said: what makes each number of C
        unsure; what causes an incorrect element, before it; and wrong addresses, which another line
        has computed. None of a correct kernel.
        """
        causes = [each for each in self.findings if not is_wrong_address(each)]
        others = filter(is_wrong_address, self.findings)
        return [
            *filter(None, [self.fault]),
            *causes,
            *filter(None, [self.incorrect_element]),
            *others,
        ]

    @property
    def unread_scalars(self) -> str:
        """Which of alpha and beta a correct kernel doesn't read; "" if it reads both."""
        read = zip(("alpha", "beta"), scalars_read(self.kernel), strict=True)
        return " and ".join(name for name, is_read in read if self.is_correct and not is_read)

    @property
    def asides(self) -> list[str]:
        """What a verdict on a correct C adds: the scalars that have no effect, and remarks."""
        unread = f"It doesn't read {self.unread_scalars}." if self.unread_scalars else ""
        return [*filter(None, (unread, self.remarks.text))]

    def __str__(self) -> str:
        if self.is_correct:
            first = f"{self.kernel.name} is correct at {self.sizes_text}: {self.comparison}."
            at_size = f"{self.at_size}." if self.at_size else ""
            return "\n".join(filter(None, [first, at_size, *self.asides]))
        m, n, k = self.product.size
        first = f"{self.kernel.name} is incorrect"
        if self.size:
            first += f" at {m} x {n}, k = {k}, with alpha = {self.alpha:g}, beta = {self.beta:g}"
            if self.incorrect_element:
                first += f", in {self.comparison.beyond:,} of {m * n:,} elements"
            elif self.comparison.elements:
                first += ", although every element of C equals numpy's"
        return "\n".join([f"{first}:", *map(str, self.faults)])

    __repr__ = __str__


def verify(
    kernel: Source,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    size: Side | None = None,
    unless: Callable[[], bool] = never,
) -> Verification:
    """Verify that a kernel multiplies correctly, under all checks.

    Parameters
    ----------
    kernel
        A kernel, or its name, source, file or program.
    alpha, beta
        Integers of C = alpha op(A) op(B) + beta C; by default 2 and -1, but 1 and 0 for a kernel
        that doesn't read them. A kernel that reads the old C is verified with a beta of -1, also if
        it doesn't read beta. The last product has a beta of 0, unless another is given, and NaN in
        place of the old C, which isn't to be used then. Otherwise the matrices hold integers from
        -4 to 4.
    size
        Also compare C at this size: m = n = k (with a vector, m = k), or (m, n, k). Its matrices
        hold random floats. Up to 512 x 512 x 512 all elements are compared, in larger products
        those of four tiles or workgroups: in a quarter of a second; in a browser, in some seconds.
    unless
        Is called before each product; if it returns True, ``Interrupted`` is raised.

    Returns
    -------
    Verification
        It is true if the kernel is correct for 1 x 2 blocks of C with two iterations of its loop,
        for 2 x 1 blocks with three, and for more blocks, the last with five iterations (of blocks
        of one element twelve), so that a loop with a constant trip count fails; also at the given
        ``size``; and of double-doubles also in their low parts. Otherwise its ``faults`` say why
        not, such as by the first incorrect element and the findings.

    Raises
    ------
    Exception
        The errors of ``ck.load_kernel``; ``ValueError`` for another size or scalar; and
        ``Interrupted``, from ``unless``. Infinite loops and stores out of range raise no exception:
        they are findings.

    Examples
    --------
    >>> ck.verify("sgemm_tn")
    sgemm_tn is correct at 8 x 16, 16 x 8, 16 x 24 and 24 x 16, k from 4 to 10: 1,024 elements \
equal numpy's, to the last bit.
    >>> print(ck.verify("sgemm_tn", size=2048).at_size)  # doctest: +ELLIPSIS
    At 2048 x 2048, k = 2048: All 16,384 elements equal numpy's within rounding: largest error ...
    """
    kernel = resolve(kernel)
    whole = None if size is None else whole_size(kernel, size)
    given_scalars = alpha, beta
    last_beta = 0.0 if beta is None else beta
    alpha, beta = choose_scalars(kernel, alpha, beta)
    passed: list[Size] = []
    outside = NO_FINDINGS
    compared = NO_COMPARISON
    *sizes, last = _sizes(kernel)
    scalars = [(small, beta) for small in sizes] + [(last, last_beta)]
    for small, factor in scalars:
        if unless():
            raise Interrupted
        product = make_product(kernel, small, alpha, factor)
        is_checked = len(passed) < CHECKED_PRODUCTS or factor != beta  # other branches may run
        comparison = None if is_checked else _compare(product)
        if not comparison:
            outcome = _check_product(product, tuple(passed))
            if not outcome:
                return replace(outcome, given_scalars=given_scalars)
            comparison = outcome.comparison
            outside = outside or outcome.findings
        compared += comparison
        passed.append(small)
    states_more = find_statement(kernel.text)[0] and values_taken(kernel) < kernel.k_step
    remarks = _restate(kernel, alpha, beta, unless) if outside or states_more else NO_NOTE
    if outside:
        lines = sorted({line for found in outside for line in (found.line, *found.also)})
        remarks = note("reads 0", *lines, why=remarks)
    found = Verification(
        kernel,
        True,
        tuple(passed),
        remarks=remarks,
        timing_obstacle=find_overlong(kernel, last, alpha, beta) if outside else NO_NOTE,
        comparison=compared,
        alpha=alpha,
        beta=beta,
        given_scalars=given_scalars,
    )
    if kernel.precision == "double-double" and not has_correct_low_parts(kernel, last, alpha, beta):
        return replace(found, is_correct=False, fault=note("low parts"))
    return verify_at(found, whole, unless) if whole else found


def verify_at(found: Verification, size: Side, unless: Callable[[], bool] = never) -> Verification:
    """Return the verification of a kernel that is correct at small sizes, with C compared at this
    size, too; the parameters are those of ``verify``.
    """
    whole = whole_size(found.kernel, size)
    if unless():
        raise Interrupted
    at_size = compare_at(found.kernel, whole, found.alpha or 1.0, found.beta)
    return replace(found, is_correct=not at_size.fault, fault=at_size.fault, at_size=at_size)


def _restate(kernel: Kernel, alpha: float, beta: float, unless: Callable[[], bool]) -> Note:
    """Return the note that an iteration takes another number of values of k than it is launched
    for. Empty if the kernel, launched for that number, is incorrect; or reads outside though that
    is more.
    """
    taken = values_taken(kernel)
    if taken in (0, kernel.k_step):
        return NO_NOTE
    convention = replace(kernel.convention, k_step=taken)
    restated = replace(kernel, convention=convention)
    checked = verify(restated, alpha=alpha, beta=beta, unless=unless)
    if not checked or (checked.remarks and taken > kernel.k_step):
        return NO_NOTE
    line, _ = find_statement(kernel.text)
    return note(
        "states k" if line else "launched for k",
        line or 1,
        k=taken,
        values=quantity(taken, "value"),
        stated=kernel.k_step,
        state=state(convention),
    )


def whole_size(kernel: Kernel, size: Side) -> Size:
    """Return a given size as (m, n, k)."""
    sizes = size if isinstance(size, tuple) else (size, 1 if kernel.is_vector else size, size)
    if len(sizes) != 3 or not all(is_whole(side) and side > 0 for side in sizes):
        raise ValueError(f"size is m = n = k, or (m, n, k), of at least 1; found {shorten(size)}")
    m, n, k = map(int, sizes)
    kernel.check_memory((m, n, k))
    return m, n, k


def _compare(product: Product) -> ProductComparison | None:
    """Run a product without checks and compare its C; None if the kernel fails."""
    try:
        result = product.run(engine="interpreter")
    except RUN_ERRORS:
        return None
    return product.compare(result)


def _sizes(kernel: Kernel) -> list[Size]:
    """Return the sizes (m, n, k) at which a kernel is verified, small ones first."""
    sizes = [(1, 2, ITERATIONS), (2, 1, ODD_ITERATIONS), (2, 3, 3), (3, 2, 5)]
    if kernel.convention.multiple == (1, 1):
        sizes[CHECKED_PRODUCTS:] = [(3, 5, 7), (5, 3, 12)]
    return [*dict.fromkeys(blocks(kernel, *size) for size in sizes)]  # a vector has one column


def _check_product(product: Product, passed: tuple[Size, ...]) -> Verification:
    """Run a product under all checks. Of a correct C, the findings are reads outside."""
    kernel = product.kernel
    found = Verification(
        kernel, False, passed, product.size, alpha=product.alpha, beta=product.beta
    )
    try:
        arguments = product.arguments()
        findings = check(
            kernel.program,
            **arguments,
            names=kernel.convention.names,
            in_place=True,
        )
    except LackedError as error:  # who writes a kernel calls no `launch`
        return replace(found, fault=note("not given", error.line, does=error.does))
    except RUN_ERRORS as error:
        return replace(found, fault=note("not launched", error=f"{error}"))
    found = replace(found, findings=findings, fault=_explain_block(kernel))
    if findings.ended_early:
        return found
    result = product.result(arguments)
    found = replace(found, comparison=product.compare(result))
    incorrect = product.find_incorrect(result)
    if not incorrect.any():
        if all(finding.kind in HARMLESS_KINDS for finding in findings):
            return replace(found, is_correct=True, fault=NO_NOTE)
        return found
    place = tuple(int(n) for n in np.argwhere(incorrect)[0])
    *products, row, column = place
    value, correct_value = (float(c[place]) for c in (result, product.expected))
    element = IncorrectElement(row, column, value, correct_value, sum(products))
    return replace(found, incorrect_element=element)


def _explain_block(kernel: Kernel) -> Note:
    """Return the note on a block smaller than what a work-item stores; empty if it isn't."""
    rows, columns = kernel.block
    stored = stored_elements(kernel)
    if stored <= rows * columns:
        return NO_NOTE
    line, _ = find_statement(kernel.text)
    example = "" if line else EXAMPLE
    return note(
        "stores more", line or 1, stored=stored, rows=rows, columns=columns, example=example
    )


def is_wrong_address(finding: Finding) -> bool:
    """Return whether a finding is on an address, which another line has computed."""
    is_race = finding.kind == "race" and not finding.element.startswith("lds")
    return is_race or finding.kind.endswith("outside")
