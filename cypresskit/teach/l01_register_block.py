"""Lesson 01: products with a register block of any size, and the checks of its three exercises."""

from collections.abc import Callable, Sequence

import numpy as np

from cypresskit.il import Program
from cypresskit.kernels import KERNELS
from cypresskit.machine import Run, launch
from cypresskit.machine.record import Recorder, Recording
from cypresskit.teach.kernels import block_kernel, kernel_exercise, run_gemm
from cypresskit.teach.shell import asked, exercise
from cypresskit.teach.verdict import Verdict, slip, stopped

SIZES = (1, 2, 4, 8, 12, 16)
FOUR_BY_FOUR = block_kernel(4, 4)  # what answers are launched like


def block_gemm(a: np.ndarray, b: np.ndarray, size: int) -> tuple[np.ndarray, Run]:
    """C = transpose(a) b on the simulated device with ``size`` x ``size`` elements of C per work-item.

    ``a`` (k, m) and ``b`` (k, n) float32, m and n multiples of ``size``, one of 1, 2, 4, 8, 12, 16. Returns C (m, n)
    and the counts of the run.
    """
    if size not in SIZES:
        raise ValueError(f"a block of {size} x {size}? The sizes here are {', '.join(map(str, SIZES))}")
    m, n = a.shape[1], b.shape[1]
    if m % size or n % size:
        raise ValueError(f"C is {m} x {n}: for this block both must be multiples of {size}")
    kernel = block_kernel(size, size)
    return run_gemm(kernel.program, kernel, np.float32(a), np.float32(b))


