"""A chart: a figure with Bokeh's axes, grid, scales and legend, and lines on it.

The coordinates are data values. The borders around the axes are fixed, so that charts side by side
are aligned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Value
from bokeh.models import (
    FixedTicker,
    GlyphRenderer,
    Grid,
    HoverTool,
    Legend,
    LegendItem,
    Line,
    LinearAxis,
    LinearScale,
    LogScale,
    Range1d,
    Scatter,
    Segment,
)
from numpy.typing import ArrayLike

from cypresskit.draw import theme
from cypresskit.draw.sheet import Sheet, choose_ticks
from cypresskit.tables import elided

WIDTH = 1100  # pixels of a chart that fills a picture
# Borders around the axes, in pixels: the left one holds the labels of y, the bottom one those of x.
LEFT, RIGHT, TOP, BOTTOM = 62, 12, 14, 46
AXIS = WIDTH - LEFT - RIGHT  # pixels of the axis of x
TEXT = "12px"


@dataclass(frozen=True)
class Scale:
    """The range and the labels of an axis."""

    title: str
    low: float
    high: float
    log: bool = False
    ticks: Sequence[float] = ()  #: round numbers by default

    def numbers(self) -> list[float]:
        """Return the ticks between the ends of the axis."""
        ticks = self.ticks or choose_ticks(self.low, self.high, 5.01)
        return [float(tick) for tick in ticks if self.low <= tick <= self.high]


class Chart:
    """Axes on a new figure of a sheet.

    Parameters
    ----------
    sheet
        The picture that gets the figure.
    across, up
        The axes of x and y.
    label
        The figure's name for screen readers.
    height
        Pixels of the axes.
    legend
        The names of the lines, in the order in which they are drawn.
    """

    def __init__(
        self,
        sheet: Sheet,
        across: Scale,
        up: Scale,
        *,
        label: str,
        height: float,
        legend: Sequence[str],
    ) -> None:
        self.sheet = sheet
        self._names = [_cut_text(theme.make_readable(name)) for name in legend]
        columns = self._columns()
        below = BOTTOM + theme.ENTRY * -(-len(self._names) // columns)
        self.figure = sheet.framed(
            label,
            (WIDTH, TOP + height + below),
            x_range=Range1d(across.low, across.high),
            y_range=Range1d(up.low, up.high),
            x_scale=LogScale() if across.log else LinearScale(),
            y_scale=LogScale() if up.log else LinearScale(),
            min_border_left=LEFT,
            min_border_right=RIGHT,
            min_border_top=TOP,
            min_border_bottom=below,
        )
        self._add_axis(across, 0, "below")
        self._add_axis(up, 1, "left")
        self._legend = self._add_legend(columns)

    def _columns(self) -> int:
        """Return the number of legend entries per row."""
        longest = theme.KEY + theme.LETTER * max(map(len, self._names))
        return max(1, min(len(self._names), int(AXIS // longest)))

    def _add_axis(self, scale: Scale, dimension: int, place: str) -> None:
        """Add an axis and its grid lines."""
        ticks = scale.numbers()
        ticker = FixedTicker(ticks=ticks)
        axis = LinearAxis(
            ticker=ticker,
            axis_label=_cut_text(theme.make_readable(scale.title)),
            axis_label_text_font_size=TEXT,
            axis_label_text_font_style="normal",
            major_label_overrides={tick: f"{tick:g}" for tick in ticks},
            major_label_text_font_size=TEXT,
            major_tick_line_color=None,
        )
        grid = Grid(dimension=dimension, ticker=ticker, grid_line_alpha=0.4)
        self.sheet.paint(
            axis,
            axis_line_color="soft",
            axis_label_text_color="soft",
            major_label_text_color="ink",
        )
        self.sheet.paint(grid, grid_line_color="line")
        self.figure.add_layout(axis, place)
        self.figure.add_layout(grid)

    def _add_legend(self, columns: int) -> Legend:
        legend = Legend(
            ncols=columns,
            orientation="horizontal",
            location="bottom_left",
            label_text_font_size=TEXT,
            background_fill_color=None,
            border_line_color=None,
            spacing=14,
            padding=0,
            margin=0,
        )
        self.sheet.paint(legend, label_text_color="ink")
        self.figure.add_layout(legend, "below")
        return legend

    def line(self, x: ArrayLike, y: ArrayLike, number: int, **look) -> None:
        """Draw a line without points. ``number`` selects its color."""
        self._enter(self._draw_line(np.asarray(x, float), np.asarray(y, float), number, **look))

    def curve(
        self,
        name: str,
        x: ArrayLike,
        y: ArrayLike,
        number: int,
        words: Sequence[str],
        *,
        alpha: float = 1.0,
        size: int = 0,
    ) -> None:
        """Draw a line with points that show ``words`` on hover.

        If ``y`` has shape (frames, points), it follows the frames. ``number`` selects color, dash
        and marker. Points of number 0 are filled; others are hollow, and larger for a larger
        number, so that none hides another. With a ``size`` in pixels they are hollow, too.
        """
        columns: dict[str, Any] = {"x": np.asarray(x, float), "y": np.asarray(y, float)}
        source = self.sheet.source(f"points {name}", **columns, words=list(words))
        line = self._draw_line("x", "y", number, source=source, line_alpha=alpha)
        shape = theme.SHAPES[number % len(theme.SHAPES)]
        look: dict = {
            "marker": shape,
            "size": size or 8 + 3 * number,
            "line_width": 2,
            "fill_color": None,
        }
        points = self.sheet.glyph(Scatter, "x", "y", source=source, **look)
        color = theme.LINES[number % len(theme.LINES)]
        fill = {} if size or number else {"fill_color": color}
        self.sheet.paint(points, line_color=color, **fill)
        self.figure.add_tools(HoverTool(renderers=[points], tooltips="@words"))
        self._enter(line, points)

    def bars(self, x: ArrayLike, low: ArrayLike, high: ArrayLike, number: int) -> None:
        """Draw vertical bars from ``low`` to ``high``: by how much the points of a curve may be
        off.
        """
        across = np.asarray(x, float)
        ends = across, np.asarray(low, float), across, np.asarray(high, float)
        bars = self.sheet.glyph(Segment, *ends, line_width=5, line_alpha=0.35)
        self.sheet.paint(bars, line_color=theme.LINES[number % len(theme.LINES)])

    def _draw_line(self, x, y, number: int, **look) -> GlyphRenderer:
        dash = theme.DASHES[number % len(theme.DASHES)]
        style: dict = {"line_width": 2, "line_dash": dash} | look
        line = self.sheet.glyph(Line, x, y, **style)
        return self.sheet.paint(line, line_color=theme.LINES[number % len(theme.LINES)])

    def _enter(self, *drawn: GlyphRenderer) -> None:
        """Add a line to the legend, under the next of its names."""
        label = Value(self._names[len(self._legend.items)])
        self._legend.items.append(LegendItem(label=label, renderers=list(drawn)))


def _cut_text(text: str) -> str:
    """Cut a text to about the axis of x."""
    return elided(text, int((AXIS - theme.KEY) // theme.LETTER))
