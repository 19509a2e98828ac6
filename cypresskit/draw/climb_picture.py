"""The climb: the speed that each idea of the course gains or loses (``gains``).

Each step is a bar on a logarithmic scale of Gflop/s, on which equal lengths are equal factors. The
last step is at the top. Below the climb are other ideas, each compared with the kernel that it
starts from. A reader's climb shows the kernels that workbenches have saved
(``editing.own_climb``).

The picture is an SVG in the reader's fonts. A browser converts it to PNG.
"""

import base64
import re
from collections.abc import Iterator, Sequence
from html import escape
from math import log
from typing import NamedTuple

from cypresskit.devices import CHIP_ALONE, HD5870
from cypresskit.draw import theme
from cypresskit.draw.display import Displayable
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.gains import FIGURES, IDEAS, Idea
from cypresskit.published import kernel as published
from cypresskit.tables import elided

WIDTH, LEFT, PEAK_WIDTH = 1040, 64, 960  # pixels: width, left end of bars, length of the peak's bar
TOP, ROW_HEIGHT, BAR_HEIGHT = 74, 34, 10  # pixels: y of the first row, heights of rows and bars
DETAILS_LEFT = 300  # pixels: where a step's details start
MAX_DETAILS = 115  # letters
MIN_GFLOPS = 10  # Gflop/s at the left end of the bars
GRID_GFLOPS = (30, 100, 300, 1000)  # Gflop/s of the grid lines
PEAK = HD5870.peak_gflops("single")
PAPER = published("sgemm_tn")["gflops_max"]
#: The record has its own conditions, so its modeled value isn't the climb's.
RECORD = (
    f"Bars: {CHIP_ALONE.name}. The record as published, with launches and the reading of C:"
    f" {PAPER:,} measured, {stored_speeds('sgemm_tn')[published('sgemm_tn')['n_at_max']]:,.0f}"
    " modeled."
)
STYLE = (
    "text{font:12px sans-serif;fill:var(--ink)}.head{font-size:20px;font-weight:600}"
    ".speed{font-size:15px;font-weight:600;text-anchor:end}.name{font-weight:600}"
    ".soft{fill:var(--soft)}.end{fill:var(--soft);text-anchor:end}svg{background:none}"
)
#: The script that saves a PNG: twice the size, without a frame, on the page's background.
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


class Bar(NamedTuple):
    """A row of the picture. Speeds are in Gflop/s, 0 if unknown."""

    name: str
    details: str = ""
    gflops: float = 0.0
    before: float = 0.0  #: of the kernel that the idea starts from
    ceiling: float = 0.0  #: the speed if the busiest unit never paused
    is_framed: bool = False


def climb(lesson: int | None = None) -> "Climb":
    """Draw the course's climb.

    Parameters
    ----------
    lesson
        Ideas of this lesson are framed, earlier ones have their speeds, later steps only a name. By
        default, everything is shown.
    """
    last = max(idea.lesson for idea in IDEAS)
    now = last if lesson is None else min(lesson, last)
    shown = [idea for idea in IDEAS if idea.is_step or idea.lesson <= now]
    bars = [(idea.is_step, _bar(idea, now, lesson is not None)) for idea in shown]
    return Climb(
        "What each idea is worth",
        [bar for is_step, bar in bars if is_step],
        [bar for is_step, bar in bars if not is_step],
    )


def _bar(idea: Idea, lesson: int, frames_lesson: bool) -> Bar:
    """Return the bar of an idea as lesson ``lesson`` shows it."""
    name = f"{idea.lesson:02}  {idea.name}"
    if idea.lesson > lesson:
        return Bar(name)
    figure = FIGURES[idea.launch]
    before = FIGURES[idea.before].gflops if idea.before else 0.0
    details = f"{idea.launch.kernel}, N = {idea.launch.n}{_compare(idea)}"
    return Bar(
        name,
        f"{details}; {figure.unit} limit: {figure.ceiling:,.0f}",
        figure.gflops,
        before,
        figure.ceiling,
        frames_lesson and idea.lesson == lesson,
    )


def _compare(idea: Idea) -> str:
    """Return the comparison with the kernel that an idea starts from, if there is one."""
    if idea.before is None:
        return ""
    now, old = FIGURES[idea.launch].gflops, FIGURES[idea.before].gflops
    factor = max(now / old, old / now)
    times = f"{factor:.3g} times {'as fast as' if now > old else 'slower than'}"
    size = "" if idea.before.n == idea.launch.n else f" at N = {idea.before.n}"
    causes = ""
    if idea.halfway:
        first, second = idea.causes
        causes = f" ({first:.1f} by the block, {second:.1f} by {idea.halfway[1]})"
    return f": {times} {idea.before.kernel}{size}, {old:,.0f}{causes}"


