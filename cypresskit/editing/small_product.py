"""A product small enough to check by hand: A, B and C of small whole numbers."""

from dataclasses import dataclass

import numpy as np

from cypresskit.editing.static_answers import Answer
from cypresskit.kernels import Kernel
from cypresskit.kernels.element_trace import ElementTrace, Term, trace_element
from cypresskit.kernels.probes import MatrixElement
from cypresskit.kernels.products import LONGEST
from cypresskit.machine import KernelError, launch

SIDE = 8  # rows and columns of C that are shown
LARGEST = 64  # rows or columns of a block of C: a larger one is not small
TERMS = 4  # values of k at least
SHOWN_TERMS = 8  # of a sum, at most


@dataclass(frozen=True, eq=False)
class SmallProduct:
    """A kernel's result on a small product, with alpha = 1 and beta = 0.

    ``a`` (m x k) and ``b`` (k x n) are the factors, ``c`` (m x n) is the kernel's result, and
    ``expected`` the correct one; ``c`` is float64.
    """

    kernel: Kernel
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    expected: np.ndarray

    @property
    def size(self) -> tuple[int, int, int]:
        """m, n and k."""
        return len(self.a), self.b.shape[1], len(self.b)

    @property
    def wrong(self) -> tuple[int, int] | None:
        """The row and column of the first incorrect element among those shown, or None."""
        places = np.argwhere((self.c != self.expected)[:SIDE, :SIDE])
        return (int(places[0][0]), int(places[0][1])) if len(places) else None

    def has(self, row: int, column: int) -> bool:
        """Return whether an element of C is shown."""
        return 0 <= row < min(SIDE, len(self.a)) and 0 <= column < min(SIDE, self.b.shape[1])

    def answer(self) -> Answer:
        """Return the shown rows of A, B, C and the expected C (``right``), and ``k``."""
        return {
            "k": len(self.b),
            "a": _rows(self.a[:SIDE, :SHOWN_TERMS]),
            "b": _rows(self.b[:SHOWN_TERMS, :SIDE]),
            "c": _rows(self.c[:SIDE, :SIDE]),
            "right": _rows(self.expected[:SIDE, :SIDE]),
        }

    def trace(self, row: int, column: int) -> ElementTrace:
        """Return the terms of an element. Raises what ``trace_element`` does."""
        return trace_element(self.kernel, row, column, size=self.size, alpha=1.0, beta=0.0)

    def sums(self, trace: ElementTrace) -> str:
        """Return the value of an element and the correct one, each as a sum of products."""
        place = trace.row, trace.column
        wanted = [f"{a:g}·{b:g}" for a, b in zip(self.a[place[0]], self.b[:, place[1]])]
        right = f"{_sum(wanted)} = {self.expected[place]:g}"
        if trace.right:
            return right
        got = [self._product(term) for term in trace.terms if term.kind != "missing"]
        sum_of_terms = f"{_sum(got)} = " if got else ""
        return f"{sum_of_terms}{self.c[place]:g}; it should be {right}"

    def _product(self, term: Term) -> str:
        """Return a term in numbers."""
        numbers = [f"{self._value(factor.element):g}" for factor in term.factors]
        return "·".join(numbers if term.times == 1 else [f"{term.times:g}", *numbers])

    def _value(self, element: MatrixElement) -> float:
        """Return the value of an element, given its place in memory."""
        transposed = {"A": self.kernel.trans_a, "B": self.kernel.trans_b}
        place = element.row, element.column
        if transposed.get(element.matrix):
            place = place[::-1]
        matrix = {"A": self.a, "B": self.b}.get(element.matrix)
        return 0.0 if matrix is None else float(matrix[place])


def small_product(mine: Kernel) -> SmallProduct | None:
    """Run a kernel on a small product. Returns None if its block is too large, or if it fails."""
    if mine.vector or max(mine.convention.multiple) > LARGEST:
        return None
    m, n = (-(-SIDE // side) * side for side in mine.convention.multiple)
    k = -(-TERMS // mine.k_step) * mine.k_step
    chance = np.random.default_rng([m, n, k])
    a, b = (chance.integers(1, 5, shape).astype(mine.dtype) for shape in ((m, k), (k, n)))
    try:
        factors = (a.T.copy() if mine.trans_a else a, b.T.copy() if mine.trans_b else b)
        given = mine.arguments(*factors, None, 1.0, 0.0)
        launch(mine.program, **given, engine="explain", max_instructions=LONGEST)
        got = np.asarray(mine.result(given, m, n), float)
    except (KernelError, ValueError, TypeError):
        return None
    if got.shape != (m, n):
        return None
    return SmallProduct(mine, a, b, got, a @ b)


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
