"""Lesson 01: kernels with a register block of any size, and the checks of its three exercises.

``block_gemm`` writes an IL kernel for the block size asked for, in the form of ``sgemm_tn.il`` but with one step of k a
turn and no alpha and beta, and runs it. A texel holds as many numbers as the block is wide, up to four: a block of 1
fetches single words. Blocks up to 2 store to output streams, larger ones to global memory.
"""

from collections.abc import Callable

import numpy as np

from cypresskit.il import ILError, Program, assemble
from cypresskit.kernels import KERNELS
from cypresskit.machine import KernelError, Run, launch
from cypresskit.machine.record import Recorder
from cypresskit.teach.verdict import Verdict, said, stopped

SIZES = (1, 2, 4, 8, 12, 16)


def block_gemm(a: np.ndarray, b: np.ndarray, size: int) -> tuple[np.ndarray, Run]:
    """C = transpose(a) b on the simulated device with ``size`` x ``size`` elements of C per work-item.

    ``a`` (k, m) and ``b`` (k, n) float32, m and n multiples of ``size``, one of 1, 2, 4, 8, 12, 16. Returns C (m, n)
    and the counts of the run.
    """
    arguments = block_arguments(a, b, size)
    run = launch(block_program(size), **arguments)
    if size >= 4:
        return arguments["global_memory"], run
    stripes = np.stack([arguments["outputs"][i] for i in range(size)], axis=1)
    return stripes.reshape(a.shape[1], b.shape[1]), run


def block_program(size: int) -> Program:
    """The kernel that ``block_gemm`` runs."""
    return assemble(_text(size), f"block_{size}x{size}.il")


