"""The ALU of a SIMD engine: two clauses at a time, in turn.

A bundle takes ``bundle_clocks`` (4), and a wavefront's next one can begin after
``alu_latency_clocks`` (8), so that the ALU is busy with two wavefronts and half idle with one. A
clause needs ``clause_overhead_clocks`` to get going. One with LDS operations lasts at least as long
as the LDS, which serves clauses one after another, needs for them. Left out: what happens within a
clause.
"""

from cypresskit.timing.native import part
from cypresskit.timing.units.sequencer import stream_entry


@part
def run_alu_clause(chip, e, s, now):
    """Run slot ``s``'s clause on engine ``e`` from ``now`` on; the clock at which it is over."""
    work = chip.work
    clocks = chip.clocks
    engines = chip.engines
    slots = chip.slots
    tally = chip.tally
    place = 0
    for other in range(1, engines.alu_free.shape[1]):
        if engines.alu_free[e, other] < engines.alu_free[e, place]:
            place = other
    begin = max(now, engines.alu_free[e, place])
    bundles = work.clauses[slots.clause[e, s]].bundles
    served = lds_over(chip, e, s, begin + clocks.clause_overhead)
    slots.served[e, s] = begin + clocks.clause_overhead + bundles * clocks.alu_latency
    over = max(slots.served[e, s], served)
    tally.alu[e] += bundles * clocks.bundle
    engines.alu_free[e, place] = over
    slots.began[e, s] = begin
    return over


@part
def lds_over(chip, e, s, begin):
    """The clock at which the LDS has served the clause, which asks from ``begin`` on; 0 if it
    doesn't.
    """
    work = chip.work
    engines = chip.engines
    slots = chip.slots
    tally = chip.tally
    c = slots.clause[e, s]
    over = 0.0
    for stream in range(work.clauses[c].first, work.clauses[c].end):
        pattern, _ = stream_entry(chip, e, s, stream)
        clocks = work.patterns[pattern].cost
        over = engines.lds_free[e] = max(begin, engines.lds_free[e]) + clocks
        tally.lds[e] += clocks
    return over
