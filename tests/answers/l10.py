"""Lesson 10."""

import numpy as np


def fits(memory: int, depth: int, strips: int = 4, blocks: int = 3) -> int:
    block = 0
    while 8 * (strips * depth * (block + 128) + blocks * (block + 128) ** 2) <= memory:
        block += 128
    return block


def lawn(rows, columns):
    return [(i, j) for i in range(rows) for j in (range(columns)[::-1] if i % 2 else range(columns))]


def product(gpu, a, b, block):
    c = np.zeros((len(a), len(a)))
    for i in range(0, len(a), block):
        strip_a = gpu.upload(a[i : i + block])
        for j in range(0, len(a), block):
            strip_b = gpu.upload(b[:, j : j + block])
            part = gpu.multiply(strip_a, strip_b)
            c[i : i + block, j : j + block] = gpu.download(part)
            gpu.free(strip_b)
            gpu.free(part)
        gpu.free(strip_a)
    return c


def whole(gpu, a, b, block):
    return gpu.download(gpu.multiply(gpu.upload(a), gpu.upload(b)))


def never_frees(gpu, a, b, block):
    c = np.zeros((len(a), len(a)))
    for i in range(0, len(a), block):
        for j in range(0, len(a), block):
            part = gpu.multiply(gpu.upload(a[i : i + block]), gpu.upload(b[:, j : j + block]))
            c[i : i + block, j : j + block] = gpu.download(part)
    return c


def in_numpy(gpu, a, b, block):
    for _ in range(16):
        corner, other = gpu.upload(a[:1, :1]), gpu.upload(b[:1, :1])
        part = gpu.multiply(corner, other)
        for matrix in (corner, other, part):
            gpu.free(matrix)
    return a @ b


def says_it_did(gpu, a, b, block):
    gpu.products = 99
    return a @ b


def keeps_what_it_computed(gpu, a, b, block):
    product(gpu, a, b, block)
    return a @ b


def downloads_nothing(gpu, a, b, block):
    gpu.download = lambda matrix: np.zeros(matrix.shape)
    product(gpu, a, b, block)
    return a @ b


def keeps_the_products(gpu, a, b, block):
    c = product(gpu, a, b, block)
    gpu.multiply(*(corners := [gpu.upload(m[:1, :1]) for m in (a, b)]), name="the product")
    for matrix in corners:
        gpu.free(matrix)
    return c


def leaves_one(gpu, a, b, block):
    c = product(gpu, a, b, block)
    gpu.upload(c[:8], "forgotten")
    return c


def exchanged(gpu, a, b, block):
    return product(gpu, b, a, block)


def whole_blocks_only(gpu, a, b, block):
    size = len(a) // block * block
    c = np.zeros((len(a), len(a)))
    full = product(gpu, a, b, block)
    c[:size, :size] = full[:size, :size]
    return c
