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


@pytest.mark.parametrize("count", [1, 2, 7, 40, 100, 1000])
def test_labels_of_x_stand_apart_and_none_is_missing(count):
    player = draw.curves({"a": dict.fromkeys(range(count), 1.0)}, "x", "y")
    points, labels = drawn(player, "points a")["x"], drawn(player, "uprights")["x"]
    gaps = np.diff([*labels, points[-1]])  # the last one may be 0 or small
    spacing = np.ptp(points) / max(1, count - 1)
    assert np.isclose(labels[:, np.newaxis], points).any(1).all()
    assert (gaps[:-1] > 0.025 * np.ptp(points)).all()
    assert (gaps <= 0.031 * np.ptp(points) + 1.01 * spacing).all()


@pytest.mark.parametrize("place", [-3.0, 0.0, 1.0, 1e9])
@pytest.mark.parametrize("height", [-1.0, 0.0, 2.0])
def test_a_single_point_is_a_curve(place, height):
    player = draw.curves({"a": {place: height}}, "x", "y")
    points = drawn(player, "points a")
    assert np.isfinite(points["x"]).all() and np.isfinite(points["y"]).all()
    assert drawn(player, "uprights")["x"] == pytest.approx(points["x"])