def block_arguments(a: np.ndarray, b: np.ndarray, size: int) -> dict:
    """The arguments of ``ck.launch`` for it, with fresh arrays for C."""
    if size not in SIZES:
        raise ValueError(f"a block of {size} x {size}? The sizes here are {', '.join(map(str, SIZES))}")
    (k, m), n, wide = a.shape, b.shape[1], min(size, 4)
    if m % size or n % size:
        raise ValueError(f"C is {m} x {n}: for this block both must be multiples of {size}")
    inputs = {i: np.ascontiguousarray(x, np.float32).reshape(k, -1, wide) for i, x in enumerate((a, b))}
    head = np.zeros((1, 4), np.float32)
    head[0, 2] = k
    head.view(np.int32)[0, 3] = n // 4
    arguments: dict = {"domain": (n // size, m // size), "inputs": inputs, "constants": {0: head}}
    if size >= 4:
        return arguments | {"global_memory": np.zeros((m, n), np.float32)}
    return arguments | {"outputs": {i: np.zeros((m // size, n // size, wide), np.float32) for i in range(size)}}


def _text(size: int) -> str:
    """The IL of a kernel with this block; r2 onwards hold A's column, then B's row, then the block."""
    texels, wide = max(size // 4, 1), min(size, 4)
    mask, formats = "xyzw"[:wide].ljust(4, "_"), "_fmtx(float)_fmty(float)_fmtz(float)_fmtw(float)"
    b, total = 2 + texels, 2 + 2 * texels
    fetches = [
        f"sample_resource({matrix})_sampler({matrix})_aoffimmi({t},0,0) r{2 + matrix * texels + t}, r0.{column}z00"
        for matrix, column in enumerate("xy")
        for t in range(texels)
    ]
    block = [(i, t, total + i * texels + t) for i in range(size) for t in range(texels)]
    products = [f"mad r{r}.{mask}, r{2 + i // 4}.{'xyzw'[i % 4]}, r{b + t}, r{r}" for i, t, r in block]
    if size < 4:
        stores = [f"mov o{i}.{mask}, r{r}" for i, _, r in block]
    else:
        stores = ["mad r1.x, vWinCoord0.y, l1.x, l1.y", "ftoi r1.x, r1.x", "ftoi r1.y, r0.y"]
        stores.append("imad r1.x, r1.x, cb0[0].w, r1.y")
        for i, t, r in block:
            stores += ["iadd r1.x, r1.x, cb0[0].w"] if i and not t else []
            stores.append(f"mov g[r1.x+{t}], r{r}")
    return "\n".join(
        [
            "il_ps_2_0",
            "dcl_input_position_interp(linear_noperspective) vWinCoord0.xy__",
            f"dcl_resource_id(0)_type(2d,unnorm){formats}",
            f"dcl_resource_id(1)_type(2d,unnorm){formats}",
            *(f"dcl_output_generic o{i}" for i in range(size) if size < 4),
            "dcl_cb cb0[1]",
            "dcl_literal l0, 0.0, 1.0, 0.0, 0.0",
            f"dcl_literal l1, {size}.0, {-size / 2}, {texels}.0, {-texels / 2}",
            "mad r0.xy, vWinCoord0.yx, l1.z, l1.w",
            "mov r0.z, l0.x",
            *(f"mov r{r}, l0.x" for _, _, r in block),
            "whileloop",
            "ge r1.x, r0.z, cb0[0].z",
            "break_logicalnz r1.x",
            *fetches,
            *products,
            "add r0.z, r0.z, l0.y",
            "endloop",
            *stores,
            "endmain",
            "end",
        ]
    )


def check_rank1(update: Callable) -> Verdict:
    """Exercise 1: ``update(c, a, b)`` adds the outer product of a column a and a row b to the block c, in place; tried
    on blocks that are square and not."""
    rng = np.random.default_rng(870)
    for rows, columns in ((2, 2), (2, 3), (8, 8), (5, 1)):
        a, b = (rng.integers(1, 9, size).astype(np.float32) for size in (rows, columns))
        start = rng.integers(-9, 9, (rows, columns)).astype(np.float32)
        c, mine, theirs = start.copy(), a.copy(), b.copy()
        try:
            returned = update(c, a, b)
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


def check_four_by_four(text) -> Verdict:
    """Exercise 2: IL of a kernel that keeps a 4 x 4 block in r10 to r13, launched as the catalogue's kernels are: right
    results at three shapes, then no more than two fetches for each step of k."""
    if not isinstance(text, str):
        return Verdict(False, f"The kernel is a {type(text).__name__}, not text.", "pass the IL between quotes.")
    try:
        program = assemble(text, "four_by_four.il")
    except ILError as error:
        return Verdict(False, f"The kernel does not assemble.\n{error}", "the line above the caret.")
    rng = np.random.default_rng(5870)
    for m, n, k in ((4, 4, 3), (8, 12, 5), (20, 4, 8)):
        a, b = (rng.integers(1, 8, (k, size)).astype(np.float32) for size in (m, n))
        try:
            c, run = _launch_four(program, a, b)
        except (KernelError, ValueError) as error:
            return Verdict(False, f"The kernel does not run: {said(error)}", "compare that line with sgemm_tn.il.")
        want = a.T @ b
        if not np.array_equal(c, want):
            return Verdict(False, *_four_fault(c, want, a, b))
        if run.fetches != 2 * k * run.work_items:
            each = run.fetches / (k * run.work_items)
            return Verdict(
                False,
                f"C is right, but the kernel fetches {each:g} texels for each step of k; two are enough.",
                "the four numbers of A's texel and the four of B's already make all 16 products.",
            )
    words = run.fetch_bytes / 4 / (2 * m * n * k)
    return Verdict(True, f"C is right at three shapes, with {words:g} words fetched per flop: 1/4, as for any b = 4.")


def _launch_four(program: Program, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, Run]:
    (k, m), n = a.shape, b.shape[1]
    head = np.zeros((5, 4), np.float32)
    head[0, :3] = 1, 0, k
    head.view(np.int32)[0, 3] = n // 4
    c = np.zeros((m, n), np.float32)
    inputs = {i: x.reshape(k, -1, 4) for i, x in enumerate((a, b))}
    run = launch(
        program, (n // 4, m // 4), inputs=inputs, constants={0: head}, global_memory=c, max_instructions=100_000
    )
    return c, run


def _four_fault(c: np.ndarray, want: np.ndarray, a: np.ndarray, b: np.ndarray) -> tuple[str, str]:
    """What is wrong with C, by the rows of its 4 x 4 blocks."""
    rows = [i for i in range(4) if not np.array_equal(c[i::4], want[i::4])]
    finding = f"C is wrong in row{'s' * (len(rows) > 1)} {', '.join(map(str, rows))} of every 4 x 4 block."
    i = next((i for i in rows if not c[i::4].any()), rows[0])
    got = c[i::4]
    register, letter = f"r{10 + i}", "xyzw"[i]
    if not got.any():
        return finding, f"nothing was ever added to {register}, which holds row {i}. How is row 0 done?"
    for other in range(4):
        if other != i and np.array_equal(got, want[other::4]):
            return finding, f"row {i} holds the products of a[{other}]: which letter of r2 is a[{i}]?"
    if np.array_equal(got, np.outer(a[-1], b[-1])[i::4]):
        return finding, f"{register} holds the last product alone: the block is a sum over k, so add to what was there."
    if np.array_equal(c[:4, :4], want[:4, :4].T):
        return finding, "rows and columns are exchanged: r2 (from A) gives one number a line, r3 (from B) all four."
    return finding, f"the line that writes {register}: it should add r2.{letter} times r3 to {register}."


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
                told = sorted((str(matrix), column, row) for matrix, column, row in texels(x, y, k))
            except Exception as error:
                return stopped("texels", error, f"it was called for {where} and should list (matrix, column, row).")
            if told != sorted(did):
                return Verdict(False, f"For {where} it gives {told or 'nothing'}.", _texel_hint(told, did))
    return Verdict(True, "Just what four work-items fetched at three steps of k, as a recorder saw it.")


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
