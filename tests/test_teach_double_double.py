"""The checks of lesson 06: they accept what is right, reject what is wrong, and say where to look."""

import math
from functools import reduce
from operator import add

import numpy as np
import pytest
from conftest import ROOT

from cypresskit.blas import dd
from cypresskit.teach.book import read, student
from cypresskit.teach.double_double import BUDGET, check_dot, check_product, check_two_sum, hilbert


@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_hilbert_times_its_inverse_is_one(n):
    matrix, inverse = hilbert(n)
    assert np.array_equal(matrix @ inverse, np.eye(n, dtype=int))


# -- exercise 1


def sorted_first(a, b):
    return dd.fast_two_sum(a, b) if abs(a) >= abs(b) else dd.fast_two_sum(b, a)


@pytest.mark.parametrize("two_sum", [dd.two_sum, sorted_first])
def test_right_sums_are_accepted(two_sum):
    assert check_two_sum(two_sum).right


@pytest.mark.parametrize(
    ("two_sum", "said"),
    [
        (lambda a, b: (a + b, 0.0), "isn't always b"),
        (dd.fast_two_sum, "a loses digits as well"),
        (lambda a, b: (a + b, -dd.two_sum(a, b)[1]), "the sign"),
        (lambda a, b: (b - a, 0.0), "gives the sum"),
        (lambda a, b: (a + b, b), "gives e ="),
        (lambda a, b: a + b, "TypeError"),
        (lambda a, b: (a + b, float("nan")), "ValueError"),
        (lambda a, b: 1 / 0, "ZeroDivisionError"),
        (lambda a, b: (a + b, (a + b - a) - b), "the sign"),
        (lambda a, b: (a + b, (a - ((a + b) - b)) + (b - ((a + b) - a))), "s - a is the part of b that arrived"),
        (lambda a, b: (0.1, 0.2, 0.3), "too many values"),
        ("s", "TypeError"),
    ],
)
def test_wrong_sums_are_rejected(two_sum, said):
    verdict = check_two_sum(two_sum)
    assert not verdict.right and verdict.hint and said in str(verdict)


# -- exercise 2

PLACE = "; your lines go below this one"
LOST = "dmad r4.xy, r2.xy, r3.xy, r1.xy_neg(xyzw)"
CROSS, OTHER = "dmad r4.xy, r2.xy, r3.zw, r4.xy", "dmad r4.xy, r2.zw, r3.xy, r4.xy"
APART = [
    "dadd r5.xy, r1.xy, r4.xy",
    "dadd r5.zw, r5.xy, r1.xy_neg(xyzw)",
    "dadd r1.zw, r4.xy, r5.zw_neg(xyzw)",
    "mov r1.xy, r5.xy",
]
NOTHING = "dmul r4.xy, r2.xy, l0.xy"  # r4 = 0, where the first term was left out


