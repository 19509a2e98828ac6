"""The roofline with a reader's blocks under it."""

import pytest
from pages import drawn

import cypresskit as ck
from cypresskit.teach.l02_why_blocks import checks as why_blocks


def test_a_block_falls_off_the_roof_for_want_of_wavefronts():
    """Lesson 02's experiment, asked of the picture: 8 x 8 is the fastest, and 16 x 16 loses two
    fifths; the published kernels give no hint of it.
    """
    paces = {b: why_blocks.simulate_block(b, 768) for b in (4, 8, 16)}
    player = ck.teach.why_blocks.roofline(paces)
    data = drawn(player, "points plain kernels, modeled")
    shown = dict(zip(data["x"], data["y"]))
    assert shown == pytest.approx({b: report.gflops for b, report in paces.items()})
    assert (
        max(shown, key=shown.__getitem__) == 8
        and paces[16].active_wavefronts < paces[8].active_wavefronts
    )
    assert "measured" not in repr(player)
