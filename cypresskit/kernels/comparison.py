"""Compare a product with numpy's: how many elements are equal to the last bit, how far off the
others are, and how far off rounding alone could make them.
"""

from dataclasses import dataclass
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
    """

    elements: int
    equal: int
    beyond: int
    largest_error: float
    bound: float

    def __bool__(self) -> bool:
        return self.beyond == 0

    def __str__(self) -> str:
        error = f"largest error {self.largest_error:.1e}, bound {self.bound:.1e}"
        if self.beyond:
            return f"{self.beyond:,} of {self.elements:,} elements are beyond their bounds: {error}"
        if self.equal == self.elements:
            return f"{self.elements:,} elements equal numpy's, to the last bit"
        return f"{self.elements:,} elements are within their bounds: {error}"

    __repr__ = __str__

    def __add__(self, other: "ProductComparison") -> "ProductComparison":
        """Return both comparisons as one."""
        worse = max(self, other, key=lambda one: one.largest_error)
        return ProductComparison(
            self.elements + other.elements,
            self.equal + other.equal,
            self.beyond + other.beyond,
            worse.largest_error,
            worse.bound,
        )


def compare(
    result: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    c: Any = 0.0,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
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

    Returns
    -------
    ProductComparison
        Print it. The bound of an element is the largest error that rounding can cause in whatever
        order the k products are added: k + 4 times the spacing of numbers (``eps``) times
        abs(alpha) abs(a) abs(b) + abs(beta c).

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
        return ProductComparison(0, 0, 0, 0.0, 0.0)
    with np.errstate(all="ignore"):
        errors = np.abs(result - exact)
        equal = result == exact.astype(result.dtype)
    errors = np.where(np.isnan(errors), np.inf, errors)
    bounds = rounding_bounds(left, right, old, alpha, beta, result.dtype)
    worst = errors.argmax()
    return ProductComparison(
        exact.size,
        int(equal.sum()),
        int((errors > bounds).sum()),
        float(errors.flat[worst]),
        float(bounds.flat[worst]),
    )


def rounding_bounds(
    a: np.ndarray, b: np.ndarray, c: Any, alpha: float, beta: float, dtype: Any
) -> np.ndarray:
    """Return the bound of each element of alpha a b + beta c, computed in ``dtype``."""
    size = abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(beta * c)
    bounds: np.ndarray = (a.shape[-1] + 4) * np.finfo(dtype).eps * size
    return bounds
