"""What is a matrix product: threads that compute elements of C = A B, each in a loop over k."""

import math
from dataclasses import dataclass

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass import PRODUCTS, SUMS
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import Segment, steps_of

ALMOST_ALL = 0.999
NO_PRODUCT = (
    "no loop over k multiplies elements of two arrays of real numbers, and adds the products up:"
    " let each thread have sums in variables or a local array, as lesson 14's kernel has, and each"
    " block fill its own tiles"
)


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product.

    Attributes
    ----------
    result
        The number of the argument that is C.
    flops
        Its floating-point operations, without those beyond k.
    """

    result: int
    flops: float


def corners(launch: GridLaunch) -> np.ndarray:
    """Return the places of some blocks, which tell what all do: the first one, and along each axis
    the second, the one in the middle and the last one.
    """
    far = np.array(launch.grid, np.int64) - 1
    diagonals = [np.diag(place) for place in (far, np.minimum(far, 1), far // 2)]
    return np.vstack([np.zeros((1, 3), np.int64), *diagonals])


def find_product(launch: GridLaunch, trace: list[Segment]) -> MatrixProduct:
    """Return the product that the ``corners`` of a launch compute. Raises ``NotTimed`` for anything
    else.
    """
    loops = [step for segment in trace if segment.is_loop for step in segment.steps]
    products = [step for step in loops if step.one.name in PRODUCTS]
    sums = [step.one for step in loops if step.one.name in SUMS]
    stores = [step for step, _ in steps_of(trace) if step.one.name == "STG"]
    if not products or not stores or any("-" in one.text for one in sums):
        raise NotTimed(NO_PRODUCT)
    for step in stores:
        if step in loops:
            raise NotTimed(
                f"line {step.one.line} stores within a loop: keep each sum in a variable, and store"
                " it in C after the loop"
            )
    result = stores[0].array
    factors = {step.array for step in loops if step.one.is_load} - {-1}
    if len(factors) != 2 or result in factors:
        raise NotTimed(NO_PRODUCT)
    c = launch.arguments[result]
    stored = sum(step.on.sum(axis=(1, 2)) * step.one.size for step in stores)
    first, *lasts = (stored[:4] / c.itemsize).tolist()
    for axis, last in zip("xyz", lasts):
        if not last:
            raise NotTimed(
                f"the last block along {axis} stores nothing: pass a smaller grid, the size of C"
                " over what a block computes, rounded up"
            )
    elements = first * math.prod(n - 1 + last / first for last, n in zip(lasts, launch.grid))
    if elements < ALMOST_ALL * c.size:
        raise NotTimed(
            f"the launch stores {100 * elements / c.size:.3g} % of {launch.names[result]}: its grid"
            " or block is too small"
        )
    adds = sum(n * step.on[0].sum() for step, n in steps_of(trace) if step.one.name in PRODUCTS)
    flops = _flops(launch, (*factors, result), elements * float(adds) / first)
    return MatrixProduct(result, flops)


def _flops(launch: GridLaunch, numbers: tuple[int, ...], adds: float) -> float:
    """Return the operations of a product of arrays of such sizes, if a launch's multiply-adds are
    as many, or a part of a tile beyond k more. Raises ``NotTimed``.
    """
    a, b, c = (launch.arguments[number] for number in numbers)
    needed = math.sqrt(a.size * b.size * math.prod(c.shape[-2:]))
    if not ALMOST_ALL < adds / needed < 2:
        raise NotTimed(
            f"each element of {launch.names[numbers[2]]} is a sum of {adds / c.size:,.0f}"
            f" products, and in a product of matrices of these sizes of {needed / c.size:,.0f}:"
            " convolutions and products of elements aren't timed"
        )
    return 2 * needed
