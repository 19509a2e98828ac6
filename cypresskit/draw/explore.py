"""From the chip down to one register: each click goes a level deeper, Escape goes back.

All levels are pictures of the same kernel, from one simulation, one compilation and one recorded
launch, so a saved page contains everything. Only SIMD engine 0 can be entered, because a report
keeps the clauses of that engine alone. The last level shows the first ``STEPS`` steps.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cypresskit.compiler import Code, compile
from cypresskit.draw.bundles import bundles
from cypresskit.draw.chip import chip
from cypresskit.draw.chip_scene import ENGINE_KEYS
from cypresskit.draw.display import Displayable, embed
from cypresskit.draw.player import Player
from cypresskit.draw.register_block import register_block
from cypresskit.draw.wavefronts import wavefronts
from cypresskit.kernels.own import Source, resolve
from cypresskit.kernels.samples import run
from cypresskit.machine.record import Recorder, Recording
from cypresskit.timing import Report, simulate

STEPS = 640  # drawn steps of the work-item
CLOCKS = 4000  # drawn clocks of the wavefronts


class Link(NamedTuple):
    """The target of a click in the next level."""

    frame: int
    key: int | None = None  #: what is selected there


@dataclass(frozen=True)
class Level:
    """A level of the journey."""

    name: str
    hint: str  #: what to look at, and what to click
    player: Player
    links: Mapping[int, Link]  #: for each key that can be entered, its target


class Journey(Displayable):
    """Players of which one is visible. A click on some parts leads to the next."""

    def __init__(self, title: str, levels: Sequence[Level]) -> None:
        self.title = title
        self.levels = list(levels)

    def __repr__(self) -> str:
        return "\n".join(
            [self.title, *(f"{level.name}: {level.player!r}" for level in self.levels)]
        )

    def to_html(self) -> str:
        sections = [
            f"<section{' hidden' * (n > 0)}>{level.player.to_html()}</section>"
            for n, level in enumerate(self.levels)
        ]
        levels = [
            {"name": level.name, "hint": level.hint, "links": level.links} for level in self.levels
        ]
        first = self.levels[0]
        opens = first.player.figures[0].tags[0]["opens"]
        start = [opens, next(iter(first.links), None)]
        data = json.dumps({"levels": levels, "start": start})
        return embed("journey", data, "".join(sections))


def explore(kernel: Source = "sgemm_tn", n: int = 256) -> Journey:
    """Explore an n x n x n product from the chip down to the registers of one work-item.

    Parameters
    ----------
    kernel
        A kernel without LDS that keeps its block of C in registers: a name of the catalog, or your
        own. It is simulated, compiled, and launched once on small whole numbers.
    n
        The size of the matrices.

    Raises
    ------
    ValueError
        If the kernel uses the LDS or keeps no block of C in registers, or if ``ck.simulate``
        refuses it.

    Examples
    --------
    >>> ck.draw.explore("sgemm_tn", 256)
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
    """Return the window of clocks that is drawn: if the launch is long enough, not its very
    beginning.
    """
    last = report.timeline[-1].end
    return max(min(CLOCKS / 2, last - CLOCKS), 0), min(1.5 * CLOCKS, last)


def _chip_level(report: Report, engine: Player) -> Level:
    """Return the chip, with links from engine 0 and its wavefronts to the ``engine``'s picture."""
    drawn = sorted(engine.about)
    last = len(engine) - 1
    links = {ENGINE_KEYS: Link(last, drawn[0])}
    links |= {wavefront: Link(last, wavefront) for wavefront in drawn}
    return Level("Chip", "Click the framed engine, or a wavefront on it.", chip(report), links)


def _engine_level(engine: Player, code: Code) -> Level:
    """Return the engine. Every wavefront links to the first bundle of the loop's longest clause."""
    counts = [len(clause.bundles) for clause in code.main_loop]
    longest = counts.index(max(counts))
    first = code.main_loop[longest].bundles[0].operations[0]
    links = dict.fromkeys(engine.about, Link(sum(counts[:longest]), first.line))
    hint = "Each row is a wavefront slot. Click a wavefront to see the bundles that it runs."
    return Level("SIMD engine 0", hint, engine, links)


def _bundles_level(code: Code, recording: Recording) -> Level:
    """Return the bundles. A line of IL links to the step that runs it first."""
    loop = bundles(code)
    lines = [recording.line(step) for step in range(len(recording))]
    links = {line: Link(lines.index(line)) for line in loop.about if line in lines}
    hint = "A bundle issues up to five operations. Click a slot to see the effect of its line."
    return Level("Bundles of the loop", hint, loop, links)


def _registers_level(recording: Recording) -> Level:
    block = register_block(recording)
    hint = "Click an element of C to see its sum. Press Escape to go back."
    if not recording.is_complete:
        hint += f" Shown: {recording.steps_text} steps."
    return Level("Registers of work-item 0", hint, block, {})