def block_runs(sizes: Sequence[int] = (1, 2, 4, 8), n: int = 8) -> dict[str, list[Recording]]:
    """A product of n x n matrices with a block of each of ``sizes``: recordings of all work-items, by what the block is
    called. For ``draw.block_race``."""
    runs, ones = {}, np.ones((n, n), np.float32)
    for size in sizes:
        kernel, recorders = block_kernel(size, size), [Recorder(item) for item in range((n // size) ** 2)]
        launch(kernel.program, **kernel.arguments(ones, ones, None, 1, 0), observers=recorders)
        runs[f"{size} x {size}"] = [recorder.recording for recorder in recorders]
    return runs


@exercise
def check_rank1(update: Callable) -> Verdict:
    """Exercise 1: ``update(c, a, b)`` adds the outer product of a column a and a row b to the block c, in place; tried
    on blocks that are square and not."""
    rng = np.random.default_rng(870)
    for rows, columns in ((2, 2), (2, 3), (8, 8), (5, 1)):
        a, b = (rng.integers(1, 9, size).astype(np.float32) for size in (rows, columns))
        start = rng.integers(-9, 9, (rows, columns)).astype(np.float32)
        c, mine, theirs = start.copy(), a.copy(), b.copy()
        try:
            returned = asked("update(c, a, b)", update, c, a, b)
        except Exception as error:
            shape = f"c of shape {rows} x {columns}, a of {rows} and b of {columns} numbers"
            return stopped("update", error, f"it was called with {shape}.")
        if not (np.array_equal(a, mine) and np.array_equal(b, theirs)):
            return Verdict(False, "update changes a or b.", "only c is to change: its next row needs a and b again.")
        want = start + np.outer(a, b)
        if np.array_equal(c, want):
            continue
        return Verdict(False, *_rank1_fault(returned, c, start, a, b, want))
    return Verdict(True, "Every element grew by its own product, for blocks of four shapes.")


def _rank1_fault(returned, c, start, a, b, want) -> tuple[str, str]:
    case = f"a = {_row(a)}, b = {_row(b)}: c[0] = {_row(start[0])} should become {_row(want[0])}, it is {_row(c[0])}."
    product = np.outer(a, b)
    if np.array_equal(c, start):
        if returned is not None and np.array_equal(np.asarray(returned), want):
            return f"c itself did not change. {case}", "`c = c + ...` makes a new array; `c += ...` changes c."
        return (
            f"c did not change. {case}",
            "each c[i, j] has to gain something from a and b: what, in an outer product?",
        )
    if np.array_equal(c, product):
        return f"What was in c is lost. {case}", "a block is the sum over all k: add to it, don't set it."
    if product.shape == product.T.shape and np.array_equal(c, start + product.T):
        return f"Rows and columns are exchanged. {case}", "a belongs to the rows of c, b to its columns."
    wrong = [i for i in range(len(c)) if not np.array_equal(c[i], want[i])]
    where = f"{len(c)} x {c.shape[1]} blocks: its elements have to gain a[{wrong[0]}] times each b[j]."
    return f"Row {wrong[0]} of c is wrong. For {case}", where


def _row(values: np.ndarray) -> str:
    return "[" + " ".join(f"{v:g}" for v in np.ravel(values)) + "]"


@kernel_exercise("four_by_four.il", stuck="compare that line with sgemm_tn.il.")
def check_four_by_four(program: Program) -> Verdict:
    """Exercise 2: IL of a kernel that keeps a 4 x 4 block in r10 to r13, launched as the catalogue's kernels are: right
    results at three shapes, then no more than two fetches for each step of k."""
    rng = np.random.default_rng(5870)
    for m, n, k in ((4, 4, 3), (8, 12, 5), (20, 4, 8)):
        a, b = (rng.integers(1, 8, (k, size)).astype(np.float32) for size in (m, n))
        c, run = run_gemm(program, FOUR_BY_FOUR, a, b)
        if not np.array_equal(c, a.T @ b):
            return Verdict(False, *_four_fault(c, a, b))
        if run.fetches != 2 * k * run.work_items:
            each = run.fetches / (k * run.work_items)
            return Verdict(
                False,
                f"C is right, but the kernel fetches {each:g} texels for each step of k; two are enough.",
                "the four numbers of A's texel and the four of B's already make all 16 products.",
            )
    words = run.fetch_bytes / 4 / (2 * m * n * k)
    return Verdict(True, f"C is right at three shapes, with {words:g} words fetched per flop: 1/4, as for any b = 4.")


def _four_fault(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    """What is wrong with C, by the rows of its 4 x 4 blocks."""
    want = a.T @ b
    finding, rows = wrong_rows(c, want, "C is wrong in", "of every 4 x 4 block.")
    i = next((i for i in rows if not c[i::4].any()), rows[0])
    register, letter = f"r{10 + i}", "xyzw"[i]
    if not c[i::4].any():
        return finding, f"nothing was ever added to {register}, which holds row {i}. How is row 0 done?"
    said = "row {} holds the products of a[{}]: which letter of r2 is a[{}]?"
    slips = {said.format(i, other, i): want[other::4] for other in range(4) if other != i}
    slips[f"{register} holds the last product alone: the block is a sum over k, so add to what was there."] = np.outer(
        a[-1], b[-1]
    )[i::4]
    if hint := slip(c[i::4], slips, ""):
        return finding, hint
    if np.array_equal(c[:4, :4], want[:4, :4].T):
        return finding, "rows and columns are exchanged: r2 (from A) gives one number a line, r3 (from B) all four."
    return finding, f"the line that writes {register}: it should add r2.{letter} times r3 to {register}."


def wrong_rows(c: np.ndarray, want: np.ndarray, before: str, after: str) -> tuple[str, list[int]]:
    """A sentence on the rows of C's blocks of four that are wrong, and those rows."""
    rows = [i for i in range(4) if not np.array_equal(c[i::4], want[i::4])]
    return f"{before} row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))} {after}", rows


@exercise
def check_texels(texels: Callable) -> Verdict:
    """Exercise 3: ``texels(x, y, k)`` lists what work-item (x, y) of ``sgemm_tn`` fetches at step k, as (matrix,
    column, row) with "A" or "B" first; compared with what a recorder saw the work-item do."""
    kernel, zeros = KERNELS["sgemm_tn"], np.zeros
    arguments = kernel.arguments(zeros((6, 32), np.float32), zeros((6, 24), np.float32), None, 1, 0)
    for x, y in ((0, 0), (2, 0), (0, 3), (1, 2)):
        recorder = Recorder((x, y))
        launch(kernel.program, **arguments, observers=[recorder])
        seen = [("AB"[r], int(column), int(row)) for _, r, column, row, _ in recorder.recording.fetches]
        for k in (0, 1, 5):
            where, did = f"work-item ({x}, {y}) at k = {k}", seen[4 * k : 4 * k + 4]
            try:
                told = asked(f"texels({x}, {y}, {k})", lambda *at: _sorted(texels(*at)), x, y, k)
            except Exception as error:
                return stopped("texels", error, f"it was called for {where} and should list (matrix, column, row).")
            if told != sorted(did):
                return Verdict(False, f"For {where} it gives {told or 'nothing'}.", _texel_hint(told, did))
    return Verdict(True, "Just what four work-items fetched at three steps of k, as a recorder saw it.")


def _sorted(texels) -> list[tuple]:
    return sorted((str(matrix), column, row) for matrix, column, row in texels)


def _texel_hint(told: list[tuple], did: list[tuple]) -> str:
    """Where a list of texels goes wrong."""
    if len(told) != len(did):
        return f"the device fetched {len(did)} texels: 8 numbers of A and 8 of B, four to a texel."
    matrices = [matrix for matrix, _, _ in told]
    if sorted(matrices) != sorted(m for m, _, _ in did):
        return 'two texels belong to "A" and two to "B".'
    if sorted((m, row, column) for m, column, row in told) == sorted(did):
        return "column and row are exchanged: both matrices are stored with k rows."
    exchanged = [("BA"[m == "B"], column, row) for m, column, row in told]
    if sorted(exchanged) == sorted(did):
        return "A and B are exchanged, or x and y: y counts blocks of rows of C, and those come from A."
    if {row for _, _, row in told} != {row for _, _, row in did}:
        return f"step k reads row {did[0][2]} of both matrices as they are stored."
    wrong = next(m for m in "AB" if {c for n, c, _ in told if n == m} != {c for n, c, _ in did if n == m})
    return f"the columns of {wrong}: a texel holds four numbers, so a block of 8 begins at every second texel."
