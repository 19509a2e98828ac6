"""The checks of lesson 01: they accept what is right, reject what is wrong, and say where to look."""

import numpy as np
import pytest

from cypresskit.teach.register_block import SIZES, block_gemm, check_four_by_four, check_rank1, check_texels


@pytest.mark.parametrize("size", SIZES)
def test_any_block_multiplies_and_fetches_one_word_for_b_flops(size):
    rng = np.random.default_rng(size)
    a, b = (rng.integers(-4, 5, (7, n)).astype(np.float32) for n in (48, 96))
    c, run = block_gemm(a, b, size)
    assert np.array_equal(c, a.T @ b)
    assert run.fetch_bytes / 4 == 2 * 48 * 96 * 7 / size
    assert run.out_of_range == 0


def test_blocks_that_do_not_fit_are_refused():
    a = np.zeros((4, 12), np.float32)
    with pytest.raises(ValueError, match="sizes here are 1, 2, 4"):
        block_gemm(a, a, 3)
    with pytest.raises(ValueError, match="multiples of 8"):
        block_gemm(a, a, 8)


# -- exercise 1


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


@pytest.mark.parametrize("update", [loops, whole, rows])
def test_right_updates_are_accepted(update):
    assert check_rank1(update).right


def unsolved(c, a, b): ...


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


def square_only(c, a, b):
    for i in range(len(a)):
        for j in range(len(a)):
            c[i, j] += a[i] * b[j]


def adds_instead_of_multiplying(c, a, b):
    c += a[:, None] + b


def raises(c, a, b):
    raise ZeroDivisionError("of course")


@pytest.mark.parametrize(
    ("update", "said"),
    [
        (unsolved, "c did not change"),
        (makes_a_new_array, "c itself did not change"),
        (overwrites, "What was in c is lost"),
        (exchanged, "Rows and columns are exchanged"),
        (forgets_the_last_row, "Row 1 of c is wrong"),
        (only_the_diagonal, "Row 0 of c is wrong"),
        (eats_its_input, "changes a or b"),
        (square_only, ""),
        (adds_instead_of_multiplying, "Row 0 of c is wrong"),
        (raises, "ZeroDivisionError: of course"),
        (None, "TypeError"),
    ],
)
def test_wrong_updates_are_rejected(update, said):
    verdict = check_rank1(update)
    assert not verdict.right and verdict.hint and said in verdict.finding


# -- exercise 2

KERNEL = """
il_ps_2_0
dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__
dcl_resource_id(0)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_resource_id(1)_type(2d,unnorm)_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)
dcl_cb cb0[5]
dcl_literal l0, -0.5, 0.0, 1.0, 4.0
add r0.xy, vWinCoord0.yx, l0.x
mov r0.z, l0.y
mov r10, l0.y
mov r11, l0.y
mov r12, l0.y
mov r13, l0.y
whileloop
    ge r1.x, r0.z, cb0[0].z
    break_logicalnz r1.x
    sample_resource(0)_sampler(0) r2, r0.xz00
    sample_resource(1)_sampler(1) r3, r0.yz00
    mad r10, r2.x, r3, r10
    ; rows
    add r0.z, r0.z, l0.z
endloop
mul r1.x, r0.x, l0.w
ftoi r1.x, r1.x
ftoi r1.y, r0.y
imad r1.x, r1.x, cb0[0].w, r1.y
mov g[r1.x], r10
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r11
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r12
iadd r1.x, r1.x, cb0[0].w
mov g[r1.x], r13
endmain
end
"""
ROWS = ["mad r11, r2.y, r3, r11", "mad r12, r2.z, r3, r12", "mad r13, r2.w, r3, r13"]


def kernel(*lines: str) -> str:
    return KERNEL.replace("; rows", "\n".join(lines))


