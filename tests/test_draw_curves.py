"""Curves of any figures."""

import numpy as np
import pytest
from pages import (
    drawn,
)
from said import Said, assert_held, on_scale

from cypresskit import draw


@pytest.mark.parametrize("heights", [(0.0, 0.0), (-3.0, -1.0), (-1.0, 2.0), (1.0, 3.0)])
def test_curves_of_zeros_and_below_zero_fit_their_chart(heights):
    player = draw.curves({"a": dict(enumerate(heights))}, "x", "y")
    y, axis = drawn(player, "points a")["y"], drawn(player, "levels")["y"]
    assert np.isfinite(y).all() and (np.diff(y) * np.diff(heights) <= 0).all() and len(axis) > 1
    assert player.still()


def test_what_its_points_say_are_the_figures():
    heights = {0: 3.25, 1: 5.5, 2: 9.125}

    def point(say: Said, shown):
        return [heights[shown[-1]], shown[-1]]

    def caption(say: Said, _):
        return [2, heights[2]]

    player = draw.curves({"a": heights}, "x", "y")
    points = drawn(player, "points a")
    across = on_scale(points["x"], list(heights))
    up = on_scale(points["y"], list(heights.values()))

    def tick(say: Said, _):
        return [across(say.cell("x")) if np.ptp(say.data["x"]) else up(say.cell("y"))]

    assert_held(player, {r"a: # at #": point, r"x = #: a #": caption, r"#": tick})
