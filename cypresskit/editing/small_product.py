"""A product that can be multiplied by head: A, B and C of small whole numbers, by a kernel."""

import numpy as np

from cypresskit.editing.pure_answers import Answer
from cypresskit.kernels import Kernel
from cypresskit.kernels.products import LONGEST
from cypresskit.machine import KernelError, launch

SIDE = 8  # rows and columns of C that are shown
LARGEST = 64  # rows or columns of a block of C: a larger one is not small
TERMS = 4  # steps of k at least
SHOWN_TERMS = 8  # at most


def small_product(mine: Kernel) -> Answer | None:
    """``a`` and ``b``, the factors' rows; ``c``, the rows of what the kernel made of them, and
    ``right``, what belongs there: at most ``SIDE`` rows and columns, and ``SHOWN_TERMS`` terms of
    each sum, of which there are ``k``. None if there is no such product, or the kernel doesn't come
    to its end.
    """
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
    return {
        "k": k,
        "a": _rows(a[:SIDE, :SHOWN_TERMS]),
        "b": _rows(b[:SHOWN_TERMS, :SIDE]),
        "c": _rows(got[:SIDE, :SIDE]),
        "right": _rows((a @ b)[:SIDE, :SIDE]),
    }


def _rows(matrix: np.ndarray) -> list[list[float | str]]:
    """Numbers as JSON has them; of those that it hasn't, the names."""
    return [
        [float(f"{value:.6g}") if np.isfinite(value) else str(value) for value in row]
        for row in matrix
    ]
