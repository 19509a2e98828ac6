"""Read the performance of the catalog's kernels on the HD 5870, as compiled and simulated.

``cypresskit kernels`` shows it, and ``choose_kernel`` estimates times from it. Simulating all
kernels takes a minute or two, so the numbers are stored in ``performance_table.json``, which
``python -m tools.stored_figures`` writes; a test checks them.
"""

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

FILE = Path(__file__).with_name("performance_table.json")


@dataclass(frozen=True)
class KernelPerformance:
    """A kernel's performance on the HD 5870.

    ``alone`` and ``full`` are a SIMD engine's clocks per wavefront: (clocks at k = 0, further
    clocks per value of k).
    """

    registers: int  #: per work-item
    bundles: int  #: per iteration of the main loop
    gflops: float  #: at N = 2048
    alone: tuple[float, float]  #: of a single wavefront on the engine
    full: tuple[float, float]  #: if ``active`` wavefronts share the engine
    active: int  #: wavefronts that share a full engine

    def clocks(self, wavefronts: int, k: int) -> float:
        """Return the clocks that an engine needs for ``wavefronts``."""
        alone, full = (start + k * per_k for start, per_k in (self.alone, self.full))
        return max(alone * -(-wavefronts // self.active), wavefronts * full)


@lru_cache
def read_performance() -> dict[str, KernelPerformance]:
    """Return the stored performance of each kernel, by name."""
    rows = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: KernelPerformance(*row) for name, row in rows.items()}
