"""Pictures without a browser: what a player holds and weighs, how it reads as text, and where its
data come from.
"""

import base64
import os
import re
import sys

import numpy as np
import pytest
from bokeh.models import ColumnDataSource
from pages import pipeline, recorded, view, whole_numbers

import cypresskit as ck
from cypresskit.draw.block import find_block
from cypresskit.draw.player import Track, short
from cypresskit.draw.register_block import _Frames
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels import samples
from cypresskit.teach import l12_contest
from cypresskit.timing import Table


def record(name: str, item=(1, 1), blocks=(2, 3), turns: int = 3, integers: bool = False):
    """A recorded run of a kernel of the catalogue; A and B as stored, and the recording."""
    kernel = ck.kernels[name]
    rng = np.random.default_rng(3)
    (rows, columns), k = kernel.multiple, kernel.k_step * turns
    m, n = blocks[0] * rows, blocks[1] * columns
    shapes = ((k, m) if kernel.trans_a else (m, k)), (k, n)
    draw = (lambda s: rng.integers(-4, 5, s)) if integers else rng.standard_normal
    a, b = (draw(shape).astype(kernel.dtype) for shape in shapes)
    return kernel, a, b, recorded(name, a, b, item)[0]


@pytest.fixture(scope="module")
def run():
    return record("sgemm_tn")


@pytest.fixture(scope="module")
def player(run):
    return ck.draw.register_block(run[3])


# -- recordings


def test_a_recording_has_the_registers_of_its_work_item_alone(run):
    _, a, b, recording = run
    block = find_block(recording)
    registers = recording.registers(block.updates[-1].step)
    values = {place: registers[r].view(np.float32)[c] for place, (r, c) in block.totals.items()}
    exact = a.T.astype(np.float64) @ b
    assert sorted(values) == [(i, j) for i in range(8, 16) for j in range(8, 16)]
    for (i, j), value in values.items():
        assert value == pytest.approx(exact[i, j], abs=1e-5)


SAVED = {
    "sweep.csv": lambda file: Table([{"n": 64}]).save(file),
    "tasks.json": lambda file: pipeline().save(file),
    "page.html": lambda file: view("waiting").save(file),
    "still.svg": lambda file: view("waiting").save(file),
    "entry.il": lambda file: l12_contest.save(l12_contest.BAR, file, "me"),
}


@pytest.mark.parametrize("name", SAVED)
def test_a_full_disk_leaves_an_older_file_as_it_was(name, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    file = tmp_path / name
    file.write_text("older")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=f"No space left on device: .*{name}"):
        SAVED[name](file)
    assert file.read_text() == "older" and list(tmp_path.iterdir()) == [file]


def test_bundles_are_drawn_of_a_program_and_of_a_kernel_too():
    kernel = ck.kernels["sgemm_naive"]
    assert (
        repr(ck.draw.bundles(kernel))
        == repr(ck.draw.bundles(kernel.program))
        == repr(ck.draw.bundles(kernel.name))
    )


def test_fetches_are_the_work_items_stripes(run):
    fetches = run[3].fetches
    for resource in (0, 1):
        _, _, x, y, inside = fetches[fetches[:, 1] == resource].T
        assert set(x) == {2, 3} and set(y) == set(range(6)) and inside.all()


@pytest.mark.parametrize("item", [(3, 0), (0, 2), (-1, 0), 6, -1])
def test_a_work_item_outside_the_domain_is_refused(item):
    with pytest.raises(ValueError, match=r"no work-item .* in a domain of 3 x 2"):
        record("sgemm_tn", item=item)


# -- the block, found in the run


