"""Figures of the catalogue's kernels, compiled and timed: shown by ``cypresskit kernels``, and the
basis of ``choose``.

Compiling and timing every kernel takes a minute or two. So the figures for the HD 5870 are kept in
``figures.json`` beside this module (``python -m tools.stored_figures`` renews it, a test compares).
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("figures.json")


@dataclass(frozen=True)
class Figures:
    """A kernel's figures: ``registers`` per work-item, ``bundles`` of a turn of the loop,
    ``gflops`` at N = 2048, and clocks of a SIMD engine per wavefront, ``alone`` on it and ``full``,
    when ``active`` wavefronts share it, each as (clocks at k = 0, clocks per step of k).
    """

    registers: int
    bundles: int
    gflops: float
    alone: tuple[float, float]
    full: tuple[float, float]
    active: int

    def clocks(self, wavefronts: int, k: int) -> float:
        """Clocks of an engine for so many wavefronts."""
        alone, full = (start + k * per_step for start, per_step in (self.alone, self.full))
        return max(alone * -(-wavefronts // self.active), wavefronts * full)


@lru_cache
def read() -> dict[str, Figures]:
    """The figures in the file, by kernel."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: Figures(*row) for name, row in rows.items()}
