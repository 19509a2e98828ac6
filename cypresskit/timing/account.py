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
Source = tuple[int, tuple[int, ...]]  # a line, and the lines of the macro calls around it


@dataclass(frozen=True)
class LineWork:
    """What line number ``line`` of a kernel, whose ``text`` it is, asks for in a launch: ``clocks``
    by unit ("ALU", "texture", "LDS", "stores"), of all engines together. Wavefronts ran it ``runs``
    times. A line of a macro has one for each call: ``calls`` has the lines of the calls, the
    outermost first.
    """

    line: int
    text: str
    runs: int
    clocks: Mapping[str, float]
    calls: tuple[int, ...] = ()


def launch_work(code: Code, shape: Shape, device: Device, layout: str) -> tuple[LineWork, ...]:
    """The work of each line that is run in a launch, all of its wavefronts counted."""
    paths = walk(code, Surfaces(shape, device.geometry, layout), np.arange(shape.wavefronts))
    return lines_of_work(code, paths, device.bundle_clocks)


def lines_of_work(code: Code, paths: list[Path], bundle_clocks: float) -> tuple[LineWork, ...]:
    """The work of each line that wavefronts on ``paths`` ran, in the order of lines."""
    clocks: dict[Source, dict[str, float]] = defaultdict(lambda: dict.fromkeys(UNITS, 0.0))
    runs: dict[tuple[Source, int], int] = defaultdict(int)  # by line and clause
    sources = [(i.line, tuple(i.calls)) for i in code.program.body]
    for path in paths:
        for clauses, turns in path.segments:
            for clause in clauses:
                times = turns * len(path.wavefronts)
                ran = set()
                for at, share in _slots(code, clause):
                    clocks[sources[at]]["ALU"] += times * bundle_clocks * share
                    ran.add(sources[at])
                unit = {ALU: "LDS", TEX: "texture"}.get(clause.kind, "stores")
                for stream, at in zip(clause.streams, clause.sources, strict=True):
                    clocks[sources[at]][unit] += _cost(stream, turns)
                    ran.add(sources[at])
                for source in ran:
                    runs[source, clause.control] += times
    most: dict[Source, int] = defaultdict(int)
    for (source, _), count in runs.items():
        most[source] = max(most[source], count)
    return tuple(
        LineWork(line, _text(code, line), most[line, calls], clocks[line, calls], calls)
        for line, calls in sorted(clocks)
    )


def _text(code: Code, line: int) -> str:
    lines = code.program.lines
    return lines[line - 1].strip() if 0 < line <= len(lines) else ""


def _slots(code: Code, clause: Clause) -> list[tuple[int, float]]:
    """The instruction of each operation in a clause's bundles, and its share of its bundle."""
    if clause.kind != ALU:
        return []
    bundles = code.controls[clause.control].bundles[clause.first : clause.first + clause.bundles]
    return [(o.at, 1 / len(b.operations)) for b in bundles for o in b.operations]


def _cost(stream: Stream, turns: int) -> float:
    """The clocks of a stream in so many turns, for all of its wavefronts."""
    times = np.bincount(np.arange(turns) % stream.phases, minlength=stream.phases)
    return float((stream.cost.reshape(-1, stream.phases) @ times).sum())
