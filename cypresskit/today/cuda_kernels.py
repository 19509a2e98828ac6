"""The workbook's kernels for a current GPU, written in Python for numba's CUDA target.

A CUDA *thread* is Cypress's work-item, a *warp* of 32 its wavefront, a *multiprocessor* its SIMD
engine, and *shared memory* its LDS. The arguments of ``blocked`` are constants to the compiler.
Sizes are whole blocks. ``tools/cuda`` has the other kernels that were measured: ``tiled``, with
shared memory, and microbenchmarks.
"""

from contextlib import suppress
from functools import cache
from importlib import import_module
from unittest.mock import patch

import numpy as np

# numba-cuda 0.30 needs a name that numpy 2.5 has dropped.
with patch.object(np, "row_stack", np.vstack, create=True):
    from numba import config as config
    from numba import cuda as cuda
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic

    if not config.ENABLE_CUDASIM:  # it would be imported with the first kernel, too late
        with suppress(ImportError):  # of a numba-cuda that has it elsewhere
            import_module("numba.cuda.np.arrayobj")


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
