"""A product small enough to check by hand: A, B and C of small whole numbers."""

from dataclasses import dataclass

import numpy as np

from cypresskit.diagnosis.element_trace import ElementTrace, Term
from cypresskit.editing.static_answers import Answer
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import Product
from cypresskit.machine import KernelError

SIDE = 8  # rows and columns of C that are shown
LARGEST = 64  # rows or columns of a block: larger ones get no small product
TERMS = 4  # the least k, before rounding up to whole iterations
SHOWN_TERMS = 8  # of a sum, at most


@dataclass(frozen=True, eq=False)
class SmallProduct:
    """A kernel's result on a small product, with alpha = 1 and beta = 0.

    ``a`` (m x k) and ``b`` (k x n) are op(A) and op(B); ``c`` (m x n, float64) is the kernel's
    result. ``given`` has A and B as stored, and the expected C.
    """

    given: Product
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray

    @property
    def wrong(self) -> tuple[int, int] | None:
        """The row and column of the first incorrect element among those shown, or None."""
        places = np.argwhere((self.c != self.given.expected)[:SIDE, :SIDE])
        return (int(places[0][0]), int(places[0][1])) if len(places) else None

    def answer(self) -> Answer:
        """Return the shown rows of A, B, C and the expected C (``right``); and for each element of
        C its sum, in words (``sums``).
        """
        rows, columns = self.c[:SIDE, :SIDE].shape
        return {
            "sums": [[self._in_words(m, n) for n in range(columns)] for m in range(rows)],
            "a": _rows(self.a[:SIDE, :SHOWN_TERMS]),
            "b": _rows(self.b[:SHOWN_TERMS, :SIDE]),
            "c": _rows(self.c[:SIDE, :SIDE]),
            "right": _rows(self.given.expected[:SIDE, :SIDE]),
        }

    def sums(self, trace: ElementTrace) -> str:
        """Return the value of an element and the correct one, each as a sum of products."""
        right = self._right(trace.row, trace.column)
        if trace.right:
            return right
        got = [self._product(term) for term in trace.terms if term.kind != "missing"]
        sum_of_terms = f"{_sum(got)} = " if got else ""
        return f"{sum_of_terms}{self.c[trace.row, trace.column]:g}; it should be {right}"

    def _in_words(self, row: int, column: int) -> str:
        """Return an element's place, its correct sum, and its value if that is another."""
        got = self.c[row, column]
        if got == self.given.expected[row, column]:
            return f"C[{row}, {column}] = {self._right(row, column)}"
        return f"C[{row}, {column}] should be {self._right(row, column)}. It is {got:.6g}."

    def _right(self, row: int, column: int) -> str:
        """Return the sum of products that an element should be, and its value."""
        terms = [f"{a:g}·{b:g}" for a, b in zip(self.a[row], self.b[:, column])]
        return f"{_sum(terms)} = {self.given.expected[row, column]:g}"

    def _product(self, term: Term) -> str:
        """Return a term's factors as numbers, such as "2·3"."""
        matrices = {"A": self.given.a, "B": self.given.b, "C": self.given.c}
        elements = [factor.element for factor in term.factors]
        numbers = [matrices[each.matrix][each.row, each.column] for each in elements]
        return "·".join(f"{number:g}" for number in [term.times, *numbers][term.times == 1 :])


def small_product(mine: Kernel) -> SmallProduct | None:
    """Run a kernel on a small product. Returns None if its block is too large, or if it fails."""
    how = mine.convention
    if mine.is_vector or how.packed or mine.precision == "double-double":
        return None
    if max(how.multiple) > LARGEST:
        return None
    m, n = (-(-SIDE // side) * side for side in how.multiple)
    k = -(-TERMS // mine.k_step) * mine.k_step
    chance = np.random.default_rng([m, n, k])
    a, b = (chance.integers(1, 5, shape).astype(float) for shape in ((m, k), (k, n)))
    stored = how.operands(a, b)
    given = Product(mine, (m, n, k), *stored, np.zeros((m, n)), 1.0, 0.0, a @ b)
    try:
        c = np.asarray(given.run(engine="interpreter"), float)
    except (KernelError, ValueError, TypeError):
        return None
    return SmallProduct(given, a, b, c)


def _sum(terms: list[str]) -> str:
    """Return terms as a sum, shortened if it is long."""
    shown = terms if len(terms) <= SHOWN_TERMS else [*terms[:SHOWN_TERMS], "…"]
    return " + ".join(shown)


def _rows(matrix: np.ndarray) -> list[list[float | str]]:
    """Return numbers for JSON: "nan", "inf" and "-inf" as strings."""
    return [
        [float(f"{value:.6g}") if np.isfinite(value) else str(value) for value in row]
        for row in matrix
    ]