@pytest.mark.parametrize(
    ("name", "item", "size", "phases", "k_axis"),
    [
        ("sgemm_tn", (2, 0), 8, 2, (0, 0)),
        ("sgemm_nn", (1, 1), 8, 4, (1, 0)),
        ("sgemm_tn_37", (0, 1), 8, 2, (0, 0)),
        ("dgemm_tn", (2, 1), 4, 4, (0, 0)),
        ("dgemm_nn", (0, 0), 4, 4, (1, 0)),
        ("sgemm_64x64", 77, 8, 4, (1, 0)),
    ],
)
def test_the_block_is_found_in_any_kernel(name, item, size, phases, k_axis):
    kernel, a, b, recording = record(name, item, blocks=(1, 2) if "64" in name else (2, 3))
    block = find_block(recording)
    x, y = item if isinstance(item, tuple) else (8 + 77 % 64 % 8, 77 % 64 // 8)
    assert block.rows == range(size * y, size * y + size) and block.columns == range(
        size * x, size * x + size
    )
    assert (block.k_axis, block.words) == (k_axis, 2 if kernel.precision == "double" else 1)
    assert block.phases >= 2 and phases % block.phases == 0
    exact = (a.T if kernel.trans_a else a).astype(np.float64) @ b
    last = recording.registers(block.updates[-1].step)
    for (i, j), (register, c) in block.totals.items():
        value = last[register].view(kernel.dtype)[c // block.words]
        assert value == pytest.approx(exact[i, j], abs=1e-4)


# -- the frames


def test_every_frame_has_the_recorded_values(run):
    recording = run[3]
    block = find_block(recording)
    frames = _Frames(recording, block)
    groups = (block.totals, block.b, block.a)
    for step in range(0, len(recording), 7):
        registers = recording.registers(step)
        for values, cells in zip(frames.values, groups):
            want = [
                registers.get(r, np.zeros(4, np.uint32)).view(np.float32)[c]
                for r, c in cells.values()
            ]
            assert np.array_equal(values[step], np.array(want, np.float32))


def test_captions_name_the_elements_that_an_instruction_works_on(run):
    _, _, b, recording = run
    captions = ck.draw.register_block(recording).captions
    assert len(captions) == len(recording)
    fetch = next(c for c in captions if "fetches B" in c)
    assert (
        "fetches B[0, 8:12] into r4: " + f"({', '.join(short(float(v)) for v in b[0, 8:12])})"
        in fetch
    )
    grows = [c for c in captions if "grows by" in c]
    assert len(grows) == 6 * 16
    assert "C[10, 8:12] grows by A[0, 10] times B[0, 8:12], to " in grows[2]
    assert "leaves the loop" in "".join(captions) and captions[-1].endswith("of global memory")


def test_k_is_shown_only_when_a_whole_column_is_there(run):
    recording = run[3]
    frames = _Frames(recording, find_block(recording))
    step = {int(f[0]): f for f in recording.fetches}
    first = sorted(step)[0]
    assert frames.k[first].tolist() == [-1, -1, -1, -1]
    assert frames.k[sorted(step)[7]].tolist() == [0, 1, 0, 1]


# -- several work-items, and sums


@pytest.fixture(scope="module")
def several():
    """All six work-items of one launch."""
    a, b = whole_numbers(4, (8, 16), (8, 24))
    return a, b, recorded("sgemm_tn", a, b, *((x, y) for y in range(2) for x in range(3)))


def test_work_items_of_a_launch_are_scenes_that_the_map_of_c_chooses(several):
    a, b, recordings = several
    player = ck.draw.register_block(*recordings)
    assert [name for name, _ in player.scenes] == [
        "(0, 0)",
        "(1, 0)",
        "(2, 0)",
        "(0, 1)",
        "(1, 1)",
        "(2, 1)",
    ]
    tag = player.figures[0].tags[0]
    assert sorted(tag["goes"]) == [(10_000 + item, item) for item in range(6)]
    assert len(player._repr_mimebundle_()["text/html"]) < 300_000
    values = next(
        t.frames for t in player.tracks if t.source.name == "cells C" and t.column == "value"
    )
    exact, last = a.T @ b, -1
    for n, (recording, (_, frames)) in enumerate(zip(recordings, player.scenes)):
        block, last = find_block(recording), last + frames
        done = last - frames + 1 + block.updates[-1].step
        for cell, (i, j) in enumerate(block.totals):
            assert values[done, cell] == exact[i, j], f"scene {n}"


def test_work_items_of_two_launches_are_no_scenes(several):
    with pytest.raises(ValueError, match="work-items of one launch"):
        ck.draw.register_block(several[2][0], record("sgemm_tn")[3])


def test_a_sum_is_told_term_by_term(several):
    a, b, recordings = several
    player = ck.draw.register_block(recordings[4])
    block = find_block(recordings[4])
    for cell, (i, j) in enumerate(block.totals):
        told = player.about[cell]
        assert "nothing added yet" in told[0][1] and len(told) == 1 + 8
        for k, (frame, words) in enumerate(told[1:]):
            so_far = int(a[: k + 1, i] @ b[: k + 1, j])
            assert (
                words.startswith(f"**C[{i}, {j}]**")
                and f" = {so_far}, after {k + 1} term{'s' * (k > 0)}; " in words
            )
            assert words.endswith(f"A[{k}, {i}] times B[{k}, {j}].")
            register, channel = block.totals[i, j]
            assert recordings[4].registers(frame)[register].view(np.float32)[channel] == so_far


# -- the journey


@pytest.fixture(scope="module")
def journey():
    return ck.draw.explore("sgemm_tn", 64)


def test_a_journey_leads_from_the_chip_to_a_register(journey):
    chip, _, loop, block = journey.levels
    assert [len(level.ways) > 0 for level in journey.levels] == [True, True, True, False]
    for level, below in zip(journey.levels, journey.levels[1:]):
        assert level.ways.keys() <= level.player.about.keys(), "what leads on can be chosen"
        for frame, *key in level.ways.values():
            assert 0 <= frame < len(below.player) and set(key) <= below.player.about.keys()
    line, (frame,) = next(iter(loop.ways.items()))
    assert f"line {line}:" in block.player.captions[frame], "where the line runs first"
    assert len(journey._repr_mimebundle_()["text/html"]) < 300_000
    assert journey.still() == chip.player.still() and repr(journey).count("\n") > 20


def test_a_journey_is_drawn_from_one_simulation_and_one_run(monkeypatch):
    module, calls = sys.modules["cypresskit.draw.explore"], []

    def noted(name: str, real):
        return lambda *given, **more: (calls.append(name), real(*given, **more))[1]

    for name in ("simulate", "run"):
        monkeypatch.setattr(module, name, noted(name, getattr(module, name)))
    ck.draw.explore("sgemm_tn", 64)
    assert calls == ["simulate", "run"]


# -- the player


def test_the_text_form_says_what_is_drawn_and_not_what_comes_out():
    text = repr(ck.draw.register_block(record("sgemm_tn", integers=True)[3]))
    assert re.fullmatch(
        r".+ work-item \(1, 1\)\nC\[8:16, 8:16\], 8 x 8 float32, \d+ steps, 6 rank-1 updates", text
    )


def test_tracks_hold_every_frame_as_changes():
    frames = np.array([[0.0, 1.0], [0.0, 1.0], [-0.0, np.nan], [5.0, np.nan]], np.float32)
    source = ColumnDataSource({"x": [0, 1]})
    changes = Track(source, "v", frames).changes()
    now = [source.data["v"].copy()]
    for frame in range(1, 4):
        now.append(now[-1].copy())
        for at, cell, value in zip(changes["frame"], changes["cell"], changes["value"]):
            if at == frame:
                now[-1][cell] = value
    assert np.array_equal(np.array(now).view(np.uint32), frames.view(np.uint32))
    assert len(changes["frame"]) == 3, "NaN that stays is no change"


def test_a_frame_without_caption_is_refused(player):
    sheet = Sheet("x")
    sheet.tracks = player.tracks
    with pytest.raises(ValueError, match="as many frames in each track as captions"):
        sheet.player([], player.captions[:-1], "")


def test_a_notebook_output_is_light_and_falls_back_to_text(player):
    bundle = player._repr_mimebundle_()
    assert bundle["text/plain"] == repr(player)
    assert len(bundle["text/html"]) < 150_000
    assert repr(player) in bundle["text/html"].replace("&#x27;", "'")
    image = re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', bundle["text/html"])
    assert base64.b64decode(image[1]).decode() == player.still()
    assert "http" not in re.sub(r"https?://(www\.w3\.org|[\w.]*bokeh)", "", bundle["text/html"])


def test_a_player_can_be_shown_and_saved_again_and_again(player, tmp_path):
    sizes = [len(player._repr_mimebundle_()["text/html"]) for _ in range(2)]
    pages = [player.save(tmp_path / f"{n}.html").read_text() for n in range(2)]
    assert abs(sizes[0] - sizes[1]) < 100
    assert all(
        "<title>Register block of sgemm_tn.il" in page and len(page) < 3_000_000 for page in pages
    )
    assert not re.search(r'<(script|link)[^>]+(src|href)="', pages[0])


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (-12, "-12"),
        (99999, "99999"),
        (123456, "1e5"),
        (0.5, ".500"),
        (-0.0625, "-.063"),
    ]
    + [
        (2.5, "2.50"),
        (12.25, "12.3"),
        (-345.6, "-346"),
        (1e-7, "1e-7"),
        (np.inf, "inf"),
        (-np.inf, "-inf"),
    ]
    + [(np.nan, "NaN")],
)
def test_short_numbers(value, text):
    assert short(value) == text


