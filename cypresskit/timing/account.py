"""Work, line by line: the clocks that each line of a kernel asks of the chip's units in a launch.

An account in double entry: summed over all lines it is what the units of the chip are busy for
(``Report.busy``). A bundle's clocks are shared by the operations that fill it, slot by slot; a
fetch has the clocks of the texture unit, its bank conflicts included; an LDS operation has those of
the LDS; a store those of the store path. Left out: DRAM, whose lines belong to whoever missed them
first, and what wavefronts wait for.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cypresskit.compiler import Code
from cypresskit.devices import Device
from cypresskit.machine.shape import Shape
from cypresskit.timing.surfaces import Surfaces
from cypresskit.timing.walk import walk
from cypresskit.timing.work import ALU, TEX, Clause, Path, Stream

UNITS = ("ALU", "texture", "LDS", "stores")
LineId = tuple[int, tuple[int, ...]]  # a line, and the lines of the macro calls around it


@dataclass(frozen=True)
class LineWork:
    """What line number ``line`` of a kernel, whose ``text`` it is, asks for in a launch: ``clocks``
    by unit ("ALU", "texture", "LDS", "stores"), of all engines together. Wavefronts ran it ``runs``
    times, 0 if none came there. A line of a macro has one for each call: ``calls`` has the lines
    of the calls, the outermost first.
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
        lds = sum(size for _, size in self.shape.program.lds.values())
        return self.device.active_wavefronts(self.code.gprs, lds, self.shape.group_wavefronts)

    @property
    def round(self) -> int:
        """Wavefronts that the chip holds at a time."""
        return self.active * self.device.simd_engines

    def walk(self, count: int) -> list[Path]:
        """The paths of the first ``count`` wavefronts."""
        surfaces = Surfaces(self.shape, self.device.geometry, self.layout)
        return walk(self.code, surfaces, np.arange(count))

    def work(self) -> tuple[LineWork, ...]:
        """The work of each line, all wavefronts counted."""
        paths = self.walk(self.shape.wavefronts)
        return lines_of_work(self.code, paths, self.device.bundle_clocks)


def lines_of_work(code: Code, paths: list[Path], bundle_clocks: float) -> tuple[LineWork, ...]:
    """The work of wavefronts on ``paths`` by the lines of the code, in their order."""
    runs: dict[tuple[LineId, int], int] = defaultdict(int)  # by line and clause
    sources = [(i.line, tuple(i.calls)) for i in code.program.body]
    clocks = {sources[at]: dict.fromkeys(UNITS, 0.0) for at in _working(code)}
    for path in paths:
        for clauses, turns in path.segments:
            for clause in clauses:
                times = turns * len(path.wavefronts)
                ran = set()
                for at, share in bundle_shares(code, clause):
                    clocks[sources[at]]["ALU"] += times * bundle_clocks * share
                    ran.add(sources[at])
                unit = {ALU: "LDS", TEX: "texture"}.get(clause.kind, "stores")
                for stream, at in zip(clause.streams, clause.sources, strict=True):
                    clocks[sources[at]][unit] += stream_clocks(stream, turns)
                    ran.add(sources[at])
                for source in ran:
                    runs[source, clause.control] += times
    most: dict[LineId, int] = defaultdict(int)
    for (source, _), count in runs.items():
        most[source] = max(most[source], count)
    return tuple(
        LineWork(line, _text(code, line), most[line, calls], clocks[line, calls], calls)
        for line, calls in sorted(clocks)
    )


def _working(code: Code) -> set[int]:
    """The instructions of the program that became work for a unit."""
    accesses = {part.at for c in code.controls for part in (*c.fetches, *filter(None, [c.store]))}
    return accesses | {o.at for c in code.controls for o in c.operations}


def _text(code: Code, line: int) -> str:
    lines = code.program.lines
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def bundle_shares(code: Code, clause: Clause) -> list[tuple[int, float]]:
    """The instruction of each operation in a clause's bundles, and its share of its bundle."""
    if clause.kind != ALU:
        return []
    bundles = code.controls[clause.control].bundles[clause.first : clause.first + clause.bundles]
    return [(o.at, 1 / len(b.operations)) for b in bundles for o in b.operations]


def stream_clocks(stream: Stream, turns: int) -> float:
    """The clocks of a stream in so many turns, for all of its wavefronts."""
    times = np.bincount(np.arange(turns) % stream.phases, minlength=stream.phases)
    return float((stream.cost.reshape(-1, stream.phases) @ times).sum())
