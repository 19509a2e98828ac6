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
    _check_stored(adding)
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
    item = launch.arguments[result].itemsize
    first, *lasts = sum(step.on.reshape(-1, group).sum(axis=1) * step.one.size for step in stores)
    for axis, last in zip("xyz", lasts):
        if not last:
            raise NotTimed(
                f"the last block along {axis} stores nothing: pass a smaller grid, the size of C"
                " over what a block computes, rounded up"
            )
    lines = [blocks - 1 + last / first for last, blocks in zip(lasts, launch.grid)]
    adds = sum(times * step.on[:group].sum() for step, times in steps_of(trace) if step.factors)
    ((a, b),) = ((min(one), min(other)) for one, other in pairs)
    length = _length(launch, (a, b, result), float(adds * item / first))
    elements = float(first / item * math.prod(lines))
    return MatrixProduct(result, adding[0].one.name[0] == "D", elements, length)


def _length(launch: GridLaunch, numbers: tuple[int, int, int], followed: float) -> float:
    """Return the length of k: that of matrices of such sizes, if tiles go a little beyond it, or
    else what the loop does.
    """
    a, b, c = (launch.arguments[number].size for number in numbers)
    length = math.sqrt(a * b / c)
    return length if 0.9 * followed < length <= followed else followed


def _check_stored(adding: list[TraceStep]) -> None:
    """Raise ``NotTimed`` if factors come from shared memory that nothing has stored."""
    for load in [load for step in adding for load in step.factors if not load.arrays]:
        raise NotTimed(
            f"line {load.one.line} loads elements of shared memory that no thread has stored: is"
            " the block as large as its tile?"
        )


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
