"""Figures of the catalogue's kernels, as compiled and timed: what ``cypresskit kernels`` lists and ``choose`` goes by.

Compiling and timing every kernel takes a minute or two. So the figures for the HD 5870 are kept in ``figures.json``
beside this module (``cypresskit kernels --update`` makes it anew, a test compares), and serve its sister boards too,
whose engines need as many clocks; those of other devices are found when first needed.
"""

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, replace
from functools import lru_cache
from pathlib import Path

from cypresskit.devices import HD5870, Device
from cypresskit.kernels import KERNELS, Kernel

FILE = Path(__file__).with_name("figures.json")
N = 2048  # rows of A and steps of k behind ``gflops``; columns too, but one for a kernel that takes a vector
FULL = 32  # a side of the grid of wavefronts on which the full chip's pace is taken
DEPTHS = 256, 512  # the two k from which a pace is taken
#: What differs between boards without changing how many clocks an engine needs (memory aside).
SCALES = ("name", "clock_ghz", "simd_engines", "memory_gb_s", "memory_bytes", "chips")


@dataclass(frozen=True)
class Figures:
    """``registers`` per work-item, ``bundles`` of a turn of the loop, ``gflops`` at N = 2048, and the kernel's pace:
    clocks of a SIMD engine per wavefront ``alone`` on it, and ``full`` where ``active`` wavefronts share it, each as
    (clocks at k = 0, clocks per step of k)."""

    registers: int
    bundles: int
    gflops: float
    alone: tuple[float, float]
    full: tuple[float, float]
    active: int

    def clocks(self, wavefronts: int, k: int) -> float:
        """Clocks of an engine that has so many wavefronts to run."""
        alone, full = (start + k * each for start, each in (self.alone, self.full))
        return max(alone * -(-wavefronts // self.active), wavefronts * full)


def figures(kernel: Kernel, device: Device = HD5870) -> Figures:
    """The kernel's figures on a device: from the file, or else from compiler and timing model."""
    cypress = replace(device, **{name: getattr(HD5870, name) for name in SCALES}) == HD5870
    known = _kept().get(kernel.name) if cypress else None
    return known or measure(kernel, device)


@lru_cache
def _kept() -> dict[str, Figures]:
    rows = json.loads(FILE.read_text()) if FILE.exists() else {}
    return {name: Figures(*map(_pair, row)) for name, row in rows.items()}


def _pair(value):
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=256)
def measure(kernel: Kernel, device: Device = HD5870) -> Figures:
    """Compile the kernel, and ask the timing model: at N, for one wavefront, and for a grid of them that fills the
    chip, these at two k."""
    from cypresskit.compiler import compile
    from cypresskit.timing.simulate import simulate

    card = compile(kernel.program, device).card()
    tile = (8 * kernel.block[0], 8 * kernel.block[1]) if kernel.mode == "pixel" else kernel.tile
    many = (FULL * FULL * tile[0], 1) if kernel.vector else (FULL * tile[0], FULL * tile[1])
    lines = []
    for m, n in (tile, many):
        few, more = (simulate(kernel, n, m=m, k=k, device=device) for k in DEPTHS)
        each = (more.clocks - few.clocks) / (DEPTHS[1] - DEPTHS[0])
        start = few.clocks - DEPTHS[0] * each
        if start < 0:  # the beginning, with cold caches, costs no more than the rest
            start, each = 0.0, more.clocks / DEPTHS[1]
        engines = 1 if few.wavefronts == 1 else device.simd_engines / few.wavefronts
        lines.append((round(engines * start, 1), round(engines * each, 2)))
    gflops = round(simulate(kernel, N, device=device).gflops, 1)
    return Figures(card.gprs, card.loop_bundles, gflops, lines[0], lines[1], few.active)


def update(kernels: Iterable[Kernel] = KERNELS.values()) -> None:
    """Make the file anew; the package's directory must be writable."""
    rows = [f'"{kernel.name}": {json.dumps(astuple(measure(kernel)))}' for kernel in kernels]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    _kept.cache_clear()
