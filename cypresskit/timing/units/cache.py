"""Set-associative caches with least-recently-used replacement that know which of their lines are still on the way.

A line is entered when its miss is sent, together with the clock at which its data will be there: a second request for
it finds it and waits, and nothing is fetched twice. The set is the line number folded by exclusive or, so that power of
two strides spread over the sets (how the chip hashes is not documented). ``Cache`` is the same for a reader or a
test that wants to see hits and misses one by one. Left out: a limit on the misses under way.
"""

import numpy as np

from cypresskit.timing.native import native


@native
def fold(number, bits):
    """The number's bits in groups of ``bits``, all combined by exclusive or (up to eight groups)."""
    number ^= number >> min(4 * bits, 63)  # a machine shifts by 64 as if by 0
    number ^= number >> min(2 * bits, 63)
    number ^= number >> bits
    return number & ((1 << bits) - 1)


@native
def find(tags, used, place, ways, line, tick):
    """The place of ``line`` in the set that starts at ``place``, marked as used, or -1 - (the place to replace)."""
    tags, used = tags[place : place + ways], used[place : place + ways]
    found, oldest, age = -1, 0, tick
    for way in range(ways):  # no early end: both loops run on vector instructions
        found = way if tags[way] == line else found
    if found >= 0:
        used[found] = tick
        return place + found
    for way in range(ways):
        oldest = way if used[way] < age else oldest
        age = min(age, used[way])
    return -1 - (place + oldest)


class Cache:
    """A cache of ``size`` bytes, ``ways`` ways, ``line`` bytes a line."""

    def __init__(self, size: int, ways: int, line: int):
        self.ways, self.line, self.bits, self.tick = ways, line, (size // ways // line).bit_length() - 1, 0
        self.tags, self.used = np.full(size // line, -1, np.int64), np.zeros(size // line, np.int64)

    def access(self, address: int) -> str:
        """Read a byte: "h" hit, "m" miss."""
        line = address // self.line
        self.tick += 1
        way = find(self.tags, self.used, fold(line, self.bits) * self.ways, self.ways, line, self.tick)
        if way < 0:
            self.tags[-1 - way], self.used[-1 - way] = line, self.tick
        return "m" if way < 0 else "h"

    def trace(self, addresses) -> str:
        """One letter per address."""
        return "".join(map(self.access, addresses))
