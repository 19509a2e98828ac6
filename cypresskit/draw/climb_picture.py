"""The climb: what each idea is worth, from the kernel that everybody writes first to the record.

A bar for each step on a logarithmic scale of Gflop/s, on which equal lengths are equal factors. The
climb's last step is at the top; below it is what ideas beside it gain or cost, each from where it
sets out. The book's bars are the timing model's own output, kept in ``climb.json`` (``python -m
tools.stored_figures`` renews it). A reader's are the kernels that workbenches keep
(``editing.own_climb``).

It is an SVG, readable without the course, with fonts of whoever reads it; a browser makes a PNG of
it.
"""

import base64
import json
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files
from math import log
from typing import NamedTuple

from cypresskit.devices import HD5870
from cypresskit.draw import svg
from cypresskit.draw.display import Displayable
from cypresskit.draw.scripts import packaged
from cypresskit.published import kernel as published
from cypresskit.tables import elided

WIDTH, LEFT, WIDE = 1040, 64, 960  # of the picture; where bars begin, and the length of the peak's
TOP, ROW, BAR = 74, 34, 10  # the y of the first row; the heights of a row and of its bar
SAID = 300  # where what is said of a step begins
LETTERS = 115  # of it, at most
LEAST = 10  # Gflop/s at which bars begin
SCALE = (30, 100, 300, 1000)  # lines to read lengths by, in Gflop/s
PEAK = HD5870.peak_gflops("single")
PAPER = published("sgemm_tn")["gflops_max"]
REFERENCE = 2048  # the course's N
STYLE = (
    "text{font:12px sans-serif;fill:var(--ink)}.head{font-size:20px;font-weight:600}"
    ".speed{font-size:15px;font-weight:600;text-anchor:end}.name{font-weight:600}"
    ".soft{fill:var(--soft)}.end{fill:var(--soft);text-anchor:end}svg{background:none}"
)
#: What a browser does for a PNG: it draws the picture at twice its size, on the page's color.
RASTER = (
    "const i=this.closest('div').querySelector('img');const c=document.createElement('canvas');"
    "c.width=2*i.naturalWidth;c.height=2*i.naturalHeight;const g=c.getContext('2d');"
    "for(let e=i;e;e=e.parentElement){const p=getComputedStyle(e).backgroundColor;"
    "if(!/, 0\\)|transparent/.test(p)){g.fillStyle=p;g.fillRect(0,0,c.width,c.height);break}}"
    "g.drawImage(i,0,0,c.width,c.height);const a=document.createElement('a');"
    "a.href=c.toDataURL('image/png');a.download='climb.png';a.click()"
)


LINK = (
    "border: 0; padding: 0; background: none; font: inherit; color: inherit;"
    " text-decoration: underline; cursor: pointer"
)


class Timed(NamedTuple):
    """What is timed for a bar: a kernel or a function of ``host``, and its N."""

    kernel: str
    n: int = REFERENCE


class Figure(NamedTuple):
    """What a launch reaches, what its busiest unit would allow without a pause, both in Gflop/s,
    and that unit.
    """

    gflops: float
    ceiling: float
    unit: str


class Idea(NamedTuple):
    """An idea of the course: the lesson that explains it, its name, its launch, the one that it is
    compared with, and whether it is a step of the climb.
    """

    lesson: int
    name: str
    launch: Timed
    before: Timed | None = None
    climbs: bool = False


class Bar(NamedTuple):
    """A row of the picture: a step's name, and what is said of it; its speed, the speed that it
    sets out from, and what its busiest unit would allow, in Gflop/s, 0 if unknown; whether it is
    ``lit``.
    """

    name: str
    said: str = ""
    gflops: float = 0.0
    before: float = 0.0
    ceiling: float = 0.0
    lit: bool = False


