"""Count the clocks of LDS accesses: bank conflicts and broadcasts.

The LDS serves a wavefront's access in groups of work-items: on Cypress 16 per clock, each with up
to two words. A bank delivers one word per clock, to all work-items that request this word. A group
takes as many clocks as different words are requested from its busiest bank (APP guide 4.7): at
worst 64 for each word per work-item.
"""

import numpy as np

from cypresskit.devices import AccessGeometry, Device
from cypresskit.timing.native import native
from cypresskit.timing.work import busiest_bank

WORD_SHIFT = 2  # a bank of the LDS delivers a word of 2**2 bytes


def access_clocks(
    addresses: np.ndarray, device: Device | AccessGeometry, active: np.ndarray | None = None
) -> np.ndarray:
    """Count the clocks of LDS accesses.

    Parameters
    ----------
    addresses
        Bytes, as integers of shape (accesses, words per work-item, 64).
    device
        The board.
    active
        Mask of the work-items that take part, (accesses, 64). All, by default.

    Returns
    -------
    Clocks per access; 0 without active work-items.
    """
    accesses, words, items = addresses.shape
    on = np.ones((accesses, items), bool) if active is None else active
    clocks = np.zeros(accesses, np.int64)
    for first in range(0, words, 2):
        pair = addresses[:, first : first + 2]
        for at in range(0, items, device.lds_items_clock):
            served = slice(at, at + device.lds_items_clock)
            group = np.ascontiguousarray(pair[:, :, served], np.int64)
            active_words = np.repeat(on[:, np.newaxis, served], pair.shape[1], axis=1)
            _add_clocks(
                clocks,
                group.reshape(accesses, -1),
                active_words.reshape(accesses, -1),
                device.lds_banks,
            )
    return clocks


@native
def _add_clocks(clocks, addresses, active, banks):
    """Add the clocks of one group: row n of ``addresses`` has its words in access n."""
    for n in range(len(clocks)):
        clocks[n] += busiest_bank(addresses[n], active[n], WORD_SHIFT, banks)
