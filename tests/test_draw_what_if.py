"""The picture of limits says what the limits say."""

import numpy as np
import pytest
from said import agrees, said, shown

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.what_if import BARS


@pytest.fixture(scope="module")
def prices():
    return ck.price(ck.simulate("sgemm_nn", 256, progress=False))


@pytest.fixture(scope="module")
def player(prices):
    return draw.what_if(prices)


def test_a_bar_ends_where_the_next_loss_begins(player, prices):
    reached = [prices.report.peak_gflops]
    reached += [step.reached for step in ck.what_if(prices.report) if step.reached is not None]
    sources = {r.data_source.name: r.data_source for r in player.figures[0].renderers}
    last = len(player.captions) - 1
    kept, lost = (shown(player, sources[name], last)["w"] for name in ("reached", "lost"))
    scale = BARS[1] / max(reached)
    assert kept == pytest.approx(scale * np.array(reached), abs=0.02)
    assert (kept + lost)[1:] == pytest.approx(
        scale * np.maximum(reached[:-1], reached[1:]), abs=0.03
    )
    first = shown(player, sources["reached"], 0)["w"]
    assert first[0] == kept[0] and max(first[1:]) < 0.1


def test_every_speed_and_gain_that_is_written_is_a_limits(player, prices):
    texts = {s.text for s in said(player, len(player.captions) - 1)}
    for step in ck.what_if(prices.report):
        if step.gain is not None:
            assert f"{100 * step.gain:.1f} %" in texts
        if step.reached is not None:
            assert f"{step.reached:,.0f}" in texts
    worst, _ = ck.what_if(prices.report).losses[0]
    assert agrees(player.captions[-1].split()[-1].rstrip("."), worst)


def test_a_program_without_flops_is_rejected():
    program = ck.kernels["sgemm_nn"].program
    shape = ck.kernels["sgemm_nn"].shape(64, 64, 64, 1.0, 0.0, 1)
    with pytest.raises(ValueError, match="nobody said how many flops"):
        draw.what_if(ck.simulate(program, launch=shape))
