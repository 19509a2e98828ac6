"""Account for a launch's work line by line: what each line of a kernel requests from the units of
the chip, and how long wavefronts wait at it.

The account balances. Summed over all lines, clocks are what the units are busy for
(``ChipTime.busy``, which has no store path): those of a bundle are divided equally among its
operations; a fetch has the clocks of the texture unit, bank conflicts included; an LDS operation
those of the LDS; a store those of the store path. Bytes add up to ``ChipTime.bytes``: a line of
memory belongs to the fetch that missed it. A wavefront's lifetime is the clocks in which it is
served, and those in which it waits. The simulation records the latter by clause
(``units.state.Ledger``). Their sum is ``ChipTime.resident_clocks``.

Waiting for a unit and waiting for data aren't separated: each changes with the order of wavefronts,
while their sum is stable.

For a launch that is simulated in part, the total lifetime and the work are known. The rest is
waiting time, and is divided among the lines as observed.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum

from cypresskit.chip.units.state import Ledger
from cypresskit.chip.work import (
    ALU,
    BARRIER,
    TEX,
    WRITE,
    Clause,
    Stream,
    WavefrontPath,
    clause_executions,
)
from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.timing.timed_launch import Spread, TimedLaunch

UNITS = ("ALU", "texture", "LDS", "stores")
MOVES = ("DRAM", "written")
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
    bytes
        What it moves: "DRAM", lines read from memory; and "written".
    waiting_clocks
        For how long wavefronts waited at it: for a unit that was busy, for data, or for others of
        the workgroup. A wavefront waits at the last access of a clause.
    calls
        The lines of the macro calls around it, the outermost first.
    """

    line: int
    text: str
    runs: int
    clocks: Mapping[str, float]
    bytes: Mapping[str, float]
    waiting_clocks: float
    calls: tuple[int, ...] = ()

    @property
    def id(self) -> LineId:
        """The line and the calls around it."""
        return self.line, self.calls


@dataclass(frozen=True)
class LineObservations:
    """What a simulation observed of each line.

    Attributes
    ----------
    waits
        Clocks.
    moves
        Bytes, by ``MOVES``.
    """

    waits: Mapping[LineId, float]
    moves: Mapping[LineId, Mapping[str, float]]


def observe_lines(
    code: Code, paths: list[WavefrontPath], ledger: Ledger, line_bytes: int, part: float
) -> LineObservations:
    """Return what a simulation's ledger has for each line, scaled up to the launch.

    Parameters
    ----------
    paths
        The wavefronts that were simulated.
    line_bytes
        The size of a cache line.
    part
        The share of the launch's wavefronts that they are.
    """
    instructions = code.program.body
    waits: dict[LineId, float] = defaultdict(float)
    moves: dict[LineId, dict[str, float]] = defaultdict(lambda: dict.fromkeys(MOVES, 0.0))
    waited, read, written = map(iter, (ledger.waited, ledger.read, ledger.written))
    for body in (body for path in paths for body, _ in path.segments):
        stores: list[tuple[int, Stream]] = []  # they leave together with the next one
        for clause in body:
            waits[instructions[_last(code, clause)].id] += float(next(waited)) / part
            for stream, at in zip(clause.streams, clause.sources, strict=True):
                moves[instructions[at].id]["DRAM"] += float(next(read)) * line_bytes / part
                if clause.kind == WRITE:
                    stores.append((at, stream.whole or stream))
                if count := float(next(written)):
                    requested = sum(len(own.line) for _, own in stores)
                    for store, own in stores:
                        lines = count * len(own.line) / requested
                        moves[instructions[store].id]["written"] += lines * line_bytes / part
                    stores = []
    return LineObservations(dict(waits), dict(moves))


def scale_waits(observations: LineObservations, waiting: float) -> LineObservations:
    """Scale the waits so that their sum is ``waiting`` clocks; none is below 0."""
    total = fsum(observations.waits.values())
    factor = max(waiting / total, 0.0) if total else 0.0
    waits = {line: factor * clocks for line, clocks in observations.waits.items()}
    return replace(observations, waits=waits)


def service_clocks(paths: list[WavefrontPath], device: Device) -> float:
    """Return the clocks in which wavefronts are served by a unit, or change their clause."""
    clocks = 0.0
    for clause, iterations, wavefronts in clause_executions(paths):
        if clause.kind == BARRIER:
            continue
        each = device.clause_switch_clocks
        if clause.kind == ALU:
            each += clause.bundles * device.alu_latency_clocks + device.clause_overhead_clocks
        else:
            clocks += fsum(stream.total(iterations) for stream in clause.streams)
        clocks += iterations * wavefronts * each
    for path in paths:
        if path.segments[-1][0][-1].kind != BARRIER:  # no clause change after the last clause
            clocks -= len(path.wavefronts) * device.clause_switch_clocks
    return clocks


def _last(code: Code, clause: Clause) -> int:
    """Return the last access of a clause; without any, its last instruction."""
    control = code.controls[clause.control]
    if clause.kind == BARRIER:
        (at, *_) = [o.at for o in control.bundles[clause.first].operations if o.row.kind == "sync"]
        return at
    operations = [at for at, _ in bundle_shares(code, clause)]
    return [control.at, *operations, *clause.sources][-1]


def launch_line_work(
    launch: TimedLaunch, observations: LineObservations, whole: bool
) -> tuple[LineWork, ...]:
    """Return the work of each line in a launch: exactly if ``whole``; otherwise, of a large launch,
    estimated from a part of its wavefronts.
    """
    spread = Spread(launch.trace(launch.wavefronts)) if whole else launch.trace_spread()
    clocks = launch.device.bundle_clocks
    return lines_of_work(launch.code, spread.paths, clocks, observations, spread.times)


def lines_of_work(
    code: Code,
    paths: list[WavefrontPath],
    bundle_clocks: float,
    observations: LineObservations = LineObservations({}, {}),
    scale: float = 1.0,
) -> tuple[LineWork, ...]:
    """Return the work of each line, in order, for ``scale`` times the wavefronts of ``paths``."""
    runs: dict[LineId, Counter[int]] = defaultdict(Counter)  # by line and clause
    instructions = code.program.body
    lines = {instructions[at].id for at in _working(code)} | observations.waits.keys()
    clocks = {line: dict.fromkeys(UNITS, 0.0) for line in lines}
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
            bytes=observations.moves.get(id_, dict.fromkeys(MOVES, 0.0)),
            waiting_clocks=observations.waits.get(id_, 0.0),
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
