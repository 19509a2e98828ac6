"""How matrices become textures and constants: the launch convention that all GEMM kernels share.

A row-major matrix of float32 becomes a texture of four numbers a texel, of float64 of two: 128 bits, the most that
one fetch reads. cb0 is five elements of four words:

    cb0[0]  alpha, beta as float32; k as a float32 number; row stride of C in 128-bit elements, an integer
    cb0[1]  alpha, beta as float64
    cb0[2]  alpha as double-double (high, low)      cb0[3]  beta as double-double
    cb0[4]  x: all ones if beta is not 0; y: number of 64-wide block columns of C (compute kernels); z, w unused
"""

import numpy as np


def padded(matrix: np.ndarray, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """``matrix`` in the upper left corner of zeros of ``shape``; the array itself where nothing is to be added."""
    if matrix.shape[:2] == shape and matrix.flags.c_contiguous and matrix.dtype == dtype:
        return matrix
    result = np.zeros((*shape, *matrix.shape[2:]), dtype)
    result[: matrix.shape[0], : matrix.shape[1]] = matrix
    return result


def texels(matrix: np.ndarray) -> np.ndarray:
    """A row-major matrix as 128-bit texels: (rows, columns / 4, 4) singles, (rows, columns / 2, 2) doubles; a
    double-double matrix (rows, columns, 2) is that already."""
    count = 16 // matrix.itemsize
    return matrix if matrix.ndim == 3 else matrix.reshape(matrix.shape[0], matrix.shape[1] // count, count)


def constants(alpha, beta, k: int, columns: int, stride: int) -> np.ndarray:
    """cb0, uint32 of shape (5, 4), for padded ``k`` and ``columns`` of C and its row ``stride`` in 128-bit elements.

    alpha and beta are numbers or (high, low) pairs.
    """
    scalars = np.zeros((2, 2))
    for row, value in enumerate((alpha, beta)):
        scalars[row, : np.size(value)] = value
    words = np.zeros((5, 4), np.uint32)
    words[0, :3] = np.array([*scalars[:, 0], k]).astype(np.float32).view(np.uint32)
    words[0, 3] = stride
    words[1] = np.ascontiguousarray(scalars[:, 0]).view(np.uint32)
    words[2:4] = scalars.view(np.uint32)
    words[4, 0] = 0xFFFFFFFF if scalars[1].any() else 0
    words[4, 1] = columns // 64
    return words
