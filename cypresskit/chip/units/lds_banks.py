"""Count the clocks of LDS accesses: bank conflicts and broadcasts.

The LDS serves a wavefront's access in groups of work-items: on Cypress 16 per clock, each with up
to two words. A bank delivers one word per clock, to all work-items that request this word. A group
takes as many clocks as different words are requested from its busiest bank (APP guide 4.7): at
worst 64 for each word per work-item.

Wavefronts that request the same are counted once: most kernels address the LDS by a work-item's
place in its workgroup, so thousands of accesses have few patterns. Counted one by one,
tracing ``sgemm_nn_reduce4`` at 2048 takes some 2 s longer.
"""

import numpy as np

from cypresskit.chip.native import native
from cypresskit.chip.work import busiest_bank
from cypresskit.devices import Device

WORD_SHIFT = 2  # a bank of the LDS delivers a word of 2**2 bytes


def access_clocks(
    addresses: np.ndarray, device: Device, active: np.ndarray | None = None
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
    accesses, _, items = addresses.shape
    if active is None:
        active = np.ones((accesses, items), bool)
    requests = [row.tobytes() + lanes.tobytes() for row, lanes in zip(addresses, active)]
    number = {request: n for n, request in enumerate(dict.fromkeys(requests))}
    pattern = np.array([number[request] for request in requests], np.int64)
    first = np.unique(pattern, return_index=True)[1]
    return _count(addresses[first], device, active[first])[pattern]


def _count(addresses: np.ndarray, device: Device, active: np.ndarray) -> np.ndarray:
    """Return the clocks of each access."""
    accesses, words, items = addresses.shape
    clocks = np.zeros(accesses, np.int64)
    word = addresses.astype(np.int64) >> WORD_SHIFT
    rule = np.array(device.lds_bank or range(device.lds_banks), np.int64)
    given = word, rule[word % len(rule)], np.broadcast_to(active[:, np.newaxis], addresses.shape)
    for first in range(0, words, 2):
        for at in range(0, items, device.lds_items_clock):
            served = slice(first, first + 2), slice(at, at + device.lds_items_clock)
            group = (np.ascontiguousarray(of[:, *served]).reshape(accesses, -1) for of in given)
            _add_clocks(clocks, *group)
    return clocks


@native
def _add_clocks(clocks, word, bank, active):
    """Add the clocks of one group: row n has the words of access n."""
    for n in range(len(clocks)):
        clocks[n] += busiest_bank(word[n], bank[n], active[n], 0)
