"""The dispatcher: starts workgroups in order, first round robin over the SIMD engines.

Workgroups also retire in order (APP guide 4.6.2). The next one takes the slots of the one that
retires.
"""

from cypresskit.chip.native import part


@part
def dispatch_first(jobs, slots, groups, wavefront_slots):
    """Fill the engines with the first workgroups; each has so many ``wavefront_slots``."""
    size = jobs.work.group_wavefronts
    engines = len(slots.next_slot)
    groups.upcoming[0] = min(len(groups.engine), wavefront_slots // size * engines)
    for g in range(groups.upcoming[0]):
        start_group(jobs, slots, groups, g, g % engines, g // engines * size, 0.0)


@part
def start_group(jobs, slots, groups, g, e, first, clock):
    """Start workgroup ``g`` on engine ``e``, in the slots from ``first`` on. They may now be the
    engine's next.
    """
    work = jobs.work
    if clock < slots.next_clock[e]:
        slots.next_clock[e], slots.next_slot[e] = clock, first
    groups.engine[g], groups.slot[g] = e, first
    for n in range(work.group_wavefronts):
        w = g * work.group_wavefronts + n
        s = first + n
        jobs.wavefront[e, s] = w
        jobs.segment[e, s] = work.paths[work.path[w]]
        jobs.iteration[e, s] = 0
        jobs.clause[e, s] = work.segments[jobs.segment[e, s]].first
        slots.ready[e, s] = groups.wavefront_start[w] = clock
        groups.wavefront_engine[w] = e


@part
def retire(jobs, slots, groups):
    """Retire the workgroups that have ended, in order, and start as many new ones."""
    while groups.retired[0] < groups.upcoming[0] and groups.running[groups.retired[0]] == 0:
        done, new = groups.retired[0], groups.upcoming[0]
        released = groups.released[0] = max(groups.released[0], groups.ended[done])
        if new < len(groups.engine):
            start_group(jobs, slots, groups, new, groups.engine[done], groups.slot[done], released)
            groups.upcoming[0] += 1
        groups.retired[0] += 1
