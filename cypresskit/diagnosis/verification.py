"""Verify that a kernel multiplies correctly, and find the first incorrect element if it doesn't.

The kernel runs at small sizes (``product_run``); of double-doubles, also with low parts; then
perhaps at the size at which it is timed (``at_size``).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from cypresskit.devices import is_whole
from cypresskit.diagnosis.at_size import SizedComparison, compare_at
from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.diagnosis.outside_reads import find_overlong
from cypresskit.diagnosis.product_run import (
    NO_FINDINGS,
    IncorrectElement,
    run_products,
)
from cypresskit.diagnosis.source_facts import choose_scalars, scalars_read
from cypresskit.diagnosis.stated_launch import explain_block, find_remarks
from cypresskit.il.errors import shorten
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import NO_COMPARISON, ProductComparison
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.products import Product, Size, has_correct_low_parts
from cypresskit.machine.checks import Finding, Findings
from cypresskit.tables import listed
from cypresskit.threads import Interrupted, never

Side = int | Size
Fault = Note | Finding | IncorrectElement


@dataclass(frozen=True)
class Verification:
    """What ``verify`` found.

    Attributes
    ----------
    kernel, is_correct
        The kernel, and whether it is correct.
    product
        The first product of which C is incorrect, or else the smallest, with its scalars.
    sizes
        The sizes (m, n, k) at which C was correct.
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
    given_scalars
        alpha and beta as they were given to ``verify``: None, if ``verify`` chose them.
    """

    kernel: Kernel
    is_correct: bool
    product: Product
    sizes: tuple[Size, ...]
    size: Size | None = None
    incorrect_element: IncorrectElement | None = None
    fault: Note = NO_NOTE
    findings: Findings = NO_FINDINGS
    remarks: Note = NO_NOTE
    timing_obstacle: Note = NO_NOTE
    comparison: ProductComparison = NO_COMPARISON
    at_size: SizedComparison | None = None
    given_scalars: tuple[float | None, float | None] = (None, None)

    def __bool__(self) -> bool:
        return self.is_correct

    @property
    def sizes_text(self) -> str:
        """All sizes, at which C was correct, as text: "2 x 4, 4 x 2 and 4 x 6, k from 2 to 5"."""
        sizes = listed([f"{m} x {n}" for m, n, _ in self.sizes])
        ks = [k for *_, k in self.sizes]
        return f"{sizes}, k from {min(ks)} to {max(ks)}"

    @property
    def faults(self) -> list[Fault]:
        """All that is wrong, in the order in which it is to be said: what makes each number of C
        unsure; what causes an incorrect element, before it; and wrong addresses, which another line
        has computed. None of a correct kernel.
        """
        causes = [each for each in self.findings if not each.is_address]
        addresses = [each for each in self.findings if each.is_address]
        ordered = [self.fault, *causes, self.incorrect_element, *addresses]
        return [fault for fault in ordered if fault]

    @property
    def unread_scalars(self) -> str:
        """Which of alpha and beta a correct kernel doesn't read; "" if it reads both."""
        read = zip(("alpha", "beta"), scalars_read(self.kernel))
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
        first = f"{self.kernel.name} is incorrect"
        if self.size:
            m, n, k = self.size
            first += (
                f" at {m} x {n}, k = {k}, with alpha = {self.product.alpha:g}, beta ="
                f" {self.product.beta:g}"
            )
            if self.incorrect_element:
                first += f", in {self.comparison.beyond:,} of {self.comparison.elements:,} elements"
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
    last_beta = 0.0 if beta is None else beta
    given_scalars = alpha, beta
    alpha, beta = choose_scalars(kernel, alpha, beta)
    *_, last = runs = [*run_products(kernel, alpha, beta, last_beta, unless)]
    sizes = tuple(run.product.size for run in runs if run.is_correct)
    largest = last.product.size
    if not last.is_correct:
        return Verification(
            kernel,
            False,
            last.product,
            sizes,
            largest,
            last.incorrect_element,
            last.fault or explain_block(last.product),
            last.findings,
            comparison=last.comparison,
            given_scalars=given_scalars,
        )
    outside = next((run.findings for run in runs if run.findings), NO_FINDINGS)
    obstacle = find_overlong(kernel, largest, alpha, beta) if outside else NO_NOTE
    found = Verification(
        kernel,
        True,
        runs[0].product,
        sizes,
        remarks=find_remarks(kernel, alpha, beta, outside, unless),
        timing_obstacle=obstacle,
        comparison=sum((run.comparison for run in runs), NO_COMPARISON),
        given_scalars=given_scalars,
    )
    if not has_correct_low_parts(kernel, largest, alpha, beta):
        return replace(found, is_correct=False, fault=note("low parts"))
    return verify_at(found, whole, unless) if whole else found


def verify_at(found: Verification, size: Side, unless: Callable[[], bool] = never) -> Verification:
    """Return the verification of a kernel that is correct at small sizes, with C compared at this
    size, too; the parameters are those of ``verify``. An alpha of 0 is replaced by 1.
    """
    whole = whole_size(found.kernel, size)
    if unless():
        raise Interrupted
    small = found.product
    at_size = compare_at(found.kernel, whole, small.alpha or 1.0, small.beta)
    return replace(found, is_correct=not at_size.fault, fault=at_size.fault, at_size=at_size)


def whole_size(kernel: Kernel, size: Side) -> Size:
    """Return a given size as (m, n, k)."""
    sizes = size if isinstance(size, tuple) else (size, 1 if kernel.is_vector else size, size)
    if len(sizes) != 3 or not all(is_whole(side) and side > 0 for side in sizes):
        raise ValueError(f"size is m = n = k, or (m, n, k), of at least 1; found {shorten(size)}")
    m, n, k = map(int, sizes)
    kernel.check_memory((m, n, k))
    return m, n, k
