"""The chip: where its dots, tiles and bars stand."""

from dataclasses import replace

import numpy as np
import pytest
from pages import (
    frames,
    reports,
)

import cypresskit as ck
from cypresskit import draw
from cypresskit.timing import simulate


@pytest.mark.parametrize("engines", [2, 18, 20])
def test_the_chip_has_room_for_all_its_engines(engines):
    board = replace(ck.HD5870, simd_engines=engines)
    fig = draw.chip(simulate("sgemm_tn", 64, device=board)).figures[0]
    boxes = next(r for r in fig.renderers if r.data_source.name == "engines")
    (x, y), box = (boxes.data_source.data[axis] for axis in "xy"), boxes.glyph
    assert len(x) == len({*zip(x, y)}) == engines
    assert (
        x.max() + box.width / 2 < fig.x_range.end and y.max() + box.height / 2 < fig.y_range.start
    )


@pytest.mark.parametrize("kernel", ["sgemm_tn", "sgemm_64x64_lds", "dgemm_nn"])
def test_use_over_time_adds_up_to_the_reports_shares(kernel):
    report = simulate(kernel, 640)
    assert report.simulated == 1 and report.use.clocks[-1] == report.clocks
    for unit, shares in report.use.shares.items():
        assert shares.mean() == pytest.approx(report.busy[unit], abs=0.002)
    small = simulate(kernel, 128)
    assert (
        small.wavefronts < 20
        and (small.use.shares["ALU"].max(axis=0) > 0).sum() == small.wavefronts
    )


def test_dots_tiles_and_bars_stand_where_the_report_says():
    """A dot in its wavefront's engine, a tile where its part of C is, a bar as high as its unit is
    busy.
    """
    report = reports()[1]
    player, use = draw.chip(report), report.use
    sources = {r.data_source.name: r.data_source for r in player.figures[0].renderers}
    boxes = next(r for r in player.figures[0].renderers if r.data_source.name == "engines").glyph
    engines = sources["engines"].data
    tiles = {side: frames(player, "map", side) for side in ("x", "y", "shade")}
    row, column = np.divmod(np.arange(report.wavefronts), 512 // 64)
    for side, number in (("x", column), ("y", row)):
        along = np.array([tiles[side][0][number == n].mean() for n in range(8)])
        assert np.ptp(np.diff(along)) < 0.1 < np.diff(along).min()
        assert np.allclose(tiles[side][0], along[number], atol=0.1)
    for frame in (0, 40, 80):
        clock = use.clocks[-1] * frame / 119
        engine, start, end = use.wavefronts.T
        running = (start < clock) & (end > clock)
        states = np.bincount(tiles["shade"][frame], minlength=3)
        assert states[1:].tolist() == [running.sum(), (end <= clock).sum()]
        x, y, w = (frames(player, "dots", side)[frame] for side in "xyw")
        inside = [
            np.sum((w > 1) & (abs(x - a) < boxes.width / 2) & (abs(y - b) < boxes.height / 2))
            for a, b in zip(engines["x"], engines["y"])
        ]
        assert inside == np.bincount(engine[running].astype(int), minlength=20).tolist()
    for unit, side in (("ALU", "h"), ("texture", "h"), ("L2", "w"), ("DRAM", "w")):
        room = next(
            getattr(r.glyph, {"h": "height", "w": "width"}[side])
            for r in player.figures[0].renderers
            if r.data_source.name == f"room {unit}"
        )
        percent = np.maximum(frames(player, unit, "percent"), 0.5)
        assert np.allclose(frames(player, unit, side), percent / 100 * room, atol=0.1)