NAIVE = Timed("sgemm_naive")
BLOCK_4, BLOCK_8 = Timed("block_4x4"), Timed("block_8x8")
SINGLE, DOUBLE = Timed("sgemm_tn"), Timed("dgemm_tn")
NN = Timed("sgemm_nn")
LARGER = Timed("sgemm_tn", 4352)
ROUND_TRIP = Timed("round_trip_timeline")
BLOCKED = Timed("blocked_timeline", 7168)
IDEAS = (
    Idea(0, "no block", NAIVE, None, True),
    Idea(1, "4 x 4 block", BLOCK_4, NAIVE, True),
    Idea(2, "8 x 8 block", BLOCK_8, BLOCK_4, True),
    Idea(12, "two steps a turn", SINGLE, BLOCK_8, True),
    Idea(12, "a larger N", LARGER, SINGLE, True),
    Idea(4, "registers: 25, not 37", SINGLE, Timed("sgemm_tn_37")),
    Idea(5, "square quads", SINGLE, Timed("sgemm_tn_compute")),
    Idea(5, "NN, not TN", NN, SINGLE),
    Idea(6, "double", DOUBLE, SINGLE),
    Idea(6, "double-double", Timed("ddgemm_tn_fma"), DOUBLE),
    Idea(7, "NN by the LDS", Timed("sgemm_64x64_lds"), NN),
    Idea(8, "helpers", Timed("sgemm_nn_reduce4", 256), Timed("sgemm_tn", 256)),
    Idea(9, "double, with the bus", ROUND_TRIP, DOUBLE),
    Idea(10, "in blocks", BLOCKED, ROUND_TRIP),
    Idea(11, "two chips, pipeline", Timed("five_stage", 16384), BLOCKED),
)
FIGURES: dict[Timed, Figure] = {
    Timed(*launch): Figure(*figure) for launch, figure in json.loads(packaged("draw/climb.json"))
}


def climb(lesson: int | None = None) -> "Climb":
    """The book's climb, with the ideas of ``lesson`` (0 and on) lit: earlier ones with their
    figures, later steps by name alone. Without a lesson, all of it. Raises ``ValueError`` for other
    lessons.
    """
    if lesson is not None and lesson not in (lessons := _lessons()):
        raise ValueError(
            f"lessons are {lessons[0]} to {lessons[-1]}; there is no lesson {lesson!r}"
        )
    last = max(idea.lesson for idea in IDEAS)
    now = last if lesson is None else min(lesson, last)
    shown = [idea for idea in IDEAS if idea.climbs or idea.lesson <= now]
    bars = [(idea.climbs, _bar(idea, now, lesson is not None)) for idea in shown]
    return Climb(
        "What each idea is worth",
        [bar for climbs, bar in bars if climbs],
        [bar for climbs, bar in bars if not climbs],
    )


def _lessons() -> list[int]:
    """Return the numbers of all lessons: each has a folder in ``teach``."""
    folders = files("cypresskit").joinpath("teach").iterdir()
    return sorted(int(folder.name[1:3]) for folder in folders if folder.name[1:3].isdigit())


def _bar(idea: Idea, lesson: int, lights: bool) -> Bar:
    """An idea's bar in a lesson; of a later one, its name alone."""
    name = f"{idea.lesson:02}  {idea.name}"
    if idea.lesson > lesson:
        return Bar(name)
    figure = FIGURES[idea.launch]
    before = FIGURES[idea.before].gflops if idea.before else 0.0
    said = f"{idea.launch.kernel}, N = {idea.launch.n}{_than(idea)}"
    return Bar(
        name,
        f"{said}; {figure.unit} would allow {figure.ceiling:,.0f}",
        figure.gflops,
        before,
        figure.ceiling,
        lights and idea.lesson == lesson,
    )


def _than(idea: Idea) -> str:
    """What an idea gains or costs; nothing if it is compared with nothing."""
    if idea.before is None:
        return ""
    now, old = FIGURES[idea.launch].gflops, FIGURES[idea.before].gflops
    factor = max(now / old, old / now)
    times = f"{factor:.3g} times {'as fast as' if now > old else 'slower than'}"
    if f"{factor:.3g}" == "1":
        times = "as fast as"
    size = "" if idea.before.n == idea.launch.n else f" at N = {idea.before.n}"
    return f": {times} {idea.before.kernel}{size}, {old:,.0f}"


