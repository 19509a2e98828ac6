"""The roofline: roofs, crosses and diamonds."""

import numpy as np
import pytest
from bokeh.models import Scatter
from pages import frames, reports, view
from said import Rule, Said, assert_held, tick

import cypresskit as ck
from cypresskit import published
from cypresskit.teach.l02_why_blocks import checks as why_blocks

BYTES = {"single": 4, "double": 8}


def rules(player, paces=None) -> dict[str, Rule]:
    """What the numbers have to be, from the device's data sheet and the reports alone."""
    paces, board = paces or {}, ck.HD5870

    def caption(say: Said, _):
        b = say.frame + 1
        numbers = [b, b]
        for precision, size in BYTES.items():
            if f"{precision}**:" in say.text:
                allowed = min(board.peak_gflops(precision), board.texture_gb_s * b / size)
                numbers += [b / size, allowed]
        if report := paces.get(b):
            numbers += [report.gflops, report.registers, report.active]
        return numbers

    def uses(say: Said, _):
        return [say.frame + 1] * 3

    def number(say: Said, shown):
        """A tick of a chart, or the number of a point."""
        return tick(say, shown) if "tick" in say.data else shown[0] in range(1, 10)

    return {
        r"Block # x #\..*(\n.*)*": caption,
        r"# x #: each number of A and B is used # times?": uses,
        r"#": number,
    }


def crosses(player, marker: str = "x") -> list[list[tuple[float, float]]]:
    """(flops per byte, Gflop/s) of the marks in each chart."""
    charts = []
    for figure in player.figures[1:]:
        data = [
            renderer.data_source.data
            for renderer in figure.renderers
            if isinstance(renderer.glyph, Scatter) and renderer.glyph.marker == marker
        ]
        charts.append([(x, y) for columns in data for x, y in zip(columns["x"], columns["y"])])
    return charts


def published_crosses(precision: str) -> list[tuple[float, float]]:
    found = []
    for row in published.kernels().values():
        if row["precision"] == precision and "gflops_max" in row and row["id"] in ck.kernels:
            height, width = ck.kernels[row["id"]].block
            words = (height + width) / (2 * height * width)  # for a flop
            found.append((1 / (words * BYTES[precision]), row["gflops_max"]))
    return sorted(found)


@pytest.mark.slow
def test_every_number_is_its_sources():
    for player in (ck.teach.why_blocks.roofline(), ck.teach.why_blocks.roofline(reports()[1:])):
        assert_held(player, rules(player))


def test_every_number_of_a_kernels_blocks_is_its_reports():
    paces = {b: why_blocks.pace(b, 768) for b in (4, 8)}
    player = ck.teach.why_blocks.roofline(paces)
    assert_held(player, rules(player, paces))


def test_the_crosses_are_the_published_kernels_at_their_blocks():
    for chart, precision in zip(crosses(ck.teach.why_blocks.roofline()), BYTES, strict=True):
        want = published_crosses(precision)
        assert len(chart) == len(want) > 1
        assert np.ravel(sorted(chart)) == pytest.approx(np.ravel(want), rel=0.02)


def test_the_diamonds_are_the_reports():
    report = reports()[1]
    (diamond,) = crosses(ck.teach.why_blocks.roofline([report]), "diamond")[0]
    assert diamond == pytest.approx((report.flops / report.bytes["L1"], report.gflops), rel=0.02)


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


def test_a_block_falls_off_the_roof_for_want_of_wavefronts():
    """Lesson 02's experiment, asked of the picture: 8 x 8 is the fastest, and 16 x 16 loses two
    fifths.
    """
    paces = {b: why_blocks.pace(b, 768) for b in (4, 8, 16)}
    player = ck.teach.why_blocks.roofline(paces)
    shown = frames(player, "paces single", "y")
    for frame, b in enumerate(range(1, 17)):
        assert np.isfinite(shown[frame]).tolist() == [of <= b for of in paces], "no peeking"
    assert shown[-1].argmax() == list(paces).index(8), "the highest point of the curve"
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
