"""An element of C that a reader follows: the chip, the register block and the life mark it by a
star.
"""

from typing import NamedTuple

from cypresskit.kernels import Kernel

LAST = 255  # row or column: lesson 12 tells the element's life in a product of 256 x 256
STAR = "\N{BLACK STAR}"


class Element(NamedTuple):
    """An element of C; see `follow`."""

    row: int
    column: int

    def __repr__(self) -> str:
        (down, i), (across, j) = (divmod(n, 8) for n in self)
        where = f"work-item ({across}, {down}) computes it, in row {i} and column {j} of its block"
        return f"C[{self.row}, {self.column}]: in 8 x 8 blocks, {where}."


def follow(*place: int | tuple[int, int]) -> Element:
    """The element C[row, column], for the pictures that mark one by a star.

    Both numbers are 0 to 255; they may come as a pair. Raises ``ValueError`` for anything else.

        mine = ck.draw.follow(5, 3)
        ck.draw.chip("sgemm_tn", element=mine)
        ck.draw.register_block("sgemm_tn", element=mine)
        ck.teach.contest.life(mine)
    """
    pair = place[0] if len(place) == 1 and isinstance(place[0], tuple | list) else place
    numbers = [n for n in pair if isinstance(n, int) and not isinstance(n, bool)]
    if len(pair) != 2 or len(numbers) != 2 or not all(0 <= n <= LAST for n in numbers):
        raise ValueError(
            f"C{list(pair)}: give a row and a column from 0 to {LAST}, as in follow(5, 3)"
        )
    return Element(*numbers)


def wavefront_of(
    element: Element | None, kernel: Kernel | None, size: tuple[int, int, int] | None
) -> int | None:
    """The wavefront, in dispatch order, that computes an element in a pixel shader's launch of
    m x n x k; None if that isn't known, or if the product has no such element.
    """
    if element is None or kernel is None or size is None or kernel.mode != "pixel":
        return None
    m, n, _ = size
    if element.row >= m or element.column >= n:
        return None
    down, across = (8 * side for side in kernel.block)
    return element.row // down * -(-n // across) + element.column // across
