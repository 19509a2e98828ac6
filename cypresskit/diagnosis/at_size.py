"""Compare C at the size at which a kernel is timed: all of it, or some wavefronts' part.

The matrices hold random numbers. What a wavefront stores is seen by what changes: no rule says
which elements it should be.
"""

from dataclasses import dataclass
from math import prod

import numpy as np

from cypresskit.il.host_llvm import HAS_LLVM
from cypresskit.kernels.catalogue import Kernel
from cypresskit.kernels.comparison import ProductComparison, compare
from cypresskit.kernels.products import Size
from cypresskit.machine import KernelError
from cypresskit.machine.engines import run_batches
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
    is_pair = kernel.precision == "double-double"
    given = [np.stack([x, np.zeros_like(x)], -1) if is_pair else x for x in (a, b, c)]
    arguments = kernel.arguments(*given, alpha, beta)
    memory = arguments.get("global_memory")
    if memory is not None and not beta:  # nothing in it is a number yet
        memory.reshape(-1)[: m * n * (1 + is_pair)] = np.nan

    def computed() -> np.ndarray:
        result = kernel.result(arguments, m, n).reshape(m, n, -1)
        return np.ascontiguousarray(result[..., 0])

    for output in arguments.get("outputs", {}).values():
        output[...] = np.nan
    before = computed()
    launch = prepare(kernel.program, **arguments, max_instructions=kernel.max_instructions(k))
    last = launch.shape.batches - 1
    batches = np.arange(last + 1)
    if not is_whole:
        batches = np.unique([0, last, *rng.integers(0, last, BATCHES - 2)])
    try:
        run_batches(launch, batches)
    except (KernelError, ValueError) as error:
        return SizedComparison(size, ProductComparison(0, 0), str(error))
    launch.write_back(arguments.get("outputs"), memory)
    after = computed()
    bits = np.dtype(f"i{kernel.dtype.itemsize}")
    rows, columns = np.nonzero(before.view(bits) != after.view(bits))
    blocks = len(launch.shape.items_of(batches)) * prod(kernel.block) // how.parts
    left, right = how.operands(a, b)
    if is_whole:
        found = compare(after, left, right, c, alpha=alpha, beta=beta)
        row, column = found.at
    elif len(rows) < blocks:
        stored = (
            f"of the {blocks:,} elements of its blocks, a part of the launch stores {len(rows):,}"
        )
        return SizedComparison(size, ProductComparison(0, 0), stored)
    else:
        some = rng.permutation(len(rows))[:COMPARED]
        rows, columns = rows[some], columns[some]
        found = compare(
            after[rows, columns][:, None, None],
            left[rows][:, None],
            right[:, columns].T[:, :, None],
            c[rows, columns][:, None, None],
            alpha=alpha,
            beta=beta,
        )
        row, column = rows[found.at[0]], columns[found.at[0]]
    if found:
        return SizedComparison(size, found)
    expected = alpha * (left[row].astype(float) @ right[:, column]) + beta * float(c[row, column])
    return SizedComparison(
        size,
        found,
        f"{found.beyond:,} of {found.elements:,} elements are incorrect, such as C[{row},"
        f" {column}]: {after[row, column]:.9g} in place of {expected:.9g}",
    )
