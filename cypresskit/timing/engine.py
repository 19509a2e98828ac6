"""The chip as an event simulation: SIMD engines that share L2 and DRAM, one wavefront's clause
after another in time.

A SIMD engine has slots for as many wavefronts as registers and LDS allow. The one that is ready
first goes on, and the engine that is furthest behind; what its clause costs is the business of the
units (``timing.units``). After a clause a wavefront pauses for ``clause_switch_clocks``.

Left out: instruction caches, a limit on misses under way, and what happens within a clause on the
ALU.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from cypresskit.timing.board import Board
from cypresskit.timing.native import native
from cypresskit.timing.steady import Steady
from cypresskit.timing.units.alu import run_alu_clause
from cypresskit.timing.units.cache import place_of_least
from cypresskit.timing.units.dispatch import dispatch_first, retire
from cypresskit.timing.units.sequencer import arrive, next_clause, note_clause, note_waits
from cypresskit.timing.units.state import NEVER, Chip, Ledger, make_chip, make_ledger, split_tally
from cypresskit.timing.units.store_path import run_store_clause
from cypresskit.timing.units.texture import run_texture_clause
from cypresskit.timing.work import ALU, BARRIER, WRITE, Packed

MOST_CLAUSES = 1 << 62


@dataclass(frozen=True, eq=False)
class Outcome:
    """The result of a simulation. Clocks are core clocks; work counts when it begins."""

    end_clock: float  # when the last store has left
    start: np.ndarray  # clocks, of each wavefront
    end: np.ndarray
    engine: np.ndarray
    #: Rows (slot, wavefront, kind of clause, start, end, served by the texture unit) of engine 0:
    #: its first few thousand clauses, or those before the first turns that are skipped.
    timeline: np.ndarray
    progress: np.ndarray  # clocks at which ``pace``, 2 ``pace``, ... clauses were over
    pace: int
    #: What each part had done at these clocks, and in the last row in the end, by the names of
    #: ``units.state.Tally``.
    done: dict[str, np.ndarray]
    counts: dict[str, float]  # sums of the last row over all parts of a kind
    simulated: float  # share of clauses that weren't skipped
    error: float  # share by which ``end_clock`` may be off, as far as the pace was seen to change
    ledger: Ledger = field(default_factory=partial(make_ledger, 0, 0))

    @property
    def lived(self) -> float:
        """The clocks for which wavefronts are on the chip, those of all together."""
        return float((self.end - self.start).sum())


def run(
    work: Packed,
    device: Board,
    slots: int,
    watch: Callable[[Chip], Steady] | None = None,
    parts: Callable[[range], Iterable] = iter,
) -> Outcome:
    """Run ``work`` on ``device`` with room for ``slots`` wavefronts on each SIMD engine. ``watch``
    makes what passes over steady turns, if any are. ``parts`` is given the numbers of the parts in
    which that is done, a hundredth of the clauses each, and may show how they go by.
    """
    chip = make_chip(work, device, slots)
    clauses = int(work.clauses_run[work.path].sum())
    over = chip.log.over
    steady = watch and watch(chip)
    run_chip(chip, slots, 0)  # which dispatches the first workgroups
    for step in parts(range(100)):
        until = clauses * (step + 1) // 100 if step < 99 else MOST_CLAUSES
        while over[0] < until and chip.engines.next_clock.min() < NEVER:
            run_chip(chip, slots, over[0] + steady.stretch if steady else until)
            if steady:
                steady.look()
    tally, groups, memory, log = chip.tally, chip.groups, chip.memory, chip.log
    done = split_tally(np.vstack([tally.snapshots, tally.all]), device)
    counts = {name: float(part[-1].sum()) for name, part in done.items()}
    end = float(
        max(groups.wavefront_end.max(initial=0), (memory.channel_free + memory.pending).max())
    )
    simulated = steady.simulated / int(over[0]) if steady else 1.0
    error = abs(steady.drift) / end if steady else 0.0
    wavefronts = groups.wavefront_start, groups.wavefront_end, groups.wavefront_engine
    rows = log.rows[: log.row_count[0]][: steady.logged if steady else None]
    progress = log.progress, log.pace
    return Outcome(end, *wavefronts, rows, *progress, done, counts, simulated, error, chip.ledger)


@native
def run_chip(chip, room, until):
    """Run until so many clauses are over, or all wavefronts."""
    engines, slots, log = chip.engines, chip.slots, chip.log
    if chip.groups.upcoming[0] == 0:
        dispatch_first(chip, room)
    e = place_of_least(engines.next_clock, 0, len(engines.next_clock))
    while engines.next_clock[e] < NEVER and log.over[0] < until:
        s = engines.next_slot[e]
        kind = chip.work.clauses[slots.clause[e, s]].kind
        now = slots.ready[e, s]
        # Slot and engine are out of the choice until their next clocks are known: a processor that
        # has just stored one number waits long for a vector with it.
        slots.ready[e, s] = engines.next_clock[e] = NEVER
        ended = False
        over = -1.0
        if kind == BARRIER:
            ended = arrive(chip, e, s, now)
            now = slots.ready[e, s]
        elif kind == ALU:
            over = run_alu_clause(chip, e, s, now)
        elif kind == WRITE:
            over = run_store_clause(chip, e, s, now)
        else:
            over, now = run_texture_clause(chip, e, s, now)
        if over >= 0:
            note_clause(chip, e, s, kind, now, over)
            note_waits(chip, e, s, over)
            pause = chip.clocks.clause_switch + chip.work.clauses[slots.clause[e, s]].pause
            now = slots.came[e, s] = over + pause
            ended = next_clause(chip, e, s, over)
        if ended:
            retire(chip)
            now = slots.ready[e, s]
        first = e * slots.ready.shape[1]
        next_slot = place_of_least(slots.ready, first, slots.ready.shape[1]) - first
        next_clock = slots.ready[e, next_slot]
        if now < next_clock or (now == next_clock and s < next_slot):
            next_slot, next_clock = s, now
        slots.ready[e, s] = now
        other = place_of_least(engines.next_clock, 0, len(engines.next_clock))
        others_clock = engines.next_clock[other]
        engines.next_slot[e] = next_slot
        engines.next_clock[e] = next_clock
        if others_clock < next_clock or (others_clock == next_clock and other < e):
            e = other
