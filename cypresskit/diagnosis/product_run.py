"""Run a kernel on products of growing size, until one is incorrect.

The first run under all checks (``ck.check``), on random integers whose sums are exact. Larger ones,
of which the last has another number of iterations, run without checks, unless the last has another
beta than the others. A limit on instructions ends infinite loops.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import NO_COMPARISON, ProductComparison
from cypresskit.kernels.products import RUN_ERRORS, Product, Size, blocks, make_product
from cypresskit.machine.arguments import LackedError
from cypresskit.machine.checks import Findings, check
from cypresskit.machine.checks.findings import HARMLESS_KINDS
from cypresskit.threads import Interrupted

CHECKED_PRODUCTS = 2  # the first products, of 1 x 2 and 2 x 1 blocks, run under all checks
ITERATIONS = 2  # of the loop in the smallest product
ODD_ITERATIONS = 3  # of the second of them: a loop may be unrolled by two
NO_FINDINGS = Findings()


class IncorrectElement(NamedTuple):
    """An element of C that a kernel computes incorrectly: of the first product of a launch, or of
    the one with this ``batch_index``.
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


@dataclass(frozen=True)
class ProductRun:
    """What a run of a product found.

    Attributes
    ----------
    product
        The product.
    comparison
        C, compared with numpy's.
    findings
        Those of the checks. A correct C may have reads outside.
    incorrect_element
        The first one.
    fault
        Why there is no comparison.
    """

    product: Product
    comparison: ProductComparison = NO_COMPARISON
    findings: Findings = NO_FINDINGS
    incorrect_element: IncorrectElement | None = None
    fault: Note = NO_NOTE

    @property
    def is_correct(self) -> bool:
        if self.fault or self.incorrect_element:
            return False
        return all(finding.kind in HARMLESS_KINDS for finding in self.findings)


def _choose_sizes(kernel: Kernel) -> list[Size]:
    """Return the sizes (m, n, k) at which a kernel is verified, small ones first."""
    sizes = [(1, 2, ITERATIONS), (2, 1, ODD_ITERATIONS), (2, 3, 3), (3, 2, 5)]
    if kernel.convention.multiple == (1, 1):
        sizes[CHECKED_PRODUCTS:] = [(3, 5, 7), (5, 3, 12)]
    return [*dict.fromkeys(blocks(kernel, *size) for size in sizes)]  # a vector has one column


def run_products(
    kernel: Kernel, alpha: float, beta: float, last_beta: float, unless: Callable[[], bool]
) -> Iterator[ProductRun]:
    """Yield the runs of a kernel's products, up to the first that isn't correct. ``unless`` is
    called before each; if it returns True, ``Interrupted`` is raised.
    """
    sizes = _choose_sizes(kernel)
    for n, size in enumerate(sizes):
        if unless():
            raise Interrupted
        own_beta = last_beta if size == sizes[-1] else beta
        product = make_product(kernel, size, alpha, own_beta)
        is_checked = n < CHECKED_PRODUCTS or own_beta != beta  # other branches may run
        yield (run := _run_product(product, is_checked))
        if not run.is_correct:
            return


def _run_product(product: Product, is_checked: bool) -> ProductRun:
    """Run a product, with all checks also if without them the kernel fails or C is incorrect."""
    if not is_checked:
        with suppress(*RUN_ERRORS):
            if comparison := product.compare(product.run(engine="interpreter")):
                return ProductRun(product, comparison)
    try:
        arguments = product.arguments()
        program, names = product.kernel.program, product.kernel.convention.names
        findings = check(program, **arguments, names=names, in_place=True)
    except LackedError as error:  # who writes a kernel calls no `launch`
        return ProductRun(product, fault=note("not given", error.line, does=error.does))
    except RUN_ERRORS as error:
        return ProductRun(product, fault=note("not launched", error=f"{error}"))
    if findings.ended_early:
        return ProductRun(product, findings=findings)
    result = product.result(arguments)
    element = None
    if incorrect := np.argwhere(product.find_incorrect(result)).tolist():
        *products, row, column = first = tuple(incorrect[0])
        value, correct_value = (float(c[first]) for c in (result, product.expected))
        element = IncorrectElement(row, column, value, correct_value, sum(products))
    return ProductRun(product, product.compare(result), findings, element)
