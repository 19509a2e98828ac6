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
    if matrix.shape == shape and matrix.flags.c_contiguous and matrix.dtype == dtype:
        return matrix
    result = np.zeros(shape, dtype)
    result[: matrix.shape[0], : matrix.shape[1]] = matrix
    return result


def texels(matrix: np.ndarray) -> np.ndarray:
    """A row-major matrix (rows, columns) as 128-bit texels (rows, columns / n, n), n = 4 singles or 2 doubles."""
    count = 16 // matrix.itemsize
    return matrix.reshape(matrix.shape[0], matrix.shape[1] // count, count)


def constants(dtype: np.dtype, alpha: float, beta: float, k: int, columns: int) -> np.ndarray:
    """cb0, uint32 of shape (5, 4), for padded ``k`` and padded ``columns`` of C."""
    words = np.zeros((5, 4), np.uint32)
    words[0, :3] = np.array([alpha, beta, k]).astype(np.float32).view(np.uint32)
    words[0, 3] = columns * dtype.itemsize // 16
    words[1] = np.array([alpha, beta], np.float64).view(np.uint32)
    words[2] = np.array([alpha, 0.0], np.float64).view(np.uint32)
    words[3] = np.array([beta, 0.0], np.float64).view(np.uint32)
    words[4, 0] = 0xFFFFFFFF if beta != 0 else 0
    words[4, 1] = columns // 64
    return words
