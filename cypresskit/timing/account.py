"""Work, line by line: what each line of a kernel asks of the chip's units in a launch, and how long
wavefronts stood at it.

An account in double entry. Summed over all lines, clocks are what the units of the chip are busy
for (``Report.busy``): a bundle's are shared by the operations that fill it, slot by slot; a fetch
has those of the texture unit, its bank conflicts included; an LDS operation those of the LDS; a
store those of the store path. Bytes are the report's: a line of memory belongs to the fetch that
missed it. And a wavefront's life is the clocks for which it is worked on and those for which it
waits, which the engine's ledger (``units.state``) has by clause. Their sum is ``Report.lived``.
For a unit or for data isn't told apart: who queues at a unit and who has left it and lacks data
changes with the order of wavefronts, while both together last.

Of a sampled launch, total lifetime and work are known; waiting is the rest, shared among lines as
observed.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import fsum
from typing import Any

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.timing.timed_launch import Spread, TimedLaunch
from cypresskit.timing.units.state import Ledger
from cypresskit.timing.work import ALU, BARRIER, TEX, WRITE, Clause, Path, Stream, clause_runs

UNITS = ("ALU", "texture", "LDS", "stores")
MOVES = ("DRAM", "written")
LineId = tuple[int, tuple[int, ...]]  # a line, and the lines of the macro calls around it


@dataclass(frozen=True)
class LineWork:
    """What line number ``line`` of a kernel, whose ``text`` it is, asks for in a launch: ``clocks``
    by unit ("ALU", "texture", "LDS", "stores"), of all engines together. Wavefronts ran it ``runs``
    times, 0 if none came there. A line of a macro has one for each call: ``calls`` has the lines
    of the calls, the outermost first.

    ``bytes`` has what it moved: "DRAM", lines that had to be read from memory, and "written".
    ``waited``: for how many clocks wavefronts stood at it, since a unit was busy with others, data
    weren't there, or others of the workgroup hadn't come. A wavefront stands at a clause: it waits
    at the last of its accesses.
    """

    line: int
    text: str
    runs: int
    clocks: Mapping[str, float]
    bytes: Mapping[str, float]
    waited: float
    calls: tuple[int, ...] = ()

    @property
    def id(self) -> LineId:
        """The line and the calls around it."""
        return self.line, self.calls


def lines_as_plain(lines: tuple[LineWork, ...]) -> dict[str, Any]:
    """Numbers, strings, lists and dicts of them; see ``lines_from_plain``."""
    return {"lines": [vars(line) for line in lines]}


def lines_from_plain(plain: dict[str, Any]) -> tuple[LineWork, ...]:
    """The lines that ``lines_as_plain`` was of."""
    return tuple(LineWork(**line | {"calls": tuple(line["calls"])}) for line in plain["lines"])


@dataclass(frozen=True)
class Seen:
    """What the engine saw of each line: clocks of ``waits``, and bytes of ``moves`` by kind."""

    waits: Mapping[LineId, float]
    moves: Mapping[LineId, Mapping[str, float]]


def seen_lines(code: Code, paths: list[Path], ledger: Ledger, line_bytes: int, part: float) -> Seen:
    """What the ``ledger`` says of each line, in a launch of which ``paths`` are a ``part``."""
    instructions = code.program.body
    waits: dict[LineId, float] = defaultdict(float)
    moves: dict[LineId, dict[str, float]] = defaultdict(lambda: dict.fromkeys(MOVES, 0.0))
    clause_at, stream_at = 0, 0
    for body in (body for path in paths for body, _ in path.segments):
        stores: list[tuple[int, Stream]] = []  # that leave together with the next
        for clause in body:
            waits[instructions[_last(code, clause)].id] += float(ledger.waited[clause_at]) / part
            clause_at += 1
            for stream, at in zip(clause.streams, clause.sources, strict=True):
                read, written = float(ledger.read[stream_at]), float(ledger.written[stream_at])
                stream_at += 1
                moves[instructions[at].id]["DRAM"] += read * line_bytes / part
                if clause.kind == WRITE:
                    stores.append((at, stream.whole or stream))
                if written:
                    asked = sum(len(own.line) for _, own in stores)
                    for store, own in stores:
                        lines = written * len(own.line) / asked
                        moves[instructions[store].id]["written"] += lines * line_bytes / part
                    stores = []
    return Seen(dict(waits), dict(moves))


def lines_of_launch(launch: TimedLaunch, seen: Seen, whole: bool) -> tuple[LineWork, ...]:
    """The work of each line, all wavefronts counted; if not ``whole`` and they are many, drawn from
    some.
    """
    spread = Spread(launch.walk(launch.wavefronts)) if whole else launch.walk_spread()
    clocks = launch.device.bundle_clocks
    return lines_of_work(launch.code, spread.paths, clocks, seen, spread.times)


def worked_clocks(paths: list[Path], device: Device) -> float:
    """The clocks for which wavefronts on ``paths`` are worked on, or change their clause."""
    clocks = 0.0
    for clause, turns, wavefronts in clause_runs(paths):
        if clause.kind == BARRIER:
            continue
        clocks += turns * wavefronts * device.clause_switch_clocks
        if clause.kind == ALU:
            length = clause.bundles * device.alu_latency_clocks + device.clause_overhead_clocks
            clocks += turns * wavefronts * length
        else:
            clocks += fsum(stream_clocks(stream, turns) for stream in clause.streams)
    for path in paths:
        if path.segments[-1][0][-1].kind != BARRIER:  # nothing follows the last clause
            clocks -= len(path.wavefronts) * device.clause_switch_clocks
    return clocks


def extended(seen: Seen, waited: float) -> Seen:
    """What was seen, with as long waits as make ``waited`` clocks in all, and none below 0."""
    total = fsum(seen.waits.values())
    longer = max(waited / total, 0.0) if total else 0.0
    return replace(seen, waits={line: longer * clocks for line, clocks in seen.waits.items()})


def _last(code: Code, clause: Clause) -> int:
    """The last access of a clause or, without any, its last instruction."""
    control = code.controls[clause.control]
    if clause.kind == BARRIER:
        (at, *_) = [o.at for o in control.bundles[clause.first].operations if o.row.kind == "sync"]
        return at
    operations = [at for at, _ in bundle_shares(code, clause)]
    return [control.at, *operations, *clause.sources][-1]


def lines_of_work(
    code: Code,
    paths: list[Path],
    bundle_clocks: float,
    seen: Seen = Seen({}, {}),
    scale: float = 1.0,
) -> tuple[LineWork, ...]:
    """The work of ``scale`` times as many wavefronts as are on ``paths``, by lines in order."""
    runs: dict[tuple[LineId, int], int] = defaultdict(int)  # by line and clause
    instructions = code.program.body
    clocks = {instructions[at].id: dict.fromkeys(UNITS, 0.0) for at in _working(code)}
    for clause, turns, wavefronts in clause_runs(paths):
        times = turns * wavefronts
        ran = set()
        for at, share in bundle_shares(code, clause):
            clocks[instructions[at].id]["ALU"] += times * bundle_clocks * share
            ran.add(instructions[at].id)
        unit = {ALU: "LDS", TEX: "texture"}.get(clause.kind, "stores")
        for stream, at in zip(clause.streams, clause.sources, strict=True):
            clocks[instructions[at].id][unit] += stream_clocks(stream, turns)
            ran.add(instructions[at].id)
        for source in ran:
            runs[source, clause.control] += times
    most: dict[LineId, int] = defaultdict(int)
    for (source, _), count in runs.items():
        most[source] = max(most[source], count)
    for line in seen.waits.keys() - clocks.keys():
        clocks[line] = dict.fromkeys(UNITS, 0.0)
    return tuple(
        LineWork(
            line=id_[0],
            text=code.program.text_of(id_[0]).strip(),
            runs=round(scale * most[id_]),
            clocks={unit: scale * count for unit, count in clocks[id_].items()},
            bytes=seen.moves.get(id_, dict.fromkeys(MOVES, 0.0)),
            waited=seen.waits.get(id_, 0.0),
            calls=id_[1],
        )
        for id_ in sorted(clocks)
    )


def _working(code: Code) -> set[int]:
    """The instructions of the program that became work for a unit."""
    accesses = {access.at for control in code.controls for access in control.accesses}
    operations = {operation.at for control in code.controls for operation in control.operations}
    return accesses | operations


def bundle_shares(code: Code, clause: Clause) -> list[tuple[int, float]]:
    """The instruction of each operation in a clause's bundles, and its share of its bundle."""
    if clause.kind != ALU:
        return []
    bundles = code.controls[clause.control].bundles[clause.first : clause.first + clause.bundles]
    return [(o.at, 1 / len(b.operations)) for b in bundles for o in b.operations]


def stream_clocks(stream: Stream, turns: int) -> float:
    """The clocks of a stream in so many turns, for all of its wavefronts."""
    return stream.total(stream.cost, turns)
