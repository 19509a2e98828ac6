"""Lesson 01."""

import numpy as np

from answers import given


def loops(c, a, b):
    rows, columns = c.shape
    for i in range(rows):
        for j in range(columns):
            c[i, j] += a[i] * b[j]


def whole(c, a, b):
    c += np.outer(a, b)


def rows(c, a, b):
    for i in range(len(a)):
        c[i] += a[i] * b


def unsolved(c, a, b): ...


def returns_all_three(c, a, b):
    return a, b, c


def makes_a_new_array(c, a, b):
    c = c + np.outer(a, b)
    return c


def overwrites(c, a, b):
    c[:] = np.outer(a, b)


def exchanged(c, a, b):
    c += np.outer(b, a) if len(a) == len(b) else np.outer(a, b)


def forgets_the_last_row(c, a, b):
    c[:-1] += np.outer(a, b)[:-1]


def only_the_diagonal(c, a, b):
    for i in range(min(c.shape)):
        c[i, i] += a[i] * b[i]


def eats_its_input(c, a, b):
    c += np.outer(a, b)
    a[:] = 0


def whole_numbers(c, a, b):
    c += np.outer(a, b).astype(int)


def changes_its_shape(c, a, b):
    c.shape = (c.size,)


def square_only(c, a, b):
    for i in range(len(a)):
        for j in range(len(a)):
            c[i, j] += a[i] * b[j]


def adds_instead_of_multiplying(c, a, b):
    c += a[:, None] + b


ROWS = ["mad r11, r2.y, r3, r11", "mad r12, r2.z, r3, r12", "mad r13, r2.w, r3, r13"]
KERNEL = given("01_register_block", "four_by_four")


def kernel(*lines: str) -> str:
    return KERNEL.replace("; rows 1, 2 and 3: your lines go below this one", "\n".join(lines))


def texels(x, y, k):
    return [("A", 2 * y, k), ("A", 2 * y + 1, k), ("B", 2 * x, k), ("B", 2 * x + 1, k)]


BROKEN = [
    ("mov g[r1.x], r13", "mov g[r1.x], r12", "row 3 "),
    ("mul r1.x, r0.x, l0.w", "mul r1.x, r0.x, l0.z", "C is wrong"),
    ("ftoi r1.x, r1.x", "mul r1.x, r1.x, l0.w\nftoi r1.x, r1.x", "does not run"),
    ("il_ps_2_0", "il_cs_2_0", ""),
    ("mov r0.z, l0.y", "mov r0.z, l0.z", "C is wrong"),
]
