"""What is a matrix product: threads that compute elements of C = A B, each in a loop over k."""

import math
from dataclasses import dataclass

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import Segment, TraceStep, steps_of

NO_PRODUCT = (
    "no loop over k multiplies elements of two arrays of real numbers, and adds the products up:"
    " let each thread have sums in variables or a local array, as lesson 14's kernel has"
)


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product.

    Attributes
    ----------
    result
        The number of the argument that is C.
    is_double
        Whether it is in double precision.
    stored
        Elements of C that the launch stores.
    length
        The length of k.
    """

    result: int
    is_double: bool
    stored: float
    length: float

    @property
    def flops(self) -> float:
        return 2 * self.stored * self.length


def corners(launch: GridLaunch) -> np.ndarray:
    """Return the places of the first block and of the last one along each axis, which tell what all
    blocks do.
    """
    return np.vstack([np.zeros((1, 3), np.int64), np.diag(np.array(launch.grid) - 1)])


def find_product(launch: GridLaunch, trace: list[Segment]) -> MatrixProduct:
    """Return the product that the ``corners`` of a launch compute. Raises ``NotTimed`` for anything
    else.
    """
    group = math.prod(launch.threads)
    loops = [step for segment in trace if segment.loop >= 0 for step in segment.steps]
    adding = [step for step in loops if step.factors]
    pairs = {tuple(sorted(tuple(load.arrays) for load in step.factors)) for step in adding}
    stores = [step for step, _ in steps_of(trace) if step.is_result]
    if len(pairs) != 1 or any(len(arrays) != 1 for arrays in min(pairs)) or not stores:
        raise NotTimed(NO_PRODUCT)
    for step in [step for step in stores if step.one.is_shared or step in loops]:
        raise NotTimed(
            f"line {step.one.line} stores a sum in shared memory, or within a loop: keep each"
            " sum in a variable, and store it in C after the loop"
        )
    for step in adding:
        _check_places(step, group)
    _check_windows(trace)
    result = min(stores[0].arrays)
    c = launch.arguments[result]
    counts = sum(step.on.reshape(-1, group).sum(axis=1) * step.one.size for step in stores)
    first, *lasts = counts / c.itemsize
    elements = float(first)
    for axis, last, blocks in zip("xyz", lasts, launch.grid):
        elements *= blocks - 1 + last / first
        if not last:
            raise NotTimed(
                f"the last block along {axis} stores nothing: pass a smaller grid, the size of C"
                " over what a block computes, rounded up"
            )
    adds = sum(times * step.on[:group].sum() for step, times in steps_of(trace) if step.factors)
    ((a, b),) = ((min(one), min(other)) for one, other in pairs)
    sizes = [math.prod(launch.arguments[number].shape) for number in (a, b)]
    length = math.sqrt(sizes[0] * sizes[1] / math.prod(c.shape))
    followed = float(adds / first)  # of k; tiles may go a little beyond its end
    if not 0.9 * followed < length <= followed:
        length = followed
    return MatrixProduct(result, adding[0].one.name[0] == "D", elements, length)


def _check_places(step: TraceStep, group: int) -> None:
    """Raise ``NotTimed`` if threads share neither rows nor columns, as in a product of elements."""
    on = step.on[:group]
    first, second = (load.address[:group][on] for load in step.factors)
    pairs = len(np.unique(first << 32 | second))
    each = len(np.unique(first)), len(np.unique(second))
    if pairs == max(each) and min(each) > 1:
        raise NotTimed(
            f"line {step.one.line} multiplies elements of two arrays, each of which one thread"
            " alone needs: in a product, threads of a row share elements of A"
        )


def _check_windows(trace: list[Segment]) -> None:
    """Raise ``NotTimed`` if what threads load in a loop are windows of an array that overlap, as in
    a convolution.
    """
    for segment in trace:
        for step, move in segment.moves():
            if not step.one.is_load or step.one.is_shared or not move:
                continue
            bases = np.unique(step.address[step.on])
            apart = (bases - bases[0])[1:]
            if np.any((apart % move == 0) & (apart // abs(move) < segment.count)):
                raise NotTimed(
                    f"line {step.one.line} loads windows of an array that overlap, as a convolution"
                    " does: copy them to the rows of a matrix first"
                )
