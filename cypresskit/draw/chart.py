"""A chart on a stage: axes, curves with points, level lines, a legend, and a play head.

Everything is drawn in the stage's pixels, so a chart scales, becomes a still and takes a theme as
every other picture does. Whatever lies outside the axes isn't drawn.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from bokeh.models import HoverTool, Line, Scatter

from cypresskit.draw import theme
from cypresskit.draw.sheet import Sheet

WIDE, LEFT, TOP, FOOT, LINE = (
    1100,
    62,
    28,
    44,
    20,
)  # a stage; the room around the axes; a line of names


class Scale(NamedTuple):
    """An axis from ``low`` to ``high``, linear or logarithmic, labelled at ``ticks``, by default
    round numbers.
    """

    title: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[float] = ()

    def part(self, value) -> np.ndarray:
        """The position of values along the axis, 0 to 1; NaN for those beyond its ends."""
        value = np.asarray(value, float)
        value = np.where((value >= self.low) & (value <= self.high), value, np.nan)
        low, high, value = (
            map(np.log10, (self.low, self.high, value))
            if self.log
            else (self.low, self.high, value)
        )
        return (value - low) / (high - low)

    def numbers(self) -> list[float]:
        """The ticks within the axis."""
        ten = 10 ** math.floor(math.log10((self.high - self.low) / 5))
        step = next(
            step
            for step in (ten, 2 * ten, 5 * ten, 10 * ten)
            if 5 * step >= 0.999 * (self.high - self.low)
        )
        rounds = [
            n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)
        ]
        return [tick for tick in self.ticks or rounds if self.low <= tick <= self.high]


class Chart:
    """Axes at ``place`` on a stage: left, top, width, height. A series' number gives it a colour, a
    dash and a shape. ``names`` is the legend: (x, y, words) for each curve or point, in the order
    in which they are drawn.
    """

    def __init__(
        self, sheet: Sheet, place: tuple, x: Scale, y: Scale, names: Sequence[tuple] = ()
    ) -> None:
        self.sheet, self.place, self.across, self.up, self.names = sheet, place, x, y, list(names)
        left, top, wide, high = place
        uprights, levels = x.numbers(), y.numbers()
        sheet.boxes("uprights", self.x(uprights), top + high / 2, 1, high, ink="line", alpha=0.4)
        sheet.boxes("levels", left + wide / 2, self.y(levels), wide, 1, ink="line", alpha=0.4)
        sheet.boxes(
            "axes",
            [left, left + wide / 2],
            [top + high / 2, top + high],
            [1, wide],
            [high, 1],
            ink="soft",
        )
        sheet.words(
            self.x(uprights), top + high + 13, [f"{n:g}" for n in uprights], align="center", size=13
        )
        sheet.words(left - 7, self.y(levels), [f"{n:g}" for n in levels], align="right", size=13)
        sheet.words(left + wide / 2, top + high + 31, x.title, "soft", align="center", size=13)
        sheet.words(left, top - 14, y.title, "soft", size=13)

    def x(self, value) -> np.ndarray:
        return self.place[0] + self.place[2] * self.across.part(value)

    def y(self, value) -> np.ndarray:
        return self.place[1] + self.place[3] * (1 - self.up.part(value))

    def line(self, x, y, number: int, width: float = 2, **look) -> None:
        """Draw a line in a series' colour and dash, without points."""
        self._line(self.x(x), self.y(y), number, line_width=width, **look)

    def curve(
        self, name: str, x, y, number: int, words: Sequence[str], *, hollow: bool = False, alpha=1.0
    ) -> None:
        """Draw a line with points that show ``words`` on hover; ``y`` (frames, points) follows the
        frames.
        """
        source = self.sheet.source(f"points {name}", x=self.x(x), y=self.y(y), words=words)
        self._line("x", "y", number, source=source, line_alpha=alpha)
        drawn = self._points("x", "y", number, hollow, source=source)
        self.sheet.figures[-1].add_tools(HoverTool(renderers=[drawn], tooltips="@words"))
        if sample := self._named(name):
            self._line([sample[0], sample[0] + 26], [sample[1]] * 2, number, line_alpha=alpha)
            self._points([sample[0] + 13], [sample[1]], number, hollow)

    def point(self, name: str, x: float, y: float, number: int) -> None:
        """Draw a large hollow point in a series' colour and shape."""
        self._points([self.x(x)], [self.y(y)], number, True, size=14)
        if sample := self._named(name):
            self._points([sample[0] + 13], [sample[1]], number, True)

    def head(self, x: Sequence[float]) -> None:
        """Draw a play head that can be dragged; it stands at ``x`` in each frame."""
        _, top, _, high = self.place
        self.sheet.play_head("head", self.x(x), top + high / 2, high)

    def _line(self, x, y, number: int, **look) -> None:
        style: dict = {
            "line_width": 2,
            "line_dash": theme.DASHES[number % len(theme.DASHES)],
        } | look
        line = self.sheet.glyph(Line, x, y, **style)
        self.sheet.inks(line, line_color=theme.LINES[number % len(theme.LINES)])

    def _points(self, x, y, number: int, hollow: bool, size: int = 9, **more):
        ink, shape = (looks[number % len(looks)] for looks in (theme.LINES, theme.SHAPES))
        more |= {"marker": shape, "size": size, "line_width": 2, "fill_color": None}
        drawn = self.sheet.glyph(Scatter, x, y, **more)
        return self.sheet.inks(drawn, line_color=ink, **({} if hollow else {"fill_color": ink}))

    def _named(self, name: str) -> tuple[float, float] | None:
        """Write the next words of the legend. Returns where their sample goes, or None if there are
        no more.
        """
        if not self.names:
            return None
        x, y, words = self.names.pop(0)
        self.sheet.words(x + 34, y, words, size=13)
        return x, y


def chart(sheet: Sheet, high: float, x: Scale, y: Scale, names: Sequence[str]) -> Chart:
    """A chart on a stage of its own, with a legend of ``names`` below it."""
    left, down, places = float(LEFT), TOP + high + FOOT + LINE / 2, []
    for name in names:
        long = 54 + 6.7 * len(name)
        if left > LEFT and left + long > WIDE:
            left, down = float(LEFT), down + LINE
        places.append((left, down, name))
        left += long
    sheet.stage(sheet.title, WIDE, down + LINE / 2)
    return Chart(sheet, (LEFT, TOP, WIDE - LEFT - 12, high), x, y, places)
