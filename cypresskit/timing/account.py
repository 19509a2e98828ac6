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

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.machine.shape import Shape
from cypresskit.timing.surfaces import Surfaces
from cypresskit.timing.units.state import Ledger
from cypresskit.timing.walk import walk
from cypresskit.timing.work import ALU, BARRIER, TEX, WRITE, Clause, Path, Stream, clause_runs

UNITS = ("ALU", "texture", "LDS", "stores")
MOVES = ("DRAM", "written")
MANY = 4096  # wavefronts that show the work of a launch, if it has more
GOLDEN = (math.sqrt(5) - 1) / 2  # whose multiples fall in step with no row of workgroups
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


@dataclass(frozen=True, eq=False)
class TimedLaunch:
    """What was timed: compiled code, its ``shape``, the board and the textures' layout."""

    code: Code
    shape: Shape
    device: Device
    layout: str

    @property
    def active(self) -> int:
        """Wavefronts that share a SIMD engine."""
        return self.active_with(self.code.gprs)

    def active_with(self, registers: int) -> int:
        """Wavefronts that share a SIMD engine if a work-item has so many registers."""
        lds = self.shape.program.lds_bytes
        return self.device.active_wavefronts(registers, lds, self.group)

    @property
    def round(self) -> int:
        """Wavefronts that the chip holds at a time."""
        return self.active * self.device.simd_engines

    @property
    def group(self) -> int:
        """Wavefronts of a workgroup."""
        return self.shape.group_wavefronts

    @property
    def wavefronts(self) -> int:
        """Wavefronts of the whole launch."""
        return self.shape.wavefronts

    @cached_property
    def surfaces(self) -> Surfaces:
        """Its memory."""
        return Surfaces(self.shape, self.device.geometry, self.layout)

    def walk(self, count: int) -> list[Path]:
        """The paths of the first ``count`` wavefronts."""
        return self.walk_some(np.arange(count))

    def walk_some(self, numbers: np.ndarray) -> list[Path]:
        """The paths of the wavefronts of these ``numbers``, which rise."""
        return walk(self.code, self.surfaces, numbers)

    def walk_spread(self) -> "Spread":
        """The paths of all wavefronts or, if they are more than ``MANY``, of so many from all over
        the launch.
        """
        total = self.wavefronts
        if total <= MANY:
            return Spread(self.walk(total))
        parts = np.arange(MANY)
        numbers = np.unique((parts + parts * GOLDEN % 1) * total / MANY // 1).astype(np.int64)
        return Spread(self.walk_some(numbers), total / len(numbers))

    def work(self, seen: "Seen", whole: bool) -> tuple[LineWork, ...]:
        """The work of each line, all wavefronts counted; if not ``whole`` and they are many, drawn
        from some.
        """
        spread = Spread(self.walk(self.wavefronts)) if whole else self.walk_spread()
        clocks = self.device.bundle_clocks
        return lines_of_work(self.code, spread.paths, clocks, seen, spread.times)


@dataclass(frozen=True, eq=False)
class Spread:
    """Paths that show the work of a launch: each of their wavefronts stands for ``times`` as
    many.
    """

    paths: list[Path]
    times: float = 1.0


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


def worked_clocks(paths: list[Path], device: Device) -> float:
    """The clocks for which wavefronts on ``paths`` are worked on, or change their clause."""
    clocks = 0.0
    for clause, turns, wavefronts in clause_runs(paths):
        if clause.kind == BARRIER:
            continue
        clocks += turns * wavefronts * device.switch_clocks
        if clause.kind == ALU:
            length = clause.bundles * device.result_clocks + device.clause_clocks
            clocks += turns * wavefronts * length
        else:
            clocks += sum(stream_clocks(stream, turns) for stream in clause.streams)
    for path in paths:
        if path.segments[-1][0][-1].kind != BARRIER:  # nothing follows the last clause
            clocks -= len(path.wavefronts) * device.switch_clocks
    return clocks


def extended(seen: Seen, waited: float) -> Seen:
    """What was seen, with as long waits as make ``waited`` clocks in all, and none below 0."""
    total = sum(seen.waits.values())
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
