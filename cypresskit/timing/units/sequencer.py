"""Where a wavefront is in its program, what comes next, and barriers.

A program is a list of segments, each so many turns of a list of clauses (``timing.work``).
"""

from cypresskit.timing.native import part
from cypresskit.timing.units.state import LOGGED, NEVER, SNAPSHOTS
from cypresskit.timing.work import TEX


@part
def stream_entry(chip, e, s, stream):
    """What the slot asks for in a stream in its present turn of the segment: the pattern, and by
    how many lines it is moved.
    """
    work, slots = chip.work, chip.slots
    row = work.streams[stream]
    phases = row.phases
    turn = slots.turn[e, s]
    entry = row.first + work.member[slots.wavefront[e, s]] * phases
    if phases > 1:  # a division for each fetch would be felt
        entry += turn % phases
        turn //= phases
    return work.entries[entry].pattern, work.entries[entry].moved + turn * row.step


@part
def next_clause(chip, e, s, clock):
    """Go on to the slot's next clause. Whether there was none, and the wavefront has ended at
    ``clock``.
    """
    work, slots, groups = chip.work, chip.slots, chip.groups
    w = slots.wavefront[e, s]
    at = slots.segment[e, s]
    clause = slots.clause[e, s] + 1
    if clause == work.segments[at].end:
        slots.turn[e, s] += 1
        if slots.turn[e, s] == work.segments[at].turns:
            slots.turn[e, s] = 0
            at += 1
            slots.segment[e, s] = at
        clause = work.segments[at].first if at < work.paths[work.path[w] + 1] else -1
    slots.clause[e, s] = clause
    if clause >= 0:
        return False
    g = w // work.group
    groups.wavefront_end[w] = clock
    groups.running[g] -= 1
    groups.ended[g] = max(groups.ended[g], clock)
    slots.wavefront[e, s] = -1
    slots.ready[e, s] = NEVER
    return True


@part
def arrive(chip, e, s, now):
    """Slot ``s`` has come to a barrier: its workgroup's wavefronts go on when the last of them has
    come. One that has ended is not waited for. Whether a wavefront has ended behind the barrier.
    """
    work, slots, ledger = chip.work, chip.slots, chip.ledger
    first = s // work.group * work.group
    slots.arrived[e, s] = 1
    slots.ready[e, s] = NEVER
    slots.began[e, s] = now
    for other in range(first, first + work.group):
        if slots.wavefront[e, other] >= 0 and slots.arrived[e, other] == 0:
            return False
    ended = False
    for other in range(first, first + work.group):
        if slots.arrived[e, other] == 1:
            ledger.waited[slots.clause[e, other]] += now - slots.began[e, other]
            slots.arrived[e, other] = 0
            slots.ready[e, other] = slots.came[e, other] = now
            ended = next_clause(chip, e, other, now) or ended
    return ended


@part
def note_clause(chip, e, s, kind, now, over):
    """Enter a clause that is over at ``over`` into the log."""
    slots, tally, log = chip.slots, chip.tally, chip.log
    log.over[0] += 1
    if log.over[0] % log.pace == 0:
        noted = min(log.over[0] // log.pace, SNAPSHOTS)
        for n in range(len(tally.all)):
            tally.snapshots[noted, n] = tally.all[n]
        log.progress[noted] = now
    n = log.row_count[0]
    if e == 0 and n < LOGGED:
        log.rows[n, 0] = s
        log.rows[n, 1] = slots.wavefront[e, s]
        log.rows[n, 2] = kind
        log.rows[n, 3] = slots.began[e, s]
        log.rows[n, 4] = over
        log.rows[n, 5] = now if kind == TEX else over
        log.row_count[0] += 1


@part
def note_waits(chip, e, s, over):
    """Enter into the ledger how long slot ``s`` stood at the clause that is over: before its unit
    took it, and while that was done and the data weren't there.
    """
    slots = chip.slots
    before = slots.began[e, s] - slots.came[e, s]
    chip.ledger.waited[slots.clause[e, s]] += before + over - slots.served[e, s]
