"""One law for every picture, in Chromium: at its first, middle and last frame, on a wide screen and
on a phone, all marks and texts lie inside their figure, and no two texts overlap.
"""

import pytest
from conftest import JS, by_day
from pages import IN_LESSONS, VIEWS, at

from tools import gallery

PICTURES = {name: make for name, (_, make) in gallery.VIEWS.items()} | VIEWS
CHARTS = "compilers", "product", "published", "roofline"  # see test_draw_chart.py, test_places.py
PICTURES |= {f"{name} in its lesson": make for name, make in IN_LESSONS.items()}
PLAYERS = [name for name in PICTURES if name not in (*CHARTS, "explore", "lds_pitch")]


@pytest.mark.parametrize("name", by_day(PLAYERS, 5))
def test_marks_lie_inside_their_picture_and_no_texts_overlap(name, show):
    player = PICTURES[name]()
    page = show(player)
    for width in (1366, 390):
        page.set_viewport_size({"width": width, "height": 800})
        page.evaluate(JS.settled)
        for frame in sorted({0, len(player) // 2, len(player) - 1}):
            at(page, frame)
            assert page.evaluate(JS.faults) == [], f"frame {frame} at {width} pixels"
