"""L2: slices that all SIMD engines share, each a line per ``slice_line`` clocks, and DRAM behind
them.

An address belongs to the slice of its memory channel; where there are more slices than channels,
the next address bits choose among them. Lines that DRAM sends together are kept together. Lines of
global memory pass through a slice, which takes its clocks, but are not kept there.
"""

from cypresskit.timing.board import Board
from cypresskit.timing.native import part
from cypresskit.timing.units.cache import find, fold
from cypresskit.timing.units.dram import GLOBAL, place, read_dram


@part
def read_l2(chip, stream, line, clock):
    """The clock at which a line comes back to its SIMD engine, if ``stream`` asks for it at
    ``clock``.
    """
    clocks = chip.clocks
    memory = chip.memory
    tally = chip.tally
    ledger = chip.ledger
    l2 = memory.l2
    channel, bank, row = place(line, memory.geometry)
    slice_ = channel
    if memory.spread.channel_bits > memory.geometry.channel_bits:
        slice_, _, _ = place(line, memory.spread)
    if slice_ >= len(memory.slice_free):
        slice_ %= len(memory.slice_free)
    begin = max(clock, memory.slice_free[slice_])
    memory.slice_free[slice_] = begin + clocks.slice_line
    of_texture = line < GLOBAL
    if of_texture:
        tally.l2_asked[slice_] += 1
    else:
        tally.l2_passed[slice_] += 1
    way = -1
    used = memory.lines[0]
    tag = line >> memory.sent_bits
    if l2.size > 0 and of_texture:
        way = find(l2.line, l2.used, fold(tag, l2.bits) * l2.ways, l2.ways, tag, used)
    if way >= 0:
        return max(begin + clocks.l2, l2.ready[way])
    if of_texture:
        tally.l2_missed[slice_] += 1
    ledger.read[stream] += 1
    come = clocks.dram + read_dram(chip, begin, channel, bank, row)
    if l2.size > 0 and of_texture:
        way = -1 - way
        l2.line[way], l2.used[way], l2.ready[way] = tag, used, come
    return come


def l2_clocks(lines, device: Board):
    """Clocks for which so many lines keep their slices, asked of L2 or passing it by."""
    return lines * device.line_bytes / device.l2_slice_bytes_clock
