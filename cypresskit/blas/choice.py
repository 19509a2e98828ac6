"""Choose the fastest catalog kernel for a product, by an estimate of its time (``choose_kernel``).

How it works
------------
1. All kernels of the precision are candidates, except for those that are only examples
   (``EXAMPLES``). If a kernel needs a matrix transposed, reading and writing it once is added to
   its time.
2. A launch is timed at the padded sizes. So a kernel with less padding may be faster than one that
   is faster on whole blocks, and for a small C, a kernel that divides k among work-items.
3. Simulating all candidates would take too long. The timing model has provided each kernel's clocks
   for one wavefront and for a full engine (``performance_table``); both are linear in k. A launch
   takes as long as its fullest SIMD engine.

Not covered: effects of the size on caches; the launch overhead, which is the same for all; and
engines other than Cypress's. Of a board, only the number of engines, the clock and the memory
count.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from cypresskit.blas.performance_table import read_performance
from cypresskit.devices import HD5870, WAVEFRONT, Device, Range, check_device, check_precision
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.machine.shape import wavefronts

#: Parts of the names of kernels that only demonstrate something, and are never the fastest.
EXAMPLES = ("naive", "_37", "stream", "buffer", "rows", "worst", "nofma", "packed")

LARGEST = 1 << 63  # m, n and k


@dataclass(frozen=True)
class Choice:
    """A kernel for a product, with its estimated time."""

    kernel: Kernel
    size: tuple[int, int, int]  #: m, n, k
    padded: tuple[int, int, int]  #: m, n, k, rounded up to whole blocks
    seconds: float  #: on the device
    transposed: str  #: the matrices to transpose first: "", "a", "b" or "ab"
    others: tuple["Choice", ...] = ()  #: the next best kernels

    @property
    def waste(self) -> float:
        """The share of the arithmetic that is spent on padding, 0 to 1."""
        padded = math.prod(self.padded)
        return 1 - math.prod(self.size) / padded if padded else 0.0

    @property
    def gflops(self) -> float:
        """Useful Gflop/s: 2 m n k operations, without padding."""
        m, n, k = self.size
        return 2e-9 * m * n * k / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        size, padded = (" x ".join(map(str, sizes)) for sizes in (self.size, self.padded))
        first = f"{' and '.join(self.transposed)} transposed first, " if self.transposed else ""
        work = f"{size} as {padded}, {100 * self.waste:.1f} % padding"
        line = f"{self.kernel.name}: {work}, {first}{self.gflops:.1f} Gflop/s"
        return "\n  then ".join([line, *map(str, self.others)])


def choose_kernel(
    m: int,
    n: int,
    k: int,
    precision: str = "single",
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    device: Device = HD5870,
) -> Choice:
    """Return the kernel that ``gemm`` uses for a product, with the next best ones as ``others``.

    Parameters
    ----------
    m, n, k
        Size of the product of op(A), m x k, and op(B), k x n.
    precision
        "single", "double" or "double-double".
    trans_a, trans_b
        Whether A is stored as k x m, and B as n x k.
    device
        The board.

    Raises
    ------
    ValueError
        For other precisions, and for sizes that are negative or not whole.
    TypeError
        If ``device`` is no ``Device``, or a transpose isn't True or False.
    """
    check_device(device)
    if not all(Range(most=LARGEST).has(size, whole=True) for size in (m, n, k)):
        raise ValueError(f"m, n, k = {m!r}, {n!r}, {k!r}: sizes are whole numbers, not negative")
    trans_a = require_bool("trans_a", trans_a)
    trans_b = require_bool("trans_b", trans_b)
    check_precision(precision)
    return choose_fastest(int(m), int(n), int(k), precision, trans_a, trans_b, device)


def require_bool(name: str, value: object) -> bool:
    """Return an argument as a bool. Raise ``TypeError`` if it isn't True or False."""
    if not isinstance(value, (bool, np.bool_, int)):  # BLAS's letter N would count as true
        raise TypeError(f"{name} is True or False, not {value!r}")
    return bool(value)


@lru_cache(maxsize=1024)
def choose_fastest(
    m: int, n: int, k: int, precision: str, trans_a: bool, trans_b: bool, device: Device
) -> Choice:
    """Return ``choose_kernel`` of checked arguments."""
    choices = []
    for kernel in KERNELS.values():
        if kernel.precision != precision or any(word in kernel.name for word in EXAMPLES):
            continue
        # Only single precision has kernels for vectors
        if kernel.is_vector != (n == 1 and precision == "single"):
            continue
        padded = kernel.convention.padded(m, n, k)
        big_m, big_n, big_k = padded

        transposed = ""
        numbers = 0  # in the transposed matrices
        if kernel.trans_a != trans_a:
            transposed = "a"
            numbers = m * k
        if kernel.trans_b != trans_b and not kernel.is_vector:
            transposed += "b"
            numbers += k * n
        moved = 2 * BYTES[precision] * numbers

        group = 0 if kernel.mode == "pixel" else WAVEFRONT  # catalog groups are multiples of it
        launched = wavefronts(kernel.convention.domain(big_m, big_n), group)
        per_engine = -(-launched // device.simd_engines)
        seconds = read_performance()[kernel.name].clocks(per_engine, big_k) / (
            device.clock_ghz * 1e9
        )
        seconds += moved / (device.memory_gb_s * device.dram_efficiency * 1e9)
        choices.append(Choice(kernel, (m, n, k), padded, seconds, transposed))
    best, *others = sorted(choices, key=lambda choice: choice.seconds)
    return replace(best, others=tuple(others[:3]))
