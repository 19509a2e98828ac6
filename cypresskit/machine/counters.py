"""Count what a launch did.

An engine only counts how many work-items executed each instruction, and how many accesses were out
of range. Left out: time.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np


@dataclass(frozen=True)
class LaunchCounters:
    """The counts of a run, over work-items that were active.

    Attributes
    ----------
    fetch_bytes
        Bytes that texture reads fetched.
    out_of_range
        Fetches and loads outside their array, which gave 0.
    executed
        How many work-items executed each instruction of ``Program.body``: int64.
    """

    fetch_bytes: int
    out_of_range: int
    executed: np.ndarray = field(repr=False, compare=False)


def tally(launch: Any, executed: np.ndarray, out_of_range: int) -> LaunchCounters:
    """Return the counts of a run of ``launch``."""
    fetched = (
        count * launch.textures[i.controls.resource].texel
        for i, count in zip(launch.program.body, executed.tolist(), strict=True)
        if i.op.kind == "fetch"
    )
    return LaunchCounters(sum(fetched), out_of_range, executed)
