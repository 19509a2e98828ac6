"""Texture fetches: what the picture says is what a unit with four banks does for the recording."""

from dataclasses import replace

import pytest
from players import finish
from sampling import drawn_by_day

import cypresskit as ck
from cypresskit.draw.texture_fetch import texture_fetch
from cypresskit.timing import simulate


@drawn_by_day("l1_bytes", [0, 64, 512], 1)
def test_a_board_with_any_caches_is_drawn_and_timed(l1_bytes):
    ways = 1 if l1_bytes == 64 else 8
    board = replace(ck.HD5870, l1_bytes=l1_bytes, l1_ways=ways, l2_bytes=0)
    report = simulate("sgemm_nn", 64, k=16, device=board)
    assert report.clocks > 0 and (report.hits["L1"] == 0 or l1_bytes)
    for draw in (ck.draw.chip, ck.draw.wavefronts):
        draw(report)


@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_nn", "sgemm_tn_compute"])
def test_the_clocks_of_a_fetch_are_drawn_as_they_are_timed(kernel):
    report = simulate(kernel, 64, k=4)
    clocks = report.busy["texture"] * report.clocks * ck.HD5870.simd_engines / report.wavefronts
    assert finish(texture_fetch(kernel), kernel) == round(clocks), "the 16 fetches that k = 4 has"


def test_narrow_texels_and_none_are_refused():
    for kernel, why in (("sgemm_naive", "fewer than 16"), ("sgemm_nn_buffer", "nothing")):
        with pytest.raises(ValueError, match=f"{kernel}.*{why}"):
            texture_fetch(kernel)
