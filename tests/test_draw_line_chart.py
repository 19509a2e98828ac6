"""Curves of any figures."""

import re

import numpy as np
import pytest
from bokeh.models import LinearAxis
from pages import (
    drawn,
)

from cypresskit import draw


@pytest.mark.parametrize("heights", [(0.0, 0.0), (-3.0, -1.0), (-1.0, 2.0), (1.0, 3.0)])
def test_curves_of_zeros_and_below_zero_fit_their_chart(heights):
    player = draw.line_chart({"a": dict(enumerate(heights))}, "x", "y")
    (figure,) = player.figures
    assert list(drawn(player, "points a")["y"]) == list(heights)
    assert figure.y_range.start < min(heights) and max(heights) < figure.y_range.end
    assert len(figure.left[0].ticker.ticks) > 1
    assert player.still()


def x_ticks(player) -> list[float]:
    (axis,) = (part for part in player.figures[0].below if isinstance(part, LinearAxis))
    return axis.ticker.ticks


def test_a_still_draws_the_axes_of_its_chart():
    player = draw.line_chart({"a": {1: 2.0, 10: 20.0}, "b": {4: 5.0}}, "bytes", "flops", log="x")
    (figure,) = player.figures
    texts = re.findall(r">([^<]+)</text>", player.still())
    axes = [*figure.left, *(part for part in figure.below if isinstance(part, LinearAxis))]
    labels = [axis.major_label_overrides[n] for axis in axes for n in axis.ticker.ticks]
    assert sorted(texts[2:]) == sorted([*labels, "bytes", "flops", "a", "b"])


@pytest.mark.parametrize("count", [1, 2, 7, 40, 100, 1000])
def test_labels_of_x_stand_apart_and_none_is_missing(count):
    player = draw.line_chart({"a": dict.fromkeys(range(count), 1.0)}, "x", "y")
    points, labels = drawn(player, "points a")["x"], x_ticks(player)
    gaps = np.diff([*labels, points[-1]])  # the last one may be 0 or small
    spacing = np.ptp(points) / max(1, count - 1)
    assert np.isclose(np.array(labels)[:, np.newaxis], points).any(1).all()
    assert (gaps[:-1] > 0.025 * np.ptp(points)).all()
    assert (gaps <= 0.031 * np.ptp(points) + 1.01 * spacing).all()
