"""The launch convention that all GEMM kernels share: how matrices become textures, and scalars and
sizes constants; and the few ways in which conventions differ (``Convention``).

A row-major matrix becomes a texture of 128-bit texels, the most that one fetch reads: four float32
numbers, two float64 or one double-double. cb0 is six elements of four words (``ELEMENTS``); a
kernel declares as many as it reads.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cypresskit.il.bits import ALL

BYTES = {"single": 4, "double": 8, "double-double": 16}  # of a number
MATRICES = {0: "A", 1: "B"}  # by resource

#: What each element of cb0 holds, in words.
ELEMENTS = (
    "x: alpha; y: beta; z: k as a float32 number, not in turns or texels; w: row stride of C in"
    " 128-bit elements, an integer",
    "xy: alpha; zw: beta, as float64",
    "alpha as double-double (high, low)",
    "beta as double-double (high, low)",
    "x: all ones if beta is not 0; y: block columns of C; z: block rows of one matrix (compute"
    " kernels)",
    "x: first element of A in g[]; y: first of B; z: row stride of A; w: of B; integers",
)

# Columns of a transpose copied at a time: lines of the host's cache are written whole, those read
# stay in it.
STRIP = 16


@dataclass(frozen=True)
class Convention:
    """How a GEMM kernel is launched: C = alpha op(A) op(B) + beta C.

    ``block``: rows and columns of C per work-item. ``k_step``: what k must be a multiple of.
    ``trans_a``: A is read as stored k x m (op is the transpose), otherwise m x k; likewise
    ``trans_b``: n x k, otherwise k x n. ``group``: rows and columns of C per workgroup of 64, in
    compute mode.

    ``streams``: through how many output streams C leaves (then the old C comes in as resource 2), 0
    for ``g[]``. ``buffer``: A and B are read from ``g[]`` too, where they follow C. ``texel``:
    bytes of a texel. ``parts``: work-items that share a block, each summing its part of k.
    ``packed``: computes a stack of products in one launch.
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
        """``TN`` where A is taken transposed and B as it is."""
        return "NT"[self.trans_a] + "NT"[self.trans_b]

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of a matrix's numbers; of double-doubles the last axis holds (high,
        low).
        """
        return np.dtype("f4" if self.precision == "single" else "f8")

    @property
    def multiple(self) -> tuple[int, int]:
        """The multiples to which m and n are padded: the work-item's block, or the workgroup's."""
        return self.group or self.block

    @property
    def vector(self) -> bool:
        """Whether it multiplies a matrix with a vector, so that n is 1."""
        return self.multiple[1] == 1 and self.mode == "compute"

    @property
    def turn(self) -> tuple[int, int]:
        """The steps of k in a turn of the main loop, and their flops: two for each product, also of
        double-doubles, however many operations that takes.
        """
        rows, columns = self.block
        steps = self.k_step // self.parts
        return steps, 2 * rows * columns * steps

    def padded(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """m, n, k rounded up to the kernel's multiples."""
        sizes = zip((m, n, k), (*self.multiple, self.k_step), strict=True)
        m, n, k = (-(-size // step) * step for size, step in sizes)
        return m, n, k

    def domain(self, m: int, n: int, count: int = 1) -> tuple[int, ...]:
        """The launch domain of ``count`` products of padded m and n: (width, height), or the number
        of work-items.
        """
        if self.mode == "pixel":
            return n // self.block[1], m // self.block[0]
        return (count * (m // self.block[0]) * (n // self.block[1]) * self.parts,)

    def stored(self, m: int, n: int, k: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """The shapes of A and B as stored."""
        return (k, m) if self.trans_a else (m, k), (n, k) if self.trans_b else (k, n)

    def operands(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """op(A) and op(B), the factors of the product, from matrices as stored, of packed kernels
        with a first axis.
        """
        left = a.swapaxes(-1, -2) if self.trans_a else a
        return left, b.swapaxes(-1, -2) if self.trans_b else b


def padded(stack: np.ndarray, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    """Matrices of ``stack`` (count, rows, columns[, 2]), each in the upper left corner of zeros of
    ``shape``, one below the other. If there is nothing to pad, it is the array itself.
    """
    below = (stack.shape[0] * shape[0], shape[1], *stack.shape[3:])
    if stack.shape[1:3] == shape and stack.flags.c_contiguous and stack.dtype == dtype:
        return stack.reshape(below)
    result = np.zeros((stack.shape[0], *shape, *stack.shape[3:]), dtype)
    rows, columns = stack.shape[1:3]
    # A transpose takes long in one piece: it is copied in strips
    step = STRIP if stack.strides[1] < stack.strides[2] else columns or 1
    for x in range(0, columns, step):
        result[:, :rows, x : min(x + step, columns)] = stack[:, :, x : x + step]
    return result.reshape(below)


def texels(matrix: np.ndarray, size: int = 16) -> np.ndarray:
    """A row-major matrix as texels of ``size`` bytes: (rows, columns / 4, 4) singles, (rows,
    columns / 2, 2) doubles in the usual 16; a double-double matrix (rows, columns, 2) is that
    already.
    """
    count = size // matrix.itemsize
    if matrix.ndim == 3:
        return matrix
    rows, columns = matrix.shape
    return matrix.reshape(rows, columns // count, count)


def scalars(alpha: Any, beta: Any) -> np.ndarray:
    """alpha and beta, numbers or (high, low) pairs, as float64 of shape (2, 2)."""
    pairs = np.zeros((2, 2))
    for row, value in zip(pairs, (alpha, beta), strict=True):
        row[: np.size(value)] = value
    return pairs


def constants(
    scalars: np.ndarray, k: int, stride: int, blocks: tuple[int, int], places: Sequence[int] = ()
) -> Any:
    """cb0, uint32 of shape (6, 4), for the ``scalars``, padded ``k``, the row ``stride`` of C in
    128-bit elements, the number of ``blocks`` of C (down, across), and the ``places`` of cb0[5].
    """
    words = np.zeros((6, 4), np.uint32)
    with np.errstate(over="ignore"):  # kernels in single precision are given no such double
        words[0, :3] = np.array([*scalars[:, 0], k]).astype(np.float32).view(np.uint32)
    words[0, 3] = stride
    words[1] = np.ascontiguousarray(scalars[:, 0]).view(np.uint32)
    words[2:4] = scalars.view(np.uint32)
    words[4, :3] = ALL if scalars[1].any() else 0, blocks[1], blocks[0]
    words[5, : len(places)] = places
    return words


def adds_c(cb0: np.ndarray) -> bool:
    """Whether a launch with this cb0 adds beta C: whether beta is not 0."""
    return bool(cb0[4, 0])
