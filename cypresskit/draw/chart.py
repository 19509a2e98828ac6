"""Static charts as SVG: a model is a line with a band, a published number a ring with its number
beside it, a limit a thin line, a kernel a dot.

Each mark knows of which kind its number is (``KINDS``), from its datum; pointing at it tells this.
There is no legend: what a mark is stands beside it, in its color, and no two texts overlap. Each
chart is drawn twice, for a page's column and for a phone. A page shows the SVG as an image, which
every viewer does; where scripts may run, the image becomes a part of the page: then pointing at a
mark, Tab and arrow keys tell its value, in a row above the drawing.
"""

import base64
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from cypresskit.draw import theme
from cypresskit.draw.display import Displayable
from cypresskit.draw.scripts import handler, read_packaged
from cypresskit.tables import elided, plural

WIDE, NARROW = 860, 380  # pixels: the widths for which a chart is drawn
HEAD, FOOT, EDGE = 26, 38, 8  # pixels above and below the axes, and at the sides
GAP = 15  # pixels from one line of text to the next
LONGEST = 34  # letters of a label
APART = 3  # pixels from one number of an axis to the next
SAMPLED = 24  # pixels: from here on, the points of a curve have dots
FAR = 20  # pixels between a text and its point: from here on, a line joins them
LARGE = 7 / 6  # of a bold text's letters to others
BESIDE_LINE = 3.5  # pixels to each side of a line whose points are marked
SHORT = 14  # letters of a label that has room beside the axes of a phone
COLORS = "read", "wrote", "green", "purple"  # of lines, one after another; context is "soft"
CSS = theme.minify(read_packaged("draw/chart.css"))
#: Where a mark's words are, also while the reader scrolls.
TOLD = "min-height: 18px; font-size: 12px; position: sticky; top: 0; background: var(--ck-page)"
KEYS = "Arrow keys go from one to the next."

#: Timed on hardware; by the timing model or our compiler; by the device or by arithmetic; printed
#: in a source that neither timed nor counted it, as a prediction or a data sheet's rate.
Kind = Literal["measured", "modeled", "counted", "published"]
KINDS: tuple[str, ...] = get_args(Kind)

Box = tuple[float, float, float, float]  # left, top, right, bottom
End = tuple[float, str, str, str, np.ndarray]  # y, text, color, class, corners of the line
Place = tuple[str, float, float]  # the anchor of a text, and its distance to the right and down
#: Places of a point's label, the best first: around it, and further up and down.
NEAR: list[Place] = [("middle", 0, -GAP), ("start", 11, 0), ("end", -11, 0), ("middle", 0, GAP)]
for _far, _down in (8, 12), *((11, down) for down in range(8, 240, 8)):
    NEAR += [("start", _far, -_down), ("end", -_far, -_down)]
    NEAR += [("start", _far, _down), ("end", -_far, _down)]


@dataclass(frozen=True)
class Scale:
    """The range and the ticks of an axis."""

    title: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[float] = ()  #: round numbers by default

    @property
    def label(self) -> str:
        """The title, which names a logarithmic scale."""
        return self.title + ", logarithmic" * self.log

    def numbers(self) -> list[float]:
        """Return the ticks between the ends of the axis."""
        ticks = self.ticks or choose_ticks(self.low, self.high, 5.01)
        return [float(tick) for tick in ticks if self.low <= tick <= self.high]

    def share(self, value: ArrayLike) -> Any:
        """Return where values are on the axis, from 0 at its low end to 1 at its high end."""
        ends = np.array([self.low, self.high])
        at = np.asarray(value, float)
        if self.log:
            ends, at = np.log(ends), np.log(at)
        return (at - ends[0]) / (ends[1] - ends[0])


