"""The card of exercise 3, whose memory is finite and accounted for.

An answer's matrices are here, outside of its process, which requests operations on them (see
``isolated.card``). A matrix takes rows in multiples of 8 and columns in multiples of 64, filled
with zeros: sums run in steps of 4 or 8 numbers, and compute kernels write 64 at once. Left out:
addresses, the room of a transpose, and the time of transfers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from cypresskit.blas.gemm import gemm, precision_of
from cypresskit.devices import Device
from cypresskit.isolated.card import CardMemoryError

ROWS, COLUMNS = 8, 64  # a matrix's sizes on the card are multiples of these
MARK = 1e-9  # how far a number on the card is off, relative


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
    """A card on which an answer computes: what the answer may ask for, done here.

    To each uploaded value it adds a secret random part of some 10^-9, drawn
    for each value. So a result shows whether its numbers came from the card: ``marked`` gives what
    a matrix became there. ``flops`` has the count of each product.
    """

    def __init__(self, device: Device, seed: int) -> None:
        self.device = device
        self.flops: list[int] = []
        self._held: dict[int, OnCard] = {}
        self._made = 0
        self._seed = seed

    def services(self) -> dict[str, Callable]:
        """Return the functions that the answer may call, by name."""
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
        """Return a matrix as it is on the card. Zeros stay zeros, and -x is marked like x."""
        values, places = np.unique(np.abs(matrix), return_inverse=True)
        parts = [np.random.default_rng((self._seed, *key)).random() for key in _keys(values)]
        factors = 1 + MARK * (0.5 + np.array(parts))
        return matrix * factors[places].reshape(matrix.shape)

    def upload(self, array: np.ndarray, name: str) -> tuple:
        """Put a matrix of float32 or float64 on the card. Return its number, name, shape, precision
        and bytes.
        """
        precision = precision_of({"the matrix": array}, (2,))  # refuses what is no matrix
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
        how: dict[str, Any] = {"alpha": alpha, "beta": beta, "device": self.device}
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


def _keys(values: np.ndarray) -> list[tuple[int, ...]]:
    """Return whole numbers in place of the bits of floats."""
    words = np.ascontiguousarray(values, np.float64).view(np.uint32).reshape(-1, 2)
    return [tuple(pair) for pair in words.tolist()]