@pytest.mark.parametrize(
    "lines",
    [
        ROWS,
        ROWS[::-1],
        [row.replace("mad ", "fma ") for row in ROWS],
        ["mov r4, r2", *(row.replace("r2", "r4") for row in ROWS)],
    ],
    ids=["as in the solution", "in another order", "with fma", "after a copy"],
)
def test_right_kernels_are_accepted(lines):
    verdict = check_four_by_four(kernel(*lines))
    assert verdict.right and "0.25 words fetched per flop" in verdict.finding


@pytest.mark.parametrize(
    ("lines", "said", "hint"),
    [
        (["; rows"], "rows 1, 2, 3", "nothing was ever added to r11"),
        (ROWS[:2], "row 3 ", "nothing was ever added to r13"),
        ([ROWS[0], ROWS[1].replace("r2.z", "r2.y"), ROWS[2]], "row 2 ", "which letter of r2 is a[2]"),
        ([ROWS[0].replace(", r11", ", r10").replace("mad r10", "mad r11"), *ROWS[1:]], "row 1", "r11"),
        (["mul r11, r2.y, r3", *ROWS[1:]], "row 1 ", "the last product alone"),
        ([r.replace("r2.", "r3.").replace(", r3, ", ", r2, ") for r in ROWS], "rows 1, 2, 3", ""),
        ([*ROWS, ROWS[2]], "row 3 ", "the line that writes r13"),
        (["mad r11, r2.y, r3, r10", *ROWS[1:]], "row 1 ", "r11"),
        (["mad r11.xyz_, r2.y, r3, r11", *ROWS[1:]], "row 1 ", "r11"),
        (["mad r10, r2.y, r3, r10", *ROWS[1:]], "rows 0, 1 ", "nothing was ever added to r11"),
        (["sample_resource(0)_sampler(0) r4, r0.xz00", *ROWS], "fetches 3 texels", "two are enough"),
        (["mda r11, r2.y, r3, r11", *ROWS[1:]], "does not assemble", "caret"),
        ([*ROWS, "sub r0.z, r0.z, l0.z"], "does not run", ""),
        ([*ROWS, "endloop"], "does not assemble", ""),
    ],
)
def test_wrong_kernels_are_rejected(lines, said, hint):
    verdict = check_four_by_four(kernel(*lines))
    assert not verdict.right
    assert said in verdict.finding and hint in f"{verdict.finding} {verdict.hint}"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("mov g[r1.x], r13", "mov g[r1.x], r12", "row 3 "),
        ("mul r1.x, r0.x, l0.w", "mul r1.x, r0.x, l0.z", "C is wrong"),
        ("l0.w\nftoi r1.x, r1.x", "l0.w\nmul r1.x, r1.x, l0.w\nftoi r1.x, r1.x", "does not run"),
        ("il_ps_2_0", "il_cs_2_0", ""),
        ("mov r0.z, l0.y", "mov r0.z, l0.z", "C is wrong"),
    ],
)
def test_kernels_broken_elsewhere_are_rejected(before, after, said):
    assert before in KERNEL
    verdict = check_four_by_four(kernel(*ROWS).replace(before, after))
    assert not verdict.right and said in verdict.finding


@pytest.mark.parametrize("text", ["", "hello", None, 4])
def test_what_is_no_kernel_is_rejected(text):
    assert not check_four_by_four(text).right


# -- exercise 3


def texels(x, y, k):
    return [("A", 2 * y, k), ("A", 2 * y + 1, k), ("B", 2 * x, k), ("B", 2 * x + 1, k)]


def test_the_right_texels_are_accepted_in_any_order():
    assert check_texels(texels).right
    assert check_texels(lambda x, y, k: texels(x, y, k)[::-1]).right


@pytest.mark.parametrize(
    ("wrong", "said"),
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
        (None, "it was called for"),
    ],
)
def test_wrong_texels_are_rejected(wrong, said):
    verdict = check_texels(wrong)
    assert not verdict.right and said in verdict.hint
