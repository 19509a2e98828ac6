"""Clocks of an LDS access: banks, conflicts, broadcasts.

A wavefront's access is worked off in groups of as many work-items as may ask in one clock (16 on
Cypress, each for up to two words). A bank gives one word a clock, to all that want that same word;
a group takes as many clocks as its busiest bank has different words to give (APP guide 4.7): at
worst 64 for each word that a work-item asks for.
"""

import numpy as np

from cypresskit.devices import AccessGeometry, Device
from cypresskit.timing.native import native
from cypresskit.timing.work import busiest_bank

WORD_SHIFT = 2  # a bank of the LDS gives a word of 2**2 bytes


def access_clocks(
    addresses: np.ndarray, device: Device | AccessGeometry, active: np.ndarray | None = None
) -> np.ndarray:
    """Clocks per access; ``addresses`` are bytes, shape (accesses, words per work-item, 64),
    integers.

    ``active`` (accesses, 64) leaves work-items out; an access with none takes no clocks.
    """
    accesses, words, items = addresses.shape
    on = np.ones((accesses, items), bool) if active is None else active
    # Most kernels' wavefronts all access the LDS alike.
    if accesses > 1 and (addresses == addresses[0]).all() and (on == on[0]).all():
        return np.repeat(access_clocks(addresses[:1], device, on[:1]), accesses)
    clocks = np.zeros(accesses, np.int64)
    for first in range(0, words, 2):  # two words at a time
        pair = addresses[:, first : first + 2]
        for at in range(0, items, device.lds_items_clock):
            items_now = slice(at, at + device.lds_items_clock)
            group = np.ascontiguousarray(pair[:, :, items_now], np.int64)
            active_words = np.repeat(on[:, np.newaxis, items_now], pair.shape[1], axis=1)
            _add_clocks(
                clocks,
                group.reshape(accesses, -1),
                active_words.reshape(accesses, -1),
                device.lds_banks,
            )
    return clocks


@native
def _add_clocks(clocks, addresses, active, banks):
    """Add the clocks of one group. A row of ``addresses`` and ``active`` has all that it asks for
    in an access.
    """
    for n in range(len(clocks)):
        clocks[n] += busiest_bank(addresses[n], active[n], WORD_SHIFT, banks)
