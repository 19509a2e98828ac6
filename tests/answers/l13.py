"""Lesson 13."""

import inspect
import linecache

import numpy as np


def multiply(a, b, c):
    """All of C by whoever calls it."""
    for i in range(c.shape[0]):
        for j in range(c.shape[1]):
            total = 0.0
            for k in range(a.shape[0]):
                total += a[k, i] * b[k, j]
            c[i, j] = total


MORE = ["import numpy as np\n", *inspect.getsource(multiply).splitlines(keepends=True)]


def product(
    update="block[i, j] += a[k, 8 * y + i] * b[k, 8 * x + j]",
    store="c[8 * y + i, 8 * x + j] = block[i, j]",
    last="return c",
    first="pass",
    more="pass",
):
    """An answer to exercise 1 with these lines."""
    text = f"""
def product(a, b):
    global cuda
    from numba import cuda

    {first}

    @cuda.jit
    def kernel(a, b, c):
        x, y = cuda.grid(2)
        block = cuda.local.array((8, 8), np.float32)
        block[:] = 0
        for k in range(a.shape[0]):
            for i in range(8):
                for j in range(8):
                    {update}
        for i in range(8):
            for j in range(8):
                {store}
        {more}

    c = np.zeros((a.shape[1], b.shape[1]), np.float32)
    kernel[(b.shape[1] // 64, a.shape[1] // 32), (8, 4)](a, b, c)
    {last}
"""
    names = {"np": np, "multiply": multiply}
    file = f"answers/l13.py, {update}, {store}, {last}, {first}, {more}"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True) + MORE, file
    exec(compile(text, file, "exec"), names)
    return names["product"]


def warps(registers, threads, shared):
    groups = min(65536 // (registers * threads), 233472 // (shared + 1024), 2048 // threads)
    return groups * threads / 32
