"""L2: slices that all SIMD engines share; what they miss is read from DRAM.

A slice delivers one line per ``slice_line_clocks``. Each memory channel has a slice for its
addresses. Lines of global memory take a slice's clocks, too, but aren't cached.
"""

from cypresskit.chip.native import part
from cypresskit.chip.units.cache import find, fold
from cypresskit.chip.units.dram import GLOBAL, dram_location, read_dram
from cypresskit.devices import Device


@part
def read_l2(memory, line, clock):
    """Return when a line that is requested at ``clock`` arrives at its SIMD engine."""
    l2 = memory.l2
    channel, bank, row = dram_location(line, memory.address_bits)
    begin = max(clock, memory.slice_free[channel])
    memory.slice_free[channel] = begin + memory.slice_line_clocks
    in_texture = line < GLOBAL
    if in_texture:
        memory.l2_requests[channel] += 1
    else:
        memory.l2_bypasses[channel] += 1
    spot = -1
    age = memory.accesses[0]
    if l2.size > 0 and in_texture:
        spot = find(l2.line, l2.used, fold(line, l2.bits) * l2.ways, l2.ways, line, age)
    if spot >= 0:
        return max(begin + memory.l2_clocks, l2.ready[spot])
    if in_texture:
        memory.l2_misses[channel] += 1
    arrival = memory.dram_clocks + read_dram(memory, begin, channel, bank, row)
    if l2.size > 0 and in_texture:
        spot = -1 - spot
        l2.line[spot], l2.used[spot], l2.ready[spot] = line, age, arrival
    return arrival


def l2_clocks(counts, device: Device):
    """Return for how many clocks lines occupied their slices, cached or not, by their counters."""
    lines = counts["l2_requests"] + counts["l2_bypasses"]
    return lines * device.line_bytes / device.l2_slice_bytes_clock
