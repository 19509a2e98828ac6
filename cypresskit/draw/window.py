"""The window of clocks that a picture shows."""

from collections.abc import Sequence
from math import inf
from numbers import Real

import numpy as np

from cypresskit.kernels.own import shortened


def check_window(window: object) -> None:
    """Raise ``ValueError`` for what is no window: two clocks, the later one last."""
    pair = list(window) if isinstance(window, Sequence | np.ndarray) else []
    if len(pair) == 2 and all(isinstance(clock, Real) for clock in pair):
        begin, end = pair
        if 0 <= begin < end < inf:
            return
    raise ValueError(f"window={shortened(window)}: from a clock to a later one, as in (2000, 6000)")
