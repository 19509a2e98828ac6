"""Provide the simulated card to an answer, from outside of its process.

``ck.gemm``, and the card that an exercise passes, send requests to the outer process. It runs the
simulated card and records the requests, so an answer can't fake a computation on the card.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from cypresskit.isolated.plain import Other


class CardMemoryError(MemoryError):
    """The card has no memory left for a matrix. The message lists the matrices in its memory."""


ERRORS: dict[str, type[Exception]] = {
    "CardMemoryError": CardMemoryError,
    "KeyError": KeyError,
    "TypeError": TypeError,
    "ValueError": ValueError,
}
HANDLE = Other("card")  # represents the card among an answer's arguments

Ask = Callable[..., Any]


class Matrix:
    """A matrix on the card: its ``name``, ``shape``, ``precision`` and ``bytes``."""

    def __init__(self, number: int, name: str, shape: tuple, precision: str, size: int) -> None:
        self._number = number
        self.name, self.shape, self.precision, self.bytes = name, shape, precision, size

    def __repr__(self) -> str:
        return f"{self.name}, {self.shape[0]} x {self.shape[1]} {self.precision}"


class CardOutside:
    """A card whose matrices and products are in the outer process."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def __enter__(self) -> "CardOutside":
        return self

    def __exit__(self, *_: Any) -> None:
        self._ask("card.clear")

    @property
    def used(self) -> int:
        return self._ask("card.used")

    def __repr__(self) -> str:
        return self._ask("card.text")

    def upload(self, array: Any, name: str = "") -> Matrix:
        return Matrix(*self._ask("card.upload", np.asarray(array), str(name)))

    def download(self, matrix: Matrix) -> np.ndarray:
        return self._ask("card.download", number(matrix))

    def free(self, matrix: Matrix) -> None:
        self._ask("card.free", number(matrix))

    def multiply(self, a: Matrix, b: Matrix, c: Matrix | None = None, **options: Any) -> Matrix:
        third = None if c is None else number(c)
        return Matrix(*self._ask("card.multiply", number(a), number(b), third, **options))


def number(matrix: Any) -> int:
    if not isinstance(matrix, Matrix):
        raise TypeError(
            f"this needs a matrix on the card, not {type(matrix).__name__}: upload it first"
        )
    return matrix._number


def install(ask: Ask) -> None:
    """Replace ``ck.gemm`` by requests to the outer process."""

    def gemm(a: Any, b: Any, c: Any = None, **options: Any) -> Any:
        third = None if c is None else np.asarray(c)
        return ask("gemm", np.asarray(a), np.asarray(b), third, **options)

    face: Any = sys.modules["cypresskit"]
    face.gemm = gemm
