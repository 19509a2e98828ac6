"""Lesson 00."""

import numpy as np

import cypresskit as ck
from answers import function, number
from cypresskit.teach.l00_start_here import check_half, check_peak, check_update


def in_place(c, a, b):
    c -= ck.gemm(a, b)
    return c


class Unseen(int):
    def __repr__(self):
        raise AttributeError("no picture")


CHECKS = {
    check_peak: number(
        [lambda engines, processors, lanes, clock: 2 * engines * processors * lanes * clock],
        [
            (lambda e, p, u, g: e * p * u * g, "two operations"),
            (lambda e, p, u, g: 2 * e * p * g, "several lanes"),
            (lambda e, p, u, g: 2e9 * e * p * u * g, "10^9"),
            (lambda e, p, u, g: 2 * e * p * u, "how often a second"),
            (lambda e, p, u, g: 2720, "use its arguments"),
            (lambda e, p, u, g: int(2 * e * p * u * g), "3 of 4 calls"),
            (lambda e, p, u, g: str(2 * e * p * u * g), "returns a text, not a number"),
            (lambda e, p, u, g: np.ones(2), "returns an ndarray, not a number"),
            (lambda e, p, u, g: 2j, "returns a complex, not a number"),
            (lambda e, p, u, g: (x for x in "ab"), "returns a generator, not a number"),
            (lambda e, p, u, g: 2 * e * p * u * g / 1000, "multiply: engines"),
            (lambda e, p, u, g: 2.0001 * e * p * u * g, "multiply: engines"),
        ],
    ),
    check_update: function(
        [
            lambda c, a, b: ck.gemm(a, b, c, alpha=-1, beta=1),
            lambda c, a, b: ck.gemm(-a, b, c, beta=1.0, kernel="sgemm_nn"),
        ],
        [
            (lambda c, a, b: c, "nothing was subtracted"),
            (lambda c, a, b: c - a @ b, "one call of ck.gemm"),
            (lambda c, a, b: c - ck.gemm(a, b), "give ck.gemm the c"),
            (lambda c, a, b: ck.gemm(a, b, c, alpha=1, beta=1), "which alpha"),
            (lambda c, a, b: ck.gemm(a, b), "c is not read"),
            (lambda c, a, b: ck.gemm(a, b, c, alpha=-1), "c is not read"),
            (lambda c, a, b: ck.gemm(a, b, c, beta=-1), "alpha belongs to the product"),
            (lambda c, a, b: ck.gemm(a, b, c, alpha=-1, beta=2), "alpha belongs to the product"),
            (lambda c, a, b: ck.gemm(b, a, c, alpha=-1, beta=1), "it was called with c of"),
            (lambda c, a, b: ck.gemm(a, b, ck.gemm(a, b, c, alpha=-0.5, beta=1), alpha=-0.5, beta=1), "one call"),
            (lambda c, a, b: (c - ck.gemm(a, b))[:-1], "the shape of c"),
            (in_place, "return a new matrix"),
            (lambda c, a, b: None, "update returns nothing"),
            (lambda c, a, b: "c - a b", "update returns a text, not a matrix"),
            (lambda c, a, b: {}, "update returns no matrix"),
            (lambda c: c, "it was called with c of"),
        ],
    ),
    check_half: (
        [896, np.int64(896)],
        [
            (128, "larger matrices"),
            (512, "larger matrices"),
            (1024, "the speed has a dent here"),
            (4096, "go down"),
            (1152, ["a smaller N does it too", "try those further down"]),
            (8192, "between 512 and 4096"),
            (700, "multiple"),
            (0, "multiple"),
            (-128, "multiple"),
            (768.5, "multiple"),
            (896.0, "a whole number: 896, not 896.0"),
            (True, "multiple"),
            ("768", "multiple"),
            (None, "multiple"),
            (Unseen(2), "can't use what half gives: AttributeError"),
        ],
    ),
}
