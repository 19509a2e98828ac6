"""The register block: its cells and frames are what was recorded."""

import numpy as np
import pytest
from players import A_AND_B, drawn, record, recorded

from cypresskit import draw


@pytest.fixture(scope="module")
def run():
    return record("sgemm_tn")


@pytest.mark.parametrize("item", [(3, 0), (0, 2), (-1, 0), 6, -1])
def test_a_work_item_outside_the_domain_is_refused(item):
    with pytest.raises(ValueError, match=r"no work-item .* in a domain of 3 x 2"):
        record("sgemm_tn", item=item)


def test_the_map_of_c_chooses_the_work_item_that_is_shown(run):
    a, b = A_AND_B
    places = [(x, y) for y in range(2) for x in range(3)]
    player = draw.register_block(*recorded("sgemm_tn", a, b, *places))
    assert [name for name, _ in player.scenes] == [str(place) for place in places]
    tag = player.figures[0].tags[0]
    assert sorted(tag["sceneOfKey"]) == [(10_000 + item, item) for item in range(6)]
    items = next(m for f in player.figures for m in f.references() if m.name == "items").data
    assert np.lexsort((items["x"], items["y"])).tolist() == list(range(6))
    values = next(t.frames for t in player.tracks if t.source.name == "cells C")
    for n, (x, y) in enumerate(places):
        last = sum(count for _, count in player.scenes[: n + 1]) - 1
        done = values[last].reshape(8, 8), (a.T @ b)[8 * y : 8 * y + 8, 8 * x : 8 * x + 8]
        assert (
            set(done[0].ravel()) <= {0, *done[1].ravel()}
            and len(drawn(player, "cells C")["x"]) == 64
        )
    with pytest.raises(ValueError, match="work-items of one launch"):
        draw.register_block(recorded("sgemm_tn", a, b, (0, 0))[0], run[3])
