"""The store path of a SIMD engine: it takes a store for some clocks and leaves its lines to their
DRAM channels.

A wavefront goes on when its channels have room for what it stored before; nobody waits for the
transfer itself.
"""

from cypresskit.timing.native import part
from cypresskit.timing.units.dram import place, send_pending
from cypresskit.timing.units.sequencer import stream_entry


@part
def run_store_clause(chip, e, s, now):
    """Take the stores of slot ``s`` from ``now`` on; the clock at which they are accepted."""
    work = chip.work
    clocks = chip.clocks
    engines = chip.engines
    slots = chip.slots
    memory = chip.memory
    tally = chip.tally
    ledger = chip.ledger
    c = slots.clause[e, s]
    begin = max(now, engines.store_free[e])
    taken, accepted = begin, begin
    for stream in range(work.clauses[c].first, work.clauses[c].end):
        pattern, moved = stream_entry(chip, e, s, stream)
        taken += work.patterns[pattern].cost
        for p in range(work.patterns[pattern].first, work.patterns[pattern].end):
            channel, _, _ = place(work.lines[p].line + moved, memory.geometry)
            send_pending(chip, taken, channel)
            memory.pending[channel] += clocks.dram_line
            tally.dram[channel] += clocks.dram_line
            tally.written[0] += 1
            ledger.written[stream] += 1
            accepted = max(accepted, memory.channel_free[channel] + memory.pending[channel])
    engines.store_free[e] = taken
    slots.began[e, s] = begin
    slots.served[e, s] = taken
    return max(taken, accepted)
