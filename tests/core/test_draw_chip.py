"""The chip: its occupancy, and its units' use over time."""

from dataclasses import replace

import pytest
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit import draw
from cypresskit.timing import simulate


@pytest.mark.parametrize("engines", [2, 18, 20])
def test_the_chip_has_room_for_all_its_engines(engines):
    board = replace(ck.HD5870, simd_engines=engines)
    fig = draw.chip(simulate("sgemm_tn", 64, device=board)).figures[1]
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


@drawn_by_day("l1_bytes", [0, 64, 512], 1)
def test_a_board_with_any_caches_is_drawn_and_timed(l1_bytes):
    ways = 1 if l1_bytes == 64 else 8
    board = replace(ck.HD5870, l1_bytes=l1_bytes, l1_ways=ways, l2_bytes=0)
    report = simulate("sgemm_nn", 64, k=16, device=board)
    assert report.clocks > 0 and (report.hits["L1"] == 0 or l1_bytes)
    for view in (draw.chip, draw.wavefronts):
        view(report)
