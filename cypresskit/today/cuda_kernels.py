"""The workbook's kernel for a current GPU, written in Python for numba's CUDA target.

A CUDA *thread* is Cypress's work-item, a *warp* of 32 its wavefront, a *multiprocessor* its SIMD
engine, and *shared memory* its LDS. ``tools/cuda`` has the other kernels that were measured.
"""

from contextlib import suppress
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
