"""The roofline: roofs, crosses and diamonds."""

import numpy as np
from pages import (
    frames,
    view,
)

from cypresskit import draw


def test_the_roofline_has_the_papers_numbers():
    captions = view("roofline").captions
    assert (
        "2 flops per byte; the HD 5870 reaches 2176 Gflop/s at most, limited by the texture cache"
        in captions[7]
    )
    assert "0.5 flops per byte; the HD 5870 reaches 544 Gflop/s" in captions[3], (
        "b = 4 is what DGEMM needs"
    )
    assert "2720 Gflop/s at most, limited by its arithmetic" in captions[9]
    for name, column in (("A", "h"), ("B", "w"), ("C", "w"), ("C", "h")):
        assert (
            frames(view("roofline"), f"part {name}", column)[:, 0] == 10 * np.arange(1, 17)
        ).all(), "the block"


def test_a_block_falls_off_the_roof_when_registers_leave_no_company():
    """Lesson 02's experiment, asked of the picture: 8 x 8 is the fastest, and 16 x 16 loses two
    fifths.
    """
    from cypresskit.teach import l02_why_blocks as lesson

    paces = {b: lesson.pace(b, 768, 64) for b in (4, 8, 16)}
    player = draw.roofline(paces)
    shown = frames(player, "paces single", "y")
    for frame, b in enumerate(range(1, 17)):
        assert np.isfinite(shown[frame]).tolist() == [of <= b for of in paces], "no peeking"
    assert shown[-1].argmin() == list(paces).index(8), "the highest point of the curve"
    best = max(paces, key=lambda b: paces[b].gflops)
    assert (
        player.figures[0].tags[0]["right"] == f"{best} x {best}"
        and paces[16].gflops < paces[best].gflops
    )
    assert (
        f"{paces[16].registers} registers, room for {paces[16].active} wavefronts"
        in player.captions[15]
    )
    assert str(round(paces[best].gflops)) not in repr(player), "the words don't give it away"
