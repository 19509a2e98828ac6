"""Curves of any figures."""

import numpy as np
import pytest
from pages import (
    drawn,
)

from cypresskit import draw


@pytest.mark.parametrize("heights", [(0.0, 0.0), (-3.0, -1.0), (-1.0, 2.0), (1.0, 3.0)])
def test_curves_of_zeros_and_below_zero_fit_their_chart(heights):
    player = draw.curves({"a": dict(enumerate(heights))}, "x", "y")
    y, axis = drawn(player, "points a")["y"], drawn(player, "levels")["y"]
    assert np.isfinite(y).all() and (np.diff(y) * np.diff(heights) <= 0).all() and len(axis) > 1
    assert player.still()
