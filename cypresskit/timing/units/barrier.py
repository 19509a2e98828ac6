"""A barrier: a workgroup's wavefronts go on when the last of them has come. One that has ended is not waited for."""

from cypresskit.timing.native import native
from cypresskit.timing.units.sequencer import next_clause
from cypresskit.timing.units.state import NEVER


@native
def arrive(work, slots, groups, e, s, now):
    """Slot ``s`` has come to a barrier. Whether a wavefront has ended behind it."""
    first = s // work.group * work.group
    slots.arrived[e, s], slots.ready[e, s], slots.began[e, s] = 1, NEVER, now
    for other in range(first, first + work.group):
        if slots.wavefront[e, other] >= 0 and slots.arrived[e, other] == 0:
            return False
    ended = False
    for other in range(first, first + work.group):
        if slots.arrived[e, other] == 1:
            slots.arrived[e, other], slots.ready[e, other] = 0, now
            ended = next_clause(work, slots, groups, e, other, now) or ended
    return ended
