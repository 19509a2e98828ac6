"""Texture fetches: what the picture says is what a unit with four banks does for the recording."""

import pytest
from players import finish

import cypresskit as ck
from cypresskit.draw.texture_fetch import texture_fetch
from cypresskit.timing import simulate


@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_nn", "sgemm_tn_compute"])
def test_the_clocks_of_a_fetch_are_drawn_as_they_are_timed(kernel):
    report = simulate(kernel, 64, k=4)
    clocks = report.busy["texture"] * report.clocks * ck.HD5870.simd_engines / report.wavefronts
    assert finish(texture_fetch(kernel), kernel) == round(clocks), "the 16 fetches that k = 4 has"
