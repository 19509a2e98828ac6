"""The texture unit of a SIMD engine, with its L1.

It works on one TEX clause at a time, in the order of coming, and takes a quad in as many clocks as
its fullest bank has different words. A line in L1 comes after ``l1_clocks``, others come through
L2. Cypress's data come back in order, CUDA's as they arrive; a wavefront continues when the latest
is there. Global memory goes past both caches. Left out: a limit on the misses under way.
"""

from cypresskit.timing.native import part
from cypresskit.timing.units.cache import find, fold
from cypresskit.timing.units.l2 import read_l2
from cypresskit.timing.units.sequencer import stream_entry
from cypresskit.timing.units.state import NEVER


@part
def run_texture_clause(chip, e, s, now):
    """Fetch for slot ``s`` from ``now`` on, unless it has to wait. Returns the clock at which the
    clause is over, or -1 while it isn't, and that until which the unit is at work, or at which it
    is asked again.
    """
    work, slots = chip.work, chip.slots
    c = slots.clause[e, s]
    start = enter(chip, e, s, now)
    if start > now:
        return -1.0, start
    if slots.fetch[e, s] < 0:
        slots.fetch[e, s] = work.clauses[c].first
        slots.data[e, s] = now
        slots.began[e, s] = now
    l1_asked = False
    while slots.fetch[e, s] < work.clauses[c].end:
        stream = slots.fetch[e, s]
        pattern, moved = stream_entry(chip, e, s, stream)
        asks = work.patterns[pattern].first < work.patterns[pattern].end
        if l1_asked and asks:
            break  # what others ask for meanwhile comes first
        l1_asked = l1_asked or asks
        uncached = work.streams[stream].uncached != 0
        come = fetch(chip, e, stream, pattern, moved, now, uncached)
        slots.data[e, s] = max(slots.data[e, s], come)
        slots.fetch[e, s] += 1
        now += work.patterns[pattern].cost
    slots.served[e, s] = now
    if slots.fetch[e, s] < work.clauses[c].end:
        return -1.0, now
    slots.fetch[e, s] = -1
    leave(chip, e, now)
    return slots.data[e, s], now


@part
def enter(chip, e, s, now):
    """The clock at which slot ``s`` has the texture unit: ``now``, or when it is free. ``NEVER``
    while another slot has it, whose turn ends with ``leave``.
    """
    engines = chip.engines
    owner = engines.texture_owner[e]
    if owner >= 0 and owner != s:
        engines.queue[e, engines.queued[e]] = s
        engines.queued[e] += 1
        return NEVER
    engines.texture_owner[e] = s
    return max(now, engines.texture_free[e])


@part
def leave(chip, e, now):
    """Give the texture unit to the first that waits for it."""
    engines, slots = chip.engines, chip.slots
    engines.texture_free[e] = now
    engines.texture_owner[e] = -1
    if engines.queued[e] > 0:
        first = engines.queue[e, 0]
        engines.texture_owner[e], slots.ready[e, first] = first, now
        engines.queued[e] -= 1
        for n in range(engines.queued[e]):
            engines.queue[e, n] = engines.queue[e, n + 1]


@part
def fetch(chip, e, stream, pattern, moved, now, uncached):
    """The clock at which all data of a fetch that begins ``now`` are delivered."""
    work = chip.work
    clocks = chip.clocks
    engines = chip.engines
    memory = chip.memory
    tally = chip.tally
    cost = work.patterns[pattern].cost
    tally.delivered[e] += work.patterns[pattern].delivered
    if not uncached and memory.l1.size > 0:
        tally.l1_asked[e] += work.patterns[pattern].asked
    data = now + cost + clocks.l1
    if clocks.in_order > 0:
        data = max(data, engines.data_free[e] + cost)
    for p in range(work.patterns[pattern].first, work.patterns[pattern].end):
        line = work.lines[p].line + moved
        offset = work.lines[p].offset
        memory.lines[0] += 1
        if uncached or memory.l1.size == 0:
            come = read_l2(chip, stream, line, now + offset)
        else:
            come = read_l1(chip, stream, e, line, now + offset)
        data = max(data, come + cost - offset)
    tally.texture[e] += cost
    engines.data_free[e] = data
    return data


@part
def read_l1(chip, stream, e, line, clock):
    """The clock at which a line that is asked for at ``clock`` is in L1."""
    memory, tally = chip.memory, chip.tally
    l1 = memory.l1
    lines = memory.lines[0]
    way = find(l1.line, l1.used, e * l1.size + fold(line, l1.bits) * l1.ways, l1.ways, line, lines)
    if way >= 0:
        return l1.ready[way]
    way = -1 - way
    tally.l1_missed[e] += 1
    come = read_l2(chip, stream, line, clock)
    l1.line[way], l1.used[way], l1.ready[way] = line, lines, come
    return come
