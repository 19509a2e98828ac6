"""Account for a launch's work line by line: what each line of a kernel requests from the units of
the chip.

The account balances. Summed over all lines, clocks are what the units are busy for
(``LaunchTime.busy``, which has no store path): those of a bundle are divided equally among its
operations; a fetch has the clocks of the texture unit, bank conflicts included; an LDS operation
those of the LDS; a store those of the store path.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from cypresskit.chip.work import ALU, TEX, Clause, clause_executions
from cypresskit.compiler import Bundle, Code
from cypresskit.devices import WAVEFRONT
from cypresskit.timing.timed_launch import Spread, TimedLaunch

UNITS = ("ALU", "texture", "LDS", "stores")


@dataclass(frozen=True)
class LineWork:
    """The work of one line in a launch. The call of a macro has the work of the macro's lines.

    Attributes
    ----------
    line, text
        Its number and its source.
    clocks
        What it requests from each of ``UNITS``, summed over all SIMD engines.
    """

    line: int
    text: str
    clocks: Mapping[str, float]


def line_clocks(launch: TimedLaunch, whole: bool) -> dict[int, dict[str, float]]:
    """Return ``LineWork.clocks`` of each line in a launch, by the index of its first instruction in
    ``Program.body``: exactly if ``whole``; otherwise, of a large launch, estimated from a part of
    its wavefronts.
    """
    spread = Spread(launch.trace(launch.wavefronts)) if whole else launch.trace_spread()
    code = launch.code
    firsts: dict[int, int] = {}  # by line
    lines = [firsts.setdefault(i.written_line, at) for at, i in enumerate(code.program.body)]
    # Other instructions became no work for a unit
    working = {o.at for c in code.controls for o in (*c.accesses, *c.operations)}
    clocks = {lines[at]: dict.fromkeys(UNITS, 0.0) for at in working}
    for clause, iterations, wavefronts in clause_executions(spread.paths):
        times = spread.times * iterations * wavefronts
        for at, share in bundle_shares(code, clause):
            clocks[lines[at]]["ALU"] += times * launch.device.bundle_clocks * share
        unit = {ALU: "LDS", TEX: "texture"}.get(clause.kind, "stores")
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            clocks[lines[at]][unit] += spread.times * stream.total(iterations)
    return clocks


def bundle_shares(code: Code, clause: Clause) -> list[tuple[int, float]]:
    """Return for each operation of a clause its instruction and its share of the bundle."""
    return [(o.at, 1 / len(b.operations)) for b in _bundles(code, clause) for o in b.operations]


def _bundles(code: Code, clause: Clause) -> tuple[Bundle, ...]:
    """Return the bundles of a clause."""
    if clause.kind != ALU:
        return ()
    return code.controls[clause.control].bundles[clause.first : clause.first + clause.bundles]


def products_made(launch: TimedLaunch, spread: Spread) -> float:
    """Return how many products of two numbers a launch makes at most, of floats or of doubles: all
    lanes of its wavefronts count.
    """
    made: dict[tuple[int, int, int], int] = {}
    total = 0
    for clause, iterations, wavefronts in clause_executions(spread.paths):
        key = clause.control, clause.first, clause.bundles
        if key not in made:
            made[key] = sum(bundle.multiplications for bundle in _bundles(launch.code, clause))
        total += made[key] * iterations * wavefronts
    return total * spread.times * WAVEFRONT
