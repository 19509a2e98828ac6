"""From the chip down to the register that changes, in one journey: each click goes a level deeper,
Escape goes back.

The levels are views of their own, all made from one simulation, one compilation and one recorded
launch, so a saved page has everything. Left out: the clauses of engines other than 0, for which a
report keeps no timeline, and the steps after the first.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cypresskit.compiler import compile
from cypresskit.draw.bundles import bundles
from cypresskit.draw.chip import ENGINES, chip
from cypresskit.draw.player import Player
from cypresskit.draw.register_block import register_block
from cypresskit.draw.shown import Shown, embed
from cypresskit.draw.wavefronts import wavefronts
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.record import Recorder
from cypresskit.timing import simulate

DRAWN = 320  # of the work-item that are drawn
CLOCKS = 4000  # of the wavefronts


@dataclass(frozen=True)
class Level:
    """A level of the journey: its name, what to do there, its picture, and for each key that leads
    on, where to.
    """

    name: str
    hint: str
    player: Player
    ways: Mapping[int, tuple[int, ...]]


class Journey(Shown):
    """Players shown one at a time; a click on certain things leads from one to the next."""

    def __init__(self, title: str, levels: Sequence[Level]) -> None:
        self.title, self.levels = title, list(levels)

    def __repr__(self) -> str:
        return "\n".join(
            [self.title, *(f"{level.name}: {level.player!r}" for level in self.levels)]
        )

    def still(self) -> str:
        """The first level's still."""
        return self.levels[0].player.still()

    def embedded(self, *, links: bool = True, still: bool = True) -> str:
        players = [level.player.embedded(links=links, still=still) for level in self.levels]
        sections = [f"<section hidden>{player}</section>" for player in players]
        sections[0] = f"<section>{players[0]}</section>"
        levels = [
            {"name": level.name, "hint": level.hint, "ways": level.ways} for level in self.levels
        ]
        start = [0, next(iter(self.levels[0].ways), None)]
        data = json.dumps({"levels": levels, "start": start})
        return embed("journey", data, "".join(sections))


def explore(kernel: Source = "sgemm_tn", n: int = 256) -> Journey:
    """A journey through a product of n x n matrices: you click your way from the chip to the
    registers.

    ``kernel`` is one that keeps its block of C in registers, of the catalogue or your own. It is
    simulated, compiled and launched once, on small whole numbers. Raises ``ValueError`` for a
    kernel whose block passes through LDS, and for what ``simulate`` refuses.

        ck.draw.explore("sgemm_tn", 256)
    """
    chosen = resolve(kernel)
    report, recorder = simulate(chosen, n), Recorder(0)
    run(chosen, n, n, n, recorder)
    code = compile(chosen.program)
    last = report.timeline[-1].end
    engine_0 = wavefronts(
        report, window=(max(min(CLOCKS / 2, last - CLOCKS), 0), min(1.5 * CLOCKS, last))
    )
    recording = recorder.recording
    loop, block = bundles(code), register_block(recording, steps=DRAWN)
    on = np.flatnonzero(report.use.wavefronts[:, 0] == 0) if report.use else np.zeros(0, int)
    there = [int(wavefront) for wavefront in on if wavefront in engine_0.about]
    clause = max(code.main_loop, key=lambda control: len(control.bundles))
    first = [bundle for control in code.main_loop for bundle in control.bundles].index(
        clause.bundles[0]
    )
    lines = [recording.line(step) for step in range(len(block))]
    steps = len(recording)
    part = f"(The first {len(block)} of {steps:,} steps: the rest is more of the same.)" * (
        len(block) < steps
    )
    return Journey(
        f"From the chip to the register: {chosen.name}, N = {n}",
        [
            Level(
                "Chip",
                "Click the framed engine, or a wavefront on it.",
                chip(report),
                {ENGINES: (0, there[0] if there else 0)}
                | {wavefront: (0, wavefront) for wavefront in there},
            ),
            Level(
                "SIMD engine 0",
                "Click what a wavefront does.",
                engine_0,
                dict.fromkeys(engine_0.about, (first,)),
            ),
            Level(
                "Bundles of the loop",
                "Click a line of IL, or a slot.",
                loop,
                {line: (lines.index(line),) for line in loop.about if line in lines},
            ),
            Level(
                "Registers of work-item 0",
                f"Click a number of C: its sum. Escape goes back. {part}",
                block,
                {},
            ),
        ],
    )
