"""The first updates of NN and TN: what the picture counts is what the recorded fetches hold."""

import numpy as np
import pytest
from pages import drawn, frames

import cypresskit as ck
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Traffic


@pytest.mark.parametrize("name", ["dgemm_nn", "dgemm_tn"])
def test_it_counts_the_texels_of_each_update(name):
    """A number's value of k: its column in A as it is, its row in A transposed and in B."""
    kernel = ck.kernels[name]
    traffic = Traffic()
    run(kernel, 32, 32, kernel.k_step, traffic)
    of_k = [
        {int(a.y[0])} if a.resource or kernel.trans_a else {2 * int(a.x[0]), 2 * int(a.x[0]) + 1}
        for a in traffic.accesses
    ]
    player = ck.teach.texture_cache.first_updates()
    for n, caption in enumerate(player.captions):
        texels = sum(min(ks) <= n for ks in of_k)
        used = sum(k <= n for ks in of_k for k in ks) * 2 - sum(
            (max(ks) <= n) + (min(ks) <= n) for ks in of_k if len(ks) == 2
        )
        assert f"**{name}** needs {texels} texels, {2 * texels} numbers, and has" in caption
        assert f"used {used} of them" in caption
        for matrix in "AB":
            rings = frames(player, f"used {name} {matrix}", "x")[n]
            assert np.isfinite(np.array(rings, float)).sum() == 4, "four of A and four of B"
    assert len(drawn(player, f"{name} A")["x"]) == 16 == len(drawn(player, f"{name} B")["x"])
