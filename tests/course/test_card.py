"""Lesson 10's card: results, accounted memory, and errors that say what holds it."""

import numpy as np
import pytest

from cypresskit.teach.l10_larger.visible.card import Card, CardMemoryError


@pytest.fixture
def card():
    return Card(100_000)


def test_matrices_stay_on_the_card_between_operations(card):
    x, y = np.random.default_rng(1).integers(-9, 10, (2, 13, 13)).astype(np.float64)
    a, b = card.upload(x), card.upload(y)
    product = card.multiply(a, b)
    x[:] = 0
    assert np.array_equal(card.download(card.multiply(product, b)), card.download(a) @ y @ y)
    assert card.flops == [2 * 13**3] * 2


def test_memory_is_accounted_with_padding(card):
    assert repr(card) == "             0  bytes of 100,000 on the card"
    a = card.upload(np.ones((9, 65)))
    assert a.bytes == 16 * 128 * 8  # rows to 8, columns to 64
    b = card.upload(np.ones((1, 1)))
    assert b.bytes == 8 * 64 * 8
    assert card.used == a.bytes + b.bytes
    card.free(a)
    assert card.used == b.bytes
    with pytest.raises(ValueError, match="not on the card"):
        card.free(a)


def test_running_out_says_what_holds_the_memory(card):
    card.upload(np.ones((64, 128)))
    with pytest.raises(
        CardMemoryError, match=r"(?s)matrix 2, 64 x 96 float64 needs 65,536 bytes.*65,536  matrix 1"
    ):
        card.upload(np.ones((64, 96)))
    assert card.used == 65_536


def test_a_product_that_does_not_fit_leaves_the_card_as_it_was(card):
    a = card.upload(np.ones((128, 64)))
    b = card.upload(np.ones((64, 64)))
    with pytest.raises(CardMemoryError):
        card.multiply(a, b)
    with pytest.raises(ValueError):
        card.multiply(a, a)
    assert card.used == a.bytes + b.bytes and not card.flops