def kernel(*lines: str) -> str:
    source = student(read(ROOT / "notebooks/source/06_double_double.md"))
    text = next(c.source.split("'''")[1] for c in source.cells if c.source.startswith("product = '''"))
    assert PLACE in text
    return text.replace(PLACE, "\n".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        [LOST, CROSS, OTHER, *APART],
        [LOST, OTHER, CROSS, *APART],
        ["dmul r5.xy, r2.xy, r3.zw", "dmad r5.xy, r2.zw, r3.xy, r5.xy", LOST, "dadd r4.xy, r4.xy, r5.xy", *APART],
    ],
    ids=["as in the solution", "cross terms exchanged", "cross terms first"],
)
def test_right_products_are_accepted(lines):
    verdict = check_product(kernel(*lines))
    assert verdict.right, verdict


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([], "missing: what p lost and a's high times b's low"),
        ([NOTHING, CROSS, OTHER, *APART], "missing: what p lost."),
        ([LOST, *APART], "missing: a's high times b's low and a's low times b's high"),
        ([LOST, CROSS, *APART], "missing: a's low times b's high"),
        ([LOST, OTHER, *APART], "missing: a's high times b's low"),
        (["dmul r4.xy, r2.xy, r3.xy", "dadd r4.xy, r1.xy, r4.xy_neg(xyzw)", CROSS, OTHER, *APART], "what p lost"),
        ([LOST, CROSS, OTHER, "mov r1.zw, r4.xyxy"], "overlap"),
        ([LOST, CROSS, OTHER, "dadd r1.xy, r1.xy, r4.xy"], "right digits"),
        ([LOST, CROSS, OTHER, *APART, "dadd r6.xy, r1.xy, r1.xy", "dmul r6.xy, r6.xy, r6.xy"], f"{BUDGET} are enough"),
        ([LOST.replace("_neg(xyzw)", ""), CROSS, OTHER, *APART], "p is added to a * b"),
        ([LOST.replace("r2.xy", "r2.xy_neg(xyzw)").replace("r1.xy_neg(xyzw)", "r1.xy"), CROSS, OTHER, *APART],
         "the sign of what p lost"),
        ([LOST, CROSS, OTHER, *APART[:-1]], "r1.xy is still p"),
        ([LOST, CROSS, OTHER, *APART[:2], APART[2].replace("r5.zw_neg(xyzw)", "r5.zw"), APART[3]], "to be taken away"),
        (["ddiv r1.xy, r2.xy, l0.xy"], "comes out as inf"),
        (["dmda r4.xy, r2.xy"], "does not assemble"),
        (["whileloop", "endloop"], "does not run"),
    ],
    ids=["unsolved", "without e", "without cross terms", "one cross term", "the other", "no fma", "not renormalised",
         "low lost", "too many instructions", "plus p", "minus e", "p kept", "low counted twice", "infinite",
         "a slip of the pen", "endless"],
)  # fmt: skip
def test_wrong_products_are_rejected(lines, said):
    verdict = check_product(kernel(*lines))
    assert not verdict.right and verdict.hint and said in str(verdict)


def test_a_product_that_is_not_stored_is_told():
    assert "nothing arrives in o0" in check_product(kernel(LOST, CROSS, OTHER, *APART).replace("mov o0, r1", "")).hint


def test_what_is_no_kernel_is_rejected():
    assert "list, not text" in check_product([]).finding


# -- exercise 3


def dot(x, y, products=True, sums=True):
    high = low = 0.0
    for a, b in zip(x, y):
        p, e = dd.two_product(a, b)
        high, f = dd.two_sum(high, p)
        low += products * e + sums * f
    return high + low


def in_double_double(x, y):
    total = dd.DD(0)
    for a, b in zip(x, y):
        total = total + dd.DD.from_pairs(*dd.two_product(a, b))
    return float(total.hi)


@pytest.mark.parametrize("right", [dot, in_double_double])
def test_right_dot_products_are_accepted(right):
    assert check_dot(right).right


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda x, y: reduce(add, (a * b for a, b in zip(x, y))), "what plain doubles give"),
        (lambda x, y: dot(x, y, sums=False), "what the sums lose is missing"),
        (lambda x, y: dot(x, y, products=False), "what the products lose, e, is missing"),
        (lambda x, y: dot(x, y, products=-1, sums=-1), "the signs"),
        (lambda x, y: dot(x, y, sums=-1), "the sign of f"),
        (lambda x, y: math.fsum(a * b for a, b in zip(x, y)), "what the products lose, e, is missing"),
        (lambda x, y: x[0] * y[0], "Both belong into low"),
        (lambda x, y: dot(x[:-1], y[:-1]), "For two lists of one number it gives 0;"),
        (lambda x, y: -dot(x, y), "exact is"),
        (lambda x, y: None, "TypeError"),
        (lambda x, y: float("nan"), "ValueError"),
        (lambda x, y: "0", "TypeError"),
        (0.0, "not a function"),
    ],
    ids="plain no_sums no_products signs sign_f fsum one_product one_short minus none nan text no_function".split(),
)
def test_wrong_dot_products_are_rejected(wrong, said):
    verdict = check_dot(wrong)
    assert not verdict.right and verdict.hint and said in str(verdict)


def test_a_failing_run_looks_like_this():
    assert str(check_product(kernel())) == (
        "Not yet. The worst of 64 products has 15.8 right digits; 31 can be had.\n"
        "Where to look: missing: what p lost and a's high times b's low and a's low times b's high."
    )
