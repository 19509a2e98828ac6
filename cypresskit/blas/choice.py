"""``choose``: which kernel of the catalogue a product is given to, and why.

Every kernel of the precision that is meant for use is a candidate, also one that wants a matrix transposed first: that
costs a read and a write of the matrix, the multiplication may gain more. Its launch is timed at the padded sizes, so a
kernel whose tile wastes less may win over one that is faster on full tiles, and one that shares k among work-items
wins where C is small.

Simulating every candidate for every product would take too long. So the timing model is asked a few times per kernel,
once for all: how long one wavefront takes alone, and how long each takes where the chip is full (a ``Pace``); both
are linear in k. A launch then takes what its fullest SIMD engine takes. The paces on the HD 5870 are kept in a file
beside this module and serve its sister boards too; those of other devices are found when first needed. Left out: what
depends on the size beyond that, such as the caches, and the launch's overhead, which is the same for all.
"""

import json
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from importlib.resources import files

from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel

#: Kernels that exist to be compared with: what they show costs time.
SHOWPIECES = ("naive", "_37", "stream", "buffer", "rows", "worst", "nofma", "packed")
#: What differs between boards without changing how many clocks an engine needs (memory aside).
SCALES = ("clock_ghz", "simd_engines", "memory_gb_s", "memory_bytes", "chips")
FULL = 32  # a side of the grid of wavefronts on which the full chip's pace is taken
DEPTHS = 256, 512  # the two k from which a pace is taken


@dataclass(frozen=True)
class Pace:
    """Clocks of a SIMD engine per wavefront: ``alone`` on it, and ``full`` where ``active`` wavefronts share it;
    each is (clocks at k = 0, clocks per step of k)."""

    alone: tuple[float, float]
    full: tuple[float, float]
    active: int

    def clocks(self, wavefronts: int, k: int) -> float:
        """Clocks of an engine that has so many wavefronts to run."""
        alone, full = (start + k * each for start, each in (self.alone, self.full))
        return max(alone * -(-wavefronts // self.active), wavefronts * full)


@dataclass(frozen=True)
class Choice:
    """The ``kernel`` for a product of ``size`` (m, n, k), run at the sizes ``padded``; ``seconds`` on the device;
    ``transposed``: "", "a", "b" or "ab", the matrices that are transposed first; ``others``: the next best."""

    kernel: Kernel
    size: tuple[int, int, int]
    padded: tuple[int, int, int]
    seconds: float
    transposed: str
    others: tuple["Choice", ...] = ()

    @property
    def waste(self) -> float:
        """The share of the arithmetic that is done on padding."""
        m, n, k = self.padded
        return 1 - self.size[0] * self.size[1] * self.size[2] / (m * n * k) if m * n * k else 0.0

    @property
    def gflops(self) -> float:
        """Useful Gflop/s: 2 m n k, padding not counted."""
        return 2e-9 * self.size[0] * self.size[1] * self.size[2] / self.seconds if self.seconds else 0.0

    def __str__(self) -> str:
        size, padded = (" x ".join(map(str, sizes)) for sizes in (self.size, self.padded))
        turned = f"{' and '.join(self.transposed)} transposed first, " if self.transposed else ""
        line = f"{self.kernel.name}: {size} as {padded}, {self.waste:.1%} padding, {turned}{self.gflops:.1f} Gflop/s"
        return "\n  then ".join([line, *map(str, self.others)])


def choose(
    m: int,
    n: int,
    k: int,
    precision: str = "single",
    *,
    trans_a: bool = False,
    trans_b: bool = False,
    device: Device = HD5870,
) -> Choice:
    """The kernel that ``gemm`` takes for op(A) of m x k times op(B) of k x n, with the next best ``others``.

    ``trans_a``, ``trans_b``: A is stored k x m, B is stored n x k. Raises ``ValueError`` for a negative size or an
    unknown precision.
    """
    if min(m, n, k) < 0:
        raise ValueError(f"m, n, k = {m}, {n}, {k}: sizes are not negative")
    if precision not in {kernel.precision for kernel in KERNELS.values()}:
        raise ValueError(f"precision {precision!r} is not one of single, double, double-double")
    found = []
    for kernel in KERNELS.values():
        if kernel.precision != precision or (kernel.vector and n != 1) or any(s in kernel.name for s in SHOWPIECES):
            continue
        big_m, big_n, big_k = layout_size = kernel.padded(m, n, k)
        turned = "a" * (kernel.trans_a != trans_a) + "b" * (kernel.trans_b != trans_b and not kernel.vector)
        number = kernel.dtype.itemsize * (2 if precision == "double-double" else 1)
        moved = 2 * number * sum({"a": m * k, "b": k * n}[which] for which in turned)
        per_engine = -(-_wavefronts(kernel, big_m, big_n) // device.simd_engines)
        seconds = pace(kernel, device).clocks(per_engine, big_k) / (device.clock_ghz * 1e9)
        seconds += moved / (device.memory_gb_s * device.dram_efficiency * 1e9)
        found.append(Choice(kernel, (m, n, k), layout_size, seconds, turned))
    best, *others = sorted(found, key=lambda choice: choice.seconds)
    return replace(best, others=tuple(others[:3]))


def _wavefronts(kernel: Kernel, m: int, n: int) -> int:
    sizes = (*kernel.domain(m, n), 1)[:2]
    return -(-sizes[0] // 8) * -(-sizes[1] // 8) if kernel.mode == "pixel" else -(-sizes[0] // 64)


def pace(kernel: Kernel, device: Device = HD5870) -> Pace:
    """The kernel's pace on a device: from the file for Cypress boards, or else from the timing model."""
    usual = {name: getattr(HD5870, name) for name in ("name", *SCALES)}
    known = _kept().get(kernel.name) if replace(device, **usual) == HD5870 else None
    return known or measure(kernel, device)


@lru_cache
def _kept() -> dict[str, Pace]:
    rows = json.loads(files("cypresskit.blas").joinpath("paces.json").read_text())
    return {name: Pace(tuple(row["alone"]), tuple(row["full"]), row["active"]) for name, row in rows.items()}


@lru_cache(maxsize=256)
def measure(kernel: Kernel, device: Device = HD5870) -> Pace:
    """Ask the timing model: one wavefront, and a grid of them that fills the chip, at two k."""
    from cypresskit.timing.simulate import simulate

    tile = [8 * side for side in kernel.block] if kernel.mode == "pixel" else kernel.tile
    many = (FULL * tile[0], FULL * tile[1]) if not kernel.vector else (FULL * FULL * tile[0], 1)
    lines = []
    for m, n in (tile, many):
        few, more = (simulate(kernel, n, m=m, k=k, device=device) for k in DEPTHS)
        engines = 1 if few.wavefronts == 1 else device.simd_engines / few.wavefronts
        each = (more.clocks - few.clocks) / (DEPTHS[1] - DEPTHS[0])
        lines.append((engines * (few.clocks - DEPTHS[0] * each), engines * each))
    return Pace(lines[0], lines[1], few.active)


def keep() -> str:
    """The text of the file: the paces of all kernels that ``choose`` considers."""
    rows = {k.name: asdict(measure(k)) for k in KERNELS.values() if not any(s in k.name for s in SHOWPIECES)}
    return json.dumps(rows, indent=1) + "\n"
