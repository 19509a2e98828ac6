"""Compare C at the size at which a kernel is timed: all of it, or some wavefronts' part.

The matrices hold random numbers. What a wavefront stores is seen by what changes: no rule says
which elements it should be.
"""

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import ProductComparison, compare
from cypresskit.kernels.products import Size
from cypresskit.machine import KernelError
from cypresskit.machine.engines import run, run_batches
from cypresskit.machine.launch import prepare

WHOLE = 1 << 27  # products: 512 x 512 x 512, or less, is computed whole
BATCHES = 4  # otherwise: tiles of a pixel kernel, or workgroups: the first, the last, two others
COMPARED = 512  # of their elements
PERIOD = 99_991  # after which the matrices' numbers repeat: a prime, so that rows differ
INTERPRETED_K = 256  # values of k where nothing can be compiled: they take a second


@dataclass(frozen=True)
class SizedComparison:
    """C at a ``size`` (m, n, k).

    ``elements`` of it were compared. ``fault`` says what is incorrect, "" if nothing is.
    """

    size: Size
    elements: ProductComparison
    fault: str = ""

    def __str__(self) -> str:
        m, n, k = self.size
        return f"At {m} x {n}, k = {k}: {self.fault or self.elements}"


def compare_at(kernel: Kernel, size: Size, alpha: float, beta: float) -> SizedComparison:
    """Compare a kernel's C at a size (m, n, k), rounded up to whole blocks, with numpy's.

    It takes up to a quarter of a second; more where nothing can be compiled.
    """
    how = kernel.convention
    is_whole = prod(size) <= WHOLE and HAS_LLVM
    m, n, k = size = how.padded(*size[:2], size[2] if HAS_LLVM else min(size[2], INTERPRETED_K))
    rng = np.random.default_rng(n)
    values = rng.standard_normal((3, PERIOD)).astype(kernel.dtype)
    shapes = *how.stored(m, n, k), (m, n)
    a, b, c = (np.resize(row, shape) for row, shape in zip(values, shapes, strict=True))
    arguments = _arguments(kernel, a, b, c, alpha, beta)
    before = _result(kernel, arguments, m, n)
    launch = prepare(kernel.program, **arguments, max_instructions=kernel.max_instructions(k))
    last = launch.shape.batches - 1
    batches = np.unique([0, last, *rng.integers(0, last + 1, BATCHES - 2)])
    try:
        run(launch) if is_whole else run_batches(launch, batches.tolist())
    except KernelError as error:
        what = str(error).splitlines()[-1].strip()
        return SizedComparison(size, ProductComparison(0, 0), what)
    launch.write_back(arguments.get("outputs"), arguments.get("global_memory"))
    result = _result(kernel, arguments, m, n)
    left, right = how.operands(a, b)
    if is_whole:
        found = compare(result, left, right, c, alpha=alpha, beta=beta)
        row, column = found.at
    else:
        bits = np.dtype(f"i{kernel.dtype.itemsize}")
        rows, columns = np.nonzero(before.view(bits) != result.view(bits))
        wanted = len(launch.shape.items_of(batches)) * prod(kernel.block) // how.parts
        if len(rows) < wanted:
            what = f"a part of the launch stores {len(rows):,} of its {wanted:,} elements"
            return SizedComparison(size, ProductComparison(0, 0), what)
        some = rng.permutation(len(rows))[:COMPARED]
        rows, columns = rows[some], columns[some]
        # A product of a row and a column for each
        products = (left[rows][:, None], right[:, columns].T[:, :, None])
        elements, old = (x[rows, columns][:, None, None] for x in (result, c))
        found = compare(elements, *products, old, alpha=alpha, beta=beta)
        row, column = (int(place[found.at[0]]) for place in (rows, columns))
    what = ""
    if not found:
        exact = alpha * (left[row].astype(float) @ right[:, column]) + beta * float(c[row, column])
        what = (
            f"{found.beyond:,} of {found.elements:,} elements are incorrect, such as C[{row},"
            f" {column}]: {result[row, column]:.9g} in place of {exact:.9g}"
        )
    return SizedComparison(size, found, what)


def _arguments(
    kernel: Kernel, a: np.ndarray, b: np.ndarray, c: np.ndarray, alpha: float, beta: float
) -> dict[str, Any]:
    """Return a launch's arguments. What results replace is NaN, unless it is read."""
    if kernel.precision == "double-double":
        a, b, c = (np.stack([x, np.zeros_like(x)], axis=-1) for x in (a, b, c))
    arguments = kernel.arguments(a, b, c, alpha, beta)
    for output in arguments.get("outputs", {}).values():
        output[...] = np.nan
    if "global_memory" in arguments and not beta:
        arguments["global_memory"].reshape(-1)[: c.size] = np.nan
    return arguments


def _result(kernel: Kernel, arguments: dict[str, Any], m: int, n: int) -> np.ndarray:
    """Return C, (m, n); of double-doubles the high parts."""
    return np.ascontiguousarray(kernel.result(arguments, m, n).reshape(m, n, -1)[..., 0])
