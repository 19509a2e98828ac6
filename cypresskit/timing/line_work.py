"""Account for a launch's work line by line: what each line of a kernel requests from the units of
the chip.

The account balances. Summed over all lines, clocks are what the units are busy for
(``ChipTime.busy``, which has no store path): those of a bundle are divided equally among its
operations; a fetch has the clocks of the texture unit, bank conflicts included; an LDS operation
those of the LDS; a store those of the store path.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from cypresskit.chip.work import ALU, TEX, Clause, WavefrontPath, clause_executions
from cypresskit.compiler import Code
from cypresskit.timing.timed_launch import Spread, TimedLaunch

UNITS = ("ALU", "texture", "LDS", "stores")
LineId = tuple[int, tuple[int, ...]]  # a line, and the lines of the macro calls around it


@dataclass(frozen=True)
class LineWork:
    """The work of one line in a launch. A line of a macro has one per call.

    Attributes
    ----------
    line, text
        Its number and its source.
    runs
        How often wavefronts ran it.
    clocks
        What it requests from each of ``UNITS``, summed over all SIMD engines.
    calls
        The lines of the macro calls around it, the outermost first.
    """

    line: int
    text: str
    runs: int
    clocks: Mapping[str, float]
    calls: tuple[int, ...] = ()

    @property
    def id(self) -> LineId:
        """The line and the calls around it."""
        return self.line, self.calls


def launch_line_work(launch: TimedLaunch, whole: bool) -> tuple[LineWork, ...]:
    """Return the work of each line in a launch: exactly if ``whole``; otherwise, of a large launch,
    estimated from a part of its wavefronts.
    """
    spread = Spread(launch.trace(launch.wavefronts)) if whole else launch.trace_spread()
    return lines_of_work(launch.code, spread.paths, launch.device.bundle_clocks, spread.times)


def lines_of_work(
    code: Code, paths: list[WavefrontPath], bundle_clocks: float, scale: float = 1.0
) -> tuple[LineWork, ...]:
    """Return the work of each line, in order, for ``scale`` times the wavefronts of ``paths``."""
    runs: dict[LineId, Counter[int]] = defaultdict(Counter)  # by line and clause
    instructions = code.program.body
    clocks = {instructions[at].id: dict.fromkeys(UNITS, 0.0) for at in _working(code)}
    for clause, iterations, wavefronts in clause_executions(paths):
        times = iterations * wavefronts
        ran = set()
        for at, share in bundle_shares(code, clause):
            clocks[instructions[at].id]["ALU"] += times * bundle_clocks * share
            ran.add(instructions[at].id)
        unit = {ALU: "LDS", TEX: "texture"}.get(clause.kind, "stores")
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            clocks[instructions[at].id][unit] += stream.total(iterations)
            ran.add(instructions[at].id)
        for source in ran:
            runs[source][clause.control] += times
    return tuple(
        LineWork(
            line=id_[0],
            text=code.program.text_of(id_[0]).strip(),
            runs=round(scale * max(runs[id_].values(), default=0)),
            clocks={unit: scale * count for unit, count in clocks[id_].items()},
            calls=id_[1],
        )
        for id_ in sorted(clocks)
    )


def _working(code: Code) -> set[int]:
    """Return the instructions of the program that became work for a unit."""
    accesses = {access.at for control in code.controls for access in control.accesses}
    operations = {operation.at for control in code.controls for operation in control.operations}
    return accesses | operations


def bundle_shares(code: Code, clause: Clause) -> list[tuple[int, float]]:
    """Return for each operation of a clause its instruction and its share of the bundle."""
    if clause.kind != ALU:
        return []
    bundles = code.controls[clause.control].bundles[clause.first : clause.first + clause.bundles]
    return [(o.at, 1 / len(b.operations)) for b in bundles for o in b.operations]
