"""Clocks of an LDS access: banks, conflicts, broadcasts.

A wavefront's access is worked off in groups of as many work-items as may ask in one clock (16 on Cypress, each for up
to two words). A bank gives one word a clock, to all that want that same word; a group takes as many clocks as its
busiest bank has different words to give (APP guide 4.7). The worst case is 64 clocks for a wavefront.
"""

import numpy as np

from cypresskit.devices import Device


def access_clocks(addresses: np.ndarray, device: Device, active: np.ndarray | None = None) -> np.ndarray:
    """Clocks per access; ``addresses`` are bytes, shape (accesses, words per work-item, 64), integers.

    ``active`` (accesses, 64) leaves work-items out; an access with none takes no clocks.
    """
    accesses, words, items = addresses.shape
    on = np.ones((accesses, items), bool) if active is None else active
    if accesses > 1 and (addresses == addresses[0]).all() and (on == on[0]).all():  # as most kernels' wavefronts do
        return np.repeat(access_clocks(addresses[:1], device, on[:1]), accesses)
    clocks = np.zeros(accesses, np.int64)
    for first in range(0, words, 2):  # two words at a time
        pair = addresses[:, first : first + 2]
        for at in range(0, items, device.lds_items_clock):
            some = slice(at, at + device.lds_items_clock)
            word = np.where(on[:, np.newaxis, some], pair[:, :, some] // 4, -1).reshape(accesses, -1)
            clocks += _busiest_bank(np.sort(word, axis=1), device.lds_banks)
    return clocks


def _busiest_bank(words: np.ndarray, banks: int) -> np.ndarray:
    """Different words of the bank that has most of them, per row; rows are sorted, -1 is nothing."""
    new = np.ones(words.shape, bool)
    new[:, 1:] = words[:, 1:] != words[:, :-1]
    new &= words >= 0
    counts = np.zeros((len(words), banks), np.int64)
    rows = np.broadcast_to(np.arange(len(words))[:, np.newaxis], words.shape)
    np.add.at(counts, (rows[new], (words % banks)[new]), 1)
    return counts.max(axis=1)
