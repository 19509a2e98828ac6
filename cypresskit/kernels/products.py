"""Make small products of random integers, to test kernels.

All sums are exact, so a C that is off by more than roundings is incorrect.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import ProductComparison, compare, rounding_bounds
from cypresskit.machine import KernelError
from cypresskit.machine.engines import launch

Size = tuple[int, int, int]
#: What ``Product.run`` raises of a kernel that can't be launched, or not run to its end.
RUN_ERRORS = KernelError, ValueError, TypeError
TEST_ALPHA, TEST_BETA = 2.0, -1.0  # by default: their effects on C can be told apart
MAX_ERROR = 0.1  # of an element of a long sum, in which whole numbers are off by at least 1
LOW = 2.0**-60  # the unit of low parts: they are whole numbers of it, and their products too small


@dataclass(frozen=True)
class Product:
    """A small product: C = alpha op(A) op(B) + beta C.

    Attributes
    ----------
    kernel, size
        The kernel, and (m, n, k).
    a, b
        Matrices as the kernel takes them: float64 arrays of integers; of packed kernels, with a
        first axis.
    c, alpha, beta
        The old C and the scalars.
    expected
        The correct C.
    unused
        What the old C holds instead if beta is 0, so that no kernel may compute with it.
    """

    kernel: Kernel
    size: Size
    a: np.ndarray
    b: np.ndarray
    c: np.ndarray
    alpha: float
    beta: float
    expected: np.ndarray
    unused: float = np.nan

    def arguments(self) -> dict[str, Any]:
        """Return keyword arguments of ``launch``, as ``Kernel.arguments``."""
        old = self.c if self.beta else np.full_like(self.c, self.unused)
        a, b, c = (in_precision(self.kernel, x) for x in (self.a, self.b, old))
        return self.kernel.arguments(a, b, c, self.alpha, self.beta)

    def result(self, arguments: Mapping[str, Any]) -> np.ndarray:
        """Return C from the ``arguments`` of a launch; of double-doubles the high parts."""
        c = self.kernel.result(dict(arguments), *self.size[:2])
        return c[..., 0] if self.kernel.precision == "double-double" else c

    def run(self, **options: Any) -> np.ndarray:
        """Return the C that the kernel computes. The ``options`` are those of ``launch``,
        the errors ``RUN_ERRORS``.
        """
        arguments = self.arguments()
        launch(self.kernel.program, **arguments, **options)
        return self.result(arguments)

    def find_incorrect(self, result: np.ndarray) -> np.ndarray:
        """Return which elements of C are incorrect (bool)."""
        bounds = np.minimum(rounding_bounds(*self._multiplied, self.kernel.dtype), MAX_ERROR)
        with np.errstate(all="ignore"):
            near: np.ndarray = np.abs(result - self.expected) <= bounds
        return ~near

    def compare(self, result: np.ndarray) -> ProductComparison:
        """Compare a C with numpy's."""
        a, b, c, alpha, beta = self._multiplied
        return compare(result, a, b, c, alpha=alpha, beta=beta)

    @property
    def _multiplied(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
        """The matrices as they are multiplied, and the scalars."""
        return *self.kernel.convention.operands(self.a, self.b), self.c, self.alpha, self.beta


def in_precision(kernel: Kernel, matrix: np.ndarray, low: np.ndarray | None = None) -> np.ndarray:
    """Return a matrix in a kernel's dtype; double-doubles get ``low`` parts, by default 0."""
    if kernel.precision != "double-double":
        return matrix.astype(kernel.dtype, copy=False)
    return np.stack([matrix, np.zeros_like(matrix) if low is None else low], axis=-1)


def make_product(
    kernel: Kernel,
    size: Size,
    alpha: float = TEST_ALPHA,
    beta: float = TEST_BETA,
    seed: int = 12,
    largest: int = 4,
    least: int | None = None,
) -> Product:
    """Return a product of random integers.

    Parameters
    ----------
    kernel, size
        The kernel, and (m, n, k).
    alpha, beta
        The scalars.
    seed
        Of the random numbers.
    largest, least
        The largest and the least number; the default of ``least`` is ``-largest``.
    """
    m, n, k = size
    rng = np.random.default_rng(seed)
    least = -largest if least is None else least
    count = (2,) if kernel.convention.packed else ()
    shapes = (*kernel.convention.stored(m, n, k), (m, n))
    a, b, c = (
        rng.integers(least, largest + 1, (*count, *shape)).astype(np.float64) for shape in shapes
    )
    left, right = kernel.convention.operands(a, b)
    return Product(kernel, size, a, b, c, alpha, beta, alpha * (left @ right) + beta * c)


def has_correct_low_parts(kernel: Kernel, size: Size, alpha: float, beta: float) -> bool:
    """Return whether a kernel of double-doubles multiplies those whose low parts aren't 0: of each
    product a's high part times b's low one, and a's low part times b's high one. Others have none.
    """
    if kernel.precision != "double-double":
        return True
    high, low = (make_product(kernel, size, alpha, beta, seed) for seed in (12, 13))
    whole = zip((high.a, high.b, high.c), (low.a, low.b, low.c))
    left, right, old = (in_precision(kernel, number, LOW * unit) for number, unit in whole)
    arguments = kernel.arguments(left, right, old, alpha, beta)
    launch(kernel.program, **arguments, engine="interpreter")
    c = kernel.result(arguments, *size[:2])
    (a, b), (a_low, b_low) = (kernel.convention.operands(x.a, x.b) for x in (high, low))
    expected = alpha * (a @ b_low + a_low @ b) + beta * low.c
    found = (c[..., 0] - high.expected + c[..., 1]) / LOW
    return bool((np.abs(found - expected) <= MAX_ERROR).all())


def blocks(kernel: Kernel, down: int, across: int, iterations: int) -> Size:
    """Return the size of a product with this many blocks of C, and iterations of the loop."""
    rows, columns = kernel.convention.multiple
    return down * rows, 1 if kernel.is_vector else across * columns, iterations * kernel.k_step
