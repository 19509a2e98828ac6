"""The paper's figure 6: which texels a work-item needs for its first rank-1 updates, in NN and TN.

From the recorded fetches of one work-item in one iteration. A value of k is one update: a column of
A's block times a row of B's.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.samples import record_traffic

SIDE = 34  # pixels of a number
TOP, WIDTH = 62, 1000  # pixels
PANELS = (40, 540)  # the left edges
GAP = 60  # pixels between A and B
TINTS = [*theme.SERIES, "rgba(128,128,128,0.16)"]
NOTHING = len(theme.SERIES)


class FetchedNumber(NamedTuple):
    """A number that is fetched: its matrix, row and column there, its value of k, its texel."""

    matrix: str
    row: int
    column: int
    k: int
    texel: int


def first_updates() -> Player:
    """Return a player of the first updates of work-item 0 in ``dgemm_nn`` and ``dgemm_tn``: the
    texels fetched so far, and the numbers that are used.
    """
    kernels = KERNELS["dgemm_nn"], KERNELS["dgemm_tn"]
    fetched = [_words(kernel) for kernel in kernels]
    frames = kernels[0].k_step
    sheet = Sheet("The numbers that an update needs: " + " and ".join(k.name for k in kernels))
    sheet.stage(sheet.title, WIDTH, TOP + 4 * SIDE + 30)
    captions = [f"Update {n + 1}." for n in range(frames)]
    for kernel, words, left in zip(kernels, fetched, PANELS):
        _draw(sheet, kernel, words, left, frames)
        for n in range(frames):
            texels = {w.texel for w in words if w.k <= n}
            used = sum(w.k <= n for w in words)
            captions[n] += (
                f" **{kernel.name}** needs {len(texels)} texels, {2 * len(texels)} numbers, and has"
                f" used {used} of them."
            )
    legend = sheet.legend(
        ("used in this update", "ink", "ring"), ("not needed yet", TINTS[-1], "box")
    )
    return sheet.player(captions, step="Update", below=[legend])


def _words(kernel: Kernel) -> list[FetchedNumber]:
    """Return the numbers that work-item 0 fetches in an iteration."""
    words = []
    for texel, access in enumerate(record_traffic(kernel, 32, kernel.k_step).accesses):
        assert access.x is not None and access.y is not None
        matrix = "AB"[access.resource]
        row = int(access.y[0])
        for column in (2 * int(access.x[0]), 2 * int(access.x[0]) + 1):
            by_row = matrix == "B" or kernel.trans_a
            words.append(FetchedNumber(matrix, row, column, row if by_row else column, texel))
    return words


def _draw(
    sheet: Sheet, kernel: Kernel, words: Sequence[FetchedNumber], left: float, frames: int
) -> None:
    """Draw the numbers of A and B as they are stored, those of a texel in one color."""
    sheet.text(left, TOP - 44, kernel.name, bold=True, size=15)
    for matrix, start in (("A", left), ("B", left + 4 * SIDE + GAP)):
        mine = [w for w in words if w.matrix == matrix]
        stored = " transposed" if matrix == "A" and kernel.trans_a else ""
        sheet.text(start, TOP - 16, f"{matrix}{stored}", size=14)
        x = np.array([start + (w.column + 0.5) * SIDE for w in mine])
        y = np.array([TOP + (w.row + 0.5) * SIDE for w in mine])
        first = {t: min(w.k for w in mine if w.texel == t) for t in {w.texel for w in mine}}
        order = sorted(first)
        shade = np.array(
            [
                [order.index(w.texel) if first[w.texel] <= n else NOTHING for w in mine]
                for n in range(frames)
            ]
        )
        text = [f"{matrix}: row {w.row}, column {w.column}, used for k = {w.k}" for w in mine]
        sheet.boxes(
            f"{kernel.name} {matrix}",
            x,
            y,
            SIDE - 2,
            SIDE - 2,
            fill=(TINTS, shade),
            words=text,
        )
        used = np.array([[w.k == n for w in mine] for n in range(frames)])
        across, down = (np.where(used, place, np.nan) for place in (x, y))
        ring = f"used {kernel.name} {matrix}"
        sheet.boxes(ring, across, down, SIDE - 8, SIDE - 8, line="ink", alpha=0)