def choose_ticks(start: float, end: float, most: float = 12) -> list[float]:
    """Return round numbers between two numbers, in fewer than ``most`` steps of 1, 2 or 5 times
    10^n.
    """
    steps = (factor * 10.0**power for power in range(-9, 12) for factor in (1, 2, 5))
    step = next(step for step in steps if (end - start) / step < most)
    first = int(np.ceil(start / step - 1e-6))
    last = int(np.floor(end / step + 1e-6))
    return [number * step for number in range(first, last + 1)]


def number_text(value: float) -> str:
    """Return a number with a comma at thousands and no digit too many."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def spread(wanted: Sequence[float], gap: float, room: float) -> np.ndarray:
    """Return places from 0 to ``room`` that are at least ``gap`` apart, in the order of ``wanted``,
    and as near to it as possible, by least squares.
    """
    order = np.argsort(wanted, kind="stable")
    steps = gap * np.arange(len(order))
    runs: list[list[float]] = []  # neighbors that touch: the places that they want
    for place in np.asarray(wanted, float)[order] - steps:
        runs.append([place])
        while len(runs) > 1 and np.mean(runs[-2]) >= np.mean(runs[-1]):
            runs[-2:] = [runs[-2] + runs[-1]]
    kept = [np.mean(run) for run in runs for _ in run]
    places = np.empty(len(order))
    places[order] = np.clip(kept, 0, max(0, room - gap * (len(order) - 1))) + steps
    return places


class Canvas:
    """A drawing at one width: shapes, marks that tell something, and texts that don't overlap.

    Parameters
    ----------
    width, height
        Pixels.
    """

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.is_narrow = width < WIDE
        self._shapes: list[str] = []
        self._texts: list[str] = []
        self._marks: list[str] = []  # in front of all
        self.told: list[str] = []  # by groups
        self._taken: list[Box] = []  # by texts
        self._dots: list[tuple[float, float]] = []  # to which a text near them would seem to belong
        self._drawn = np.empty((0, 2))  # points of lines, which texts avoid if possible
        self._grid: list[float] = []  # y of lines that names of lines avoid

    def add(
        self, tag: str, stroke: str = "", fill: str = "", name: str = "", kind: str = "", **how: Any
    ) -> None:
        """Add a shape. Colors are those of ``theme``; ``name`` says what it shows, ``kind`` of
        which of the ``KINDS`` this is.
        """
        self._shapes.append(element(tag, stroke, fill, data_name=name, data_kind=kind, **how))

    def write(
        self, x: float, y: float, text: str, color: str = "ink", anchor: str = "start", **how: Any
    ) -> None:
        """Write text with its middle at the height ``y``."""
        self._taken.append(_box(x, y, text, anchor, **how))
        self._texts.append(text_element(x, y, text, color, anchor, **how))

    def write_free(
        self, x: float, y: float, places: Sequence[Place], text: str, color: str, **how: Any
    ) -> Box:
        """Write text at the first of some places where no text is and no line, nor one between it
        and its point, and no other dot is as near; or else where few are. Return its box.
        """
        found = []
        for number, (anchor, right, down) in enumerate(places):
            box = _box(x + right, y + down, text, anchor, **how)
            if self._is_free(box):
                away = _away(x, y, box)
                others = [at for at in self._dots if math.dist(at, (x, y)) > 8]
                is_others = away < FAR and any(_away(*at, box) <= away for at in others)
                faults = self._lines_at(x, y, box) + 4 * is_others
                found.append((3 * faults + number / 4, number))
                if number >= found[0][1] + 40:
                    break
        anchor, right, down = places[min(found, default=(0, 0))[1]]
        self.write(x + right, y + down, text, color, anchor, **how)
        return self._taken[-1]

    def write_along(self, line: np.ndarray, text: str, color: str, **how: Any) -> None:
        """Write text behind the end of a line, or above or below it, as near to its end as
        possible where no text is, no line, and none that is nearer; or else where few are.
        """
        (left, *_, right), (*_, end) = line
        places = [(right, end, "start", 10.0, 0.0)]
        for x in np.arange(right, left - 1, -12):
            y = np.interp(x, *line)
            for away in (10.0, 16.0, 24.0):
                for anchor, aside in ("end", -5.0), ("start", 5.0):
                    places += [(x, y, anchor, aside, side * away) for side in (-1, 1)]
        found = []
        for number, (x, y, anchor, aside, down) in enumerate(places):
            box = _box(x + aside, y + down, text, anchor)
            if self._is_free(box):
                away = _away(x, y, box) - 0.5
                around = *(np.array(box[:2]) - away), *(np.array(box[2:]) + away)
                struck = sum(box[1] + 2 < line < box[3] - 2 for line in self._grid)
                found.append((self._lines_at(x, y, box), self.crossings(around) + struck, number))
        x, y, anchor, aside, down = places[min(found, default=(0, 0, 0))[2]]
        self.write(x + aside, y + down, text, color, anchor, **how)

    def avoid(self, points: ArrayLike) -> None:
        """Let texts that are placed later avoid points (x, y) of a line, if they can."""
        self._drawn = np.concatenate([self._drawn, points])

    def crossings(self, box: Box) -> int:
        """Return how many points of lines are in a box."""
        left, top, right, bottom = box
        x, y = self._drawn.T
        return int(((left < x) & (x < right) & (top < y) & (y < bottom)).sum())

    def _lines_at(self, x: float, y: float, box: Box) -> int:
        """Return how many points of lines are in the box of a text, or between it and its point,
        but for those at the point.
        """
        way = np.linspace((x, y), _nearest(x, y, box), 20)
        low, high = way.min(axis=0) - BESIDE_LINE, way.max(axis=0) + BESIDE_LINE
        drawn = self._drawn[((low < self._drawn) & (self._drawn < high)).all(axis=1)]
        drawn = drawn[np.hypot(*(drawn - (x, y)).T) > 8]
        off = np.abs(way[:, np.newaxis] - drawn).max(axis=2)
        return self.crossings(box) + int((off < BESIDE_LINE).any(axis=0).sum())

    def _is_free(self, box: Box) -> bool:
        """Whether a box is inside of the drawing, and no text is in it."""
        left, top, right, bottom = box
        is_inside = left >= 0 and right <= self.width and top >= 0 and bottom <= self.height
        return is_inside and all(
            left >= other[2] or other[0] >= right or top >= other[3] or other[1] >= bottom
            for other in self._taken
        )

    def mark(
        self, name: str, words: str, x: float, y: float, color: str, kind: str, **how: Any
    ) -> None:
        """Add a dot or a ring, which shows ``words`` when it is pointed at or has the focus."""
        self._dots.append((x, y))
        dot = element("circle", color, cx=x, cy=y, **how)
        self._marks.append(_point(dot, words, **_told(name, words, kind)))

    def group(
        self,
        name: str,
        parts: Iterable[tuple[str, str]],
        kind: str,
        class_: str = "",
    ) -> None:
        """Add shapes with words, each as (words, shape). Tab leads to the group, arrow keys from
        one to the next, whose words a screen reader then says.
        """
        parts = list(parts)
        self.told += dict(parts)
        inside = "".join(_point(shape, words) for words, shape in parts)
        told = _told(name, f"{name}: {len(parts)} {plural('mark', len(parts))}. {KEYS}", kind)
        self._marks.append(element("g", inside=inside, data_group=1, class_=class_, **told))

    def svg(self) -> str:
        """Return the drawing's elements."""
        return "".join((*self._shapes, *self._texts, *self._marks))


