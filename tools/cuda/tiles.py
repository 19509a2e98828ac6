"""The workbook's kernels for a current GPU, with and without tiles in shared memory.

The arguments of ``blocked`` and ``tiled`` are constants to the compiler. Sizes are whole blocks.
"""

from functools import cache

import numpy as np

from cypresskit.today.cuda_kernels import cuda, four

TILE_K = 8  # of k that a tile holds


@cuda.jit(device=True, inline="always")
def load_four(array, row, column, loaded, n):
    """Load four numbers of a row, by one load, as ``loaded[n : n + 4]``."""
    loaded[n], loaded[n + 1], loaded[n + 2], loaded[n + 3] = four(array, row, column)


@cache
def blocked(rows: int, columns: int, dtype=np.float32, transposed: bool = True, wide: bool = False):
    """Return a kernel for C = A^T B, or A B, in which each thread computes ``rows`` x ``columns``
    of C and reads through the caches. With ``wide``, the one for A^T B loads four numbers at once.
    """

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        row, column = rows * y, columns * x
        block = cuda.local.array((rows, columns), dtype)
        left = cuda.local.array(rows, dtype)
        right = cuda.local.array(columns, dtype)
        for i in range(rows):
            for j in range(columns):
                block[i, j] = 0
        k = 0
        # numba's range would take more instructions than a small block's products.
        while k < b.shape[0]:
            if wide:
                for n in range(0, rows, 4):
                    load_four(a, k, row + n, left, n)
                for n in range(0, columns, 4):
                    load_four(b, k, column + n, right, n)
            else:
                for i in range(rows):
                    left[i] = a[k, row + i] if transposed else a[row + i, k]
                for j in range(columns):
                    right[j] = b[k, column + j]
            for i in range(rows):
                for j in range(columns):
                    block[i, j] += left[i] * right[j]
            k += 1
        for i in range(rows):
            for j in range(columns):
                c[row + i, column + j] = block[i, j]

    return kernel


@cuda.jit(device=True, inline="always")
def clear(block):
    """Let all numbers of a block be 0."""
    for i in range(block.shape[0]):
        for j in range(block.shape[1]):
            block[i, j] = 0


@cache
def tiled(side: int):
    """Return a kernel for C = A^T B by workgroups of ``side`` x ``side`` threads, which fetch
    ``TILE_K`` rows of A and B into shared memory and multiply from there: lesson 07. A thread's
    rows, and its columns, are two groups of four.
    """
    width = 8 * side

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = width * cuda.blockIdx.y, width * cuda.blockIdx.x
        tile_a = cuda.shared.array((TILE_K, width), np.float32)
        tile_b = cuda.shared.array((TILE_K, width), np.float32)
        block = cuda.local.array((8, 8), np.float32)
        left = cuda.local.array(8, np.float32)
        right = cuda.local.array(8, np.float32)
        clear(block)
        first = 0
        while first < b.shape[0]:
            for n in range(0, TILE_K * width, side * side):
                k, place = divmod(n + side * y + x, width)
                tile_a[k, place] = a[first + k, row + place]
                tile_b[k, place] = b[first + k, column + place]
            cuda.syncthreads()
            for k in range(TILE_K):
                for n in range(0, 8, 4):
                    load_four(tile_a, k, side * n + 4 * y, left, n)
                    load_four(tile_b, k, side * n + 4 * x, right, n)
                for i in range(8):
                    for j in range(8):
                        block[i, j] += left[i] * right[j]
            cuda.syncthreads()
            first += TILE_K
        for i in range(8):
            for j in range(8):
                c[
                    row + 4 * y + side * (i // 4 * 4) + i % 4,
                    column + 4 * x + side * (j // 4 * 4) + j % 4,
                ] = block[i, j]

    return kernel
