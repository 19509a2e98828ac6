"""Kernels that measure one unit of a GPU each: loads of L1, L2 and memory, shared memory, latency;
and the double-double product.
"""

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from cypresskit.today.cuda_kernels import config, cuda

WORDS = 36 * 32  # of shared memory, for a warp of ``access_pitched``
EIGHT = 8  # loads of an iteration that don't wait for each other
LINE = 32  # words of L1's lines
STRIDE = 40_503  # regions, from load to load: odd, so that every region is loaded


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
def access_pitched(out, pitch, iterations):
    """Each of a warp's 32 threads stores a word of shared memory and loads its neighbour's,
    ``iterations`` times; their words are ``pitch`` apart. A workgroup is one warp.
    """
    memory = cuda.shared.array(WORDS, np.float32)
    lane = cuda.threadIdx.x
    own = pitch * lane
    neighbour = pitch * ((lane + 1) % 32)
    value = np.float32(lane)
    for _ in range(iterations):
        memory[own] = value
        cuda.syncwarp()
        value = memory[neighbour]
        cuda.syncwarp()
    out[cuda.grid(1)] = value


@cuda.jit
def load_from_l1(out, numbers, start, size, share, pitch, still, iterations):
    """Each warp loads from L1, eight times per iteration. ``share`` of its threads request the same
    word; words are ``pitch`` apart. ``still`` must be 0, unknown to the compiler,
    which would otherwise load once.
    """
    place = start + size * pitch * (cuda.threadIdx.x // share)
    total = np.float32(0)
    for _ in range(iterations):
        for n in range(EIGHT):
            total += load_by_l1(numbers, place + size * LINE * n)
        place += still
    out[cuda.grid(1)] = total


@cuda.jit
def load_scattered(out, numbers, start, apart, most, pitch, iterations):
    """Each warp loads from L2 or memory, eight times per iteration: from regions in an
    order without a pattern, each ``apart`` from the next, a power of two, the last at ``most``. In
    a region its threads' words are ``pitch`` apart.
    """
    warp, lane = divmod(cuda.grid(1), 32)
    begin = start + pitch * lane
    step = STRIDE * apart
    region = warp * (EIGHT * iterations + 1) * step
    total = np.float32(0)
    for _ in range(iterations):
        for _ in range(EIGHT):
            region += step
            total += load_by_l2(numbers, begin + (region & most))
    out[cuda.grid(1)] = total


@cuda.jit
def chase_chain(following, steps, at):
    """A thread loads the place of its next load, ``steps`` times, from ``at[0]`` on."""
    place = at[0]
    for _ in range(steps):
        place = load_by_l1(following, place)
    at[0] = place
