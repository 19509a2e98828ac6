"""Set-associative caches with least-recently-used replacement that know which of their lines are
still on the way.

A line is entered when its miss is sent, together with the clock at which its data will be there: a
second request for it finds it and waits, and nothing is fetched twice. The set is the line number
folded by exclusive or, so that power of two strides spread over the sets (how the chip hashes is
not documented). ``Cache`` is the same for a reader or a test that wants to see hits and misses one
by one. Left out: a limit on the misses under way.
"""

import numpy as np

from cypresskit.timing.native import LANES, least, native, part, place_of


@native
def fold(number, bits):
    """The number's bits in groups of ``bits``, all combined by exclusive or (up to eight
    groups).
    """
    number ^= number >> min(4 * bits, 63)  # a machine shifts by 64 as if by 0
    number ^= number >> min(2 * bits, 63)
    number ^= number >> bits
    return number & ((1 << bits) - 1)


@native
def find(tags, used, place, ways, line, tick):
    """The place of ``line`` in the set that starts at ``place``, marked as used, or -1 - (the place
    to replace).
    """
    for first in range(place, place + ways, LANES):
        spot = place_of(tags, first, line)
        if spot < first + LANES:
            used[spot] = tick
            return spot
    return -1 - place_of_least(used, place, ways)


@part
def place_of_least(numbers, place, count):
    """The place of the least of ``count`` numbers from ``place`` on, ``LANES`` at a time."""
    start = place
    smallest = least(numbers, place)
    for first in range(place + LANES, place + count, LANES):
        number = least(numbers, first)
        if number < smallest:
            start, smallest = first, number
    return place_of(numbers, start, smallest)


def empty(sets: int, ways: int) -> tuple[int, np.ndarray, np.ndarray]:
    """Places of a set in whole ``LANES``, lines and ages of an empty cache; those above ``ways``
    are never oldest.
    """
    places = -(-ways // LANES) * LANES
    line = np.full((sets, places), -1)
    used = np.zeros((sets, places), np.int64)
    used[:, ways:] = np.iinfo(np.int64).max
    return places, line.ravel(), used.ravel()


class Cache:
    """A cache of ``size`` bytes, ``ways`` ways, ``line`` bytes a line."""

    def __init__(self, size: int, ways: int, line: int):
        self.line = line
        self.bits = (size // ways // line).bit_length() - 1
        self.tick = 0
        self.ways, self.tags, self.used = empty(size // ways // line, ways)

    def access(self, address: int) -> str:
        """Read a byte: "h" hit, "m" miss."""
        line = address // self.line
        self.tick += 1
        way = find(
            self.tags, self.used, fold(line, self.bits) * self.ways, self.ways, line, self.tick
        )
        if way < 0:
            self.tags[-1 - way] = line
            self.used[-1 - way] = self.tick
        return "m" if way < 0 else "h"
