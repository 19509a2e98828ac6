"""Lesson 06."""

from answers import given
from cypresskit.blas import dd


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
SUM = [
    "dmul r5.xy, r2.xy, r3.zw",
    "dmad r5.xy, r2.zw, r3.xy, r5.xy",
    LOST,
    "dadd r4.xy, r4.xy, r5.xy",
    *APART,
]
AGAIN = ["dmul r4.xy, r2.xy, r3.xy", "dadd r4.xy, r1.xy, r4.xy_neg(xyzw)"]
TURNED = LOST.replace("r2.xy", "r2.xy_neg(xyzw)").replace("r1.xy_neg(xyzw)", "r1.xy")
TOO_MANY = ["dadd r6.xy, r1.xy, r1.xy", "dmul r6.xy, r6.xy, r6.xy"]


def kernel(*lines: str) -> str:
    return given("06_double_double", "product").replace(
        "; your lines go below this one", "\n".join(lines)
    )


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


def plain(x, y):
    total = 0.0
    for a, b in zip(x, y):
        total += a * b
    return total
