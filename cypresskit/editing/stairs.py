"""The climb as one picture to send round: a stair for each step that is kept, on a logarithmic
scale of Gflop/s, with the line that made it, beside the loop of the last kernel.

It is an SVG for light pages, readable without the course, with fonts of the reader's own; a browser
makes a PNG of it. On the workbench's page it follows the theme. Branches (steps on lines of their
own) are left out.
"""

import base64
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from math import log
from pathlib import Path

from cypresskit.draw import svg
from cypresskit.draw.theme import SERIES, elided
from cypresskit.editing.edits import Edit, Edits
from cypresskit.editing.pure_answers import pure_answers
from cypresskit.editing.steps import STEPS, WITHIN, Step
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.saving import save_file

WIDTH = 1080
TOP = 96  # of the first stair
STAIR = 52  # its height
LEFT = 92  # where stairs begin
WIDE = 560  # from LEAST to MOST Gflop/s
LEAST, MOST = 20.0, 2720.0
CODE = 690  # the left edge of the loop
LETTERS = 62  # of a line of it
INSIDE = 250  # pixels from which a stair has room for its words
LINES = 40  # of it, that are shown
LINE = 11.5  # the height of one
STYLE = (
    "text{font:13px sans-serif;fill:var(--ink)}.head{font-size:22px;font-weight:600}"
    ".speed{font-size:17px;font-weight:600;text-anchor:end}.on{fill:#fff}.idea{font-weight:600}"
    ".code{font:11px monospace}.small{font:9.5px monospace}.soft{fill:var(--soft)}"
)
#: On a page that is dark: the words in stairs.
DARK = "@media(prefers-color-scheme:dark){.on{fill:var(--page)}}"
PRODUCT = re.compile(r"d?(mad|mul|fma)\b")
ORDER = "the same lines in another order"
#: Steps beside the climb, on kernels of their own.
BRANCHES = frozenset({"04", "05", "06", "07"})
#: What a browser does for a PNG: it draws the picture at twice its size.
RASTER = (
    "const i=this.closest('div').querySelector('img');const c=document.createElement('canvas');"
    "c.width=2*i.naturalWidth;c.height=2*i.naturalHeight;"
    "c.getContext('2d').drawImage(i,0,0,c.width,c.height);const a=document.createElement('a');"
    "a.href=c.toDataURL('image/png');a.download='my_climb.png';a.click()"
)


@dataclass(frozen=True)
class Stair:
    """A step that is kept: its text, its speed, and the line that made it."""

    step: Step
    edit: Edit
    line: str


class Stairs:
    """The picture of a climb; see ``Workbench.climb``."""

    def __init__(self, edits: Edits) -> None:
        self.stairs = tuple(_stairs(edits))
        judged = [edit.number for edit in edits if edit.right is not None]
        first = self.stairs[0].edit.number if self.stairs else 0
        last = max((stair.edit.number for stair in self.stairs), default=0)
        self.edits = sum(first < number <= last for number in judged)

    @property
    def sentence(self) -> str:
        """The climb in a sentence, its figures computed."""
        if not self.stairs:
            return "No step is kept yet: a right kernel on a workbench is the first stair."
        first, last = self.stairs[0].edit.gflops, self.stairs[-1].edit.gflops
        paper = published("sgemm_tn")["gflops_max"]
        edits = "1 edit" if self.edits == 1 else f"{self.edits} edits"
        speeds = f"{first:,.0f} to {last:,.0f} Gflop/s in {edits}"
        if len(self.stairs) == 1:
            speeds = f"{first:,.0f} Gflop/s"
        return f"{speeds}: {last / paper:.0%} of the paper's {paper:,}"

    def link(self, site: str) -> str:
        """The address at which a site's compile page opens the last kernel."""
        last = self.stairs[-1]
        like = last.step.like if last.step.like in KERNELS else "sgemm_tn"
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed = packer.compress(last.edit.text.encode()) + packer.flush()
        letters = base64.urlsafe_b64encode(packed).decode().rstrip("=")
        return f"{site.rstrip('/')}/compile/#like={like}&text={letters}"

    def svg(self, site: str = "", *, on_paper: bool = True) -> str:
        """The picture as SVG; with the address of a ``site``, its heading opens the last kernel.
        Without ``on_paper`` it is dark where the page around it is.
        """
        loop = list(_loop(self.stairs[-1].edit.text)) if self.stairs else []
        lines = len(loop) // 2  # each is a box and words
        high = TOP + max(STAIR * len(self.stairs) + 34, LINE * lines + 26)
        head = svg.words(24, 42, self.sentence, "head")
        if site and self.stairs:
            head = f'<a href="{escape(self.link(site))}">{head}</a>'
        below = (
            "A matrix product on AMD's Cypress, a graphics chip of 2009, as cypresskit simulates it"
        )
        parts = [
            svg.box(0, 0, WIDTH, high, "var(--page)"),
            head,
            svg.words(24, 66, below, "soft"),
            *self._drawn(),
            *loop,
        ]
        size = WIDTH, high
        style = STYLE if on_paper else STYLE + DARK
        return svg.picture(parts, size, style=style, title=self.sentence, on_paper=on_paper)

    def _drawn(self) -> Iterator[str]:
        """The stairs, the last at the top, and the paper's speed."""
        bottom = TOP + STAIR * len(self.stairs)
        for n, stair in enumerate(self.stairs):
            y = bottom - STAIR * (n + 1)
            gflops = stair.edit.gflops
            long = _along(gflops)
            fill = "var(--a)" if n + 1 < len(self.stairs) else "var(--c)"
            yield svg.words(LEFT - 10, y + 29, f"{gflops:,.0f}", "speed")
            yield svg.box(LEFT, y + 3, long, STAIR - 4, fill)
            inside = long > INSIDE
            x, on = (LEFT + 12, " on") if inside else (LEFT + long + 10, "")
            yield svg.words(x, y + 23, stair.step.title, f"idea{on}")
            yield svg.words(x, y + 40, elided(stair.line, 40), f"code{on}")
        if self.stairs:
            paper = published("sgemm_tn")["gflops_max"]
            x = LEFT + _along(paper)
            way = f"M{x:.0f} {TOP - 4}V{bottom + 4}"
            yield f'<path d="{way}" stroke="#d55e00" stroke-dasharray="4 3"/>'
            yield svg.words(x - 168, bottom + 22, f"the paper's {paper:,} Gflop/s, 2010", "soft")

    def save(self, path: str | Path, site: str = "") -> None:
        """Write the picture as an SVG file. Raises ``OSError``."""
        save_file(Path(path), self.svg(site))

    def __repr__(self) -> str:
        rows = [
            f"{stair.edit.gflops:7,.0f}  {stair.step.title}: {stair.line}" for stair in self.stairs
        ]
        return "\n".join([self.sentence, *rows[::-1]])

    def _repr_html_(self) -> str:
        return self.html()

    def html(self, *, on_paper: bool = True) -> str:
        """The picture for a page, with a link that saves it as it is on light ones, and a button
        that saves what is shown; see ``svg``.
        """
        image = _address(self.svg())
        shown = image if on_paper else _address(self.svg(on_paper=False))
        return (
            f'<div><img src="{shown}" alt="{escape(self.sentence)}" style="max-width: 100%"><p>'
            f'<a href="{image}" download="my_climb.svg">Save as SVG</a> &nbsp;'
            f'<button onclick="{escape(RASTER)}">Save as PNG</button></p></div>'
        )


