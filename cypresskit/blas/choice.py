"""``choose``: the fastest kernel of the catalogue for a product, by an estimate of its time.

Every kernel of the precision that is meant for use is a candidate, even if a matrix has to be
transposed for it first: that costs a read and a write of the matrix, and the multiplication may
gain more. A launch is timed at the padded sizes, so a kernel whose tile wastes less may beat one
that is faster on full tiles, and one that shares k among work-items wins where C is small.

Simulating every candidate for every product would take too long. So the timing model was asked
beforehand how many clocks one wavefront of each kernel takes alone, and how many on a full engine
(``figures``); both are linear in k. A launch then takes as long as its fullest SIMD engine. Left
out: what else depends on the size, such as the caches; the launch's overhead, which is the same for
all; and engines other than Cypress's: of a board count its engines, clock and memory.
"""

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from cypresskit.blas.figures import read
from cypresskit.devices import HD5870, Device, check_device, check_precision, is_whole
from cypresskit.kernels import KERNELS, Kernel
from cypresskit.kernels.convention import BYTES
from cypresskit.machine.shape import wavefronts
from cypresskit.machine.wavefront import WAVEFRONT

#: Kernels that exist to be compared with: what they show costs time.
SHOWPIECES = ("naive", "_37", "stream", "buffer", "rows", "worst", "nofma", "packed")

LARGEST = 1 << 63  # of a product's sizes


@dataclass(frozen=True)
class Choice:
    """The ``kernel`` for a product of ``size`` (m, n, k), run at the sizes ``padded``; ``seconds``
    on the device; ``transposed``: "", "a", "b" or "ab", the matrices that are transposed first;
    ``others``: the runners-up.
    """

    kernel: Kernel
    size: tuple[int, int, int]
    padded: tuple[int, int, int]
    seconds: float
    transposed: str
    others: tuple["Choice", ...] = ()

    @property
    def waste(self) -> float:
        """The share of the arithmetic spent on padding, 0 to 1."""
        padded = math.prod(self.padded)
        return 1 - math.prod(self.size) / padded if padded else 0.0

    @property
    def gflops(self) -> float:
        """Useful Gflop/s: 2 m n k, padding not counted."""
        m, n, k = self.size
        return 2e-9 * m * n * k / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        size, padded = (" x ".join(map(str, sizes)) for sizes in (self.size, self.padded))
        turned = f"{' and '.join(self.transposed)} transposed first, " if self.transposed else ""
        work = f"{size} as {padded}, {100 * self.waste:.1f} % padding"
        line = f"{self.kernel.name}: {work}, {turned}{self.gflops:.1f} Gflop/s"
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
    """The kernel that ``gemm`` uses for op(A), m x k, times op(B), k x n, with the runners-up as
    ``others``.

    ``precision``: "single", "double" or "double-double". ``trans_a``, ``trans_b``: A is stored k x
    m, B n x k. Raises ``ValueError`` for other precisions, fractions and negative sizes,
    ``TypeError`` for no ``Device`` and for what is neither true nor false.
    """
    check_device(device)
    sizes = (m, n, k)
    none = [isinstance(size, int | np.integer) and size == 0 for size in sizes]
    if not all(zero or is_whole(size, LARGEST) for zero, size in zip(none, sizes)):
        raise ValueError(f"m, n, k = {m!r}, {n!r}, {k!r}: sizes are whole numbers, not negative")
    trans_a = whether("trans_a", trans_a)
    trans_b = whether("trans_b", trans_b)
    check_precision(precision)
    return _fastest(m, n, k, precision, trans_a, trans_b, device)


def whether(name: str, value: object) -> bool:
    """An argument that is true or false. Raises ``TypeError`` for anything else."""
    if not isinstance(value, (bool, np.bool_, int)):  # the letter N of a BLAS would count as true
        raise TypeError(f"{name} is True or False, not {value!r}")
    return bool(value)


@lru_cache(maxsize=1024)
def _fastest(
    m: int, n: int, k: int, precision: str, trans_a: bool, trans_b: bool, device: Device
) -> Choice:
    choices = []
    for kernel in KERNELS.values():
        if kernel.precision != precision or any(word in kernel.name for word in SHOWPIECES):
            continue
        # Only single precision has kernels for vectors.
        if kernel.vector != (n == 1 and precision == "single"):
            continue
        layout_size = kernel.convention.padded(m, n, k)
        big_m, big_n, big_k = layout_size

        turned = ""  # matrices that are transposed first
        numbers = 0  # how many numbers they have
        if kernel.trans_a != trans_a:
            turned = "a"
            numbers = m * k
        if kernel.trans_b != trans_b and not kernel.vector:
            turned += "b"
            numbers += k * n
        moved = 2 * BYTES[precision] * numbers

        group = 0 if kernel.mode == "pixel" else WAVEFRONT  # which divides the catalogue's groups
        launched = wavefronts(kernel.convention.domain(big_m, big_n), group)
        per_engine = -(-launched // device.simd_engines)
        seconds = read()[kernel.name].clocks(per_engine, big_k) / (device.clock_ghz * 1e9)
        seconds += moved / (device.memory_gb_s * device.dram_efficiency * 1e9)
        choices.append(Choice(kernel, (m, n, k), layout_size, seconds, turned))
    best, *others = sorted(choices, key=lambda choice: choice.seconds)
    return replace(best, others=tuple(others[:3]))
