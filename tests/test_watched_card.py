"""Lesson 10's card: results, accounted memory, and errors that say what holds it."""

from dataclasses import replace

import numpy as np
import pytest

import cypresskit as ck
from cypresskit.isolated.card import CardMemoryError
from cypresskit.teach.l10_larger.watched_card import MARK_SIZE, WatchedCard


@pytest.fixture
def card():
    return WatchedCard(replace(ck.HD5870, name="tiny card", memory_bytes=100_000), 1)


def test_matrices_stay_on_the_card_between_operations(card):
    x, y = np.random.default_rng(1).integers(-9, 10, (2, 13, 21)).astype(np.float64)
    a, b = (card.upload(matrix, "")[0] for matrix in (x, y))
    product = card.multiply(a, b, None, alpha=2.0, trans_b=True)[0]
    twice = card.multiply(a, b, product, beta=-1.0, trans_b=True)[0]
    download = card.services()["card.download"]
    assert np.allclose(download(product), 2 * x @ y.T, rtol=0, atol=1e4 * MARK_SIZE)
    assert np.allclose(download(twice), -x @ y.T, rtol=0, atol=1e4 * MARK_SIZE)
    assert np.array_equal(download(a), card.marked(x)) and (download(a) != x)[x != 0].all()
    assert card.flops == [2 * 13 * 13 * 21] * 2


def test_memory_is_accounted_with_padding(card):
    assert repr(card) == "             0  bytes of 100,000 on the tiny card"
    a, *_, size = card.upload(np.ones((9, 65), np.float32), "a")
    assert size == 16 * 128 * 4  # rows to 8, columns to 64
    *_, other = card.upload(np.ones((1, 1)), "b")
    assert other == 8 * 64 * 8
    assert card.used == size + other
    card.free(a)
    assert card.used == other
    with pytest.raises(ValueError, match="not on the card"):
        card.free(a)


def test_running_out_says_what_holds_the_memory(card):
    card.upload(np.ones((64, 256), np.float32), "weights")
    with pytest.raises(
        CardMemoryError,
        match=r"(?s)too_much, 64 x 192 single needs 49,152 bytes.*65,536  weights",
    ):
        card.upload(np.ones((64, 192), np.float32), "too_much")
    assert card.used == 65_536


def test_a_product_that_does_not_fit_leaves_the_card_as_it_was(card):
    a, *_, size = card.upload(np.ones((64, 256), np.float32), "a")
    with pytest.raises(CardMemoryError):
        card.multiply(a, a, None, trans_a=True)
    with pytest.raises(ValueError, match="inner sizes"):
        card.multiply(a, a, None)
    assert card.used == size and not card.flops
