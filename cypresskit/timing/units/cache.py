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
    """A cache of ``size`` bytes, ``ways`` ways, ``line`` bytes a line; a miss's data come ``latency`` clocks later."""

    def __init__(self, size: int, ways: int, line: int, latency: int = 0):
        sets, rest = divmod(size, max(ways, 1) * max(line, 1))
        if ways < 1 or rest or sets.bit_count() != 1 or line.bit_count() != 1:
            raise ValueError(f"{size} bytes in {ways} ways of {line}-byte lines is no power of two of sets")
        self.bits, self.ways, self.line, self.latency = sets.bit_length() - 1, ways, line.bit_length() - 1, latency
        self.tags, self.used = np.full(sets * ways, -1, np.int64), np.zeros(sets * ways, np.int64)
        self.ready, self.tick = np.zeros(sets * ways), 0

    def access(self, address: int, clock: float = 0.0) -> str:
        """Read a byte: "h" hit, "m" miss, "w" a line that is on its way."""
        self.tick += 1
        line = address >> self.line
        way = find(self.tags, self.used, fold(line, self.bits) * self.ways, self.ways, line, self.tick)
        if way < 0:
            way = -1 - way
            self.tags[way], self.used[way], self.ready[way] = line, self.tick, clock + self.latency
            return "m"
        return "w" if self.ready[way] > clock else "h"

    def trace(self, addresses) -> str:
        """One letter per address, a clock apart."""
        return "".join(self.access(address, clock) for clock, address in enumerate(addresses))
