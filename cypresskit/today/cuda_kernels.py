"""The workbook's kernels for a GPU of today, written in Python for numba's CUDA target.

A CUDA *thread* is Cypress's work-item, a *warp* of 32 its wavefront, a *multiprocessor* its SIMD
engine, and *shared memory* its LDS. The arguments of ``blocked`` and ``tiled`` are constants to the
compiler. Sizes are whole blocks.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib import import_module

import numpy as np


@contextmanager
def row_stack_in_numpy() -> Iterator[None]:
    """numpy with the name `row_stack`, which numpy 2.5 has dropped, and for which numba-cuda 0.30
    asks while it is imported; afterwards numpy is as it was.
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
    from numba import config, types
    from numba import cuda as cuda
    from numba.core import cgutils
    from numba.extending import intrinsic

    if not config.ENABLE_CUDASIM:  # it would be imported with the first kernel, too late
        with suppress(ImportError):  # of a numba-cuda that has it elsewhere
            import_module("numba.cuda.np.arrayobj")

TILE_K = 8  # of k that a tile holds
WORDS = 36 * 32  # of shared memory, for a warp of ``pitched``
EIGHT = 8  # loads of a turn that don't wait for each other
LINE = 32  # words of L1's lines
STRIDE = 40_503  # regions, from load to load: odd, so that every region has its turn


def _four(typing, array, row, column):
    """``array[row, column : column + 4]`` as a tuple, in one load, which has to begin at a multiple
    of 16 bytes.
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
    return (
        array[row, column],
        array[row, column + 1],
        array[row, column + 2],
        array[row, column + 3],
    )


four = _simulated if config.ENABLE_CUDASIM else intrinsic(_four)


def _load(cache: str):
    """``loaded(array, place)``: a load of ``array`` with a cache operator of PTX: "ca" asks L1
    first, "cg" asks L2 at once. A place is an address (`places`); for numba's simulator, an index.
    """

    def loaded(typing, array, place):
        kind, register = ("f32", "=f") if array.dtype == types.float32 else ("u64", "=l")

        def load(context, builder, signature, arguments):
            value = context.get_value_type(array.dtype)
            function = cgutils.ir.FunctionType(value, [arguments[1].type])
            text = f"ld.global.{cache}.{kind} $0, [$1];"
            return builder.asm(function, text, f"{register},l", arguments[1:], True)

        return array.dtype(array, place), load

    return (lambda array, place: array[place]) if config.ENABLE_CUDASIM else intrinsic(loaded)


load_by_l1 = _load("ca")
load_by_l2 = _load("cg")


def places(array) -> tuple[int, int]:
    """Where a device array begins for `load_by_l1` and `load_by_l2`, and how far apart its numbers
    are.
    """
    if config.ENABLE_CUDASIM:
        return 0, 1
    return array.__cuda_array_interface__["data"][0], array.dtype.itemsize


@cache
def blocked(rows: int, columns: int, dtype=np.float32, transposed: bool = True, wide: bool = False):
    """A kernel for C = A^T B, or A B, in which each thread computes ``rows`` x ``columns`` of C and
    reads through the caches. With ``wide``, that for A^T B loads four numbers at a time.
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
        while (
            k < b.shape[0]
        ):  # numba's range would take more instructions than a small block's products
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
    """A kernel for C = A^T B by workgroups of ``side`` x ``side`` threads, which fetch ``TILE_K``
    rows of A and B into shared memory and multiply from there: lesson 07. A thread's rows, and its
    columns, are two groups of four.
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
def double_double(a, a_low, b, b_low, c, c_low, zero):
    """C = A^T B in double-double, an element for each thread: lesson 06's product by FMA, and
    two-sum. ``zero`` must be 0.0, unknown to the compiler, which would otherwise fuse ``left *
    right`` into the sum that follows.
    """
    column, row = cuda.grid(2)
    high = low = 0.0
    k = 0
    while k < b.shape[0]:
        left, right = a[k, row], b[k, column]
        product = cuda.fma(left, right, zero)
        error = cuda.fma(left, right, -product)
        error += left * b_low[k, column] + a_low[k, row] * right
        total = high + product
        back = total - high
        low += (high - (total - back)) + (product - back) + error
        high = total
        k += 1
    c[row, column] = high + low
    c_low[row, column] = low - (c[row, column] - high)


@cuda.jit
def pitched(out, pitch, turns):
    """Each of a warp's 32 threads stores a word of shared memory and loads its neighbour's,
    ``turns`` times; their words are ``pitch`` apart. A workgroup is one warp.
    """
    memory = cuda.shared.array(WORDS, np.float32)
    lane = cuda.threadIdx.x
    own = pitch * lane
    neighbour = pitch * ((lane + 1) % 32)
    value = np.float32(lane)
    for _ in range(turns):
        memory[own] = value
        cuda.syncwarp()
        value = memory[neighbour]
        cuda.syncwarp()
    out[cuda.grid(1)] = value


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


@cuda.jit
def loads(out, numbers, start, size, share, pitch, still, turns):
    """Each warp loads eight times a turn, ``turns`` times, from L1. ``share`` of its threads ask
    for the same word; words are ``pitch`` apart. ``still`` must be 0, unknown to the compiler,
    which would otherwise load once.
    """
    place = start + size * pitch * (cuda.threadIdx.x // share)
    total = np.float32(0)
    for _ in range(turns):
        for n in range(EIGHT):
            total += load_by_l1(numbers, place + size * LINE * n)
        place += still
    out[cuda.grid(1)] = total


@cuda.jit
def scattered(out, numbers, start, apart, most, pitch, turns):
    """Each warp loads eight times a turn, ``turns`` times, from L2 or memory: from regions in an
    order without a pattern, each ``apart`` from the next, a power of two, the last at ``most``. In
    a region its threads' words are ``pitch`` apart.
    """
    warp, lane = divmod(cuda.grid(1), 32)
    begin = start + pitch * lane
    step = STRIDE * apart
    region = warp * (EIGHT * turns + 1) * step
    total = np.float32(0)
    for _ in range(turns):
        for _ in range(EIGHT):
            region += step
            total += load_by_l2(numbers, begin + (region & most))
    out[cuda.grid(1)] = total


@cuda.jit
def chased(following, steps, at):
    """A thread loads the place of its next load, ``steps`` times, from ``at[0]`` on."""
    place = at[0]
    for _ in range(steps):
        place = load_by_l1(following, place)
    at[0] = place
