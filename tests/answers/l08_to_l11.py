"""Lessons 08 to 11."""

import math

import numpy as np

from answers import function, number, text
from cypresskit.host import balance
from cypresskit.teach.l08_small import check_ceiling, check_reduction, check_waste
from cypresskit.teach.l09_bus import check_balance, check_seconds, check_size_for
from cypresskit.teach.l10_larger import check_largest, check_order, check_product
from cypresskit.teach.l11_pipelines import check_buffer, check_pipeline, check_share

TAIL = """
ishl r3.x, vTidInGrpFlat.x, l2.x
lds_store_vec_id(0) mem, r3.x, r3.x, r14
{fence}
if_logicalz r1.y
{add}
    mul r14, r14, cb0[0].x
    if_logicalnz cb0[4].x
        mov r4, g[r1.x]
        mad r14, r4, cb0[0].y, r14
    endif
    mov g[r1.x], r14
endif
endmain
end
"""
ADD = "iadd r3.y, r3.x, l2.y\nlds_load_vec_id(0) r4, r3.y, r3.y\nadd r14, r14, r4"


def tail(fence: str = "fence_threads_lds", add: str = ADD) -> str:
    return TAIL.format(fence=fence, add=add)


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


CHECKS = {
    check_ceiling: number(
        [lambda rate, size: rate * 2 / size],
        [
            (lambda rate, size: rate / size, "two operations"),
            (lambda rate, size: 2 * rate, "bytes, not numbers"),
            (lambda rate, size: 2 * rate * size, "fewer numbers"),
            (lambda rate, size: 2 * rate / 4, "2 of 4 calls are right"),
            (lambda rate, size: 2 * 153.6 / size, "2 of 4 calls are right"),
        ],
    ),
    check_waste: number(
        [lambda m, n, t: 1 - m / (math.ceil(m / t) * t) * n / (math.ceil(n / t) * t)],
        [
            (lambda m, n, t: m * n / (-(-m // t) * -(-n // t) * t * t), "useful arithmetic"),
            (lambda m, n, t: -(-m // t) * -(-n // t) * t * t / (m * n) - 1, "padding included"),
            (lambda m, n, t: 1 - m * n / ((m // t + 1) * (n // t + 1) * t * t), "a multiple already"),
            (lambda m, n, t: 1 - m / (-(-m // t) * t), "not m alone"),
            (lambda m, n, t: 100 - 100 * m * n / (-(-m // t) * -(-n // t) * t * t), "in per cent"),
            (lambda m, n, t: (m % t) / t, "What padding costs"),
        ],
    ),
    check_reduction: text(
        [tail(), tail(add=ADD.replace("add r14, r14, r4", "add r14, r4, r14"))],
        [
            (tail("", ""), "leaders' sums alone"),
            (tail(add=""), "leaders' sums alone"),
            (tail(fence=""), "race"),
            (tail(add=ADD.replace("l2.y", "l2.z")), "lds"),
            (tail(add=ADD.replace("r14, r14, r4", "r14, r14, r14")), "leaders' sums twice"),
            (tail(add=ADD.replace("r3.y, r3.y", "r3.x, r3.x")), "leaders' sums twice"),
            (tail(add=ADD.replace(" r4, r3.y", " r14, r3.y").replace("add r14, r14, r4", "")), "helpers' sums alone"),
            (tail(add=ADD + "\nadd r14, r14, r4"), "helpers' sums twice"),
            (tail(fence="", add="fence_threads_lds\n" + ADD), "the line it names"),
            (tail(add=ADD.replace("r14, r14, r4", "r14, r4, r4")), "r14"),
            (tail(add=ADD.replace("iadd r3.y, r3.x, l2.y", "mov r3.y, r3.x")), "r14"),
            (tail(add=ADD.replace("lds_load", "lds_laod")), "does not assemble"),
            (tail(add="endif"), "does not assemble"),
            (tail(add=ADD.replace("l2.y", "l2.w") + "\n" + ADD.replace("l2.y", "l2.w")), ""),
        ],
    ),
    check_seconds: number(
        [lambda n, b, f: 24 * n * n / b + 2 * n * n * n / f],
        [
            (lambda n, b, f: 24 * n**2 / b, "transfers alone"),
            (lambda n, b, f: 2 * n**3 / f, "kernel alone"),
            (lambda n, b, f: 32 * n**2 / b + 2 * n**3 / f, "the old C"),
            (lambda n, b, f: 16 * n**2 / b + 2 * n**3 / f, "C comes back"),
            (lambda n, b, f: 12 * n**2 / b + 2 * n**3 / f, "8 bytes"),
            (lambda n, b, f: 3 * n**2 / b + 2 * n**3 / f, "in bytes"),
            (lambda n, b, f: 24 * n**2 / b + n**3 / f, "N additions"),
            (lambda n, b, f: max(24 * n**2 / b, 2 * n**3 / f), "add up"),
            (lambda n, b, f: 24e3 * n**2 / b + 2e3 * n**3 / f, "milliseconds"),
            (lambda n, b, f: 24 * n**2 / 3e9 + 2 * n**3 / f, "2 of 4 calls"),
        ],
    ),
    check_balance: number(
        [lambda b, f, s, moved: f / b / 2 * s * moved],
        [
            (lambda b, f, s, moved: 2 * s * f / b, "for four matrices, however many"),
            (lambda b, f, s, moved: 16 * f / b, "four matrices of doubles"),
            (lambda b, f, s, moved: 4 * moved * f / b, "for doubles"),
            (lambda b, f, s, moved: moved * s * f / b, "not N^3"),
            (lambda b, f, s, moved: 2 * b / (moved * s * f), "upside down"),
            (lambda b, f, s, moved: (moved * s * f / b / 2) ** 0.5, "solve for N"),
            (lambda b, f, s, moved: 2400, "calls are right"),
        ],
    ),
    check_size_for: number(
        [lambda p, b, f: 16 * f / b / (1 / p - 1)],
        [
            (lambda p, b, f: p * balance(b, f), "one half"),
            (lambda p, b, f: balance(b, f), "one half alone"),
            (lambda p, b, f: (1 - p) / p * balance(b, f), "upside down"),
            (lambda p, b, f: balance(b, f) / p, "rest"),
            (lambda p, b, f: balance(b, f) / (1 - p), "don't vanish"),
            (lambda p, b, f: 2 * p * balance(b, f), "1 of 4 calls"),
        ],
    ),
    check_largest: number(
        [fits],
        [
            (lambda m, d: fits(m, d) + 128, "one step too far"),
            (lambda m, d: 1792, "1 of 5 calls"),
            (lambda m, d: fits(m - 1, d), "to its last byte"),
            (lambda m, d: int((-2 * d + math.sqrt(4 * d * d + 3 * m / 8)) / 3), "not a multiple"),
            (lambda m, d: fits(m, d, 2, 1), "twice"),
            (lambda m, d: fits(m, 16384), "2 of 5 calls"),
        ],
    ),
    check_order: function(
        [lawn, lambda r, c: [(i, j) for j, i in lawn(c, r)], lambda r, c: iter(lawn(r, c))],
        [
            (lambda r, c: [(i, j) for i in range(r) for j in range(c)], "both i and j change"),
            (lambda r, c: [(i, j) for i in range(r) for j in reversed(range(c))], "both i and j change"),
            (lambda r, c: lawn(r, c)[:-1], "lacks block"),
            (lambda r, c: lawn(r, c) + [(0, 0)], "1 block too many"),
            (lambda r, c: lawn(c, r), "lacks block"),
            (lambda r, c: [], "lacks block (0, 0): it has none."),
            (lambda r, c: None, "order returns nothing"),
            (lambda r, c: [0, 1], "order returns something that"),
            (lambda r, c: [(i + 0.5, j) for i, j in lawn(r, c)], "(0.5, 0) is none"),
            (lambda r, c: lawn(r, c) if max(r, c) < 5 and r * c < 16 else [], "lacks block (0, 0): it has none."),
        ],
    ),
    check_product: function(
        [product, keeps_what_it_computed],
        [
            (in_numpy, "the card computed 16 products, 32 flops of"),
            (says_it_did, "the card computed 0 products"),
            (downloads_nothing, "never came from the card"),
            (keeps_the_products, ("the product", "and the products")),
            (whole, "card is full"),
            (never_frees, "card is full"),
            (leaves_one, "forgotten"),
            (exchanged, "first wrong element is c[0, 0], in block (0, 0)"),
            (whole_blocks_only, "in block (0, 3)"),
            (lambda gpu, a, b, block: a @ b, "computed 0 products"),
            (lambda gpu, a, b, block: np.zeros_like(a), "all zeros"),
            (lambda gpu, a, b, block: product(gpu, a, b, block)[:block], "has shape (64, 192)"),
            (lambda gpu, a, b, block: None, ("product returns nothing", "keep the line `return c`")),
        ],
    ),
    check_pipeline: number(
        [lambda s, u: sum(s) + max(s) * (u - 1)],
        [
            (lambda s, u: sum(s) * u, "without overlap"),
            (lambda s, u: max(s) * u, "first unit"),
            (lambda s, u: sum(s) + u * max(s), "after the first"),
            (lambda s, u: sum(s) + (u - 1) * sum(s) / len(s), "slowest stage sets"),
            (lambda s, u: sum(s) + (u - 1) * s[len(s) // 2], "calls are right"),
            (lambda s, u: sum(s) + (u - 1) * s[1], "IndexError"),
        ],
    ),
    check_share: number(
        [lambda s, c, g: s * g / (s * g + (1 - s) * c)],
        [
            (lambda s, c, g: s * c / (s * c + (1 - s) * g), "upside down"),
            (lambda s, c, g: g / (c + g), "share tried"),
            (lambda s, c, g: (s / c) / ((1 - s) / g), "over the chips'"),
            (lambda s, c, g: s * g / c, "add up to 1"),
            (lambda s, c, g: s, "1 of 4 calls"),
            (lambda s, c, g: 0.12, "1 of 4 calls"),
        ],
    ),
    check_buffer: function(
        [lambda unit: "even" if unit % 2 == 0 else "odd"],
        [
            (lambda unit: "A0", "30 s; 20 s are possible"),
            (lambda unit: f"A{unit}", "fewer do"),
            (lambda unit: f"A{unit % 3}", "fewer do"),
            (lambda unit: f"A{unit // 3}", "who still reads its buffer"),
            (lambda unit: "A0" if unit == 0 else "A1", "possible"),
            (lambda unit: unit % 2, "returns 0"),
            (lambda unit: "", "returns ''"),
            (lambda unit: None, "returns None"),
        ],
    ),
}
