"""The ALU of a SIMD engine, with the LDS: runs the ALU clauses of two wavefronts alternately.

A bundle occupies the ALU for ``bundle_clocks`` (4), and its result is ready after
``latency_clocks`` (8). Two wavefronts therefore keep the ALU busy; one alone leaves it idle half of
the time. A clause has an overhead of ``overhead_clocks``. The LDS serves clauses one after another,
and a clause lasts at least until the LDS has served it. Not modeled: what happens within a clause.
"""

from cypresskit.chip.native import part
from cypresskit.chip.units.sequencer import stream_entry


@part
def run_alu_clause(jobs, alu, lds, e, s, now):
    """Run slot ``s``'s clause on engine ``e``. Return when it begins and when it is over."""
    position = 0
    for other in range(1, alu.free.shape[1]):
        if alu.free[e, other] < alu.free[e, position]:
            position = other
    begin = max(now, alu.free[e, position])
    bundles = jobs.work.clauses[jobs.clause[e, s]].bundles
    lds_done = lds_done_clock(jobs, lds, e, s, begin + alu.overhead_clocks)
    computed = begin + alu.overhead_clocks + bundles * alu.latency_clocks
    over = max(computed, lds_done)
    alu.busy[e] += bundles * alu.bundle_clocks
    alu.free[e, position] = over
    return begin, over


@part
def lds_done_clock(jobs, lds, e, s, begin):
    """Return when the LDS has served slot ``s``'s clause, which requests from ``begin`` on; 0 if it
    has no LDS operation.
    """
    clause = jobs.work.clauses[jobs.clause[e, s]]
    done = 0.0
    for stream in range(clause.first, clause.end):
        entry, _ = stream_entry(jobs, e, s, stream)
        clocks = jobs.work.amounts[entry].cost
        done = lds.free[e] = max(begin, lds.free[e]) + clocks
        lds.busy[e] += clocks
    return done
