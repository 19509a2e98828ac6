"""The store path of a SIMD engine: it takes a store for some clocks and leaves its lines to their DRAM channels.

A wavefront goes on when its channels have room for what it stored before; nobody waits for the transfer itself.
"""

from cypresskit.timing.native import native
from cypresskit.timing.units.dram import place, send_pending
from cypresskit.timing.units.sequencer import stream_entry


@native
def run_store_clause(work, clocks, slots, engines, memory, tally, e, s):
    """Take the stores of slot ``s``; the clock at which they are accepted."""
    c = slots.clause[e, s]
    begin = max(slots.ready[e, s], engines.store_free[e])
    taken, accepted = begin, begin
    for stream in range(work.clauses[c, 2], work.clauses[c, 3]):
        entry, moved = stream_entry(work, slots, e, s, stream)
        taken += work.cost[entry]
        for p in range(work.ptr[entry], work.ptr[entry + 1]):
            line = work.line[p] + moved
            accepted = max(accepted, store_line(memory, clocks.dram_line, tally, line, taken))
    engines.store_free[e] = taken
    slots.began[e, s] = begin
    return max(taken, accepted)


@native
def store_line(memory, line_clocks, tally, line, clock):
    """Queue a line at its channel; the clock at which the channel will have sent it."""
    channel, _, _ = place(line, memory.geometry)
    send_pending(memory, clock, channel)
    memory.pending[channel] += line_clocks
    tally.dram[channel] += line_clocks
    tally.written[0] += 1
    return memory.channel_free[channel] + memory.pending[channel]
