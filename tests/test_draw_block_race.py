"""The race of blocks: what it says is what the device counts."""

import numpy as np
from pages import (
    finish,
    frames,
    view,
)

import cypresskit as ck


def test_the_largest_block_is_done_first():
    """Lesson 01, asked of the picture: 1/b words per flop, and why: how often each element is
    fetched.
    """
    player, n = view("block_race"), 8
    assert player.captions[-1] == "8 x 8 needed the fewest words: 128 against 1024."
    for b in (1, 2, 8):
        name = f"{b} x {b}"
        words = ck.teach.register_block.words_per_flop(b, n) * 2 * n**3
        assert finish(player, name) == words == 2 * n**3 // b
        fetched, terms = np.split(frames(player, f"cells {name}", "times"), [2 * n * n], axis=1)
        assert (fetched[-1] == n // b).all(), "every element of A and B"
        assert (terms[-1] == n).all() and (np.diff(terms, axis=0) >= 0).all()
        rate = next(t for t in player.tracks if t.source.name == f"rate {name}")
        assert rate.names[-1] == f"{1 / b:.3f} words per flop"
        at = len(player) // 20
        words = round(at * 2 * n**3 / (len(player) - 1))
        each = 2 * b * b / (2 * b)
        assert abs(2 * terms[at].sum() - min(words * each, 2 * n**3)) <= 2 * b * b
