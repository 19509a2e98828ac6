"""A tile of A through the LDS: what the picture says is what the accesses do at 32 banks."""

import numpy as np
from pages import (
    finish,
    frames,
    view,
)

from cypresskit.kernels import samples


def test_requests_stack_in_their_bank_and_a_layer_takes_a_clock():
    player = view("lds_transpose")
    for name in ("lds", "lds_rows"):
        x, y, wait = (frames(player, f"requests {name}", column) for column in ("x", "y", "wait"))
        assert (wait.max() > 0) == (name == "lds_rows"), "a column at a time has no conflict"
        for frame in range(1, 1 + finish(player, name)):
            here = np.isfinite(x[frame]) & (y[frame] > 130) & (y[frame] < 232)
            words = frames(player, f"requests {name}", "key")[frame, here]
            places = np.unique(np.stack([words, x[frame, here], y[frame, here]], axis=1), axis=0)
            assert len(places) == len(np.unique(places[:, 1:], axis=0)) > 0, (
                "no two words in one place"
            )
            deep = max(np.unique(places[:, 1], return_counts=True)[1])
            assert (deep > 1) == wait[frame].any()


def test_a_work_item_gets_columns_of_its_own_rows():
    player = view("lds_transpose")
    for name in ("lds", "lds_rows"):
        row = frames(player, f"arrived {name}", "shade")
        assert (row[0] == 8).all() and (row[-1].reshape(4, 8) == range(8)).all(), (
            "eight rows of A for each k"
        )
    stored = frames(player, "lds lds_rows", "key")[-1]
    traffic = samples.record_traffic("sgemm_64x64_lds_rows")
    places = next(a for a in traffic.accesses if a.kind == "store").addresses // 4
    assert all(stored[places[k, item]] == 4 * item + k for item in range(64) for k in range(4))
