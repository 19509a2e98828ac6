"""The card of exercise 3: it has limited memory, and shows whether a result was computed on it.

The student's code runs in a process of its own. It calls the card through ``isolated.card``; the
matrices on the card are here, in the process that judges. A matrix is padded with zeros to
multiples of 8 rows and 64 columns: sums run in steps of 4 or 8 numbers, and compute kernels write
64 at once. Not modeled: addresses, the memory that a transpose needs, and the time of transfers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cypresskit.blas.gemm import gemm, precision_of
from cypresskit.devices import Device
from cypresskit.isolated.card import CardMemoryError

ROWS, COLUMNS = 8, 64  # a matrix's sizes on the card are multiples of these
MARK_SIZE = 1e-9  # the relative size of the marks on values


class OnCard(NamedTuple):
    """A matrix on the card: its name, its values, and its bytes, padding included."""

    name: str
    values: np.ndarray
    bytes: int

    @property
    def precision(self) -> str:
        return precision_of({self.name: self.values}, (2,))

    def __str__(self) -> str:
        rows, columns = self.values.shape
        return f"{self.name}, {rows} x {columns} {self.precision}"


class WatchedCard:
    """The card on which a student's code computes.

    It marks every uploaded double: it multiplies it by 1 + m, where m is a secret random number of
    some 10^-9 that depends on the value. Products of marked matrices differ from products of the
    original ones, so a result shows whether it was computed on the card.

    Parameters
    ----------
    device
        Its ``memory_bytes`` limit the matrices on the card.
    seed
        Of the marks.

    Attributes
    ----------
    flops
        The flops of each product.
    """

    def __init__(self, device: Device, seed: int) -> None:
        self.device = device
        self.flops: list[int] = []
        self._held: dict[int, OnCard] = {}
        self._made = 0
        self._seed = seed

    def services(self) -> dict[str, Callable]:
        """Return the functions that the student's code may call, by name."""
        return {
            "card.upload": self.upload,
            "card.download": lambda number: self._matrix(number).values,
            "card.free": self.free,
            "card.multiply": self.multiply,
            "card.used": lambda: self.used,
            "card.text": lambda: repr(self),
            "card.clear": self._held.clear,
        }

    @property
    def used(self) -> int:
        """Bytes of the card's memory that matrices hold, padding included."""
        return sum(matrix.bytes for matrix in self._held.values())

    def __repr__(self) -> str:
        rows = [f"{matrix.bytes:14,}  {matrix}" for matrix in self._held.values()]
        total = f"{self.used:14,}  bytes of {self.device.memory_bytes:,} on the {self.device.name}"
        return "\n".join([*rows, total])

    def marked(self, matrix: np.ndarray) -> np.ndarray:
        """Return a matrix with its marks. Zeros stay zeros, and -x is marked like x."""
        values, places = np.unique(np.abs(matrix), return_inverse=True)
        parts = [np.random.default_rng((self._seed, *key)).random() for key in _split_bits(values)]
        factors = 1 + MARK_SIZE * (0.5 + np.array(parts))
        return matrix * factors[places].reshape(matrix.shape)

    def upload(self, array: np.ndarray, name: str) -> tuple:
        """Put a matrix of float32 or float64 on the card. Return its number, name, shape, precision
        and bytes.
        """
        precision = precision_of({"the matrix": array}, (2,))  # raises if it isn't a matrix
        return self._hold(self.marked(array) if precision == "double" else array, name)

    def multiply(
        self,
        a: int,
        b: int,
        c: int | None,
        *,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        trans_a: bool = False,
        trans_b: bool = False,
        name: str = "",
    ) -> tuple:
        """Return a new matrix, alpha op(a) op(b) + beta c, like ``ck.gemm``, whose errors it
        raises.
        """
        left, right = self._matrix(a).values, self._matrix(b).values
        third = None if c is None else self._matrix(c).values
        how: dict[str, Any] = {"alpha": alpha, "beta": beta}
        result = gemm(left, right, third, trans_a=trans_a, trans_b=trans_b, **how)
        held = self._hold(result, name)
        self.flops.append(2 * result.size * left.shape[not trans_a])
        return held

    def free(self, number: int) -> None:
        """Give a matrix's memory back."""
        self._matrix(number)
        del self._held[number]

    def _hold(self, values: np.ndarray, name: str) -> tuple:
        """Add a new matrix to the card's memory, or raise ``CardMemoryError``."""
        rows, columns = (
            -(-side // step) * step for side, step in zip(values.shape, (ROWS, COLUMNS))
        )
        self._made += 1
        matrix = OnCard(name or f"matrix {self._made}", values, rows * columns * values.itemsize)
        if self.used + matrix.bytes > self.device.memory_bytes:
            left = self.device.memory_bytes - self.used
            raise CardMemoryError(
                f"{matrix} needs {matrix.bytes:,} bytes; {self.device.name} has {left:,} left. Free"
                f" a matrix, or work in blocks. On the card:\n{self}"
            )
        self._held[self._made] = matrix
        return self._made, matrix.name, values.shape, matrix.precision, matrix.bytes

    def _matrix(self, number: int) -> OnCard:
        if number not in self._held:
            raise ValueError("this matrix is not on the card (any more)")
        return self._held[number]


def _split_bits(values: np.ndarray) -> list[tuple[int, ...]]:
    """Return the bits of each float as two integers, which seed its mark."""
    words = np.ascontiguousarray(values, np.float64).view(np.uint32).reshape(-1, 2)
    return [tuple(pair) for pair in words.tolist()]
