"""Compare a product with numpy's: how many elements are equal to the last bit, how far off the
others are, how far off numpy's own are, and how far off rounding alone could make them.
"""

from dataclasses import astuple, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ProductComparison:
    """What ``compare`` found. It is true if every element is within its bound.

    Attributes
    ----------
    elements, equal, beyond
        The number of elements; of those equal to numpy's, to the last bit; and of those that are
        off by more than their bound.
    largest_error, bound
        The largest error, and the bound of that element.
    at
        The place of that element.
    unit
        A unit of the last place of a typical element: of the root of the mean square.
    numpys_error
        The largest error of numpy's product in single precision. That in double precision is what
        elements are compared with: None.
    """

    elements: int = 0
    equal: int = 0
    beyond: int = 0
    largest_error: float = 0.0
    bound: float = 0.0
    at: tuple[int, ...] = ()
    unit: float = 1.0
    numpys_error: float | None = None

    def __bool__(self) -> bool:
        return self.beyond == 0

    def __str__(self) -> str:
        if self.beyond:
            return (
                f"{self.beyond:,} of {self.elements:,} elements differ from numpy's by more than"
                f" rounding can cause: {self.largest_error:.1e} in place of at most"
                f" {self.bound:.1e}"
            )
        if self.equal == self.elements:
            return f"{self.elements:,} elements equal numpy's, to the last bit"
        found = f"{self._units(self.largest_error)} units of the last place"
        kind, own = "difference", ""
        if self.numpys_error is not None:
            kind, own = "error", f", numpy's own {self._units(self.numpys_error)}"
        equal = f"All {self.elements:,} elements equal numpy's within rounding"
        return f"{equal}: largest {kind} {found}{own}"

    __repr__ = __str__

    def _units(self, error: float) -> str:
        units = error / self.unit
        return f"{units:,.0f}" if units >= 10 else f"{units:.1f}"

    def __add__(self, other: "ProductComparison") -> "ProductComparison":
        """Return both comparisons as one; its error is the larger one."""
        worse = max(self, other, key=lambda one: one.largest_error)
        counts = [getattr(self, x) + getattr(other, x) for x in ("elements", "equal", "beyond")]
        return ProductComparison(*counts, *astuple(worse)[3:])


NO_COMPARISON = ProductComparison()


def compare(
    result: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: Any = 0.0,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    where: Any = True,
) -> ProductComparison:
    """Compare a result with numpy's alpha a b + beta c, element by element.

    Parameters
    ----------
    result
        An array of float32 or float64.
    a, b, c
        The matrices (``b`` and ``c`` may be vectors), as they are multiplied: transpose them first.
    alpha, beta
        The scalars.
    where
        Mask of the elements that are compared.

    Returns
    -------
    ProductComparison
        Print it. Errors are differences from numpy's product in double precision. The bound of an
        element is the largest error that rounding can cause in whatever order the k products are
        added: k + 4 times the spacing of numbers (``eps``) times abs(alpha) abs(a) abs(b) +
        abs(beta c). Most errors are far smaller, so numpy's own error is there, too.

    Raises
    ------
    ValueError
        For a result of another shape than the product's.

    Examples
    --------
    >>> a = np.ones((2, 3), np.float32)
    >>> ck.compare(ck.gemm(a, a.T), a, a.T)
    4 elements equal numpy's, to the last bit
    """
    left, right, old = (np.asarray(matrix, np.float64) for matrix in (a, b, c))
    exact = np.asarray(alpha * (left @ right) + beta * old)
    if result.shape != exact.shape:
        raise ValueError(f"the result has shape {result.shape}, the product has {exact.shape}")
    if not exact.size:
        return ProductComparison()
    where = np.broadcast_to(where, exact.shape)
    errors = _errors(result, exact, where)
    elements = int(where.sum())
    equal = int(((result == exact.astype(result.dtype)) & where).sum())
    bounds = rounding_bounds(left, right, old, alpha, beta, result.dtype)
    worst = errors.argmax()
    typical = np.sqrt(np.mean(exact**2))
    single = None
    if result.dtype == np.float32 and equal < elements:
        with np.errstate(all="ignore"):
            x, y, z = (matrix.astype(np.float32) for matrix in (left, right, old))
            own = np.float32(alpha) * (x @ y) + np.float32(beta) * z
        single = float(_errors(own, exact, where).max())
    return ProductComparison(
        elements,
        equal,
        int((errors > bounds).sum()),
        float(errors.flat[worst]),
        float(bounds.flat[worst]),
        tuple(map(int, np.unravel_index(worst, exact.shape))),
        float(np.spacing(result.dtype.type(typical))),
        single,
    )


def _errors(result: np.ndarray, exact: np.ndarray, where: np.ndarray) -> np.ndarray:
    """Return the errors of some elements: 0 of others, infinite where there is no number."""
    with np.errstate(all="ignore"):
        errors = np.abs(result - exact)
    return np.where(where, np.where(np.isnan(errors), np.inf, errors), 0)


def rounding_bounds(
    a: np.ndarray, b: np.ndarray, c: Any, alpha: float, beta: float, dtype: Any
) -> np.ndarray:
    """Return the bound of each element of alpha a b + beta c, computed in ``dtype``."""
    size = abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(beta * c)
    bounds: np.ndarray = (a.shape[-1] + 4) * np.finfo(dtype).eps * size
    return bounds
