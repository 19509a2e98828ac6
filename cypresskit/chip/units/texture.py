"""The texture unit of a SIMD engine, with its L1 cache.

It runs one TEX clause at once, first come, first served. A quad takes as many clocks as its busiest
bank has different words requested. A line that is in L1 arrives after ``l1_clocks``; other lines
come through L2. Data return in order, and the wavefront continues with the last. Global memory
bypasses both caches.
"""

from cypresskit.chip.native import part
from cypresskit.chip.units.cache import find, fold
from cypresskit.chip.units.l2 import read_l2
from cypresskit.chip.units.sequencer import stream_entry
from cypresskit.chip.units.state import NEVER


@part
def run_texture_clause(jobs, texture, memory, e, s, now):
    """Run slot ``s``'s clause from ``now`` on: up to its end, or to the next access to memory, so
    that accesses of other engines in the meantime come first.

    Returns the clock until which the unit works on it (``NEVER`` if another clause is in the unit),
    and the clock at which the clause is over; -1 while it isn't.
    """
    start = acquire(texture, e, s, now)
    if start > now:
        return start, -1.0
    clause = jobs.work.clauses[jobs.clause[e, s]]
    if texture.fetch[e, s] < 0:
        texture.fetch[e, s] = clause.first
        texture.data[e, s] = texture.began[e, s] = now
    accessed = False
    while texture.fetch[e, s] < clause.end:
        stream = texture.fetch[e, s]
        entry, moved = stream_entry(jobs, e, s, stream)
        accesses = jobs.work.ptr[entry] < jobs.work.ptr[entry + 1]
        if accessed and accesses:
            return now, -1.0
        accessed = accessed or accesses
        arrival = fetch(jobs.work, texture, memory, e, stream, entry, moved, now)
        cost = jobs.work.amounts[entry].cost
        arrival = texture.data_free[e] = max(arrival, texture.data_free[e] + cost)
        texture.data[e, s] = max(texture.data[e, s], arrival)
        texture.fetch[e, s] += 1
        now += cost
    texture.fetch[e, s] = -1
    release(texture, e, now)
    return now, texture.data[e, s]


@part
def acquire(texture, e, s, now):
    """Return when slot ``s`` has the unit: ``now``, or when it is free. If another slot has it,
    queue the slot and return ``NEVER``: ``release`` will give it the unit.
    """
    owner = texture.owner[e]
    if owner >= 0 and owner != s:
        texture.queue[e, texture.queued[e]] = s
        texture.queued[e] += 1
        return NEVER
    texture.owner[e] = s
    return max(now, texture.free[e])


@part
def release(texture, e, now):
    """Give the unit to the first slot in the queue; its owner is -1 if there is none."""
    texture.free[e] = now
    texture.owner[e] = -1
    if texture.queued[e] > 0:
        texture.owner[e] = texture.queue[e, 0]
        texture.queued[e] -= 1
        for n in range(texture.queued[e]):
            texture.queue[e, n] = texture.queue[e, n + 1]


@part
def fetch(work, texture, memory, e, stream, entry, moved, now):
    """Return when all data of a fetch that begins ``now`` are delivered."""
    cost = work.amounts[entry].cost
    bypasses = work.streams[stream].uncached != 0 or texture.l1.size == 0
    texture.delivered[e] += work.amounts[entry].delivered
    if not bypasses:
        texture.l1_requests[e] += work.amounts[entry].requests
    data = now + cost + texture.l1_clocks
    for p in range(work.ptr[entry], work.ptr[entry + 1]):
        line = work.line[p] + moved
        offset = work.offset[p]
        memory.accesses[0] += 1
        if bypasses:
            arrival = read_l2(memory, line, now + offset)
        else:
            arrival = read_l1(texture, memory, e, line, now + offset)
        data = max(data, arrival + cost - offset)
    texture.busy[e] += cost
    return data


@part
def read_l1(texture, memory, e, line, clock):
    """Return when a line that is requested at ``clock`` is in L1."""
    l1 = texture.l1
    age = memory.accesses[0]
    spot = find(l1.line, l1.used, e * l1.size + fold(line, l1.bits) * l1.ways, l1.ways, line, age)
    if spot >= 0:
        return l1.ready[spot]
    spot = -1 - spot
    texture.l1_misses[e] += 1
    arrival = read_l2(memory, line, clock)
    l1.line[spot], l1.used[spot], l1.ready[spot] = line, age, arrival
    return arrival
