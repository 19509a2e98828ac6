"""From the chip down to the register that changes, in one journey: each click goes a level deeper,
Escape goes back.

The levels are views of their own, all made from one simulation, one compilation and one recorded
launch, so a saved page has everything. Left out: the clauses of engines other than 0, for which a
report keeps no timeline, and the steps after the first.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cypresskit.compiler import Code, compile
from cypresskit.draw.bundles import bundles
from cypresskit.draw.chip import chip
from cypresskit.draw.chip_scene import engine_key, wavefront_key
from cypresskit.draw.display import Displayable, embed
from cypresskit.draw.player import Player
from cypresskit.draw.register_block import register_block
from cypresskit.draw.wavefronts import wavefronts
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.record import Recorder, Recording
from cypresskit.timing import Report, simulate

STEPS = 640  # of the work-item that are drawn
CLOCKS = 4000  # of the wavefronts


class Link(NamedTuple):
    """Where a click leads: a frame of the next level, and maybe what is chosen there."""

    frame: int
    key: int | None = None


@dataclass(frozen=True)
class Level:
    """A level of the journey: its name, what to do there, its picture, and for each key that leads
    on, where to.
    """

    name: str
    hint: str
    player: Player
    links: Mapping[int, Link]


class Journey(Displayable):
    """Players shown one at a time; a click on certain things leads from one to the next."""

    def __init__(self, title: str, levels: Sequence[Level]) -> None:
        self.title = title
        self.levels = list(levels)

    def __repr__(self) -> str:
        return "\n".join(
            [self.title, *(f"{level.name}: {level.player!r}" for level in self.levels)]
        )

    def still(self) -> str:
        """The first level's still."""
        return self.levels[0].player.still()

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        players = [level.player.to_html(links=links, still=still) for level in self.levels]
        sections = [f"<section hidden>{player}</section>" for player in players]
        sections[0] = f"<section>{players[0]}</section>"
        levels = [
            {"name": level.name, "hint": level.hint, "links": level.links} for level in self.levels
        ]
        start = [0, next(iter(self.levels[0].links), None)]
        data = json.dumps({"levels": levels, "start": start})
        return embed("journey", data, "".join(sections))


def explore(kernel: Source = "sgemm_tn", n: int = 256) -> Journey:
    """A journey through a product of n x n matrices: you click your way from the chip to the
    registers.

    ``kernel`` is one that keeps its block of C in registers, of the catalogue or your own. It is
    simulated, compiled and launched once, on small whole numbers. Raises ``ValueError`` for a
    kernel that keeps no such block, and for what ``simulate`` refuses.

        ck.draw.explore("sgemm_tn", 256)
    """
    chosen = resolve(kernel)
    report = simulate(chosen, n)
    code = compile(chosen.program)
    recorder = Recorder(0, STEPS)
    run(chosen, n, n, n, recorder)
    engine = wavefronts(report, window=_middle(report))
    levels = [
        _chip_level(report, engine),
        _engine_level(engine, code),
        _bundles_level(code, recorder.recording),
        _registers_level(recorder.recording),
    ]
    return Journey(f"From the chip to the register: {chosen.name}, N = {n}", levels)


def _middle(report: Report) -> tuple[float, float]:
    """The clocks of a launch that are drawn: not its very beginning, if it is long enough."""
    last = report.timeline[-1].end
    return max(min(CLOCKS / 2, last - CLOCKS), 0), min(1.5 * CLOCKS, last)


def _chip_level(report: Report, engine: Player) -> Level:
    """Engine 0 and its wavefronts lead to the ``engine``'s picture, where these are drawn."""
    on_engine = np.flatnonzero(report.use.wavefronts[:, 0] == 0) if report.use else np.zeros(0, int)
    drawn = [int(wavefront) for wavefront in on_engine if wavefront in engine.about]
    links = {engine_key(0, 0): Link(0, drawn[0] if drawn else 0)}
    links |= {wavefront_key(0, wavefront): Link(0, wavefront) for wavefront in drawn}
    return Level("Chip", "Click the framed engine, or a wavefront on it.", chip(report), links)


def _engine_level(engine: Player, code: Code) -> Level:
    """Every wavefront leads to the first bundle of the loop's longest clause."""
    bundles_before, longest = 0, 0
    first = 0
    for clause in code.main_loop:
        if len(clause.bundles) > longest:
            first = bundles_before
            longest = len(clause.bundles)
        bundles_before += len(clause.bundles)
    links = dict.fromkeys(engine.about, Link(first))
    return Level("SIMD engine 0", "Click what a wavefront does.", engine, links)


def _bundles_level(code: Code, recording: Recording) -> Level:
    """A line of IL leads to the step that runs it first."""
    loop = bundles(code)
    lines = [recording.line(step) for step in range(len(recording))]
    links = {line: Link(lines.index(line)) for line in loop.about if line in lines}
    return Level("Bundles of the loop", "Click a line of IL, or a slot.", loop, links)


def _registers_level(recording: Recording) -> Level:
    block = register_block(recording)
    hint = "Click a number of C: its sum. Escape goes back. "
    if not recording.whole:
        hint += f"(After {recording.steps_said} steps comes more of the same.)"
    return Level("Registers of work-item 0", hint, block, {})
