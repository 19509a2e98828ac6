"""The dispatcher: workgroups in order, round robin over the SIMD engines at first.

They retire in order too (APP guide 4.6.2), and the next one takes the place of the one that
retires.
"""

from cypresskit.timing.native import part


@part
def dispatch_first(chip, room):
    """Fill the engines, which have ``room`` for so many wavefronts each, with the first
    workgroups.
    """
    work, engines, groups = chip.work, chip.engines, chip.groups
    among = len(engines.next_slot)
    groups.upcoming[0] = min(len(groups.engine), room // work.group * among)
    for g in range(groups.upcoming[0]):
        place_group(chip, g, g % among, g // among * work.group, 0.0)


@part
def place_group(chip, g, e, first, clock):
    """Workgroup ``g`` starts on engine ``e`` in the slots from ``first`` on, which may now be
    the engine's next.
    """
    work = chip.work
    engines = chip.engines
    slots = chip.slots
    groups = chip.groups
    if clock < engines.next_clock[e]:
        engines.next_clock[e], engines.next_slot[e] = clock, first
    groups.engine[g], groups.slot[g] = e, first
    for n in range(work.group):
        w = g * work.group + n
        s = first + n
        slots.wavefront[e, s] = w
        slots.segment[e, s] = work.paths[work.path[w]]
        slots.turn[e, s] = 0
        slots.clause[e, s] = work.segments[slots.segment[e, s]].first
        slots.ready[e, s] = slots.came[e, s] = groups.wavefront_start[w] = clock
        groups.wavefront_engine[w] = e


@part
def retire(chip):
    """Retire the workgroups that have ended and dispatch as many."""
    groups = chip.groups
    while groups.retired[0] < groups.upcoming[0] and groups.running[groups.retired[0]] == 0:
        done, new = groups.retired[0], groups.upcoming[0]
        released = groups.released[0] = max(groups.released[0], groups.ended[done])
        if new < len(groups.engine):
            place_group(chip, new, groups.engine[done], groups.slot[done], released)
            groups.upcoming[0] += 1
        groups.retired[0] += 1