class Axes(Canvas):
    """A drawing with an axis of x and one of y.

    Parameters
    ----------
    width, height
        Pixels: of the drawing, and of its axis of y.
    across, up
        The scales of x and y.
    ends
        The labels at lines' ends. On a phone long ones are inside of the axes.
    """

    def __init__(
        self,
        width: float,
        across: Scale,
        up: Scale,
        ends: Sequence[str] = (),
        *,
        height: float = 280,
    ) -> None:
        self.high = max(height, GAP * (len(ends) + 1))
        super().__init__(width, HEAD + self.high + FOOT)
        self.across, self.up = across, up
        longest = max((min(len(end), LONGEST) for end in ends), default=0)
        self.is_beside = not self.is_narrow or longest < SHORT
        beside = max(20, self.is_beside * (longest * theme.LETTER + 10 * bool(ends)))
        self.left = 14 + theme.LETTER * max(len(number_text(tick)) for tick in up.numbers())
        self.right = width - EDGE - beside
        self.foot = HEAD + self.high
        self._ends: list[End] = []
        self._inside: list[End] = []  # those along their lines
        self._spots: list[tuple[float, float, str, str, str]] = []  # x, y, text, color, class
        #: By x, kind and class: the quoted heights that are nothing but numbers.
        self._quoted: dict[tuple[float, str, str], list[float]] = defaultdict(list)
        self._draw_axes()

    def _draw_axes(self) -> None:
        self._grid = [self.foot, *map(self.y, self.up.numbers())]
        for y in self._grid:
            line = f"M{self.left:.1f} {y:.1f}H{self.right:.1f}"
            self.add("path", "line", d=line, opacity=0.5)
        for tick in self.up.numbers():
            self.write(self.left - 8, self.y(tick), number_text(tick), "soft", "end", data_axis="y")
        self._avoid_along(self.across.numbers(), [self.up.low] * len(self.across.numbers()))
        for tick in self.across.numbers():
            x, text = float(self.x(tick)), number_text(tick)
            left, top, right, foot = _box(x, self.foot + 16, text, "middle")
            if self._is_free((left - APART, top, right + APART, foot)):
                self.write(x, self.foot + 13, text, "soft", "middle", data_axis="x")
        self.write(0, 8, self.up.label, "soft")
        self.write(self.right, self.foot + 30, self.across.label, "soft", "end")

    def x(self, value: ArrayLike) -> Any:
        """Return the pixels of values of x."""
        return self.left + (self.right - self.left) * self.across.share(value)

    def y(self, value: ArrayLike) -> Any:
        """Return the pixels of values of y."""
        return self.foot - self.high * self.up.share(value)

    def _path(self, x: ArrayLike, y: ArrayLike) -> str:
        return "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in zip(self.x(x), self.y(y)))

    def line(
        self, name: str, x: ArrayLike, y: ArrayLike, color: str, kind: str, **look: Any
    ) -> None:
        """Draw a line without points."""
        self.add("path", color, name=name, kind=kind, d=self._path(x, y), **look)
        self._avoid_along(x, y)

    def _avoid_along(self, x: ArrayLike, y: ArrayLike) -> None:
        """Let texts avoid a line through points."""
        corners = np.stack([self.x(x), self.y(y)], axis=1)
        for one, other in pairwise(corners):
            steps = np.linspace(0, 1, 2 + int(np.hypot(*(other - one)) / 6))[:, np.newaxis]
            self.avoid(one + (other - one) * steps)

    def level(self, name: str, start: float, y: float, color: str, kind: str, text: str) -> None:
        """Draw a printed number or a limit: a dashed line with a label at its end. If it holds only
        from a ``start`` on, the line is short.
        """
        low, high = self.across.low, self.across.high
        end = min(start + 0.12 * (high - low), high) if start else high
        self.line(name, (start or low, end), (y, y), color, kind, stroke_dasharray="6 5")
        if start:
            self.note(end, y, text, color)
        else:
            self.end(y, text, color)

    def band(
        self, name: str, x: ArrayLike, low: ArrayLike, high: ArrayLike, color: str, kind: str
    ) -> None:
        """Draw by how much a curve may be off."""
        there, back = self._path(x, low), self._path(np.flip(x), np.flip(high))
        self.add("path", "", f"{color} 0.18", name, kind, d=f"{there}L{back[1:]}z")
        for edge in (low, high):
            self._avoid_along(x, edge)

    def curve(
        self,
        name: str,
        x: Sequence[float],
        y: Sequence[float],
        color: str,
        label: str,
        kind: str,
        *,
        end: str = "",
        quoted: Mapping[float, str] = MappingProxyType({}),
        is_named_at_start: bool = False,
        is_result: bool = False,
    ) -> None:
        """Draw a curve with a label, which may be another one, at its end or start; of a single
        point, a dot. Few points have dots; those at ``quoted`` places larger ones, and beside
        these their number and the words for the place. Context is thin. A guess, which is of no
        kind, is dashed. A result is drawn when the reader asks for it.
        """
        later = " later" * is_result
        if is_named_at_start:
            self.note(x[0], y[0], end or label, color, later)
        else:
            self.end(y[-1], end or label, color, (x, y), is_result=is_result)
        is_context = color == "soft"
        look = {"stroke_width": 1.5 if is_context else 2.5, "class_": later.strip()}
        self.line(name, x, y, color, kind, stroke_dasharray="" if kind else "9 12", **look)
        has_dots = len(x) * SAMPLED < self.x(x[-1]) - self.x(x[0]) and np.ptp(y) and not is_context
        named = f"{label}, {kind}" if kind else label
        spots = []
        for at, up in zip(x, y):
            seen = " sampled" if has_dots else ""
            if at in quoted or len(x) == 1:
                seen = " quoted"
            if at in quoted:
                text = f"{number_text(up)} {quoted[at]}".strip()
                self.note(at, up, text, color, f"bold{later}")
                if not quoted[at]:
                    self._quoted[at, kind, later].append(up)
            if seen:
                self._dots.append((self.x(at), self.y(up)))
            place = {"cx": self.x(at), "cy": self.y(up), "r": 7}
            shape = element("circle", color, color, class_=f"spot{seen}", **place)
            spots.append((f"{named}: {number_text(up)} at {number_text(at)}", shape))
        self.group(name, spots, kind, later.strip())

    def dot(
        self,
        name: str,
        x: float,
        y: float,
        color: str,
        kind: str,
        words: str,
        text: str = "",
        *,
        is_ring: bool = False,
    ) -> None:
        """Draw a dot, or for a published point a ring, with a label near it, such as its number."""
        fill = "page" if is_ring else color
        place = self.x(x), self.y(y)
        self.mark(name, words, *place, color, kind, fill=fill, r=4.5, stroke_width=2)
        self.avoid([place])
        self.note(x, y, text, color, "bold")

    def note(self, x: float, y: float, text: str, color: str, class_: str = "") -> None:
        """Write something near a point, or nothing."""
        self._spots += [(self.x(x), self.y(y), text, color, class_)] * bool(text)

    def end(
        self,
        y: float,
        text: str,
        color: str,
        line: tuple[ArrayLike, ArrayLike] | None = None,
        *,
        is_result: bool = False,
    ) -> None:
        """Add a label for a line through points that ends at the height of ``y``, beside the axes
        or, if it is long on a phone, along the line; or for a line across.
        """
        kind = "end later" if is_result else "end"
        x, heights = line or ((self.across.low, self.across.high), (y, y))
        corners = np.array([self.x(x), self.y(heights)])
        ends = self._ends if line and self.is_beside else self._inside
        ends.append((self.y(y), elided(text, LONGEST), color, kind, corners))

    def svg(self) -> str:
        """Return the drawing's elements."""
        self._compare()
        self._write_ends()
        self._write_spots()
        for _, text, color, kind, line in sorted(self._inside, key=lambda end: -len(end[1])):
            self.write_along(line, text, color, class_=kind)
        return super().svg()

    def _compare(self) -> None:
        """Join two quoted numbers above each other, and write how many times one is the other."""
        for (x, kind, later), heights in self._quoted.items():
            y = self.y(heights)
            if len(y) == 2 and min(heights) > 0 and np.ptp(y) > 2 * GAP:
                self.line(f"gap {x}", (x, x), heights, "ink", kind, class_=later)
                text = f"{max(heights) / min(heights):.2f} x"
                self._spots.append((self.x(x), y.mean(), text, "ink", f"bold{later}"))

    def _write_ends(self) -> None:
        """Write the labels apart from each other: where their lines end, or beside the axes."""
        wanted = [self.foot - y for y, *_ in self._ends]
        places = spread(wanted, GAP, self.high)
        for up, (y, text, color, kind, line) in zip(places, self._ends):
            right = line[0, -1]
            x, down = self.right + 10, self.foot - up
            is_moved = abs(y - down) > 3
            if not is_moved and right < self.right - 2 * GAP:  # it ends early
                box = _box(right + 10, down, text, "start")
                if self._is_free(box) and not self.crossings(box):
                    x = right + 10
            if is_moved:
                leader = f"M{self.right:.1f} {y:.1f}L{self.right + 8:.1f} {down:.1f}"
                self.add("path", color, d=leader, class_=kind)
            self.write(x, down, text, color, class_=kind)

    def _write_spots(self) -> None:
        """Write the labels of rings and dots, bold ones first. A thin line leads to one that is
        far.
        """
        for x, y, text, color, class_ in sorted(self._spots, key=lambda s: ("bold" not in s[4], s)):
            box = self.write_free(x, y, NEAR, text, color, class_=class_)
            left, up = _nearest(x, y, box)
            if _away(x, y, box) > FAR:
                self.add("path", color, d=f"M{x:.1f} {y:.1f}L{left:.1f} {up:.1f}", class_=class_)


