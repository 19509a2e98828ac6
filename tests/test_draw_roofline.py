"""The roofline: roofs, crosses and diamonds."""

import sys

import numpy as np
import pytest
from bokeh.models import Scatter, Text
from pages import frames, reports, view
from said import Rule, Said, assert_held, near, on_scale, unheld

import cypresskit as ck
from cypresskit import draw, published
from cypresskit.teach import l02_why_blocks

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

    charts = []  # of each: flops per byte at an x, and Gflop/s at a y
    blocks = np.arange(1, 17)
    for precision, size in BYTES.items():
        ring = f"b {precision} HD 5870, texture cache"
        if all(track.source.name != ring for track in player.tracks):
            continue
        allowed = np.minimum(board.peak_gflops(precision), board.texture_gb_s * blocks / size)
        x, y = (frames(player, ring, side)[:, 0] for side in "xy")
        charts.append(
            (x.min(), on_scale(x, blocks / size, log=True), on_scale(y, allowed, log=True))
        )

    def tick(say: Said, shown):
        """A tick of a chart, where the ring of the texture cache is at that number; or the number
        of a point.
        """
        x = say.data["x"]
        if len(x) == 1:
            return shown[0] in range(1, 10)
        right = len(charts) > 1 and np.median(x) > charts[1][0] - 100
        _, across, up = charts[int(right)]
        return near(shown[0], across(say.cell("x")) if np.ptp(x) else up(say.cell("y")))

    return {
        r"Block # x #\..*(\n.*)*": caption,
        r"# x #: each number of A and B is used # times?": uses,
        r"#": tick,
    }


def crosses(player, marker: str = "x") -> list[list[tuple[float, float]]]:
    """(flops per byte, Gflop/s) of the marks in each chart, read off its axes' labels."""
    figure = player.figures[0]
    axes: dict[str, list] = {"x": [], "y": []}
    marks = []
    for renderer in figure.renderers:
        data, glyph = renderer.data_source.data, renderer.glyph
        if isinstance(glyph, Scatter) and glyph.marker == marker:
            marks += zip(data["x"], data["y"])
        if not isinstance(glyph, Text) or not isinstance(glyph.text, str):
            continue
        texts = [str(text) for text in data.get(glyph.text, ())]
        if len(texts) < 3 or not all(text.replace(".", "").isdigit() for text in texts):
            continue
        for along, across in (("x", "y"), ("y", "x")):
            if len(set(data[across])) == 1 and len(set(data[along])) == len(texts):
                axes[along].append((np.array(data[along]), np.log(np.array(texts, float))))
    charts = []
    for (x, bytes_), (y, speed) in zip(axes["x"], axes["y"], strict=True):
        inside = [mark for mark in marks if x.min() - 40 <= mark[0] <= x.max() + 40]
        charts.append(
            [(read_off(x, bytes_, mark[0]), read_off(y, speed, mark[1])) for mark in inside]
        )
    return charts


def read_off(place: np.ndarray, value: np.ndarray, at: float) -> float:
    """What stands at a place of a logarithmic axis."""
    slope, start = np.polyfit(place, value, 1)
    return float(np.exp(start + slope * at))


def published_crosses(precision: str) -> list[tuple[float, float]]:
    found = []
    for row in published.kernels().values():
        if row["precision"] == precision and "gflops_max" in row and row["id"] in ck.kernels:
            height, width = ck.kernels[row["id"]].block
            words = (height + width) / (2 * height * width)  # for a flop
            found.append((1 / (words * BYTES[precision]), row["gflops_max"]))
    return sorted(found)


def test_every_number_is_its_sources():
    for player in (draw.roofline(), draw.roofline(reports()[1:])):
        assert_held(player, rules(player), frames=range(16))


def test_every_number_of_a_kernels_blocks_is_its_reports():
    paces = {b: l02_why_blocks.pace(b, 768) for b in (4, 8)}
    player = draw.roofline(paces)
    assert_held(player, rules(player, paces), frames=range(16))


def test_the_crosses_are_the_published_kernels_at_their_blocks():
    for chart, precision in zip(crosses(draw.roofline()), BYTES, strict=True):
        want = published_crosses(precision)
        assert len(chart) == len(want) > 1
        assert np.ravel(sorted(chart)) == pytest.approx(np.ravel(want), rel=0.02)


def test_the_diamonds_are_the_reports():
    report = reports()[1]
    (diamond,) = crosses(draw.roofline([report]), "diamond")[0]
    assert diamond == pytest.approx((report.flops / report.bytes["L1"], report.gflops), rel=0.02)


def test_crosses_at_half_their_flops_per_byte_are_found(monkeypatch):
    module = sys.modules["cypresskit.draw.roofline"]
    true = module._points
    half = lambda drawn, precision, size, given: true(drawn, precision, 2 * size, given)  # noqa: E731
    monkeypatch.setattr(module, "_points", half)
    for chart, precision in zip(crosses(draw.roofline()), BYTES, strict=True):
        assert np.ravel(sorted(chart)) != pytest.approx(
            np.ravel(published_crosses(precision)), rel=0.02
        )


def test_a_roof_of_another_board_is_found(monkeypatch):
    true = rules(draw.roofline())
    module = sys.modules["cypresskit.draw.roofline"]
    name, board, rate, dash = module.ROOFS[0]
    monkeypatch.setattr(module, "ROOFS", ((name, board, rate / 2, dash), *module.ROOFS[1:]))
    assert unheld(draw.roofline(), true)


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
    paces = {b: l02_why_blocks.pace(b, 768) for b in (4, 8, 16)}
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
