"""Simulate the chip: an event simulation of SIMD engines that share L2 and DRAM.

A SIMD engine has as many wavefront slots as registers and LDS allow. The simulation always
continues the engine whose next event is the earliest, with the slot that is ready first: a unit
(``chip.units``) runs the slot's clause and returns when it is over. Between two clauses a
wavefront pauses for ``clause_switch_clocks``.

Not modeled: instruction caches, a limit on misses in flight, and what happens within an ALU clause.
"""

from dataclasses import dataclass

import numpy as np

from cypresskit.chip.native import native
from cypresskit.chip.units.alu import run_alu_clause
from cypresskit.chip.units.cache import place_of_least
from cypresskit.chip.units.dispatch import dispatch_first, retire
from cypresskit.chip.units.sequencer import (
    arrive_at_barrier,
    count_clause,
    log_clause,
    next_clause,
)
from cypresskit.chip.units.state import NEVER, make_chip, split_tally
from cypresskit.chip.units.store_path import run_store_clause
from cypresskit.chip.units.texture import run_texture_clause
from cypresskit.chip.work import ALU, BARRIER, TEX, WRITE, Packed
from cypresskit.devices import Device
from cypresskit.il.errors import ArgumentError
from cypresskit.threads import check_stop

MAX_CLAUSES = 1 << 62


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a simulation. Times are in core clocks.

    Attributes
    ----------
    end_clock
        When the last store has left.
    start, end, engine
        Of each wavefront.
    timeline
        Rows (slot, wavefront, kind of clause, start, end, served by the texture unit) of engine 0:
        its first few thousand clauses.
    progress
        The clocks at which ``Log.pace``, 2 ``Log.pace``, ... clauses were over.
    done
        The counters of all units at these clocks, by name; in the last row at the end. A unit
        counts a request when it begins to serve it.
    counts
        Sums of the last row over all units of a kind.
    """

    end_clock: float
    start: np.ndarray
    end: np.ndarray
    engine: np.ndarray
    timeline: np.ndarray
    progress: np.ndarray
    done: dict[str, np.ndarray]
    counts: dict[str, float]

    @property
    def resident_clocks(self) -> float:
        """The sum of the clocks that each wavefront is on the chip."""
        return float((self.end - self.start).sum())


def run(work: Packed, device: Device, slots: int) -> Outcome:
    """Simulate a launch.

    Parameters
    ----------
    work
        What the wavefronts do.
    device
        The board.
    slots
        Wavefront slots per SIMD engine.

    Raises
    ------
    ValueError
        For a workgroup that never ends.
    """
    chip = make_chip(work, device, slots)
    executions = work.executions
    for part in range(1, 100):  # in parts, so that Ctrl-C ends a long one
        check_stop()
        run_chip(chip, slots, executions * part // 100)
    run_chip(chip, slots, MAX_CLAUSES)
    tally, groups, memory, log = chip.tally, chip.groups, chip.memory, chip.log
    if groups.retired[0] < len(groups.engine):
        raise ArgumentError(
            f"workgroup {groups.retired[0]} waits forever: some of its wavefronts reach a barrier"
            " more often than others. `ck.check` names the line"
        )
    done = split_tally(np.vstack([tally.snapshots, tally.all]), device)
    sent = (memory.channel_free + memory.pending).max()
    end = float(max(groups.wavefront_end.max(initial=0), sent))
    return Outcome(
        end_clock=end,
        start=groups.wavefront_start,
        end=groups.wavefront_end,
        engine=groups.wavefront_engine,
        timeline=log.rows[: log.row_count[0]],
        progress=log.progress,
        done=done,
        counts={name: float(part[-1].sum()) for name, part in done.items()},
    )


@native
def run_chip(chip, wavefront_slots, until):
    """Run the chip until this number of clauses is over, or all wavefronts have ended."""
    jobs, slots, groups, texture = chip.jobs, chip.slots, chip.groups, chip.texture
    if groups.upcoming[0] == 0:
        dispatch_first(jobs, slots, groups, wavefront_slots)
    e = place_of_least(slots.next_clock, 0, len(slots.next_clock))
    while slots.next_clock[e] < NEVER and chip.log.over[0] < until:
        s = slots.next_slot[e]
        kind = jobs.work.clauses[jobs.clause[e, s]].kind
        now = slots.ready[e, s]
        # The search below leaves out this slot and engine, whose next clocks are stored after it: a
        # vector load just after a store of one element stalls the host.
        slots.ready[e, s] = slots.next_clock[e] = NEVER
        ended = False
        began = now
        over = -1.0  # the clause isn't over
        if kind == BARRIER:
            ended = arrive_at_barrier(jobs, slots, groups, e, s, now)
            now = slots.ready[e, s]
        elif kind == ALU:
            began, over = run_alu_clause(jobs, chip.alu, chip.lds, e, s, now)
        elif kind == WRITE:
            began, over = run_store_clause(jobs, chip.stores, chip.memory, e, s, now)
        else:
            now, over = run_texture_clause(jobs, texture, chip.memory, e, s, now)
            began = texture.began[e, s]
            if over >= 0 and texture.owner[e] >= 0:
                slots.ready[e, texture.owner[e]] = now
        if over >= 0:
            count_clause(chip.log, chip.tally, now)
            if e == 0:
                served = now if kind == TEX else over
                log_clause(chip.log, s, jobs.wavefront[e, s], kind, began, over, served)
            now = over + chip.clause_switch_clocks
            ended = next_clause(jobs, slots, groups, e, s, over)
        if ended:
            retire(jobs, slots, groups)
            now = slots.ready[e, s]
        first = e * slots.ready.shape[1]
        next_slot = place_of_least(slots.ready, first, slots.ready.shape[1]) - first
        next_clock = slots.ready[e, next_slot]
        if now < next_clock or (now == next_clock and s < next_slot):
            next_slot, next_clock = s, now
        slots.ready[e, s] = now
        other = place_of_least(slots.next_clock, 0, len(slots.next_clock))
        others_clock = slots.next_clock[other]
        slots.next_slot[e] = next_slot
        slots.next_clock[e] = next_clock
        if others_clock < next_clock or (others_clock == next_clock and other < e):
            e = other
