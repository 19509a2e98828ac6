"""The launch convention that all GEMM kernels share: how matrices become textures, and scalars and
sizes constants.

A row-major matrix becomes a texture of 128-bit texels, the most that one fetch reads: four float32
numbers, two float64 or one double-double. cb0 is six elements of four words; a kernel declares as
many as it reads:

    cb0[0]  alpha, beta as float32; k as a float32 number; row stride of C in 128-bit
            elements, an integer
    cb0[1]  alpha, beta as float64
    cb0[2]  alpha as double-double (high, low)
    cb0[3]  beta as double-double
    cb0[4]  x: all ones if beta is not 0; y: block columns of C; z: block rows of one
            matrix (compute kernels); w unused
    cb0[5]  kernels that read A and B from g[]: first element of A, first of B, row stride
            of A, of B, integers
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

#: What each element of cb0 holds, in words.
ELEMENTS = (
    "x: alpha; y: beta; z: k as a float32 number, not in turns or texels; w: row stride of C in"
    " 128-bit elements, an integer",
    "xy: alpha; zw: beta, as float64",
    "alpha as double-double (high, low)",
    "beta as double-double (high, low)",
    "x: all ones if beta is not 0; y: block columns of C; z: block rows of one matrix (compute"
    " kernels)",
    "x: first element of A in g[]; y: first of B; z: row stride of A; w: of B; integers",
)

# Columns of a transpose copied at a time: lines of the host's cache are written whole, those read
# stay in it.
STRIP = 16


def padded(stack: np.ndarray, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Matrices of ``stack`` (count, rows, columns[, 2]), each in the upper left corner of zeros of
    ``shape``, one below the other. If there is nothing to pad, it is the array itself.
    """
    below = (stack.shape[0] * shape[0], shape[1], *stack.shape[3:])
    if stack.shape[1:3] == shape and stack.flags.c_contiguous and stack.dtype == dtype:
        return stack.reshape(below)
    result = np.zeros((stack.shape[0], *shape, *stack.shape[3:]), dtype)
    rows, columns = stack.shape[1:3]
    # A transpose takes long in one piece: it is copied in strips
    step = STRIP if stack.strides[1] < stack.strides[2] else columns or 1
    for x in range(0, columns, step):
        result[:, :rows, x : min(x + step, columns)] = stack[:, :, x : x + step]
    return result.reshape(below)


def texels(matrix: np.ndarray, size: int = 16) -> np.ndarray:
    """A row-major matrix as texels of ``size`` bytes: (rows, columns / 4, 4) singles, (rows,
    columns / 2, 2) doubles in the usual 16; a double-double matrix (rows, columns, 2) is that
    already.
    """
    count = size // matrix.itemsize
    if matrix.ndim == 3:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(rows, columns // count, count)


def scalars(alpha: Any, beta: Any) -> np.ndarray:
    """alpha and beta, numbers or (high, low) pairs, as float64 of shape (2, 2)."""
    pairs = np.zeros((2, 2))
    for row, value in zip(pairs, (alpha, beta), strict=True):
        row[: np.size(value)] = value
    return pairs


def constants(
    scalars: np.ndarray, k: int, stride: int, blocks: tuple[int, int], places: Sequence[int] = ()
) -> Any:
    """cb0, uint32 of shape (6, 4), for the ``scalars``, padded ``k``, the row ``stride`` of C in
    128-bit elements, the number of ``blocks`` of C (down, across), and the ``places`` of cb0[5].
    """
    words = np.zeros((6, 4), np.uint32)
    with np.errstate(over="ignore"):  # kernels in single precision are given no such double
        words[0, :3] = np.array([*scalars[:, 0], k]).astype(np.float32).view(np.uint32)
    words[0, 3] = stride
    words[1] = np.ascontiguousarray(scalars[:, 0]).view(np.uint32)
    words[2:4] = scalars.view(np.uint32)
    words[4, :3] = 0xFFFFFFFF if scalars[1].any() else 0, blocks[1], blocks[0]
    words[5, : len(places)] = places
    return words


def adds_c(cb0: np.ndarray) -> bool:
    """Whether a launch with this cb0 adds beta C: whether beta is not 0."""
    return bool(cb0[4, 0])