def starred(player, name: str) -> list[int]:
    """Which boxes of a source have a star, in the last frame."""
    moving = [
        track.frames[-1]
        for track in player.tracks
        if (track.source.name, track.column) == (name, "mine")
    ]
    (source,) = {
        r.data_source for f in player.figures for r in f.renderers if r.data_source.name == name
    }
    shown = moving[0] if moving else np.array(source.data.get("star", [])) != ""
    return np.flatnonzero(shown).tolist()


def test_an_element_is_starred_where_it_is_computed():
    mine = ck.draw.follow(69, 131)
    assert "work-item (16, 8) computes it, in row 5 and column 3" in repr(mine)
    assert starred(ck.draw.chip("sgemm_tn", [512], element=mine), "map") == [1 * 8 + 2], "of 8 x 8"
    (star,) = starred(ck.draw.register_block("sgemm_tn", element=(5, 3)), "cells C")
    assert list(find_block(samples.recorded("sgemm_tn")).totals)[star] == (5, 3)


def test_pictures_without_the_element_have_no_star_and_promise_none():
    for player in (
        ck.draw.chip("sgemm_tn", [128], element=(5, 200)),
        ck.draw.chip("sgemm_tn", [128]),
        ck.draw.register_block("sgemm_tn", element=(200, 3)),
        ck.draw.register_block("sgemm_tn"),
    ):
        assert not any(track.column == "mine" for track in player.tracks)
        assert "\N{BLACK STAR}" not in player.html + player.still()


def test_the_star_is_named_with_the_work_item_that_has_it(several):
    _, _, recordings = several
    player = ck.draw.register_block(*recordings[::-1], element=(5, 3))
    assert "your C[5, 3], in work-item (0, 0)" in player.html


@pytest.mark.parametrize(
    "place", [(5,), (256, 0), (-1, 4), (1.5, 2), ("a", 2), (1, 2, 3), (True, 0)]
)
def test_follow_rejects_what_is_no_element_of_256_x_256(place):
    with pytest.raises(ValueError, match="give a row and a column from 0 to 255"):
        ck.draw.follow(*place)
