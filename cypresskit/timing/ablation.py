"""Ablations: simulate a launch in which some of the work takes no time, and all else is unchanged.

The wavefronts run the same clauses. An ablated bundle takes no clocks of the ALU; an ablated access
requests nothing, neither from its unit nor from memory. Lines that it would have requested for a
later fetch of its clause are then requested by that one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from math import fsum

from cypresskit.chip.work import (
    ALU,
    TEX,
    WRITE,
    Clause,
    WavefrontPath,
    clause_executions,
    combine_stores,
    merge_fetches,
)
from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.timing.line_work import bundle_shares

ALL = 1 << 30  # bundles
MIN_ITERATIONS = 8  # loops are not shortened below this number
Part = tuple[int, int]  # of the code: a control-flow instruction and the first of its bundles


@dataclass(frozen=True)
class Ablation:
    """What takes no time.

    Attributes
    ----------
    bundles
        The number of bundles, by part of the code, each time that it is run.
    accesses
        Instructions, as indices into ``Program.body``.
    """

    bundles: Mapping[Part, int] = field(default_factory=dict)
    accesses: frozenset[int] = frozenset()


@dataclass(frozen=True)
class AblationTarget:
    """What can be ablated: a bundle of a part of the code, or an access.

    Attributes
    ----------
    kind
        Equal for accesses that request equally much.
    ablation
        The ablation.
    clocks
        The unit's clocks, by the lines that request them; of all bundles of the part.
    """

    kind: tuple
    ablation: Ablation
    clocks: Mapping[int, float]

    @property
    def accesses(self) -> frozenset[int]:
        return self.ablation.accesses

    @property
    def total(self) -> float:
        return fsum(self.clocks.values())


def ablation_targets(
    code: Code, paths: Iterable[WavefrontPath], device: Device
) -> list[AblationTarget]:
    """Return all targets in the paths: each part of the code with bundles, and each access."""
    parts: dict[Part, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    accesses: dict[int, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    units: dict[int, tuple] = {}
    instructions = code.program.body
    for clause, iterations, wavefronts in clause_executions(paths):
        times = float(iterations * wavefronts)
        for at, share in bundle_shares(code, clause):
            part = parts[clause.control, clause.first]
            part[instructions[at].written_line] += times * device.bundle_clocks * share
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            whole = stream.whole or stream
            per_access = iterations * len(whole.line) / whole.phases
            amounts = times, stream.total(iterations), per_access
            accesses[at] = [a + b for a, b in zip(accesses[at], amounts)]
            units[at] = clause.kind, clause.control if clause.kind == ALU else None
    targets = [
        AblationTarget(("bundle", part), Ablation({part: 1}), lines)
        for part, lines in parts.items()
    ]
    for at, (runs, clocks, touched) in accesses.items():
        kind = *units[at], runs, round(clocks / runs, 1), round(touched / runs, 1)
        ablation = Ablation({}, frozenset({at}))
        targets.append(AblationTarget(kind, ablation, {instructions[at].written_line: clocks}))
    return targets


def ablated_clocks(paths: Iterable[WavefrontPath], ablation: Ablation, device: Device) -> float:
    """Return the clocks that units work less."""
    clocks = 0.0
    for clause, iterations, wavefronts in clause_executions(paths):
        ablated = ablation.bundles.get((clause.control, clause.first), 0)
        bundles = min(ablated, clause.bundles)
        clocks += iterations * wavefronts * bundles * device.bundle_clocks
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            clocks += stream.total(iterations) if at in ablation.accesses else 0.0
    return clocks


def ablate(paths: Iterable[WavefrontPath], ablation: Ablation) -> list[WavefrontPath]:
    """Return the paths without the ablated work."""
    return [
        replace(path, segments=tuple((_ablated(body, ablation), n) for body, n in path.segments))
        for path in paths
    ]


def _ablated(body: tuple[Clause, ...], ablation: Ablation) -> tuple[Clause, ...]:
    clauses = [_ablated_clause(clause, ablation) for clause in body]
    if any(c.kind == WRITE and not ablation.accesses.isdisjoint(c.sources) for c in body):
        clauses = [_without(c, ablation) if c.kind == WRITE else c for c in clauses]
        clauses = combine_stores(clauses)
    return tuple(clauses)


def _ablated_clause(clause: Clause, ablation: Ablation) -> Clause:
    if clause.kind == ALU:
        ablated = ablation.bundles.get((clause.control, clause.first), 0)
        clause = replace(clause, bundles=max(clause.bundles - ablated, 0))
        return _without(clause, ablation)
    if clause.kind == TEX and not ablation.accesses.isdisjoint(clause.sources):
        clause = _without(clause, ablation)
        return replace(clause, streams=merge_fetches(clause.streams))
    return clause


def _without(clause: Clause, ablation: Ablation) -> Clause:
    """Return the clause without the ablated accesses. The others request all lines that they would
    alone.
    """
    left = [n for n, at in enumerate(clause.sources) if at not in ablation.accesses]
    streams = tuple(clause.streams[n].whole or clause.streams[n] for n in left)
    return replace(clause, streams=streams, sources=tuple(clause.sources[n] for n in left))


def shorten(paths: Iterable[WavefrontPath], share: float) -> list[WavefrontPath]:
    """Return the paths with a share of the iterations of each loop. Short loops are unchanged."""
    return [
        replace(
            path,
            segments=tuple(
                (body, max(round(n * share), min(n, MIN_ITERATIONS))) for body, n in path.segments
            ),
        )
        for path in paths
    ]
