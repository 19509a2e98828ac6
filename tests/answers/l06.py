"""Lesson 06."""

import math
from functools import reduce
from operator import add

from answers import function, given, text
from cypresskit.blas import dd
from cypresskit.teach.l06_double_double import BUDGET, check_dot, check_product, check_two_sum


def sorted_first(a, b):
    return dd.fast_two_sum(a, b) if abs(a) >= abs(b) else dd.fast_two_sum(b, a)


LOST = "dmad r4.xy, r2.xy, r3.xy, r1.xy_neg(xyzw)"
CROSS, OTHER = "dmad r4.xy, r2.xy, r3.zw, r4.xy", "dmad r4.xy, r2.zw, r3.xy, r4.xy"
APART = [
    "dadd r5.xy, r1.xy, r4.xy",
    "dadd r5.zw, r5.xy, r1.xy_neg(xyzw)",
    "dadd r1.zw, r4.xy, r5.zw_neg(xyzw)",
    "mov r1.xy, r5.xy",
]
GOOD = [LOST, CROSS, OTHER, *APART]
NOTHING = "dmul r4.xy, r2.xy, l0.xy"
SUM = ["dmul r5.xy, r2.xy, r3.zw", "dmad r5.xy, r2.zw, r3.xy, r5.xy", LOST, "dadd r4.xy, r4.xy, r5.xy", *APART]
AGAIN = ["dmul r4.xy, r2.xy, r3.xy", "dadd r4.xy, r1.xy, r4.xy_neg(xyzw)"]
TURNED = LOST.replace("r2.xy", "r2.xy_neg(xyzw)").replace("r1.xy_neg(xyzw)", "r1.xy")
TOO_MANY = ["dadd r6.xy, r1.xy, r1.xy", "dmul r6.xy, r6.xy, r6.xy"]


def kernel(*lines: str) -> str:
    return given("06_double_double", "product").replace("; your lines go below this one", "\n".join(lines))


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


CHECKS = {
    check_two_sum: function(
        [dd.two_sum, sorted_first],
        [
            (lambda a, b: (a + b, 0.0), "isn't always b"),
            (dd.fast_two_sum, "a loses digits as well"),
            (lambda a, b: (a + b, -dd.two_sum(a, b)[1]), "the sign"),
            (lambda a, b: (b - a, 0.0), "gives the sum"),
            (lambda a, b: (a + b, b), "gives e ="),
            (lambda a, b: a + b, "two_sum_of returns something that"),
            (lambda a, b: None, "two_sum_of returns nothing"),
            (lambda a, b: (a + b, float("nan")), "ValueError"),
            (lambda a, b: (a + b, (a + b - a) - b), "the sign"),
            (lambda a, b: (a + b, (a - ((a + b) - b)) + (b - ((a + b) - a))), "s - a is the part of b that arrived"),
            (lambda a, b: (0.1, 0.2, 0.3), "two_sum_of returns something that"),
        ],
    ),
    check_product: text(
        [kernel(*lines) for lines in [GOOD, [LOST, OTHER, CROSS, *APART], SUM]],
        [
            (kernel(*lines), said)
            for lines, said in [
                ([], "missing: what p lost and a's high times b's low"),
                ([NOTHING, CROSS, OTHER, *APART], "missing: what p lost."),
                ([LOST, *APART], "missing: a's high times b's low and a's low times b's high"),
                ([LOST, CROSS, *APART], "missing: a's low times b's high"),
                ([LOST, OTHER, *APART], "missing: a's high times b's low"),
                ([*AGAIN, CROSS, OTHER, *APART], "what p lost"),
                ([LOST, CROSS, OTHER, "mov r1.zw, r4.xyxy"], "overlap"),
                ([LOST, CROSS, OTHER, "dadd r1.xy, r1.xy, r4.xy"], "right digits"),
                ([*GOOD, *TOO_MANY], f"{BUDGET} are enough"),
                ([LOST.replace("_neg(xyzw)", ""), CROSS, OTHER, *APART], "p is added to a * b"),
                ([TURNED, CROSS, OTHER, *APART], "the sign of what p lost"),
                (GOOD[:-1], "r1.xy is still p"),
                ([line.replace("r5.zw_neg(xyzw)", "r5.zw") for line in GOOD], "to be taken away"),
                (["ddiv r1.xy, r2.xy, l0.xy"], "comes out as inf"),
                (["dmda r4.xy, r2.xy"], "does not assemble"),
                (["whileloop", "endloop"], "does not run"),
            ]
        ]
        + [
            (kernel(*GOOD).replace("mov o0, r1", ""), "nothing arrives in o0"),
            (kernel(*GOOD).replace("dadd r5.xy, r1.xy", "dadd r6.xy, r1.xy"), "r1.xy is 0 at the end"),
            ([], "list, not text"),
        ],
    ),
    check_dot: function(
        [dot, in_double_double],
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
            (lambda x, y: None, "dot returns nothing"),
            (lambda x, y: float("nan"), "ValueError"),
            (lambda x, y: "0", "dot returns something that"),
        ],
    ),
}
