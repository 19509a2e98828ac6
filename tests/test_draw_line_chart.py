"""Curves of any figures."""

import re

import numpy as np
import pytest
from bokeh.models import LogScale, Scatter
from pages import drawn

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.line_chart import scale_across


@pytest.mark.parametrize("heights", [(0.0, 0.0), (-3.0, -1.0), (-1.0, 2.0), (1.0, 3.0)])
def test_curves_of_zeros_and_below_zero_fit_their_chart(heights):
    player = draw.line_chart({"a": dict(enumerate(heights))}, "x", "y")
    (figure,) = player.figures
    assert list(drawn(player, "points a")["y"]) == list(heights)
    assert figure.y_range.start < min(heights) and max(heights) < figure.y_range.end
    assert len(figure.left[0].ticker.ticks) > 1


def test_both_axes_can_be_logarithmic():
    (figure,) = draw.line_chart({"a": {1: 2.0, 8: 300.0}}, "x", "y", log="xy").figures
    assert isinstance(figure.x_scale, LogScale) and isinstance(figure.y_scale, LogScale)
    assert (figure.y_range.start, figure.y_range.end) == (1, 600)


def test_points_on_each_other_are_all_seen():
    """The first are filled, later ones are rings around them."""
    (figure,) = draw.line_chart({name: {1: 2.0} for name in "abc"}, "x", "y").figures
    points = [r.glyph for r in figure.renderers if isinstance(r.glyph, Scatter)]
    sizes = [glyph.size for glyph in points]
    assert sizes == sorted({*sizes}) and [bool(glyph.fill_color) for glyph in points] == [1, 0, 0]


def test_a_roofline_has_a_block_of_other_sides_where_it_needs_as_many_words():
    """A block of 4 x 8 reads 12 words for 64 flops: as many per flop as one of 16/3 x 16/3."""
    report = ck.simulate("sgemm_tn_stream", 128)
    text = repr(ck.teach.why_blocks.roofline([report], "yours"))
    assert re.search(rf"yours: 5\.33\d*: {report.gflops:.3g}\b", text), text
    assert "measured" not in text
    assert "sgemm_tn, measured: 8: 2014" in repr(ck.teach.why_blocks.roofline([], "yours"))


def test_labels_of_x_stand_apart_and_none_is_missing():
    gaps = np.diff(scale_across("x", [*range(1000)]).ticks) / 1000
    assert 0.025 < gaps.min() and gaps.max() < 0.032
