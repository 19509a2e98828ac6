"""The stored curves of the papers' plots: what the model gives for what each author timed.

``python -m tools.stored_figures`` writes them. A picture that sets the model beside a published
speed reads its value here, so that it has the one that ``ck.simulate_published`` gives.
"""

import json
from functools import cache

from cypresskit.draw.scripts import read_packaged


@cache
def stored() -> dict[str, dict[str, list[list[float]]]]:
    """Return the stored curves: by chart and name, rows of x, y and the share by which y may be
    off.
    """
    curves: dict[str, dict[str, list[list[float]]]] = json.loads(
        read_packaged("draw/published.json")
    )
    return curves


def stored_speeds(kernel: str) -> dict[int, float]:
    """Return the stored Gflop/s of a published kernel, by N."""
    rows = next(chart[kernel] for chart in stored().values() if kernel in chart)
    return {int(n): gflops for n, gflops, _ in rows}
