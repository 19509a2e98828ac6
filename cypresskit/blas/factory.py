"""The matrix factory: matrices that stay on the card from one operation to the next (after Ashraf's
OPLib).

    with ck.open(ck.HD5870) as gpu:
        a, b = gpu.upload(x, "a"), gpu.upload(y, "b")
        print(gpu.download(gpu.multiply(a, b, b, beta=1.0)))

The card's memory is finite and accounted for. A matrix takes rows in multiples of 8 and columns in
multiples of 64, filled with zeros: sums run in steps of 4 or 8 numbers, and compute kernels write
64 at a time. It begins at a multiple of 256 numbers, so that a kernel's result can serve as a
texture later. A texture has at most 16384 rows of 16384 texels. Padding counts in ``used`` and is
never part of a result. Left out: addresses, and the time of transfers.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cypresskit.blas.choice import Choice, choose
from cypresskit.blas.dd import DD
from cypresskit.blas.gemm import _precision, gemm, plain, sizes
from cypresskit.devices import HD5870, Device
from cypresskit.kernels.convention import BYTES

ROWS, COLUMNS, START = 8, 64, 256  # a matrix's sizes and its first element are multiples of these


class CardMemoryError(MemoryError):
    """The card has no room for a matrix; the text lists what holds its memory."""


@dataclass(eq=False)
class OnCard:
    """A matrix on the card: its ``name``, ``shape``, ``precision``, and its ``bytes``, padding
    included. Of a product, ``choice`` says which kernel computed it.
    """

    name: str
    shape: tuple[int, int]
    precision: str
    bytes: int
    choice: Choice | None = None
    values: np.ndarray | DD | None = field(default=None, repr=False)  # None once it is freed


class MatrixFactory:
    """A card with empty memory, ``ck.open(device)``, for a ``with`` statement, at whose end its
    memory is given back. ``device`` is a board such as ``ck.HD5870``.
    """

    def __init__(self, device: Device = HD5870):
        if not isinstance(device, Device):
            raise TypeError(f"device is a board such as ck.HD5870, not {type(device).__name__}")
        self.device = device
        self.matrices: list[OnCard] = []
        self._made = 0

    def __enter__(self) -> "MatrixFactory":
        return self

    def __exit__(self, *_: Any) -> None:
        for matrix in self.matrices:
            matrix.values = None
        self.matrices.clear()

    @property
    def used(self) -> int:
        """Bytes of the card's memory that matrices hold, padding included."""
        return sum(matrix.bytes for matrix in self.matrices)

    def __repr__(self) -> str:
        rows = [
            f"{m.bytes:14,}  {m.name}, {m.shape[0]} x {m.shape[1]} {m.precision}"
            for m in self.matrices
        ]
        total = f"{self.used:14,}  bytes of {self.device.memory_bytes:,} on the {self.device.name}"
        return "\n".join([*rows, total])

    def upload(self, array: np.ndarray | DD, name: str = "") -> OnCard:
        """Put a copy of a matrix on the card; float32, float64 or ``DD``."""
        array = plain(array)
        precision = _precision({"the matrix": array}, (2,))  # refuses what is no matrix
        with self._room(array.shape, precision, name) as matrix:
            matrix.values = array.copy() if isinstance(array, np.ndarray) else DD(array)
        return matrix

    def download(self, matrix: OnCard) -> np.ndarray | DD:
        """A copy of the matrix in the host's memory, without its padding."""
        values = self._values(matrix)
        return values.copy() if isinstance(values, np.ndarray) else DD(values)

    def free(self, matrix: OnCard) -> None:
        """Give the matrix's memory back."""
        self._values(matrix)
        matrix.values = None
        self.matrices.remove(matrix)

    def multiply(
        self,
        a: OnCard,
        b: OnCard,
        c: OnCard | None = None,
        *,
        alpha: Any = 1.0,
        beta: Any = 0.0,
        trans_a: bool = False,
        trans_b: bool = False,
        name: str = "",
    ) -> OnCard:
        """A new matrix, alpha op(a) op(b) + beta c, as of ``ck.gemm``. A matrix that the kernel
        wants transposed takes room twice while it runs. Raises ``gemm``'s errors, and
        ``CardMemoryError`` where there is no room.
        """
        values: list[Any] = [None if x is None else self._values(x) for x in (a, b, c)]
        m, n, k = sizes(a.shape, b.shape, trans_a, trans_b)
        how: dict[str, Any] = {"trans_a": trans_a, "trans_b": trans_b, "device": self.device}
        choice = choose(m, n, k, a.precision, **how)
        how |= {"alpha": alpha, "beta": beta, "kernel": choice.kernel}
        with self._room((m, n), a.precision, name) as result, ExitStack() as turned:
            for matrix in ({"a": a, "b": b}[which] for which in choice.transposed):
                what = f"transpose of {matrix.name} for {choice.kernel.name}"
                turned.enter_context(self._room(matrix.shape[::-1], matrix.precision, what))
            result.values = gemm(*values, **how)
        result.choice = choice
        return result

    def _values(self, matrix: OnCard) -> np.ndarray | DD:
        if not isinstance(matrix, OnCard):
            raise TypeError(
                f"this takes a matrix on the card, not {type(matrix).__name__}: upload it first"
            )
        if not any(matrix is held for held in self.matrices) or matrix.values is None:
            raise ValueError(f"{matrix.name} is not on this card (any more)")
        return matrix.values

    @contextmanager
    def _room(self, shape: tuple[int, ...], precision: str, name: str) -> Iterator[OnCard]:
        """Account for a new matrix, or raise ``CardMemoryError``. Its room is given back if it gets
        no values.
        """
        size = BYTES[precision]
        rows, columns = (
            -(-side // step) * step for side, step in zip(shape, (ROWS, COLUMNS), strict=True)
        )
        most = self.device.texture_side
        if rows > most or columns * size > most * 16:
            holds = f"it has at most {most} rows of {most * 16 // size} {precision} numbers"
            raise ValueError(
                f"a matrix of {shape[0]} x {shape[1]} is too large for a texture: {holds}"
            )
        self._made += not name
        needed = -(-rows * columns // START) * START * size
        matrix = OnCard(name or f"matrix {self._made}", (shape[0], shape[1]), precision, needed)
        if self.used + needed > self.device.memory_bytes:
            raise CardMemoryError(
                f"{matrix.name} ({shape[0]} x {shape[1]} {precision}) needs {needed:,} bytes;"
                f" {self.device.name} has {self.device.memory_bytes - self.used:,} left. Free a"
                f" matrix, or work in blocks. On the card:\n{self}"
            )
        self.matrices.append(matrix)
        try:
            yield matrix
        finally:
            if matrix.values is None:
                self.matrices.remove(matrix)
