"""Lesson 10's card, on which an answer multiplies.

Its memory is limited. A matrix is padded with zeros to multiples of 8 rows and 64 columns: sums run
in steps of 4 or 8 numbers, and compute kernels write 64 at once. Products are numpy's. Not modeled:
addresses, and the time of transfers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

ROWS, COLUMNS = 8, 64  # a matrix's sizes on the card are multiples of these


class CardMemoryError(Exception):
    """The card has no memory left for a matrix. The message lists the matrices in its memory."""


@dataclass(frozen=True, eq=False)
class CardMatrix:
    """A matrix on the card: its name, its numbers, and its bytes, padding included."""

    name: str
    numbers: np.ndarray
    bytes: int

    def __repr__(self) -> str:
        rows, columns = self.numbers.shape
        return f"{self.name}, {rows} x {columns} {self.numbers.dtype}"

    def __array__(self, *_, **__):
        raise TypeError(f"{self}, is on the card: download it first")


class Card:
    """A card with ``memory`` bytes.

    Attributes
    ----------
    flops
        The flops of each product.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.flops: list[int] = []
        self._held: list[CardMatrix] = []
        self._made = 0

    @property
    def used(self) -> int:
        """Bytes of the memory that matrices hold, padding included."""
        return sum(matrix.bytes for matrix in self._held)

    def __repr__(self) -> str:
        rows = [f"{matrix.bytes:14,}  {matrix}" for matrix in self._held]
        return "\n".join([*rows, f"{self.used:14,}  bytes of {self.memory:,} on the card"])

    def upload(self, array: Any) -> CardMatrix:
        """Put a matrix on the card."""
        numbers = np.array(array, float)
        if numbers.ndim != 2:
            raise ValueError(f"the card holds matrices, not an array of shape {numbers.shape}")
        return self._hold(numbers)

    def multiply(self, a: CardMatrix, b: CardMatrix) -> CardMatrix:
        """Return a new matrix, the product of two."""
        left, right = (self._numbers(matrix) for matrix in (a, b))
        (rows, inner), (lines, columns) = left.shape, right.shape
        if inner != lines:
            raise ValueError(
                f"{rows} x {inner} times {lines} x {columns} is no product: a needs as many columns"
                " as b has rows"
            )
        held = self._hold(left @ right)
        self.flops.append(2 * held.numbers.size * left.shape[1])
        return held

    def download(self, matrix: CardMatrix) -> np.ndarray:
        """Return a matrix as an array."""
        return self._numbers(matrix).copy()

    def free(self, matrix: CardMatrix) -> None:
        """Give a matrix's memory back."""
        self._numbers(matrix)
        self._held.remove(matrix)

    def _hold(self, numbers: np.ndarray) -> CardMatrix:
        """Add a new matrix to the card's memory, or raise ``CardMemoryError``."""
        rows, columns = (
            -(-side // step) * step for side, step in zip(numbers.shape, (ROWS, COLUMNS))
        )
        self._made += 1
        size = rows * columns * numbers.itemsize
        matrix = CardMatrix(f"matrix {self._made}", numbers, size)
        left = self.memory - self.used
        if size > left:
            raise CardMemoryError(
                f"the card is full: {matrix} needs {size:,} bytes, and {left:,} are left. Free a"
                f" matrix, or work in blocks. On the card:\n{self}"
            )
        self._held.append(matrix)
        return matrix

    def _numbers(self, matrix: CardMatrix) -> np.ndarray:
        if not isinstance(matrix, CardMatrix):
            raise TypeError(
                f"this needs a matrix on the card, not {type(matrix).__name__}: upload it first"
            )
        if matrix not in self._held:
            raise ValueError(f"{matrix} is not on the card any more")
        return matrix.numbers


def run_on_card(product: Callable, a: np.ndarray, b: np.ndarray, block: int, memory: int) -> tuple:
    """Return what ``product(card, a, b, block)`` returns, the flops of each of the card's products,
    the bytes that are still in use, and what holds them.
    """
    card = Card(memory)
    c = product(card, a, b, block)
    return c, card.flops, card.used, repr(card)