class Chart(Displayable):
    """A picture that stands still.

    Parameters
    ----------
    finding
        What it shows, as a sentence.
    paint
        Draws it at a width in pixels.
    about
        What is drawn, in which unit and under which conditions.
    lines
        The values, as text.
    note
        What else there is to say, below.
    guess
        Whether a reader's guess is drawn: the finding, and all that has to do with the result, then
        appear when the reader asks for them.
    """

    plays, headed = False, True

    def __init__(
        self,
        finding: str,
        paint: Callable[[float], Canvas],
        *,
        about: str = "",
        lines: Sequence[str] = (),
        note: str = "",
        guess: bool = False,
    ) -> None:
        self.title = theme.make_readable(finding)
        self.about, self.note, self.guess = theme.make_readable(about), note, guess
        self.lines = list(map(theme.make_readable, lines))
        self.paint = paint

    def __repr__(self) -> str:
        return "\n".join(filter(None, [self.title, self.about, *self.lines, self.note]))

    def to_svg(self, width: float = WIDE, *, is_whole: bool = False) -> str:
        """Return the drawing as SVG with its style sheet; if it is whole, with its sentence."""
        canvas = self.paint(width)
        drawn, head = canvas.svg(), 56 if is_whole else 0
        if is_whole:
            drawn += text_element(0, 10 - head, self.title, "ink", class_="head")
            drawn += text_element(0, 34 - head, self.about, "soft")
        tell = handler("tellMark")
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-head} {width:g}'
            f' {canvas.height + head:.0f}"'
            f' class="ck-chart {"narrow" if canvas.is_narrow else "wide"}"'
            f' role="group" aria-label="{theme.escape_html("" if self.guess else self.title)}"'
            f' onkeydown="{handler("chooseMark")}" onfocusin="{tell}" onpointerover="{tell}">'
            f"<style>{theme.definitions(drawn)}{CSS}</style>{drawn}</svg>"
        )
        return svg.encode("ascii", "xmlcharrefreplace").decode()

    def to_html(self) -> str:
        wide, narrow = self.to_svg(), self.to_svg(NARROW)
        if self.guess:
            button = f'<button onclick="{handler("drawResult")}">Draw the result</button>'
            shown = f"{button}{wide}{narrow}"
        else:
            high = wide.split('"', 4)[3].split()[3]  # of its viewBox
            shown = (
                f'<picture><source media="(max-width: 640px)" srcset="{data_url(narrow)}">'
                f'<img src="{data_url(wide)}" alt="{theme.escape_html(repr(self))}"'
                f' width="{WIDE}" style="max-width: 100%; aspect-ratio: {WIDE} / {high};'
                f' height: auto" onload="{handler("putDrawings")}"></picture>'
            )
        return (
            f'<div class="ck-chart"{" data-guess" * self.guess}>'
            f'<div class="finding later" style="font-size: 18px; font-weight: 600">'
            f'{theme.tied(self.title)}</div>{_paragraph(self.about)}<div role="status"'
            f' style="{TOLD}"></div>{shown}{_paragraph(self.note)}</div>'
        )


