"""The workbook's kernels for a current GPU, written in Python for numba's CUDA target.

A CUDA *thread* is Cypress's work-item, a *warp* of 32 its wavefront, a *multiprocessor* its SIMD
engine, and *shared memory* its LDS. The arguments of ``blocked`` and ``tiled`` are constants to the
compiler. Sizes are whole blocks. Microbenchmarks are in ``tools/cuda/microbenchmarks.py``.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module

import numpy as np


@contextmanager
def row_stack_in_numpy() -> Iterator[None]:
    """Give numpy the name `row_stack`, which numpy 2.5 has dropped, while numba-cuda 0.30 is
    imported, which needs it.
    """
    missing = "row_stack" not in vars(np)
    if missing:
        vars(np)["row_stack"] = np.vstack
    try:
        yield
    finally:
        if missing:
            del vars(np)["row_stack"]


with row_stack_in_numpy():
    from numba import config as config
    from numba import cuda as cuda
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    if not config.ENABLE_CUDASIM:  # it would be imported with the first kernel, too late
        with suppress(ImportError):  # of a numba-cuda that has it elsewhere
            import_module("numba.cuda.np.arrayobj")

TILE_K = 8  # of k that a tile holds


def _four(typing, array, row, column):
    """Return ``array[row, column : column + 4]`` as a tuple, by one load, which must begin at a
    multiple of 16 bytes.
    """

    def load(context, builder, signature, arguments):
        given = context.make_array(array)(context, builder, arguments[0])
        place = cgutils.get_item_pointer(context, builder, array, given, arguments[1:])
        vector = cgutils.ir.VectorType(context.get_value_type(array.dtype), 4).as_pointer()
        loaded = builder.load(builder.bitcast(place, vector), align=16)
        parts = [builder.extract_element(loaded, cgutils.int32_t(n)) for n in range(4)]
        return context.make_tuple(builder, signature.return_type, parts)

    return types.UniTuple(array.dtype, 4)(array, row, column), load


def _simulated(array, row, column):
    return tuple(array[row, column + n] for n in range(4))


four = _simulated if config.ENABLE_CUDASIM else intrinsic(_four)


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
                    left[n], left[n + 1], left[n + 2], left[n + 3] = four(a, k, row + n)
                for n in range(0, columns, 4):
                    right[n], right[n + 1], right[n + 2], right[n + 3] = four(b, k, column + n)
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


@cache
def tiled(side: int):
    """Return a kernel for C = A^T B by workgroups of ``side`` x ``side`` threads, which fetch
    ``TILE_K`` rows of A and B into shared memory and multiply from there: lesson 07. A thread's
    rows, and its columns, are two groups of four.
    """
    width = 8 * side
    threads = side * side

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        row, column = width * cuda.blockIdx.y, width * cuda.blockIdx.x
        tile_a = cuda.shared.array((TILE_K, width), np.float32)
        tile_b = cuda.shared.array((TILE_K, width), np.float32)
        block = cuda.local.array((8, 8), np.float32)
        left = cuda.local.array(8, np.float32)
        right = cuda.local.array(8, np.float32)
        for i in range(8):
            for j in range(8):
                block[i, j] = 0
        first = 0
        while first < b.shape[0]:
            for n in range(0, TILE_K * width, threads):
                k, place = divmod(n + side * y + x, width)
                tile_a[k, place] = a[first + k, row + place]
                tile_b[k, place] = b[first + k, column + place]
            cuda.syncthreads()
            for k in range(TILE_K):
                for n in range(0, 8, 4):
                    left[n], left[n + 1], left[n + 2], left[n + 3] = four(
                        tile_a, k, side * n + 4 * y
                    )
                    right[n], right[n + 1], right[n + 2], right[n + 3] = four(
                        tile_b, k, side * n + 4 * x
                    )
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


@cuda.jit
def as_written(a, b, c):
    """C = A^T B, 8 x 8 of C for each thread: lesson 14's exercise 1, as its solution has it."""
    x, y = cuda.grid(2)
    block = cuda.local.array((8, 8), np.float32)
    for i in range(8):
        for j in range(8):
            block[i, j] = 0
    for k in range(a.shape[0]):
        for i in range(8):
            for j in range(8):
                block[i, j] += a[k, 8 * y + i] * b[k, 8 * x + j]
    for i in range(8):
        for j in range(8):
            c[8 * y + i, 8 * x + j] = block[i, j]
