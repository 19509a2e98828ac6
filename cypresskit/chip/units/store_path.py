"""The store path of a SIMD engine: accepts stores, and queues their lines at the DRAM channels.

A wavefront continues when its channels could have sent all lines queued so far. What they read
meanwhile doesn't delay it.
"""

from cypresskit.chip.native import part
from cypresskit.chip.units.dram import dram_location, send_pending
from cypresskit.chip.units.sequencer import stream_entry


@part
def run_store_clause(jobs, stores, memory, e, s, now):
    """Accept the stores of wavefront slot ``s``. Return when the store path begins, and when all
    stores are accepted.
    """
    work = jobs.work
    clause = work.clauses[jobs.clause[e, s]]
    begin = max(now, stores.free[e])
    done, accepted = begin, begin
    for stream in range(clause.first, clause.end):
        entry, moved = stream_entry(jobs, e, s, stream)
        done += work.amounts[entry].cost
        for p in range(work.ptr[entry], work.ptr[entry + 1]):
            channel, _, _ = dram_location(work.line[p] + moved, memory.address_bits)
            send_pending(memory, done, channel)
            memory.pending[channel] += memory.line_clocks
            memory.channel_busy[channel] += memory.line_clocks
            stores.written[0] += 1
            accepted = max(accepted, memory.channel_free[channel] + memory.pending[channel])
    stores.free[e] = done
    return begin, max(done, accepted)
