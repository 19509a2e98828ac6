"""The sequencer: steps each wavefront through its clauses, holds barriers, and keeps the log.

A wavefront runs a list of segments; each repeats a list of clauses (``chip.work``).
"""

from cypresskit.chip.native import part
from cypresskit.chip.units.state import LOGGED_CLAUSES, NEVER, SNAPSHOTS


@part
def stream_entry(jobs, e, s, stream):
    """Return what slot ``s`` requests in a stream in its current iteration: an entry, and the
    number of lines by which it is moved.
    """
    work = jobs.work
    row = work.streams[stream]
    phases = row.phases
    iteration = jobs.iteration[e, s]
    entry = row.first + work.member[jobs.wavefront[e, s]] * phases
    if phases > 1:  # avoids a division per fetch
        entry += iteration % phases
        iteration //= phases
    return entry, iteration * row.step


@part
def next_clause(jobs, slots, groups, e, s, clock):
    """Advance slot ``s`` to its next clause. Return whether there is none: then the wavefront has
    ended at ``clock``.
    """
    work = jobs.work
    w = jobs.wavefront[e, s]
    at = jobs.segment[e, s]
    clause = jobs.clause[e, s] + 1
    if clause == work.segments[at].end:
        jobs.iteration[e, s] += 1
        if jobs.iteration[e, s] == work.segments[at].iterations:
            jobs.iteration[e, s] = 0
            at += 1
            jobs.segment[e, s] = at
        clause = work.segments[at].first if at < work.paths[work.path[w] + 1] else -1
    jobs.clause[e, s] = clause
    if clause >= 0:
        return False
    g = w // work.group_wavefronts
    groups.wavefront_end[w] = clock
    groups.running[g] -= 1
    groups.ended[g] = max(groups.ended[g], clock)
    jobs.wavefront[e, s] = -1
    slots.ready[e, s] = NEVER
    return True


@part
def arrive_at_barrier(jobs, slots, groups, e, s, now):
    """Hold slot ``s``. When all wavefronts of its workgroup have arrived, let them continue. Return
    whether the barrier was the last clause of one of them.
    """
    size = jobs.work.group_wavefronts
    first = s // size * size
    slots.arrived[e, s] = 1
    slots.ready[e, s] = NEVER
    for other in range(first, first + size):
        if slots.arrived[e, other] == 0:
            return False
    ended = False
    for other in range(first, first + size):
        slots.arrived[e, other] = 0
        slots.ready[e, other] = now
        ended = next_clause(jobs, slots, groups, e, other, now) or ended
    return ended


@part
def count_clause(log, tally, now):
    """Count a clause that is over. Note the chip's progress after every ``log.pace`` clauses."""
    log.over[0] += 1
    if log.over[0] % log.pace == 0:
        noted = min(log.over[0] // log.pace, SNAPSHOTS)
        for n in range(len(tally.all)):
            tally.snapshots[noted, n] = tally.all[n]
        log.progress[noted] = now


@part
def log_clause(log, s, wavefront, kind, began, over, served):
    """Log a clause of engine 0, if there is room."""
    n = log.row_count[0]
    if n < LOGGED_CLAUSES:
        log.rows[n, 0] = s
        log.rows[n, 1] = wavefront
        log.rows[n, 2] = kind
        log.rows[n, 3] = began
        log.rows[n, 4] = over
        log.rows[n, 5] = served
        log.row_count[0] += 1
