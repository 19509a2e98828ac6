"""Compare C at the size at which a kernel is timed: all of it, or some wavefronts' part.

The matrices hold random numbers. What a wavefront stores is seen by what changes, wherever a kernel
stores it.
"""

from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from cypresskit.diagnosis.elements import MatrixElement
from cypresskit.diagnosis.notes import NO_NOTE, Note, note
from cypresskit.il.errors import last_line
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import NO_COMPARISON, ProductComparison, compare
from cypresskit.kernels.products import Size, in_precision
from cypresskit.machine import KernelError
from cypresskit.machine.engines import run_batches
from cypresskit.machine.launch import prepare

MAX_WHOLE_PRODUCTS = 1 << 27  # products: 512 x 512 x 512, or less, is computed whole
#: Otherwise tiles of a pixel kernel, or workgroups: the first, the last, and two
#: that are drawn, perhaps the same.
COMPARED_BATCHES = 4
PERIOD = 99_991  # after which the matrices' numbers repeat: a prime, so that rows differ


@dataclass(frozen=True)
class SizedComparison:
    """C at a ``size`` (m, n, k).

    ``comparison`` is of some of its elements, or all; ``fault`` is what is incorrect.
    """

    size: Size
    comparison: ProductComparison = NO_COMPARISON
    fault: Note = NO_NOTE

    def __str__(self) -> str:
        m, n, k = self.size
        return f"At {m} x {n}, k = {k}: {self.comparison}"


def compare_at(kernel: Kernel, size: Size, alpha: float, beta: float) -> SizedComparison:
    """Compare a kernel's C at a size (m, n, k), rounded up to whole blocks, with numpy's.

    It takes up to a quarter of a second; where nothing can be compiled, some seconds. ``alpha``
    isn't 0: with a ``beta`` of 1, a correct kernel would then change nothing.
    """
    convention = kernel.convention
    is_whole = prod(size) <= MAX_WHOLE_PRODUCTS
    m, n, k = size = convention.padded(*size)
    at_size = f"{m} x {n}, k = {k}"
    rng = np.random.default_rng(n)
    values = rng.standard_normal((3, PERIOD)).astype(kernel.dtype)
    shapes = *convention.stored(m, n, k), (m, n)
    a, b, c = (np.resize(row, shape) for row, shape in zip(values, shapes))
    given_a, given_b, given_c = (in_precision(kernel, x) for x in (a, b, c))
    arguments = kernel.arguments(given_a, given_b, given_c, alpha, beta)
    old = _read_result(kernel, arguments, m, n)

    launch = prepare(kernel.program, **arguments)
    batches = np.arange(launch.shape.batches)
    if not is_whole:
        batches = np.unique([0, *rng.choice(batches, COMPARED_BATCHES - 2), batches[-1]])
    try:
        run_batches(launch, batches)
    except KernelError as error:
        return SizedComparison(
            size, fault=note("fails at size", at_size=at_size, error=last_line(error))
        )
    launch.write_back(arguments.get("outputs"), arguments.get("global_memory"))
    result = _read_result(kernel, arguments, m, n)
    is_stored = result != old

    rows, columns = (np.flatnonzero(is_stored.any(axis=axis) | is_whole) for axis in (1, 0))
    part = np.ix_(rows, columns)
    left, right = convention.operands(a, b)
    matrices = result[part], left[rows], right[:, columns], c[part]
    compare_part = partial(compare, *matrices, alpha=alpha, beta=beta)
    found = compare_part(where=is_stored[part])
    wanted = len(launch.shape.items_of(batches)) * prod(kernel.block) // convention.parts
    if found and found.elements < wanted:  # a few may be what they were before
        same = compare_part(where=~is_stored[part])
        found += ProductComparison(same.elements - same.beyond, same.equal)

    fault = NO_NOTE
    if not found:
        row, column = rows[found.at[0]], columns[found.at[1]]
        fault = note(
            "off at size",
            at_size=at_size,
            element=MatrixElement("C", row, column),
            value=result[row, column],
            comparison=found,
        )
    elif found.elements < wanted:
        fault = note(
            "stores few", at_size=at_size, parts=len(batches), stored=found.elements, wanted=wanted
        )
    return SizedComparison(size, found, fault)


def _read_result(kernel: Kernel, arguments: dict[str, Any], m: int, n: int) -> np.ndarray:
    """Return C, (m, n); of double-doubles the high parts."""
    return kernel.result(arguments, m, n).reshape(m, n, -1)[..., 0]
