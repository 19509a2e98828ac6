"""The element of C that gets a star."""

import numpy as np
import pytest
from pages import (
    recorded,
    whole_numbers,
)

import cypresskit as ck
from cypresskit.draw.block import find_block
from cypresskit.kernels import samples


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


def test_pictures_without_the_element_have_and_promise_no_star():
    for player in (
        ck.draw.chip("sgemm_tn", [128], element=(5, 200)),
        ck.draw.chip("sgemm_tn", [128]),
        ck.draw.register_block("sgemm_tn", element=(200, 3)),
        ck.draw.register_block("sgemm_tn"),
    ):
        assert not any(track.column == "mine" for track in player.tracks)
        assert "\N{BLACK STAR}" not in player.html + player.still()


def test_the_star_is_named_with_the_work_item_that_has_it():
    a, b = whole_numbers(4, (8, 16), (8, 24))
    recordings = recorded("sgemm_tn", a, b, *((x, y) for y in range(2) for x in range(3)))
    player = ck.draw.register_block(*recordings[::-1], element=(5, 3))
    assert "your C[5, 3], in work-item (0, 0)" in player.html


@pytest.mark.parametrize(
    "place", [(5,), (256, 0), (-1, 4), (1.5, 2), ("a", 2), (1, 2, 3), (True, 0)]
)
def test_follow_rejects_what_is_no_element_of_256_x_256(place):
    with pytest.raises(ValueError, match="give a row and a column from 0 to 255"):
        ck.draw.follow(*place)
