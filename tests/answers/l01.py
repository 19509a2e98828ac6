"""Lesson 01."""

import numpy as np

from answers import function, given, text
from cypresskit.teach.l01_register_block import check_four_by_four, check_rank1, check_texels


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

CHECKS = {
    check_rank1: function(
        [loops, whole, rows],
        [
            (unsolved, "c did not change"),
            (returns_all_three, "c did not change"),
            (makes_a_new_array, "c itself did not change"),
            (overwrites, "What was in c is lost"),
            (exchanged, "Rows and columns are exchanged"),
            (forgets_the_last_row, ("Row 1 of c is wrong", "c[1] = [8 -8] should become [12 -7], it is [8 -8]")),
            (only_the_diagonal, "Row 0 of c is wrong"),
            (eats_its_input, "changes a or b"),
            (whole_numbers, "Row 0 of c is wrong"),
            (changes_its_shape, "can't use what update gives"),
            (square_only, ""),
            (adds_instead_of_multiplying, "Row 0 of c is wrong"),
        ],
    ),
    check_four_by_four: text(
        [
            kernel(*lines)
            for lines in [
                ROWS,
                ROWS[::-1],
                [row.replace("mad ", "fma ") for row in ROWS],
                ["mov r4, r2", *(row.replace("r2", "r4") for row in ROWS)],
            ]
        ],
        [
            (kernel(*lines), said)
            for lines, *said in [
                (["; rows"], "rows 1, 2, 3", "nothing was ever added to r11"),
                (ROWS[:2], "row 3 ", "nothing was ever added to r13"),
                ([ROWS[0], ROWS[1].replace("r2.z", "r2.y"), ROWS[2]], "row 2 ", "which letter of r2 is a[2]"),
                ([ROWS[0].replace(", r11", ", r10").replace("mad r10", "mad r11"), *ROWS[1:]], "row 1", "r11"),
                (["mul r11, r2.y, r3", *ROWS[1:]], "row 1 ", "the last product alone"),
                ([r.replace("r2.", "r3.").replace(", r3, ", ", r2, ") for r in ROWS], "rows 1, 2, 3", ""),
                ([*ROWS, ROWS[2]], "row 3 ", "the line that writes r13"),
                (["mad r11, r2.y, r3, r10", *ROWS[1:]], "row 1 ", "Which one is out of step?"),
                (["mad r11, r2.y, r99, r11", *ROWS[1:]], "row 1 ", "r99 is read, but never written: it is 0"),
                (["mad r11.xyz_, r2.y, r3, r11", *ROWS[1:]], "row 1 ", "r11"),
                (["mad r10, r2.y, r3, r10", *ROWS[1:]], "rows 0, 1 ", "nothing was ever added to r11"),
                (["sample_resource(0)_sampler(0) r4, r0.xz00", *ROWS], "fetches 3 texels", "two are enough"),
                (["mda r11, r2.y, r3, r11", *ROWS[1:]], "does not assemble", "caret"),
                ([*ROWS, "add r0.z, r0.z, l0.z"], "rows 0, 1, 2, 3", "even row 0 is wrong"),
                ([*ROWS, "sub r0.z, r0.z, l0.z"], "does not run", ""),
                ([*ROWS, "endloop"], "does not assemble", ""),
            ]
        ]
        + [(kernel(*ROWS).replace(before, after), said) for before, after, said in BROKEN],
    ),
    check_texels: function(
        [texels, lambda x, y, k: texels(x, y, k)[::-1]],
        [
            (lambda x, y, k: [], "the device fetched 4 texels"),
            (lambda x, y, k: texels(x, y, k)[:3], "the device fetched 4 texels"),
            (lambda x, y, k: texels(y, x, k), "or x and y"),
            (lambda x, y, k: [(m, r, c) for m, c, r in texels(x, y, k)], "column and row are exchanged"),
            (lambda x, y, k: [("AB"[m == "A"], c, r) for m, c, r in texels(x, y, k)], "A and B are exchanged"),
            (lambda x, y, k: [(m, c, 2 * r) for m, c, r in texels(x, y, k)], "step k reads row 1"),
            (lambda x, y, k: [(m, 4 * c, r) for m, c, r in texels(x, y, k)], "a texel holds four numbers"),
            (lambda x, y, k: [("A", c, r) for _, c, r in texels(x, y, k)], "two texels belong"),
            (lambda x, y, k: [("A", y, k), ("A", y + 1, k), ("B", x, k), ("B", x + 1, k)], "every second texel"),
            (lambda x, y, k: None, "it was called for work-item (0, 0)"),
            (lambda x, y, k: texels(x, y, k) + [7], "it was called for"),
            (lambda x, y, k: [(m, c + 0.5, r) for m, c, r in texels(x, y, k)], "every second texel"),
            (lambda x, y, k: [("A", "2", k), *texels(x, y, k)[1:]], "it was called for"),
            (lambda x, y, k: [(m, str(c), str(r)) for m, c, r in texels(x, y, k)], "the last two as numbers"),
            (lambda x, y, k: [("A", np.arange(2), k)] * 4, "texels returns something that"),
            (lambda x, y, k: [("A", 1, k)] * 400_000, "... and 399,992 more."),
            (lambda x, y, k: [("A", 10**4000, k)], " characters)"),
            (lambda x, y, k: [("A", 10**5000, k)], "can't use what texels gives"),
        ],
    ),
}