class Climb(Displayable):
    """A picture of a climb: a title (``sentence``), ``bars`` for its steps, and below them bars for
    other ideas (``beside``). A ``note`` ends the sentences below the title.
    """

    plays = False

    def __init__(
        self, sentence: str, bars: Sequence[Bar], beside: Sequence[Bar] = (), note: str = ""
    ) -> None:
        self.sentence = self.title = sentence
        self.note = note
        self.bars = tuple(bars)
        self.beside = tuple(beside)

    def to_svg(self, *, on_paper: bool = False) -> str:
        """Return the picture as SVG without a background.

        Its text is light on dark pages. ``on_paper`` gives it a white background, for other
        programs.
        """
        foot = TOP + ROW_HEIGHT * len(self.bars)
        height = foot + 20
        rows = list(zip(self.bars[::-1], range(TOP, foot, ROW_HEIGHT)))
        heads = []
        if self.beside:
            heads.append(_text(LEFT, foot + 34, "Other ideas, and the kernels they start from", ""))
            beside = foot + 44
            height = beside + ROW_HEIGHT * len(self.beside) + 20
            rows += zip(self.beside, range(beside, height, ROW_HEIGHT))
        about = "Simulated Gflop/s on AMD's Cypress (2009), logarithmic."
        if any(bar.name[:2].isdigit() for bar in self.bars):
            about += " A number in front: the lesson."
        about += " Pale: the kernel it starts from. Red: slower."
        if any(bar.ceiling for bar in self.bars):
            about += " Thin line: limit of the busiest unit."
        about += f" {self.note}".rstrip()
        parts = [
            *([_box(0, 0, WIDTH, height, "var(--page)")] if on_paper else []),
            _text(8, 28, self.sentence, "head"),
            _text(8, 48, about, "soft"),
            *(_draw_scale(height - 16) if rows else ()),
            *heads,
            *(part for bar, y in rows for part in _draw_row(bar, y)),
        ]
        light, dark = (
            ";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)
        )
        both = f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
        look = "" if on_paper else f"{both}svg{{background:var(--page)}}"
        title = theme.escape_html(self.sentence)
        picture = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
            f' width="{WIDTH}" height="{height:g}" font-family="sans-serif" font-size="14"'
            f' role="img"><title>{title}</title><style>{look}{STYLE}</style>{"".join(parts)}</svg>'
        )
        if not on_paper:  # programs other than browsers know no CSS variables
            return picture
        return re.sub(r"var\(--(\w+)\)", lambda name: theme.TOKENS[name[1]][0], picture)

    def __repr__(self) -> str:
        bars = (*self.bars[::-1], *self.beside)
        rows = [f"{bar.gflops:7,.0f}  {bar.name}: {bar.details}" for bar in bars if bar.gflops]
        return "\n".join([self.sentence, *rows, *([RECORD] if rows else [])])

    def to_html(self) -> str:
        """Return the picture for a page, with buttons that save it as SVG and PNG."""
        return (
            f'<div><img src="{_data_url(self.to_svg())}" alt="{escape(repr(self))}"'
            f' style="max-width: 100%"><p><a style="{LINK}" download="climb.svg"'
            f' href="{_data_url(self.to_svg(on_paper=True))}">Save as SVG</a> &nbsp;'
            f'<button style="{LINK}" onclick="{escape(RASTER)}">Save as PNG</button></p></div>'
        )


def _text(x: float, y: float, text: str, kind: str) -> str:
    """Return a line of text that starts at a point, as SVG. ``kind`` is its CSS class, or ""."""
    kinds = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kinds} xml:space="preserve">{theme.escape_html(text)}</text>'


def _box(x: float, y: float, width: float, height: float, fill: str, **more: object) -> str:
    """Return a rectangle by its upper left corner, as SVG. ``more`` are further attributes."""
    size = f'width="{round(width, 1):g}" height="{round(height, 1):g}" fill="{fill}"'
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<rect x="{round(x, 1):g}" y="{round(y, 1):g}" {size}{attributes}/>'


def _data_url(picture: str) -> str:
    """Return a data URL of an SVG."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def _bar_length(gflops: float) -> float:
    """Return the length of a bar in pixels."""
    return PEAK_WIDTH * log(max(gflops, MIN_GFLOPS) / MIN_GFLOPS) / log(PEAK / MIN_GFLOPS)


def _draw_scale(foot: float) -> Iterator[str]:
    """Yield the grid lines down to ``foot``, the published speed and the chip's peak."""
    yield _text(LEFT, foot + 12, RECORD, "soft")
    marks = [(gflops, f"{gflops:,}") for gflops in GRID_GFLOPS]
    ends = (PAPER, f"record of 2010: {PAPER:,}"), (PEAK, f"the chip's peak {PEAK:,.0f}")
    for gflops, words in (*marks, *ends):
        x = LEFT + _bar_length(gflops)
        yield _text(x - 3, foot + 12 if gflops == PEAK else TOP - 6, words, "end")
        color = "var(--wait)" if gflops == PAPER else "var(--line)"
        yield _box(x, TOP - 2, 1, foot - TOP + 2, color, fill_opacity=0.6)


def _draw_row(bar: Bar, y: float) -> Iterator[str]:
    """Yield a row at ``y``. The idea's gain is solid, its loss red."""
    if bar.is_framed:
        yield _box(2, y + 1, WIDTH - 4, ROW_HEIGHT - 3, "none", stroke="var(--ink)", stroke_width=2)
    yield _text(LEFT, y + 14, bar.name, "name" if bar.gflops else "soft")
    if not bar.gflops:
        return
    yield _text(LEFT - 8, y + 24, f"{bar.gflops:,.0f}", "speed")
    yield _text(DETAILS_LEFT, y + 14, elided(bar.details, MAX_DETAILS), "soft")
    reaches, starts, ceiling = map(_bar_length, (bar.gflops, bar.before, bar.ceiling))
    low = sorted((reaches, starts))
    top = y + 19
    yield _box(LEFT, top, low[0], BAR_HEIGHT, "var(--c)", fill_opacity=0.4)
    is_faster = reaches > starts
    color = "var(--c)" if is_faster else "var(--wait)"
    opacity = 1 if is_faster else 0.35
    yield _box(LEFT + low[0], top, low[1] - low[0], BAR_HEIGHT, color, fill_opacity=opacity)
    if bar.ceiling:
        yield _box(LEFT + reaches, top + BAR_HEIGHT / 2, max(ceiling - reaches, 0), 1, "var(--ink)")
        yield _box(LEFT + ceiling, top - 2, 2, BAR_HEIGHT + 4, "var(--ink)")
