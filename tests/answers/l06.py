"""Lesson 06."""

import re

from answers import read_given
from cypresskit.editing.steps import starter_text


def two_sum(a, b):
    s = a + b
    of_b = s - a
    return s, (a - (s - of_b)) + (b - of_b)


def of_larger_first(a, b):
    s = a + b
    return s, b - (s - a)


def sorted_first(a, b):
    return of_larger_first(a, b) if abs(a) >= abs(b) else of_larger_first(b, a)


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


def kernel(*lines):
    return read_given("06_double_double", "product").replace(
        "; your lines go below this one", "\n".join(lines)
    )


IN_DOUBLE = starter_text("06")
ITERATION = IN_DOUBLE.partition("whileloop\n")[2].partition("endloop\n")[0]
HERE = "    ; rows 1, 2 and 3: your lines go below this one\n"
FETCHES = [line for line in ITERATION.splitlines() if "sample_resource" in line]
FIRST = [line for line in ITERATION.splitlines() if "dmad" in line]
ROWS = [
    re.sub(r"r3[01]", f"r3{2 * row + half}", line).replace("r2.xy", part)
    for row, part in enumerate(("r2.zw", "r3.xy", "r3.zw"), 1)
    for half, line in zip((0, 0, 1, 1), FIRST)
]


def in_double(lines):
    return IN_DOUBLE.replace(HERE, "".join(f"{line}\n" for line in lines))


def steps(count):
    """A iteration of so many steps of k, one behind the other, in the same registers."""
    before, _, rest = IN_DOUBLE.partition("whileloop\n")
    tests = "\n".join(ITERATION.splitlines()[:2])
    iteration = []
    for step in range(count):
        for line in FETCHES:
            below = line.replace("_aoffimmi(1,0,0)", f"_aoffimmi(1,{step},0)")
            if "aoffimmi" not in line:
                below = re.sub(r"(sampler\(\d\))", rf"\1_aoffimmi(0,{step},0)", line)
            iteration.append(below)
        iteration += FIRST + ROWS
    iteration += ["    add r0.z, r0.z, l9.x"] * count
    return "\n".join(
        [f"{before}whileloop", tests, *iteration, "endloop", rest.partition("endloop\n")[2]]
    )


FOUR_STEPS = steps(4)
