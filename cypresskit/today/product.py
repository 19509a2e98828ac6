"""What is a matrix product: threads that compute elements of C = A B, each in a loop over k."""

from dataclasses import dataclass

import numpy as np

from cypresskit.today.grid_launch import GridLaunch
from cypresskit.today.sass_threads import NotTimed
from cypresskit.today.sass_trace import Iterations, TraceStep, steps_of

#: What a loop over k doesn't do to data, beside multiplying and adding.
FOREIGN = "MUFU", "FMNMX", "FSETP", "DSETP", "FCHK", "DMNMX"


@dataclass(frozen=True)
class MatrixProduct:
    """A matrix product, as a block computes it.

    Attributes
    ----------
    factors
        The numbers of the arguments that are multiplied.
    result
        The number of the argument that is C.
    multiply_adds
        The kernel's multiply-adds of a block.
    is_double
        Whether they are in double precision.
    """

    factors: tuple[int, int]
    result: int
    multiply_adds: int
    is_double: bool


Shared = list[tuple[int, int, int]]


def find_product(launch: GridLaunch, items: list, shared: Shared, block: slice) -> MatrixProduct:
    """Return the product that a trace computes. Raises ``NotTimed`` for anything else.

    Parameters
    ----------
    items
        The trace of some blocks.
    shared
        Where the stores to shared memory put what they have loaded (``Tracer.shared``).
    block
        The threads of the first block.
    """
    no_product = NotTimed(
        f"this clock times matrix products; {launch.name} has no loop over k that multiplies"
        " elements of two arrays of real numbers, and adds the products up"
    )
    every = list(steps_of(items))
    loops = [step for item in items if isinstance(item, Iterations) for step, _ in steps_of([item])]
    adding = [step for step in loops if step.factors]
    if not adding:
        raise no_product
    pairs = {tuple(sorted(_array(load, shared) for load in step.factors)) for step in adding}
    if len(pairs) != 1 or min(min(pairs)) < 0:
        raise no_product
    for step in loops:
        if step.one.name in FOREIGN and step.is_data:
            raise NotTimed(
                f"this clock times matrix products; line {step.one.line} of {launch.name} does"
                " something else to elements in the loop over k"
            )
    _check_places(launch, adding, block)
    stores = [(step, times) for step, times in every if step.is_result]
    if not stores:
        raise no_product
    if any(times > 1 or step in loops for step, times in stores):
        raise NotTimed(
            f"line {stores[0][0].one.line} of {launch.name} stores C within a loop: keep each sum"
            " in a variable, and store it after the loop"
        )
    _check_windows(launch, items)
    count = sum(times * int(step.on[block].sum()) for step, times in every if step.factors)
    is_double = adding[0].one.name[0] == "D"
    ((first, second),) = pairs
    return MatrixProduct((first, second), stores[0][0].array, count, is_double)


def _array(load: TraceStep, shared: Shared) -> int:
    """Return the number of the argument that a load's data come from; -1 if it isn't known."""
    if not load.one.is_shared:
        return load.array
    some = load.address[load.on]
    found = {array for first, last, array in shared if first <= some.max() and some.min() <= last}
    return found.pop() if len(found) == 1 else -1


def _check_places(launch: GridLaunch, adding: list[TraceStep], block: slice) -> None:
    """Raise ``NotTimed`` if threads share neither rows nor columns, as in a product of elements."""
    for step in adding:
        on = step.on[block]
        first, second = (load.address[block][on] for load in step.factors)
        pairs = len(np.unique(first << 32 | second))
        each = len(np.unique(first)), len(np.unique(second))
        if pairs == max(each) and min(each) > 1:
            raise NotTimed(
                f"this clock times matrix products; line {step.one.line} of {launch.name}"
                " multiplies elements of two arrays, each of which one thread alone needs"
            )


def _check_windows(launch: GridLaunch, items: list) -> None:
    """Raise ``NotTimed`` if what threads load in a loop are windows of an array that overlap, as in
    a convolution.
    """
    for item in items:
        if not isinstance(item, Iterations) or not item.later:
            continue
        for (step, _), (later, _) in zip(steps_of(item.items), steps_of(item.later)):
            if not step.one.is_load or step.one.is_shared or not step.on.any():
                continue
            bases = np.unique(step.address[step.on])
            move = int((later.address - step.address)[step.on][0])
            apart = (bases - bases[0])[1:]
            if move and np.any((apart % move == 0) & (apart // abs(move) < item.count)):
                raise NotTimed(
                    f"this clock times matrix products; line {step.one.line} of {launch.name} loads"
                    " windows of an array that overlap, as a convolution does"
                )
