"""A product small enough to check by hand: A, B and C of small whole numbers."""

from dataclasses import dataclass, replace

import numpy as np

from cypresskit.diagnosis.product_run import IncorrectElement
from cypresskit.editing.protocol import AnswerPart
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import RUN_ERRORS, Product, make_product

SHOWN_SIDE = 8  # rows and columns of C that are shown
MAX_TILE_SIDE = 64  # of the tiles in which C is cut: larger ones get no small product
MIN_TERMS = 4  # the least k, before rounding up to whole iterations
MAX_SUM_TERMS = 8  # of a sum, at most


@dataclass(frozen=True, eq=False)
class SmallProduct:
    """A kernel's result on a small product, with alpha = 1 and beta = 0.

    ``product`` has A and B as stored, and the expected C; ``c`` (m x n, float64) is the kernel's
    result.
    """

    product: Product
    c: np.ndarray

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return op(A) and op(B), m x k and k x n."""
        return self.product.kernel.convention.operands(self.product.a, self.product.b)

    @property
    def incorrect_element(self) -> IncorrectElement | None:
        """The first incorrect element among those shown, or None."""
        expected = self.product.expected
        for m, n in np.argwhere((self.c != expected)[:SHOWN_SIDE, :SHOWN_SIDE]).tolist():
            return IncorrectElement(m, n, self.c[m, n], expected[m, n])
        return None

    def answer(self) -> AnswerPart:
        """Return the shown rows of op(A), op(B), C and the ``expected`` C; and for each element
        of C its sum, in words (``sums``).
        """
        shown = self.c[:SHOWN_SIDE, :SHOWN_SIDE]
        rows, columns = shown.shape
        a, b = self.factors
        return {
            "sums": [[self.describe(m, n) for n in range(columns)] for m in range(rows)],
            "is_stored_transposed": self.product.kernel.trans_a,
            "a": _rows(a[:SHOWN_SIDE, :MAX_SUM_TERMS]),
            "b": _rows(b[:MAX_SUM_TERMS, :SHOWN_SIDE]),
            "c": _rows(shown),
            "expected": _rows(self.product.expected[:SHOWN_SIDE, :SHOWN_SIDE]),
        }

    def describe(self, row: int, column: int) -> str:
        """Return an element's place, its correct sum, and its value if that is another."""
        rows, columns = self.factors
        terms = [f"{a:g}·{b:g}" for a, b in zip(rows[row], columns[:, column])]
        got, expected = self.c[row, column], self.product.expected[row, column]
        if len(terms) > MAX_SUM_TERMS:
            terms[MAX_SUM_TERMS:] = ["…"]
        correct = f"{' + '.join(terms)} = {expected:g}."
        if got == expected:
            return f"C[{row}, {column}] = {correct}"
        return f"C[{row}, {column}] should be {correct} It is {got:.6g}."


def multiply_small(kernel: Kernel) -> SmallProduct | None:
    """Run a kernel on a small product. Returns None for a product with a vector or of packed
    matrices, for double-doubles, for large tiles, and if the kernel fails.
    """
    convention = kernel.convention
    is_other = kernel.is_vector or convention.packed or kernel.precision == "double-double"
    if is_other or max(convention.multiple) > MAX_TILE_SIDE:
        return None
    m, n = (-(-SHOWN_SIDE // side) * side for side in convention.multiple)
    k = -(-MIN_TERMS // kernel.k_step) * kernel.k_step
    product = replace(make_product(kernel, (m, n, k), 1.0, 0.0, least=1), unused=0.0)
    try:
        c = np.asarray(product.run(engine="interpreter"), float)
    except RUN_ERRORS:
        return None
    return SmallProduct(product, c)


def _rows(matrix: np.ndarray) -> list[list[float | str]]:
    """Return numbers for JSON: "nan", "inf" and "-inf" as strings."""
    return [
        [float(f"{value:.6g}") if np.isfinite(value) else str(value) for value in row]
        for row in matrix
    ]