def _paragraph(text: str) -> str:
    """Return a text below a chart's sentence or below the chart; "" if there is none."""
    look = "max-width: 760px; margin: 2px 0 6px; font-size: 13px"
    return text and f'<div style="{look}">{theme.tied(text)}</div>'


def data_url(svg: str) -> str:
    """Return a data URL of an SVG."""
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


def _box(x: float, y: float, text: str, anchor: str, class_: str = "", **_: Any) -> Box:
    """Return the box of a text with its middle at the height ``y``."""
    wide = theme.LETTER * len(text) * (LARGE if "bold" in class_ else 1)
    left = float(x) - wide * {"start": 0, "middle": 0.5, "end": 1}[anchor]
    return left, float(y) - GAP / 2, left + wide, float(y) + GAP / 2


def _nearest(x: float, y: float, box: Box) -> np.ndarray:
    """Return the point of a box that is nearest to a point."""
    return np.clip((x, y), box[:2], box[2:])


def _away(x: float, y: float, box: Box) -> float:
    """Return how far a box is from a point."""
    return math.dist((x, y), _nearest(x, y, box))


def text_element(
    x: float, y: float, text: str, color: str, anchor: str = "start", **how: Any
) -> str:
    if anchor != "start":
        how["text_anchor"] = anchor
    words = theme.escape_html(elided(text, 4 * LONGEST))
    return element("text", "", color, words, x=x, y=y + 4, **how)


