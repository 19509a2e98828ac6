"""The workbook's kernel for a current GPU with tiles in shared memory."""

from functools import cache

import numpy as np

from cypresskit.today.cuda_kernels import cuda, load_four

TILE_K = 8  # of k that a tile holds


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
