"""The register block: its cells and frames are what was recorded."""

import numpy as np
import pytest
from pages import drawn, record, recorded, whole_numbers

import cypresskit as ck
from cypresskit import draw
from cypresskit.draw.block import find_block
from cypresskit.draw.block_steps import BlockSteps
from cypresskit.kernels import samples


@pytest.fixture(scope="module")
def run():
    return record("sgemm_tn")


def test_a_run_that_is_cut_off_has_no_summary():
    recorders = [ck.Recorder(0, steps) for steps in (1000, 100)]
    samples.run(ck.kernels["sgemm_tn"], 16, 24, 8, *recorders)
    last = [draw.register_block(each.recording).captions[-1] for each in recorders]
    assert ["is complete" in caption for caption in last] == [True, False]


@pytest.mark.parametrize("item", [(3, 0), (0, 2), (-1, 0), 6, -1])
def test_a_work_item_outside_the_domain_is_refused(item):
    with pytest.raises(ValueError, match=r"no work-item .* in a domain of 3 x 2"):
        record("sgemm_tn", item=item)


def test_every_frame_has_the_recorded_values_and_frames_what_is_fetched(run):
    recording = run[3]
    block = find_block(recording)
    frames = BlockSteps(recording, block)
    groups = (block.totals, block.b, block.a)
    for step in range(0, len(recording), 7):
        registers = recording.registers(step)
        for shown, cells in zip(frames.groups, groups):
            want = [
                registers.get(r, np.zeros(4, np.uint32)).view(np.float32)[c]
                for r, c in cells.values()
            ]
            assert np.array_equal(shown.values[step], np.array(want, np.float32))
    for step, resource, x, y, _ in recording.fetches.tolist():
        assert frames.marks[step, resource].tolist() == [y, x]
    whole = frames.k[np.all(frames.k >= 0, axis=1)]
    assert set(map(tuple, whole.tolist())) >= {(k, k + 1, k, k + 1) for k in (0, 2, 4)}


def test_the_map_of_c_chooses_the_work_item_that_is_shown(run):
    a, b = whole_numbers(4, (8, 16), (8, 24))
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