class Climb(Displayable):
    """A picture of a climb: its ``sentence``, the ``bars`` of its steps from the first one on, and
    of ideas ``beside`` it.
    """

    plays = False

    def __init__(self, sentence: str, bars: Sequence[Bar], beside: Sequence[Bar] = ()) -> None:
        self.sentence = self.title = sentence
        self.bars = tuple(bars)
        self.beside = tuple(beside)

    def still(self, *, on_paper: bool = False) -> str:
        """The picture as SVG, without a ground, its letters light where the page around it is dark;
        or ``on_paper``, on white, to be shown by any program.
        """
        foot = TOP + ROW * len(self.bars)
        high = foot + 20
        rows = list(zip(self.bars[::-1], range(TOP, foot, ROW)))
        heads = []
        if self.beside:
            heads.append(svg.words(LEFT, foot + 34, "Beside the climb, from where each sets out"))
            beside = foot + 44
            high = beside + ROW * len(self.beside) + 20
            rows += zip(self.beside, range(beside, high, ROW))
        about = (
            "Gflop/s on AMD's Cypress of 2009, simulated, on a logarithmic scale. Numbers: lessons."
            " Pale: the step before; red: lost."
        )
        if any(bar.ceiling for bar in self.bars):
            about += " Thin line: the limit of the busiest unit."
        parts = [
            *([svg.box(0, 0, WIDTH, high, "var(--page)")] if on_paper else []),
            svg.words(8, 28, self.sentence, "head"),
            svg.words(8, 48, about, "soft"),
            *(_scale(high - 16) if rows else ()),
            *heads,
            *(part for bar, y in rows for part in _drawn(bar, y)),
        ]
        size = WIDTH, high
        return svg.picture(parts, size, style=STYLE, title=self.sentence, on_paper=on_paper)

    def still_on_paper(self) -> str:
        """The picture as SVG for light pages."""
        return self.still(on_paper=True)

    def __repr__(self) -> str:
        bars = (*self.bars[::-1], *self.beside)
        rows = [f"{bar.gflops:7,.0f}  {bar.name}: {bar.said}" for bar in bars if bar.gflops]
        return "\n".join([self.sentence, *rows])

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        """The picture for a page, with a link that saves it as it is on light ones, and a button
        that saves what is shown.
        """
        return (
            f'<div><img src="{_address(self.still())}" alt="{escape(repr(self))}"'
            f' style="max-width: 100%"><p><a style="{LINK}" download="climb.svg"'
            f' href="{_address(self.still_on_paper())}">Save as SVG</a> &nbsp;'
            f'<button style="{LINK}" onclick="{escape(RASTER)}">Save as PNG</button></p></div>'
        )


def _address(picture: str) -> str:
    """An SVG as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def _along(gflops: float) -> float:
    """The length of a bar, in pixels."""
    return WIDE * log(max(gflops, LEAST) / LEAST) / log(PEAK / LEAST)


def _scale(foot: float) -> Iterator[str]:
    """The lines to read lengths by, down to ``foot``; the paper's speed, and the chip's peak."""
    marks = [(gflops, f"{gflops:,}") for gflops in SCALE]
    ends = (PAPER, f"record of 2010: {PAPER:,}"), (PEAK, f"the chip's peak {PEAK:,.0f}")
    for gflops, words in (*marks, *ends):
        x = LEFT + _along(gflops)
        yield svg.words(x - 3, foot + 12 if gflops == PEAK else TOP - 6, words, "end")
        color = "var(--wait)" if gflops == PAPER else "var(--line)"
        yield svg.box(x, TOP - 2, 1, foot - TOP + 2, color, fill_opacity=0.6)


def _drawn(bar: Bar, y: float) -> Iterator[str]:
    """A row at ``y``: what is lit has a frame; what was there before is pale, what is lost, too."""
    if bar.lit:
        yield svg.box(2, y + 1, WIDTH - 4, ROW - 3, "none", stroke="var(--ink)", stroke_width=2)
    yield svg.words(LEFT, y + 14, bar.name, "name" if bar.gflops else "soft")
    if not bar.gflops:
        return
    yield svg.words(LEFT - 8, y + 24, f"{bar.gflops:,.0f}", "speed")
    yield svg.words(SAID, y + 14, elided(bar.said, LETTERS), "soft")
    reaches, sets_out, ceiling = map(_along, (bar.gflops, bar.before, bar.ceiling))
    low = sorted((reaches, sets_out))
    top = y + 19
    yield svg.box(LEFT, top, low[0], BAR, "var(--c)", fill_opacity=0.4)
    color = "var(--c)" if reaches > sets_out else "var(--wait)"
    opacity = 1 if reaches > sets_out else 0.35
    yield svg.box(LEFT + low[0], top, low[1] - low[0], BAR, color, fill_opacity=opacity)
    if bar.ceiling:
        yield svg.box(LEFT + reaches, top + BAR / 2, max(ceiling - reaches, 0), 1, "var(--ink)")
        yield svg.box(LEFT + ceiling, top - 2, 2, BAR + 4, "var(--ink)")