def _address(picture: str) -> str:
    """An SVG as an address that holds it."""
    return f"data:image/svg+xml;base64,{base64.b64encode(picture.encode()).decode()}"


def _stairs(edits: Edits) -> Iterator[Stair]:
    """The kept steps that are on the way from the first to the contest, each faster than the one
    before.
    """
    before = 0.0
    text = ""
    for step in STEPS.values():
        edit = edits.kept(step.name)
        if edit is None or step.name in BRANCHES or step.n != 2048:
            continue
        if edit.gflops <= (1 + WITHIN / 4) * before:
            continue
        yield Stair(step, edit, _made(edit.text, text if step.previous and text else step.book))
        before = edit.gflops
        text = edit.text


def _made(text: str, before: str) -> str:
    """The line that made a text of the one ``before``: the first new one of its loop."""
    known = set(_instructions(before))
    loop = _instructions(text.partition("whileloop")[2].partition("endloop")[0])
    lines = [line for line in loop if line not in known]
    products = [line for line in lines if PRODUCT.match(line)]
    if lines:
        return (products or lines)[0]
    if text == before:
        return next(line for line in loop if PRODUCT.match(line))
    more = len(loop) - len(_instructions(before.partition("whileloop")[2].partition("endloop")[0]))
    return f"{more} lines more in a turn" if more > 0 else ORDER


def _instructions(text: str) -> list[str]:
    """The lines of a text without remarks and blanks."""
    lines = (" ".join(line.partition(";")[0].split()) for line in text.splitlines())
    return [line for line in lines if line]


def _loop(text: str) -> Iterator[str]:
    """The lines of a kernel's main loop, each with its colour, as words and boxes."""
    rows = pure_answers(text, "my_kernel.il")
    parts = dict(rows).get("code", {}).get("rows", ())
    used = sorted({part[2] for row in parts if row["loop"] for part in row["parts"]})
    lines = text.splitlines()
    yield svg.words(CODE, TOP - 8, "the loop of the last kernel", "soft")
    for n, number in enumerate(used[:LINES]):
        y = TOP + LINE * (n + 1)
        yield svg.box(CODE, y - 9, 4, LINE - 1.5, SERIES[n % len(SERIES)])
        words = " ".join(lines[number - 1].partition(";")[0].split())
        yield svg.words(CODE + 10, y, elided(words, LETTERS), "small")
    if len(used) > LINES:
        more = f"and {len(used) - LINES} lines more"
        yield svg.words(CODE + 10, TOP + LINE * (LINES + 1) + 2, more, "small soft")


def _along(gflops: float) -> float:
    """The length of a stair, in pixels."""
    return WIDE * log(max(gflops, LEAST) / LEAST) / log(MOST / LEAST)
