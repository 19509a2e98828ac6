"""The catalogue: every kernel of the workbook, what it computes, and how it is launched.

A kernel is a plain ``.il`` file beside this module plus a ``Kernel`` that says what its arrays look like. The launch
convention is the same for all GEMM kernels and is written at the top of each file: resource 0 is A, resource 1 is B,
``g[]`` is C, and five constant elements carry alpha, beta, k and the row stride of C.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.resources import files

import numpy as np

from cypresskit.il import Program, assemble
from cypresskit.kernels.convention import constants, padded, texels

PRECISIONS: dict[str, np.dtype] = {
    "single": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "double-double": np.dtype(np.float64),  # in pairs: the last axis of a matrix holds (high, low)
}


@dataclass(frozen=True)
class Kernel:
    """A GEMM kernel: C = alpha op(A) op(B) + beta C.

    ``trans_a``: A is read as stored k x m (op is the transpose), otherwise m x k; likewise ``trans_b``: n x k,
    otherwise k x n. ``block``: rows and columns of C per work-item. ``k_step``: what k must be a multiple of, the
    steps of k in one turn of the loop. ``group_tile``: rows and columns of C per workgroup, 0 in pixel mode.
    ``teaches``: why a student reads it.
    """

    name: str
    precision: str
    mode: str
    block: tuple[int, int]
    k_step: int
    teaches: str
    trans_a: bool = False
    trans_b: bool = False
    group_tile: int = 0

    @property
    def text(self) -> str:
        """The kernel's IL."""
        return files("cypresskit.kernels").joinpath(f"{self.name}.il").read_text()

    @cached_property
    def program(self) -> Program:
        """The assembled kernel."""
        return assemble(self.text, f"{self.name}.il")

    @property
    def dtype(self) -> np.dtype:
        """The numpy type of a matrix element."""
        return PRECISIONS[self.precision]

    @property
    def tile(self) -> tuple[int, int]:
        """What m and n are padded to: the work-item's block, or the workgroup's."""
        return (self.group_tile, self.group_tile) if self.group_tile else self.block

    def padded(self, m: int, n: int, k: int) -> tuple[int, int, int]:
        """m, n, k rounded up to what the kernel needs."""
        sizes = zip((m, n, k), (*self.tile, self.k_step), strict=True)
        m, n, k = (-(-size // step) * step for size, step in sizes)
        return m, n, k

    def domain(self, m: int, n: int) -> tuple[int, ...]:
        """The launch domain for padded m and n: (width, height), or a number of work-items."""
        if self.mode == "pixel":
            return n // self.block[1], m // self.block[0]
        return (m // self.block[0] * (n // self.block[1]),)

    def arguments(self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha, beta) -> dict:
        """Arguments of ``ck.launch`` for matrices as stored: A is (k, m) if ``trans_a`` else (m, k), B is (n, k) if
        ``trans_b`` else (k, n), C is (m, n) or None where beta is 0. Double-double matrices have a third axis (high,
        low), and alpha and beta may be such pairs.

        Returns a dict with ``domain``, ``inputs``, ``constants`` and a fresh ``global_memory`` of shape (padded m,
        padded n), whose corner [:m, :n] is the result.
        """
        m, k = a.shape[1::-1] if self.trans_a else a.shape[:2]
        n = b.shape[0] if self.trans_b else b.shape[1]
        big_m, big_n, big_k = self.padded(m, n, k)
        memory = np.zeros((big_m, big_n, *a.shape[2:]), self.dtype)
        if c is not None and np.any(beta):
            memory[:m, :n] = c
        shapes = [
            (big_k, big_m) if self.trans_a else (big_m, big_k),
            (big_n, big_k) if self.trans_b else (big_k, big_n),
        ]
        matrices = [padded(matrix, shape, self.dtype) for matrix, shape in zip((a, b), shapes, strict=True)]
        return {
            "domain": self.domain(big_m, big_n),
            "inputs": {number: texels(matrix) for number, matrix in enumerate(matrices)},
            "constants": {0: constants(alpha, beta, big_k, big_n, memory.nbytes // big_m // 16)},
            "global_memory": memory,
        }


class Catalogue(Mapping[str, Kernel]):
    """Kernels by name: ``ck.kernels["sgemm_tn"]``, ``for name in ck.kernels``."""

    def __init__(self, kernels: list[Kernel]):
        self._kernels = {kernel.name: kernel for kernel in kernels}

    def __getitem__(self, name: str) -> Kernel:
        try:
            return self._kernels[name]
        except KeyError:
            raise KeyError(f"no kernel {name!r}; the catalogue has {', '.join(self._kernels)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._kernels)

    def __len__(self) -> int:
        return len(self._kernels)

    def __repr__(self) -> str:
        rows = (
            f"{k.name:16} {k.precision:13} {k.mode:8} {k.block[0]} x {k.block[1]}  {k.teaches}" for k in self.values()
        )
        return "\n".join(rows)


KERNELS = Catalogue(
    [
        Kernel("sgemm_tn", "single", "pixel", (8, 8), 2, "the 8 x 8 register block fed by the texture cache", True),
        Kernel("sgemm_nn", "single", "pixel", (8, 8), 4, "the same block where A's columns lie across texels"),
        Kernel("sgemm_tn_37", "single", "pixel", (8, 8), 2, "the same work in more registers: fewer wavefronts", True),
        Kernel("dgemm_tn", "double", "pixel", (4, 4), 4, "doubles take two or four slots of a bundle", True),
        Kernel("dgemm_nn", "double", "pixel", (4, 4), 4, "a quad's two rows of A lie in two cache lines"),
        Kernel("ddgemm_tn_fma", "double-double", "pixel", (2, 2), 1, "twice the digits from pairs of doubles", True),
        Kernel("ddgemm_tn_nofma", "double-double", "pixel", (2, 2), 1, "what the fused multiply-add saves", True),
        Kernel("sgemm_64x64", "single", "compute", (8, 8), 4, "a workgroup per 64 x 64 block", group_tile=64),
        Kernel("sgemm_64x64_lds", "single", "compute", (8, 8), 4, "A transposed through LDS", group_tile=64),
    ]
)
