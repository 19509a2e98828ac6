"""List every kernel of the workbook: what it computes, and how it is launched.

A kernel is an ``.il`` file in this folder plus a row of ``catalogue.json``, which says what it
teaches. The first line of the file states how it is launched (``statement``). Resource 0 is A,
resource 1 is B, ``g[]`` is C; some kernels write C to output streams, or read all from ``g[]``. A
product of matrix and vector is a GEMM with one column, so one test suite covers all.
"""

import json
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from importlib.resources import files
from operator import index
from typing import Any

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.il import Program, assemble
from cypresskit.il.errors import ArgumentError, did_you_mean, shorten
from cypresskit.kernels.convention import (
    BYTES,
    Convention,
    pack_constants,
    pad_matrices,
    to_scalars,
    to_texels,
)
from cypresskit.kernels.statement import read_statement
from cypresskit.machine.shape import Extent, LaunchShape
from cypresskit.tables import table

PLAINEST = Convention()  # the default

#: Each source is assembled once, even if it is used with several conventions.
assembled = lru_cache(maxsize=64)(assemble)


@dataclass(frozen=True, repr=False)
class Kernel:
    """A GEMM kernel.

    Attributes
    ----------
    name
        Its name.
    text
        Its IL source.
    convention
        How it is launched.
    teaches
        Why a student reads it.
    given
        The assembled program, if the kernel was made from one.
    """

    name: str
    text: str
    convention: Convention = PLAINEST
    teaches: str = ""
    given: Program | None = None

    def __repr__(self) -> str:
        """Return the name, the convention where it isn't the default, and the source's length."""
        values = ((field, getattr(self.convention, field.name)) for field in fields(Convention))
        unusual = "".join(f", {f.name}={value!r}" for f, value in values if value != f.default)
        return f"Kernel({self.name!r}{unusual}; {len(self.text.splitlines())} lines of IL)"

    @cached_property
    def program(self) -> Program:
        """The assembled kernel."""
        return self.given or assembled(self.text, f"{self.name}.il")

    @property
    def precision(self) -> str:
        """``"single"``, ``"double"`` or ``"double-double"``."""
        return self.convention.precision

    @property
    def mode(self) -> str:
        """``"pixel"`` or ``"compute"``."""
        return self.convention.mode

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of C that a work-item computes."""
        return self.convention.block

    @property
    def k_step(self) -> int:
        """The number of which k must be a multiple."""
        return self.convention.k_step

    @property
    def trans_a(self) -> bool:
        """Whether A is stored as k x m instead of m x k."""
        return self.convention.trans_a

    @property
    def trans_b(self) -> bool:
        """Whether B is stored as n x k instead of k x n."""
        return self.convention.trans_b

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of a matrix element."""
        return self.convention.dtype

    @property
    def is_vector(self) -> bool:
        """Whether it multiplies a matrix by a vector, so that n is 1."""
        return self.convention.is_vector

    def shape(
        self, m: int, n: int, k: int, alpha: float = 1.0, beta: float = 0.0, count: int = 1
    ) -> LaunchShape:
        """Return the shape of a launch: everything but the arrays.

        Parameters
        ----------
        m, n, k
            Size of the product.
        alpha, beta
            Its scalars.
        count
            Number of products.

        Raises
        ------
        ValueError
            If the kernel multiplies by a vector and n is more than 1, or if it isn't packed and
            ``count`` is more than 1.
        """
        if count != 1 and not self.convention.packed:
            raise ValueError(
                f"{self.name} computes one product per launch, not {count}: take a packed kernel"
            )
        if self.is_vector and n > 1:
            raise ValueError(
                f"the kernel {self.name} multiplies a matrix by one vector; there are {n} columns"
            )
        how = self.convention
        m, n, k = how.padded(m, n, k)
        count = index(count)  # numpy's integers would wrap
        a, b = how.stored(m, n, k)
        size = BYTES[self.precision]
        x, y, z = (*how.domain(m, n, count), 1, 1)[:3]
        textures = {}
        outputs = {}
        places = (0, 0, 0, 0)
        if how.buffer:
            per = 16 // size
            places = (m * n // per, (m * n + m * k) // per, a[1] // per, b[1] // per)
        else:
            for i, (rows, columns) in enumerate([a, b, (m, n)][: 3 if how.streams else 2]):
                textures[i] = Extent(columns * size // how.texel, count * rows, how.texel)
            outputs = dict.fromkeys(range(how.streams), Extent(x, y, how.texel))
        blocks = m // how.tile[0], n // how.tile[1]
        cb0 = pack_constants(to_scalars(alpha, beta), k, n * size // 16, blocks, places)
        return LaunchShape(self.program, (x, y, z), textures, {0: cb0}, outputs)

    def arguments(
        self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None, alpha: Any, beta: Any
    ) -> dict[str, Any]:
        """Return keyword arguments of ``ck.launch``.

        Parameters
        ----------
        a
            (k, m) if ``trans_a``, else (m, k). Double-double matrices have a last axis (high, low),
            and packed kernels take a first axis of matrices.
        b
            (n, k) if ``trans_b``, else (k, n).
        c
            (m, n), or None if beta is 0.
        alpha, beta
            Numbers, or for double-doubles (high, low) pairs.

        Returns
        -------
        dict
            ``domain``, ``inputs``, ``constants``, ``max_instructions``, and new arrays for the
            results, which ``result`` reads.

        Raises
        ------
        ValueError
            If the shapes don't match, or a vector has more than one column.
        TypeError
            If a matrix isn't of the kernel's dtype.
        """
        how = self.convention
        for name, matrix in (("A", a), ("B", b), ("C", c)):
            if matrix is not None and matrix.dtype != self.dtype:
                raise TypeError(f"{name} has dtype {matrix.dtype}: {self.name} takes {self.dtype}")
        a, b = (x if how.packed and x.ndim == 3 else x[np.newaxis] for x in (a, b))
        pair = a.shape[3:]
        count = len(a)
        m, k = a.shape[2:0:-1] if self.trans_a else a.shape[1:3]
        inner, n = b.shape[2:0:-1] if self.trans_b else b.shape[1:3]
        if inner != k:
            stored = (
                f"A as {'k x m' if self.trans_a else 'm x k'} and B as"
                f" {'n x k' if self.trans_b else 'k x n'}"
            )
            sizes = " and ".join(f"{x.shape[1]} x {x.shape[2]}" for x in (a, b))
            raise ValueError(
                f"{self.name} takes {stored}; found {sizes}: k is {k} in A and {inner} in B"
            )
        shape = self.shape(m, n, k, alpha, beta, count)
        domain = shape.domain[: 2 if self.mode == "pixel" else 1]
        given: dict[str, Any] = {"domain": domain, "constants": shape.constants}
        given["max_instructions"] = self.max_instructions(k)
        big_m, big_n, big_k = how.padded(m, n, k)
        stored_a, stored_b = how.stored(big_m, big_n, big_k)
        old = np.zeros((count, big_m, big_n, *pair), self.dtype)
        if c is not None:
            old[:, :m, :n] = c
        old = old.reshape(-1, *old.shape[2:])
        matrices = [pad_matrices(a, stored_a), pad_matrices(b, stored_b)]
        if how.buffer:
            memory = np.concatenate([x.reshape(-1) for x in (old, *matrices)])
            return given | {"inputs": {}, "global_memory": memory}
        if how.streams:
            size = (*shape.domain[1::-1], how.texel // self.dtype.itemsize)
            given["outputs"] = {i: np.zeros(size, self.dtype) for i in range(how.streams)}
            matrices.append(old)
        else:
            given["global_memory"] = old
        given["inputs"] = {i: to_texels(matrix, how.texel) for i, matrix in enumerate(matrices)}
        return given

    def check_memory(
        self, size: tuple[int, int, int], count: int = 1, device: Device = HD5870
    ) -> None:
        """Raise ``ArgumentError`` if the matrices of products of a size (m, n, k) don't fit into a
        board's memory.
        """
        m, n, k = self.convention.padded(*size)
        needed = count * (m * k + k * n + m * n) * BYTES[self.precision]
        if needed > device.memory_bytes:
            raise ArgumentError(
                f"the matrices of {self.name} take {needed / 1e6:,.0f} MB, and the {device.name}"
                f" has {device.memory_bytes / 1e6:,.0f} MB: ck.gemm_out_of_core multiplies what"
                " doesn't fit (lesson 10)"
            )

    def max_instructions(self, k: int) -> int:
        """Return an upper bound of the instructions that a work-item executes for ``k`` products.

        Each iteration of a loop adds at least one product, and is at most as long as the kernel. A
        work-item that executes more is in an infinite loop.
        """
        _, _, iterations = self.convention.padded(1, 1, k)
        return 1 + len(self.program.body) * (iterations + 1)

    def result(self, arguments: dict[str, Any], m: int, n: int) -> np.ndarray:
        """Return C from the ``arguments`` of a finished launch.

        Returns
        -------
        ndarray
            (m, n); of double-doubles (m, n, 2); of a packed kernel (count, m, n).
        """
        how = self.convention
        m, n = index(m), index(n)
        big_m, big_n, _ = how.padded(m, n, 0)
        pair = (2,) if self.precision == "double-double" else ()
        if how.streams:
            rows = self.block[0]
            columns = how.streams // self.block[0]
            streams = np.stack([arguments["outputs"][i] for i in range(how.streams)])
            # Axes: row in the block, texel in that row, block y, block x, number in the texel
            streams = streams.reshape(rows, columns, *streams.shape[1:])
            whole = streams.transpose(2, 0, 3, 1, 4).reshape(1, big_m, big_n, *pair)
        else:
            memory = arguments["global_memory"].reshape(-1)
            numbers = big_m * big_n * (2 if pair else 1)
            count = 1 if how.buffer else memory.size // max(numbers, 1)
            whole = memory[: count * numbers].reshape(count, big_m, big_n, *pair)
        whole = whole[:, :m, :n].copy()
        return whole if how.packed else whole[0]


class Catalogue(dict[str, Kernel]):
    """Kernels by name: ``ck.kernels["sgemm_tn"]``. A ``KeyError`` suggests a similar name."""

    def __missing__(self, name: str) -> Kernel:
        guess = did_you_mean(str(name), self)
        raise KeyError(f"no kernel {shorten(name)}.{guess} The catalog has {', '.join(self)}.")

    def _rows(self) -> list[tuple[str, ...]]:
        return [
            (k.name, k.precision, k.mode, f"{k.block[0]} x {k.block[1]}", k.teaches)
            for k in self.values()
        ]

    def __repr__(self) -> str:
        return "\n".join(
            f"{row[0]:22} {row[1]:13} {row[2]:8} {row[3]}  {row[4]}" for row in self._rows()
        )

    def _repr_html_(self) -> str:
        return table(("kernel", "precision", "mode", "block", "it teaches"), self._rows())


def _kernel(name: str, teaches: str) -> Kernel:
    """Return a kernel of the catalog: its text states its convention."""
    text = _text(f"{name}.il")
    return Kernel(name, text, read_statement(text, f"{name}.il") or PLAINEST, teaches)


def _text(file: str) -> str:
    """Return the text of a file of this package."""
    return files("cypresskit.kernels").joinpath(file).read_text(encoding="utf-8")


KERNELS = Catalogue({row[0]: _kernel(*row) for row in json.loads(_text("catalogue.json")).items()})
