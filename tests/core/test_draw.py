"""Pictures without a browser: what a player holds and weighs, how it reads as text, and where its
data come from.
"""

import os
import re

import numpy as np
import pytest
from bokeh.models import ColumnDataSource
from players import record, view
from sampling import from_rows

import cypresskit as ck
from cypresskit.draw.player import Track, format_short


@pytest.fixture(scope="module")
def player():
    return ck.draw.register_block(record("sgemm_tn")[3])


def test_a_full_disk_leaves_an_older_file_as_it_was(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    file = tmp_path / "page.html"
    file.write_text("; name: older")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: .*page\.html"):
        view("digits").save(file)
    assert file.read_text() == "; name: older" and list(tmp_path.iterdir()) == [file]


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


def test_a_cell_without_a_number_is_blank_with_names_too():
    frames = np.array([[-1, 0], [1, -2]], np.int64)
    source = ColumnDataSource({"x": [0, 1], "t": ["", ""]})
    for labels in ({"names": ("first", "last")}, {"prefix": "R"}):
        texts = dict(Track(source, "v", frames, text="t", **labels).as_dict()["texts"])
        assert texts[-1] == texts[-2] == "" and texts[0] and texts[1]


def test_a_notebook_output_is_light_and_falls_back_to_text(player):
    bundle = player.bundle()
    assert bundle["text/plain"] == repr(player)
    assert len(bundle["text/html"]) < 120_000
    assert repr(player) in bundle["text/html"].replace("&#x27;", "'")
    assert "http" not in re.sub(r"https?://(www\.w3\.org|[\w.]*bokeh)", "", bundle["text/html"])


def test_a_player_can_be_shown_and_saved_again_and_again(player, tmp_path):
    sizes = [len(player.bundle()["text/html"]) for _ in range(2)]
    pages = [player.save(tmp_path / f"{n}.html").read_text() for n in range(2)]
    assert abs(sizes[0] - sizes[1]) < 100
    assert all(f"<title>{player.title}" in page and len(page) < 3_000_000 for page in pages)
    assert not re.search(r'<(script|link)[^>]+(src|href)="(?!data:)', pages[0])


@from_rows
def test_short_numbers(value, text):
    assert format_short(value) == text
