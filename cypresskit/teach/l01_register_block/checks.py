"""Lesson 01: products with a register block of any size, and the checks of its three exercises."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.generated import block_kernel
from cypresskit.kernels.samples import run
from cypresskit.machine import launch
from cypresskit.machine.record import Recorder, Recording
from cypresskit.teach.check import Verdict, call_answer, function_exercise, require
from cypresskit.teach.climb import climb_exercise, describe_iteration


def main_loop_listing() -> str:
    """Return the numbered lines of the loop of ``sgemm_tn``: its fetches, its first products, and
    its end.
    """
    lines = KERNELS["sgemm_tn"].text.splitlines()
    first, last = lines.index("whileloop"), lines.index("endloop")
    begins, ends = (
        [f"{number + 1:3} {lines[number]}" for number in part]
        for part in (range(first, first + 17), range(last - 4, last + 1))
    )
    return "\n".join((*begins, "    ...", *ends))


def record(
    kernel: Kernel, a: np.ndarray, b: np.ndarray, items: Iterable[int | tuple[int, int]]
) -> list[Recording]:
    """Record work-items of a product of A and B, as they are stored."""
    recorders = [Recorder(item) for item in items]
    launch(kernel.program, **kernel.arguments(a, b, None, 1, 0), observers=recorders)
    return [recorder.recording for recorder in recorders]


def small_run() -> list[Recording]:
    """Record six work-items of ``sgemm_tn``, (1, 1) first, in a small product of whole numbers, for
    ``draw.register_block``.
    """
    kernel = KERNELS["sgemm_tn"]
    rng = np.random.default_rng(8)
    a, b = (rng.integers(-3, 4, (8, width)).astype(np.float32) for width in (16, 24))
    return record(kernel, a, b, ((1, 1), (0, 0), (1, 0), (2, 0), (0, 1), (2, 1)))


def words_per_flop(size: int, n: int = 48) -> float:
    """Count the words fetched per flop of an n x n product by blocks of ``size`` x ``size``."""
    return run(block_kernel(size, size), n, n, n).fetch_bytes / 4 / (2 * n**3)


def bandwidths(sizes: Sequence[int]) -> dict[str, dict[int, float]]:
    """Return GB/s by block: what single precision needs at the peak, and what the texture units
    deliver.
    """
    need = {size: 4 * words_per_flop(size) * HD5870.single_gflops for size in sizes}
    return {
        "needed at the peak": need,
        "texture units": dict.fromkeys(need, HD5870.texture_gb_s),
    }


def block_runs(sizes: Sequence[int]) -> dict[str, list[Recording]]:
    """Record all work-items of a product of 8 x 8 matrices for ``block_race``, with a block of each
    of ``sizes``. Return the recordings by the block's name, "2 x 2".
    """
    runs = {}
    ones = np.ones((8, 8), np.float32)
    for size in sizes:
        kernel = block_kernel(size, size)
        runs[f"{size} x {size}"] = record(kernel, ones, ones, range((8 // size) ** 2))
    return runs


@climb_exercise("01a")
def check_two_by_two(mine: Kernel) -> str:
    """Exercise 1: a kernel with a block of 2 x 2."""
    return describe_iteration(mine)


@climb_exercise("01b")
def check_four_by_four(mine: Kernel) -> str:
    """Exercise 2: a kernel with a block of 4 x 4."""
    return describe_iteration(mine)


@function_exercise
def check_texels(texels: Callable) -> Verdict:
    """Exercise 3: ``texels(x, y, k)`` lists what work-item (x, y) of ``sgemm_tn`` fetches for
    k, as (matrix, column, row), the matrix "A" or "B"; compared with a recording of the
    work-item.
    """
    a, b = (np.zeros((6, width), np.float32) for width in (32, 24))
    places = (1, 2), (2, 0), (0, 3), (0, 0)  # first, one where no wrong rule is right
    for (x, y), recording in zip(places, record(KERNELS["sgemm_tn"], a, b, places)):
        fetched = [("AB"[r], int(column), int(row)) for _, r, column, row, _ in recording.fetches]
        for k in (5, 1, 0):
            where = f"work-item ({x}, {y}) at k = {k}"
            did = sorted(fetched[4 * k : 4 * k + 4])
            hint = (
                f"it was called for {where} and should list (matrix, column, row), the last two as"
                " numbers."
            )
            listed = call_answer(
                f"texels({x}, {y}, {k})",
                lambda *place: _sorted(texels(*place)),
                *(x, y, k),
                hint=hint,
                unusable="something other than a list of triples",
            )
            gives = ", ".join(map(str, listed[:8])) + f", ... and {len(listed) - 8:,} more" * (
                len(listed) > 8
            )
            require(
                listed == did,
                f"For {where} it gives {gives or 'nothing'}.",
                _texel_hint(listed, did),
            )
    return Verdict(True, "The list matches what four work-items fetched at three values of k.")


def _sorted(texels) -> list[tuple]:
    # A unary plus refuses what is no number, such as a text
    return sorted((str(matrix), +column, +row) for matrix, column, row in texels)


def _texel_hint(listed: list[tuple], fetched: list[tuple]) -> str:
    """Return the hint on a wrong list of texels; both lists are sorted."""
    if not {matrix for matrix, *_ in listed} <= {"A", "B"}:
        return 'the matrices are "A" and "B", in capitals.'
    if set(listed) == set(fetched):
        return "a texel is listed more than once."
    if len(listed) != len(fetched):
        return (
            f"the device fetched {len(fetched)} texels: 8 numbers of A and 8 of B, four to a texel."
        )
    if [matrix for matrix, *_ in listed] != [matrix for matrix, *_ in fetched]:
        return 'two texels belong to "A" and two to "B".'
    if _sorted((matrix, row, column) for matrix, column, row in listed) == fetched:
        return "column and row are exchanged: both matrices are stored with a row for each k."
    if _sorted(("BA"[matrix == "B"], column, row) for matrix, column, row in listed) == fetched:
        return (
            "A and B are exchanged, or x and y: y counts blocks of rows of C, and those come"
            " from A."
        )
    if {row for *_, row in listed} != {fetched[0][2]}:
        return f"k = {fetched[0][2]} reads row {fetched[0][2]} of both matrices as they are stored."
    return "the columns: a texel holds four numbers, so a block of 8 begins at every second texel."
