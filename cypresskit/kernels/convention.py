"""Define the launch convention of GEMM kernels: matrices as textures, scalars and sizes as
constants.

A row-major matrix becomes a texture of 128-bit texels, the most that one fetch reads: four float32
numbers, two float64 or one double-double. Scalars and sizes are in constant buffer cb0, which has
six elements of four words (``ELEMENTS``); a kernel declares as many as it reads. ``Convention``
states how kernels differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from cypresskit.il import Instruction
from cypresskit.il.bits import ALL

BYTES = {"single": 4, "double": 8, "double-double": 16}  # per element
MATRICES = {0: "A", 1: "B"}  # by resource
OLD_C = 2  # its resource, if C is written to output streams
BETA_FLAG = 4  # the element of cb0 that tells whether beta isn't 0

#: What each element of cb0 holds, in words.
ELEMENTS = (
    "x: alpha; y: beta; z: k as a float32 number, not in iterations or texels; w: row stride of C"
    " in 128-bit elements, an integer",
    "xy: alpha; zw: beta, as float64",
    "alpha as double-double (high, low)",
    "beta as double-double (high, low)",
    "x: all ones if beta is not 0; y: block columns of C; z: block rows of one matrix (compute"
    " kernels)",
    "x: first element of A in g[]; y: first of B; z: row stride of A; w: of B; integers",
)


@dataclass(frozen=True)
class Convention:
    """How a GEMM kernel is launched: C = alpha op(A) op(B) + beta C.

    Attributes
    ----------
    precision, mode
        "single", "double" or "double-double"; "pixel" or "compute".
    block
        Rows and columns of C per work-item.
    k_step
        k must be a multiple of it.
    trans_a, trans_b
        Whether A is stored as k x m, and B as n x k.
    group
        In compute mode: rows and columns of C per workgroup of 64.
    streams
        Number of output streams for C (the old C is then resource 2); 0 if C is in ``g[]``.
    buffer
        Whether A and B are also in ``g[]``, after C.
    texel
        Bytes per texel.
    parts
        Work-items that share a block, each summing its part of k.
    packed
        Whether one launch computes several products.
    """

    precision: str = "single"
    mode: str = "pixel"
    block: tuple[int, int] = (1, 1)
    k_step: int = 1
    trans_a: bool = False
    trans_b: bool = False
    group: tuple[int, int] | None = None
    streams: int = 0
    buffer: bool = False
    texel: int = 16
    parts: int = 1
    packed: bool = False

    @property
    def transposes(self) -> str:
        """The BLAS letters of A and B: ``TN`` if A is stored transposed and B isn't."""
        return "NT"[self.trans_a] + "NT"[self.trans_b]

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of a matrix element. Double-doubles have a last axis (high, low)."""
        return np.dtype("f4" if self.precision == "single" else "f8")

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and columns of C per workgroup; in pixel mode, per work-item."""
        return self.group or self.block

    @property
    def multiple(self) -> tuple[int, int]:
        """The multiples to which m and n are padded: whole tiles and, in ``g[]``, rows of C of
        whole elements. A vector has only one row there.
        """
        rows, columns = self.tile
        if self.streams:
            return rows, columns
        held = 16 // BYTES[self.precision]
        return (lcm(rows, held), columns) if self.is_vector else (rows, lcm(columns, held))

    @property
    def names(self) -> dict[Any, str]:
        """The matrix in each resource, and in ``g[]``; none if ``g[]`` holds all of them."""
        return {} if self.buffer else MATRICES | {OLD_C if self.streams else "g": "C"}

    def reads(self, i: Instruction, matrix: str) -> bool:
        """Return whether an instruction reads a matrix, wherever."""
        if i.op.kind == "fetch":
            return self.names.get(i.controls.resource) == matrix
        in_memory = self.names.get("g") == matrix
        return in_memory and any(source.register.kind == "g" for source in i.sources)

    def k_axis(self, matrix: str) -> int | None:
        """Return which coordinate of a matrix, as it is stored, is k: 0, the column, or 1, the row;
        of C None.
        """
        return {"A": int(self.trans_a), "B": int(not self.trans_b)}.get(matrix)

    @property
    def is_vector(self) -> bool:
        """Whether it multiplies a matrix by a vector, so that n is 1."""
        return self.tile[1] == 1 and self.mode == "compute"

    @property
    def per_iteration(self) -> tuple[int, int]:
        """The values of k, and the flops, of an iteration of the main loop.

        A multiply-add counts as two flops, also of double-doubles.
        """
        rows, columns = self.block
        steps = self.k_step // self.parts
        return steps, 2 * rows * columns * steps

    def padded(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """Return m, n, k rounded up to the kernel's multiples."""
        sizes = zip((m, n, k), (*self.multiple, self.k_step), strict=True)
        m, n, k = (-(-int(size) // step) * step for size, step in sizes)
        return m, n, k

    def domain(self, m: int, n: int, count: int = 1) -> tuple[int, ...]:
        """Return the launch domain of ``count`` products with padded m and n.

        In pixel mode (width, height), in compute mode the number of work-items.
        """
        if self.mode == "pixel":
            return n // self.block[1], m // self.block[0]
        return (count * (m // self.block[0]) * (n // self.block[1]) * self.parts,)

    def stored(self, m: int, n: int, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the shapes of A and B as stored."""
        return (k, m) if self.trans_a else (m, k), (n, k) if self.trans_b else (k, n)

    def operands(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return op(A) and op(B) from stored matrices, which may have a first axis of matrices."""
        left = a.swapaxes(-1, -2) if self.trans_a else a
        return left, b.swapaxes(-1, -2) if self.trans_b else b


def pad_matrices(stack: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return matrices padded with zeros, one below the other.

    Parameters
    ----------
    stack
        The matrices, (count, rows, columns[, 2]).
    shape
        Rows and columns of a padded matrix.

    Returns
    -------
    ndarray
        (count * rows, columns[, 2]).
    """
    rows, columns = stack.shape[1:3]
    result = stack
    if (rows, columns) != shape:
        result = np.zeros((stack.shape[0], *shape, *stack.shape[3:]), stack.dtype)
        result[:, :rows, :columns] = stack
    return result.reshape(len(stack) * shape[0], *result.shape[2:])


def to_texels(matrix: np.ndarray, size: int) -> np.ndarray:
    """Return a row-major matrix as texels of ``size`` bytes.

    With 16 bytes: (rows, columns / 4, 4) single, (rows, columns / 2, 2) double. A double-double
    matrix (rows, columns, 2) is returned as it is.
    """
    count = size // matrix.itemsize
    if matrix.ndim == 3:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(rows, columns // count, count)


def to_scalars(alpha: Any, beta: Any) -> np.ndarray:
    """Return alpha and beta, numbers or (high, low) pairs, as float64 of shape (2, 2)."""
    pairs = np.zeros((2, 2))
    for row, value in zip(pairs, (alpha, beta), strict=True):
        row[: np.size(value)] = value
    return pairs


def pack_constants(
    scalars: np.ndarray, k: int, stride: int, blocks: tuple[int, int], places: Sequence[int]
) -> Any:
    """Return cb0, uint32 of shape (6, 4).

    Parameters
    ----------
    scalars
        alpha and beta, as ``to_scalars`` returns them.
    k
        The padded k.
    stride
        The row stride of C in 128-bit elements.
    blocks
        The number of blocks of C (down, across).
    places
        The four words of cb0[5].
    """
    words = np.zeros((6, 4), np.uint32)
    with np.errstate(over="ignore"):  # a double beyond float32 is only passed to other kernels
        words[0, :3] = np.array([*scalars[:, 0], k]).astype(np.float32).view(np.uint32)
    words[0, 3] = stride
    words[1] = np.ascontiguousarray(scalars[:, 0]).view(np.uint32)
    words[2:4] = scalars.view(np.uint32)
    words[BETA_FLAG, :3] = ALL if scalars[1].any() else 0, blocks[1], blocks[0]
    words[5] = places
    return words


def _find_words_of(alpha: Any, beta: Any) -> set[tuple[int, int]]:
    """Return the elements and components of cb0 that depend on scalars that aren't 0."""
    words = pack_constants(to_scalars(alpha, beta), 0, 0, (0, 0), (0, 0, 0, 0))
    return {(int(element), int(component)) for element, component in np.argwhere(words)}


NOT_ZERO = 0.1, 1e-20  # the high and low part of a number: in any precision no word of it is 0
ALPHA, BETA = _find_words_of(NOT_ZERO, 0), _find_words_of(0, NOT_ZERO)
