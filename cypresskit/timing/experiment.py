"""Experiments: a launch in which some of the work is done in no time, and everything else stays.

The code stays: the wavefronts run the same clauses. A bundle that is free takes no clocks of the
ALU; an access that is free asks neither its unit nor memory for anything. Lines that a fetch would
have brought for a later one of its clause are then asked for by that one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.timing.account import LineId, bundle_shares, stream_clocks
from cypresskit.timing.work import (
    ALU,
    TEX,
    WRITE,
    Clause,
    Path,
    clause_runs,
    combined_stores,
    fetched_together,
)

ALL = 1 << 30  # bundles
BRIEF = 8  # turns of a loop that isn't cut
Part = tuple[int, int]  # of the code: a control-flow instruction and the first of its bundles


@dataclass(frozen=True)
class Experiment:
    """What is free: so many ``bundles`` of a part of the code, each time it is run, and the
    ``accesses`` of these instructions (indices into ``Program.body``).
    """

    bundles: Mapping[Part, int] = field(default_factory=dict)
    accesses: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Demand:
    """What an experiment can free: a bundle of a part of the code, or an access. ``kind`` is the
    same for accesses that ask for as much; ``clocks`` of the unit by the lines that asked for them,
    all bundles of the part counted.
    """

    kind: tuple
    experiment: Experiment
    clocks: Mapping[LineId, float]

    @property
    def accesses(self) -> frozenset[int]:
        return self.experiment.accesses

    @property
    def total(self) -> float:
        return fsum(self.clocks.values())


def demands_of(code: Code, paths: Iterable[Path], device: Device) -> list[Demand]:
    """All demands of the paths: each part of the code with bundles, and each access."""
    parts: dict[Part, dict[LineId, float]] = defaultdict(lambda: defaultdict(float))
    accesses: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    units: dict[int, tuple] = {}
    instructions = code.program.body
    for clause, turns, wavefronts in clause_runs(paths):
        times = float(turns * wavefronts)
        for at, share in bundle_shares(code, clause):
            part = parts[clause.control, clause.first]
            part[instructions[at].id] += times * device.bundle_clocks * share
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            whole = stream.whole or stream
            per_access = turns * len(whole.line) / whole.phases
            amounts = times, stream_clocks(stream, turns), per_access
            accesses[at] = [a + b for a, b in zip(accesses[at], amounts)]
            units[at] = clause.kind, clause.control if clause.kind == ALU else None
    demands = [
        Demand(("bundle", part), Experiment({part: 1}), lines) for part, lines in parts.items()
    ]
    for at, (runs, clocks, touched) in accesses.items():
        kind = *units[at], runs, round(clocks / runs, 1), round(touched / runs, 1)
        demands.append(Demand(kind, Experiment({}, frozenset({at})), {instructions[at].id: clocks}))
    return demands


def free_clocks(paths: Iterable[Path], experiment: Experiment, device: Device) -> float:
    """The clocks that units have to work less."""
    clocks = 0.0
    for clause, turns, wavefronts in clause_runs(paths):
        free = experiment.bundles.get((clause.control, clause.first), 0)
        bundles = min(free, clause.bundles) if clause.kind == ALU else 0
        clocks += turns * wavefronts * bundles * device.bundle_clocks
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            clocks += stream_clocks(stream, turns) if at in experiment.accesses else 0.0
    return clocks


def freed(paths: Iterable[Path], experiment: Experiment) -> list[Path]:
    """The paths, without the work that is free."""
    return [
        replace(path, segments=tuple((_freed(body, experiment), n) for body, n in path.segments))
        for path in paths
    ]


def _freed(body: tuple[Clause, ...], experiment: Experiment) -> tuple[Clause, ...]:
    clauses = [_freed_clause(clause, experiment) for clause in body]
    if any(c.kind == WRITE and not experiment.accesses.isdisjoint(c.sources) for c in body):
        clauses = [_without(_whole(c), experiment) if c.kind == WRITE else c for c in clauses]
        clauses = combined_stores(clauses)
    return tuple(clauses)


def _freed_clause(clause: Clause, experiment: Experiment) -> Clause:
    if clause.kind == ALU:
        free = experiment.bundles.get((clause.control, clause.first), 0)
        clause = replace(clause, bundles=max(clause.bundles - free, 0))
        return _without(clause, experiment)
    if clause.kind == TEX and not experiment.accesses.isdisjoint(clause.sources):
        clause = _without(_whole(clause), experiment)
        return replace(clause, streams=fetched_together(clause.streams))
    return clause


def _whole(clause: Clause) -> Clause:
    """The clause, each of its streams with all lines that it would ask for alone."""
    return replace(clause, streams=tuple(s.whole or s for s in clause.streams))


def _without(clause: Clause, experiment: Experiment) -> Clause:
    """The clause without the accesses that are free."""
    kept = [n for n, at in enumerate(clause.sources) if at not in experiment.accesses]
    if len(kept) == len(clause.sources):
        return clause
    streams = tuple(clause.streams[n] for n in kept)
    return replace(clause, streams=streams, sources=tuple(clause.sources[n] for n in kept))


def cut(paths: Iterable[Path], share: float) -> list[Path]:
    """The paths with so large a share of the turns of their loops, brief ones left as they are."""
    return [
        replace(path, segments=tuple((body, _fewer(n, share)) for body, n in path.segments))
        for path in paths
    ]


def _fewer(turns: int, share: float) -> int:
    return max(round(turns * share), min(turns, BRIEF))
