"""A reduction: what it says is what the accesses of one wavefront were."""

import numpy as np
import pytest
from pages import (
    drawn,
    finish,
    frames,
)

import cypresskit as ck


@pytest.mark.parametrize("kernel", ["sgemv_n_reduce2", "sgemv_n_reduce4"])
def test_a_reduction_shows_who_reads_and_who_adds(kernel):
    """Lesson 08's questions, asked of the picture: a row's texels go round, and leaders add the
    sums of all parts.
    """
    player, parts = ck.teach.small.reduction(kernel), ck.kernels[kernel].convention.parts
    steps, leaders = finish(player, kernel), 64 // parts
    for name, column in (
        (kernel, lambda texel: texel % parts),
        ("sgemv_n", lambda texel: 0 * texel),
    ):
        texel = frames(player, f"texels {name}", "shade")
        rows = texel[-1].reshape(leaders * 4, -1)
        assert (rows == column(np.arange(rows.shape[1]))).all() and (texel[0] == 8).all()
    several = (frames(player, f"{name} {kernel}", "shade") for name in ("item", "lds", "sum"))
    item, lds, sums = ((shade < parts).sum(axis=1) for shade in several)
    assert item[[0, -1]].tolist() == [64, leaders] and lds[[0, -1]].tolist() == [0, 64]
    assert (np.asarray(drawn(player, "item sgemv_n")["shade"]) < parts).sum() == leaders, (
        "the others have no row"
    )
    assert sums[steps - parts + 1 : steps + 1].tolist() == [
        leaders * n for n in range(1, parts + 1)
    ]
