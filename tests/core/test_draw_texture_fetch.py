"""Texture fetches: what the picture says is what a unit with four banks does for the recording."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import by_day
from pages import (
    finish,
)

import cypresskit as ck
from cypresskit.chip.work import quad_clocks
from cypresskit.draw.texture_fetch import texture_fetch
from cypresskit.kernels import samples
from cypresskit.timing import simulate


@pytest.mark.parametrize("kernel", ["dgemm_nn", "sgemm_64x64_lds"])
def test_a_fetch_takes_the_clocks_of_the_timing_model(kernel):
    """The picture queues texels at banks; the model counts the fullest bank. Both know four banks
    of 16 bytes.
    """
    traffic = samples.record_traffic(kernel, n=max(32, 8 * ck.kernels[kernel].block[0]), k=16)
    clocks = 0
    for access in [a for a in traffic.accesses if a.kind == "fetch"][:16]:
        texel = 4 * traffic.launch.textures[access.resource].words.shape[2]
        row = -(-traffic.launch.textures[access.resource].width * texel // 64) * 64
        places = access.y.astype(np.int64) * row + access.x * texel
        clocks += sum(
            quad_clocks(places[q : q + 4], access.active[q : q + 4], 4) for q in range(0, 64, 4)
        )
    assert finish(texture_fetch(kernel), kernel) == clocks


@pytest.mark.parametrize("l1_bytes", by_day([0, 64, 512], 1))
def test_a_board_with_any_caches_is_drawn_and_timed(l1_bytes):
    ways = 1 if l1_bytes == 64 else 8
    board = replace(ck.HD5870, l1_bytes=l1_bytes, l1_ways=ways, l2_bytes=0)
    report = simulate("sgemm_nn", 64, k=16, device=board)
    assert report.clocks > 0 and (report.hits["L1"] == 0 or l1_bytes)
    for draw in (ck.draw.chip, ck.draw.wavefronts):
        draw(report)


def test_the_clocks_of_a_fetch_are_drawn_as_they_are_timed():
    report = simulate("dgemm_nn", 64, k=4)
    clocks = report.busy["texture"] * report.clocks * ck.HD5870.simd_engines / report.wavefronts
    player = texture_fetch("dgemm_nn")
    assert finish(player, "dgemm_nn") == round(clocks), "the 16 fetches that k = 4 has"


def test_narrow_texels_and_none_are_refused():
    for kernel, why in (("sgemm_naive", "fewer than 16"), ("sgemm_nn_buffer", "nothing")):
        with pytest.raises(ValueError, match=f"{kernel}.*{why}"):
            texture_fetch(kernel)
