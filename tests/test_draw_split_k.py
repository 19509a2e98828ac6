"""A product with reduction: what it says and shows is what a wavefront's accesses were."""

import numpy as np
import pytest
from pages import frames

import cypresskit as ck
from cypresskit.kernels.samples import run
from cypresskit.machine.traffic import Traffic

HELPED = ["sgemm_nn_reduce2", "sgemm_nn_reduce4"]


@pytest.mark.parametrize("name", HELPED)
def test_it_shows_who_sums_which_part(name):
    """By the values of k that a work-item's fetches of B have, which the picture doesn't use."""
    kernel = ck.kernels[name]
    player = ck.teach.small.split_k(name)
    rows, columns = kernel.convention.multiple[:2]
    traffic = Traffic()
    run(kernel, rows, columns, kernel.k_step, traffic)
    of_b = [a for a in traffic.accesses if a.kind == "fetch" and a.resource == 1]
    part = np.array([{int(a.y[n]) // 4 for a in of_b} for n in range(64)])
    assert all(len(parts) == 1 for parts in part)
    part = np.array([*map(min, part)])
    shades = frames(player, "items", "shade")
    assert (np.array(shades[0]) == part).all()
    stores = [a for a in traffic.accesses if a.kind == "store"]
    loads = [a for a in traffic.accesses if a.kind == "load"]
    helpers = np.flatnonzero(np.any([a.active for a in stores], axis=0))
    leaders = np.flatnonzero(np.any([a.active for a in loads], axis=0))
    idle = np.array(shades[-1]) != part
    assert set(np.flatnonzero(idle)) == set(helpers) and not set(helpers) & set(leaders)


@pytest.mark.parametrize("name", ["sgemm_tn", "sgemv_n_reduce4", "sgemm_64x64_lds"])
def test_a_kernel_without_shared_blocks_is_refused(name):
    with pytest.raises(ValueError, match="sgemm_nn_reduce4 does, and sgemm_nn_reduce2"):
        ck.teach.small.split_k(name)
