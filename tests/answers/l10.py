"""Lesson 10."""

import itertools

import numpy as np


def fits(memory, depth, strips=4, blocks=3):
    block = 0
    while 8 * (strips * depth * (block + 128) + blocks * (block + 128) ** 2) <= memory:
        block += 128
    return block


def lawn(rows, columns):
    return [
        (i, j) for i in range(rows) for j in (range(columns)[::-1] if i % 2 else range(columns))
    ]


def one(gpu, a, b, name=""):
    """The product on the card of whole matrices, which are freed."""
    matrices = gpu.upload(a), gpu.upload(b)
    part = gpu.multiply(*matrices, name=name) if name else gpu.multiply(*matrices)
    for matrix in matrices:
        gpu.free(matrix)
    return part


def right(gpu, a, b, block, frees=True, depth=1000):
    c, cut, deep = np.zeros_like(a), range(0, len(a), block), range(0, len(a), depth)
    for i, j, k in itertools.product(cut, cut, deep):
        strips = (
            gpu.upload(a[i : i + block, k : k + depth]),
            gpu.upload(b[k : k + depth, j : j + block]),
        )
        part = gpu.multiply(*strips)
        c[i : i + block, j : j + block] += gpu.download(part)
        for matrix in (*strips, part) if frees else ():
            gpu.free(matrix)
    return c