def _point(shape: str, words: str, **how: Any) -> str:
    """Return a mark: a shape, and the words that pointing at it tells."""
    return element("g", inside=shape, class_="point", data_words=words, **how)


def _told(name: str, words: str, kind: str) -> dict[str, Any]:
    """Return the attributes of something that can have the focus, and tells its words."""
    keys = {"tabindex": 0, "data_lm_suppress_shortcuts": "true"}
    return {"data_name": name, "data_kind": kind, "role": "img", "aria_label": words, **keys}


def element(tag: str, stroke: str = "", fill: str = "", inside: str = "", **how: Any) -> str:
    """Return an SVG element. Empty attributes are left out; ``_`` stands for ``-``."""
    paint: dict[str, Any] = {}
    for kind, tint in () if tag == "g" else (("stroke", stroke), ("fill", fill)):
        color, _, alpha = tint.partition(" ")
        paint |= {kind: f"var(--ck-{color})" if color else "none", f"{kind}-opacity": alpha}
    if tag == "text":
        del paint["stroke"]
    written = (
        (name.rstrip("_").replace("_", "-"), f"{value:.1f}" if _is_float(value) else value)
        for name, value in (paint | how).items()
    )
    attributes = "".join(
        f' {name}="{theme.escape_html(value)}"' for name, value in written if value != ""
    )
    return f"<{tag}{attributes}>{inside}</{tag}>" if inside else f"<{tag}{attributes}/>"


def _is_float(value: Any) -> bool:
    return isinstance(value, float | np.floating | np.ndarray)
