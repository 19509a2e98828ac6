"""Set-associative caches with least-recently-used replacement, which know the lines in flight.

A line is entered when its miss is sent, with the clock at which its data arrive. A second request
for it finds it and waits, so no line is fetched twice. The set is the line number folded by
exclusive or, so that power-of-two strides spread over the sets (the chip's own hash isn't
documented).
"""

import numpy as np

from cypresskit.chip.native import LANES, least, native, part, place_of


@native
def fold(number, bits):
    """Return the exclusive or of a number's groups of ``bits`` bits, up to eight groups."""
    number ^= number >> min(4 * bits, 63)  # a machine shifts by 64 as if by 0
    number ^= number >> min(2 * bits, 63)
    number ^= number >> bits
    return number & ((1 << bits) - 1)


@native
def find(tags, used, place, ways, line, age):
    """Find a line in the set at ``place``. Return its place, marked as used at ``age``; on a miss,
    -1 minus the place to replace.
    """
    for first in range(place, place + ways, LANES):
        spot = place_of(tags, first, line)
        if spot < first + LANES:
            used[spot] = age
            return spot
    return -1 - place_of_least(used, place, ways)


@part
def place_of_least(numbers, place, count):
    """Return the place of the least of ``count`` numbers from ``place`` on."""
    start = place
    smallest = least(numbers, place)
    for first in range(place + LANES, place + count, LANES):
        number = least(numbers, first)
        if number < smallest:
            start, smallest = first, number
    return place_of(numbers, start, smallest)


def empty(sets: int, ways: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Return an empty cache: places per set, a multiple of ``LANES``; lines; and ages. Places
    beyond ``ways`` are never the oldest.
    """
    places = -(-ways // LANES) * LANES
    line = np.full((sets, places), -1)
    used = np.zeros((sets, places), np.int64)
    used[:, ways:] = np.iinfo(np.int64).max
    return places, line.ravel(), used.ravel()
