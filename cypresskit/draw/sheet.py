"""A picture under construction: figures, boxes, arrows, words and lines, and how they change from
frame to frame.

A view draws on a ``Sheet`` and asks it for the ``Player``. An array with one row per frame becomes
a track; anything else stands still. On a *stage* a unit is about a pixel, and words scale with it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from bokeh.core.property.vectorization import Value
from bokeh.models import (
    AllIndices,
    CDSView,
    ColumnDataSource,
    Glyph,
    GlyphRenderer,
    HoverTool,
    Line,
    Plot,
    Range1d,
    Rect,
    Scatter,
    Segment,
    Text,
    UnionRenderers,
)
from numpy.typing import ArrayLike

from cypresskit.draw import theme
from cypresskit.draw.player import Parts, Player, Settings, Track
from cypresskit.il.errors import shortened

#: What says where each kind of glyph is.
PLACES: dict[type[Glyph], tuple[str, ...]] = {
    Line: ("x", "y"),
    Rect: ("x", "y", "width", "height"),
    Scatter: ("x", "y"),
    Segment: ("x0", "y0", "x1", "y1"),
    Text: ("x", "y", "text"),
}


@dataclass(frozen=True, kw_only=True)
class BoxStyle:
    """How boxes look, and what pointing at them and choosing them does."""

    #: A color, or (palette, index of each box), of colors or of tints; or else ``color``.
    fill: str | tuple | None = None
    color: str = ""  #: a theme color to fill with
    line: str = ""  #: the edge's theme color
    alpha: float | str = 1.0
    round: float = 0  #: the corners' radius
    #: The hover's text for each box, or (texts, index in each frame).
    words: Sequence[str] | tuple | None = None
    tip: str = "@words"  #: how the hover shows it
    key: ArrayLike | None = None  #: whole numbers by which a click chooses boxes
    moves: Sequence[str] = ()  #: columns that glide from frame to frame


@dataclass(frozen=True, kw_only=True)
class TextStyle:
    """How words look and where they stand about their point."""

    align: str = "left"  #: or a column
    size: int = 12
    bold: bool = False
    fit: float = 0.0  #: as large as so many units of x allow
    baseline: str = "middle"
    font: Value | None = None

    def properties(self, size: int) -> dict:
        """The style as properties of Bokeh's ``Text`` of a size."""
        given: dict = {
            "text_baseline": self.baseline,
            "text_font_size": f"{size}px",
            "text_align": self.align,
        }
        if self.bold:
            given["text_font_style"] = "bold"
        if self.font:
            given["text_font"] = self.font
        return given


class Bars(NamedTuple):
    """Bars in time: when each begins and ends, where it stands and how high it is; numbers or
    arrays.
    """

    start: ArrayLike
    end: ArrayLike
    y: ArrayLike
    height: ArrayLike


class TimeAxis(NamedTuple):
    """The moment that each frame shows, and the x of a moment."""

    moments: np.ndarray
    to_x: Callable[[np.ndarray], np.ndarray]


class Sheet(Parts):
    """A picture under construction."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        # Bokeh makes one of each for every source or glyph: half of all models. These have no state
        # of their own.
        self._policy = UnionRenderers()
        self._everything = AllIndices()
        # Bokeh keeps copies of a glyph for what is selected, isn't, or is muted. Nothing ever is:
        # a single point stands in for them.
        self._unused = Scatter(x=0, y=0)
        self._staged = False  # whether words scale with the latest figure

    def stage(self, label: str, width: float, height: float, most: float = 1.2) -> None:
        """A bare figure from (0, 0) at the upper left to (width, height). A unit is a pixel or so,
        at most ``most``.
        """
        fig = self.plot(label, (0, width), (height, 0), high=most * height)
        fig.styles = dict(fig.styles) | {"min-width": theme.LEGIBLE.format(width)}
        self._staged = True

    def ticks(
        self,
        ends: tuple[float, float],
        last: float,
        bands: Sequence[tuple[float, float]],
        foot: float,
    ) -> None:
        """Draw an axis from 0 to ``last`` between two ``ends`` of x: its ticks in ``bands`` of y,
        and their names at the y of the ``foot``.
        """
        left, right = ends
        ticks = ticks_between(0, last)
        x = left + np.array(ticks) / last * (right - left)
        y, high = np.array([((top + low) / 2, low - top) for top, low in bands]).T
        across, down = np.tile(x, len(y)), np.repeat(y, len(x))
        tall = np.repeat(high, len(x))
        self.boxes("ticks", across, down, 1, tall, color="line", alpha=0.6)
        texts = [f"{tick:g}" for tick in ticks]
        words = self.source("tick names", x=x, y=np.full(len(x), foot), text=texts)
        self.words("x", "y", "text", "soft", source=words, align="center", size=12)

    def plot(
        self, label: str, x: tuple[float, float], y: tuple[float, float], high: float = 0, **options
    ) -> Plot:
        """A figure without axes, which a screen reader calls ``label``: with equal units of x and
        y, y downwards if its range is; as high as the window allows, or ``high`` pixels at most.
        All is drawn on the latest figure.
        """
        shape = abs((x[1] - x[0]) / (y[1] - y[0]))
        ranges = {"x_range": Range1d(*x), "y_range": Range1d(*y)}
        return self._figure(label, shape, high * shape, min_border=0, **ranges, **options)

    def framed(self, label: str, size: tuple[float, float], **options) -> Plot:
        """A figure of ``size``, width and height in pixels, that has room for axes. ``options`` are
        properties of Bokeh's ``Plot``.
        """
        width, height = size
        fig = self._figure(label, width / height, 1.2 * width, **options)
        fig.width, fig.height = round(width), round(height)
        fig.styles = dict(fig.styles) | {"min-width": theme.LEGIBLE.format(width)}
        return fig

    def _figure(self, label: str, shape: float, most_width: float, **options) -> Plot:
        """A bare figure, ``shape`` times as wide as it is high; the latest from now on."""
        most = f"{theme.ROOM} * {shape:.3f}" + (f", {most_width:.0f}px" if most_width else "")
        bare = dict.fromkeys(
            ("background_fill_color", "border_fill_color", "outline_line_color", "toolbar_location")
        )
        fig = Plot(
            aspect_ratio=shape,
            sizing_mode="scale_width",
            styles={"max-width": f"max(340px, min({most}))"},
            stylesheets=[theme.PLOT_CSS],
            title=None,
            **bare,
            **options,
        )
        self.figures.append(fig)
        self.labels[fig.id] = theme.readable(label)
        self.fig = fig
        self._staged = False
        return fig

    def source(self, name: str, moves: Sequence[str] = (), key=None, **columns) -> ColumnDataSource:
        """A data source called ``name``. Columns of shape (frames, cells) follow the frames, and
        those named in ``moves`` glide between them. ``key``: whole numbers by which a click chooses
        cells.
        """
        if key is not None:
            columns |= {"key": np.asarray(key), "lit": [0] * np.shape(key)[-1]}
        still = {
            column: [theme.readable(v) if isinstance(v, str) else v for v in value]
            if isinstance(value, list)
            else value
            for column, value in columns.items()
            if np.ndim(value) < 2
        }
        source = ColumnDataSource(still, name=name, selection_policy=self._policy)
        for column, value in columns.items():
            if np.ndim(value) == 2:
                self.track(source, column, value, moves=column in moves)
        return source

    def track(self, source: ColumnDataSource, column: str, frames, **how) -> None:
        """Let a column follow the frames; whole numbers take as few bytes as they need. ``how`` as
        for ``Track``.
        """
        frames = np.ascontiguousarray(frames)
        if frames.dtype.kind != "f":
            frames = frames.astype(
                np.uint8 if frames.min(initial=0) >= 0 and frames.max(initial=0) < 256 else np.int32
            )
        names = [theme.readable(name) for name in how.pop("names", ())]
        self.tracks.append(Track(source, column, frames, names=names, **how))

    def glyph(
        self,
        kind: type[Glyph],
        *places,
        source: ColumnDataSource | None = None,
        level: str = "glyph",
        **look,
    ) -> GlyphRenderer:
        """Draw a glyph at ``places``: each a number, a column of ``source``, or a sequence.
        Selection doesn't change its look: bokeh.plotting would build a model for each of those
        looks, which takes time.
        """
        given = dict(zip(PLACES[kind], places))
        if source is None:
            source = self.source(
                "", **{name: value for name, value in given.items() if np.ndim(value)}
            )
            given |= {name: name for name in source.column_names}
        return self.fig.add_glyph(
            source,
            kind(**given, **look),
            level=level,
            view=CDSView(filter=self._everything),
            selection_glyph=self._unused,
            nonselection_glyph=self._unused,
            muted_glyph=self._unused,
        )

    def boxes(
        self, name: str, x, y, w, h, *, columns: Mapping[str, ArrayLike] | None = None, **style
    ) -> ColumnDataSource:
        """Draw boxes, and return their source.

        Parameters
        ----------
        name
            What the source is called.
        x, y, w, h
            Centers and sizes: a number for all, or arrays; of shape (frames, boxes), they follow
            the frames.
        columns
            More columns of the source.
        style
            The fields of ``BoxStyle``.
        """
        look = BoxStyle(**style)
        geometry = {"x": x, "y": y, "w": w, "h": h}
        arrays = {
            side: np.asarray(value, np.float32)
            for side, value in geometry.items()
            if np.ndim(value)
        }
        count = max((value.shape[-1] for value in arrays.values()), default=1)
        data = dict(columns or {}) | arrays
        for side in "xy":
            if side not in arrays:
                data[side] = np.full(count, geometry[side], np.float32)
        width, height = (side if side in arrays else geometry[side] for side in "wh")

        fill = look.fill
        if isinstance(fill, tuple):
            data["shade"] = np.asarray(fill[1])
            fill = self.colors.by_index("shade", fill[0])
        if look.words is not None:
            data["words"] = [""] * count if isinstance(look.words, tuple) else list(look.words)
        source = self.source(name, look.moves, look.key, **data)
        if isinstance(look.words, tuple):
            texts, index = look.words
            self.track(source, "said", index, text="words", names=texts)

        box = self._draw_boxes(source, width, height, fill, look)
        if look.words is not None:
            hover = HoverTool(renderers=[box], tooltips=look.tip, attachment="vertical")
            self.fig.add_tools(hover)
        if look.key is not None:
            self._choose_boxes(source, width, height, look)
        return source

    def _draw_boxes(
        self, source: ColumnDataSource, width, height, fill, look: BoxStyle
    ) -> GlyphRenderer:
        """Draw the boxes of a source."""
        properties: dict = {
            "fill_alpha": look.alpha,
            "line_width": 1 if look.line else 0,
            "border_radius": look.round,
            "line_color": None,
        }
        if not look.color:
            properties["fill_color"] = fill
        box = self.glyph(Rect, "x", "y", width, height, source=source, **properties)
        colors = {"fill_color": look.color, "line_color": look.line}
        return self.colors.apply(box, **{part: color for part, color in colors.items() if color})

    def _choose_boxes(self, source: ColumnDataSource, width, height, look: BoxStyle) -> None:
        """Let a click choose boxes of a source, which then have a frame."""
        style: dict = {"border_radius": look.round, "level": "annotation"}
        frame = self.ring(source, width, height, "lit", "ink", **style)
        # A thick frame would hide the color of a flat box.
        is_flat = isinstance(height, int | float) and height < 8
        size = {"w": width, "h": height, "on": 1 if is_flat else 3}
        self._pick(source, [frame], figure=self.fig, **size)

    def _pick(self, source: ColumnDataSource, marks: Sequence[GlyphRenderer], **how) -> None:
        """Let a click choose parts of a source, which ``marks`` show; until something is chosen,
        they aren't painted.
        """
        for mark in marks:
            mark.visible = False
        self.picks.append({"source": source, "marks": list(marks)} | how)

    def ring(
        self, source: ColumnDataSource, w, h, width, color: str = "wait", **look
    ) -> GlyphRenderer:
        """Draw frames around the boxes of a source; ``width`` is the line's, a number or a column,
        0 for no frame.
        """
        edge = self.glyph(
            Rect, "x", "y", w, h, source=source, fill_color=None, line_width=width, **look
        )
        return self.colors.apply(edge, line_color=color)

    def progress_bars(
        self, name: str, bars: Bars, axis: TimeAxis, *, future: str = "", **style
    ) -> None:
        """Draw bars that fill as time goes.

        Parameters
        ----------
        name
            What the source of the parts that have passed is called.
        bars
            When each begins and ends, and where it stands.
        axis
            Where each moment stands, and the moments of the frames, of shape (frames,).
        future
            The theme color of the part that is still to come; by default the bar's own, fainter.
        style
            The fields of ``BoxStyle``.
        """
        start, end = np.asarray(bars.start, float), np.asarray(bars.end, float)
        moments, to_x = axis
        # Words and keys are those of the whole bar, so that what is to come can be chosen, too.
        plain = {field: given for field, given in style.items() if field not in ("key", "words")}
        faint = {"alpha": 0.3 * style.get("alpha", 1.0)}
        to_come = style | ({"color": future} if future else faint)

        now = moments[:, np.newaxis]
        left = to_x(start)
        y = bars.y
        height = bars.height
        # Where a width isn't above zero, Bokeh draws all boxes in wrong places.
        whole = np.maximum(to_x(end) - left - 0.7, 0.001)
        passed = np.fmax(to_x(np.clip(now, start, end)) - left - 0.7, 0.001)
        self.boxes(f"{name} to come", left + whole / 2, y, whole, height, **to_come)
        self.boxes(name, left + passed / 2, y, passed, height, moves=("x", "w"), **plain)

    def arrows(
        self,
        name: str,
        start: Sequence | np.ndarray,
        end: Sequence | np.ndarray,
        *,
        color: str = "ink",
        width: float = 2,
        size: float = 7,
    ) -> None:
        """Draw arrows from ``start`` to ``end``, x and y of each; those at NaN are left out."""
        ends = zip(("x0", "y0", "x1", "y1"), (*start, *end))
        columns: dict = {column: np.asarray(value, np.float32) for column, value in ends}
        source = self.source(name, **columns)
        line = self.glyph(Segment, "x0", "y0", "x1", "y1", source=source, line_width=width)
        tip = self.glyph(Scatter, "x1", "y1", source=source, size=size)
        self.colors.apply(line, line_color=color)
        self.colors.apply(tip, line_color=color, fill_color=color)

    def numbers(
        self,
        name: str,
        x,
        y,
        values: np.ndarray,
        *,
        names: Sequence[str] = (),
        prefix: str = "\N{ZERO WIDTH SPACE}",
        **style,
    ) -> ColumnDataSource:
        """Write whole numbers at ``x``, ``y`` after a prefix, or their ``names``. ``values`` is
        (frames, numbers), or (frames,) for one number; negative ones are left blank. ``style`` is
        that of ``words``.
        """
        values = values.reshape(len(values), -1)
        source = self.source(name, x=np.full(values.shape[1], x), y=np.full(values.shape[1], y))
        self.track(source, "value", values, text="text", prefix=prefix, names=names)
        self.words("x", "y", "text", source=source, **style)
        return source

    def race(
        self,
        name: str,
        lane: tuple[float, float],
        so_far: np.ndarray,
        end: float,
        most: float,
        *,
        title: str,
        unit: str = "clock",
    ) -> None:
        """Draw one runner of a race on one clock, on a stage: its title, a bar that grows with the
        clocks ``so_far`` (frames,), and its finish at the clock ``end``.

        ``lane`` is the left edge and the width of the bar at the clock ``most``, when the last
        runner is done.
        """
        left, width = lane
        self.words(left, 12, title, bold=True, size=14)
        self.boxes(f"lane {name}", left + width / 2, 34, width, 10, color="faint")
        passed = np.maximum(width * so_far / most, 0.01)[:, np.newaxis]
        clocks = so_far.astype(int)
        self.boxes(
            f"clock {name}", left + passed / 2, 34, passed, 10, color="read", moves=("x", "w")
        )
        self.numbers(
            f"clocks {name}", left + width, 12, clocks, prefix=f"{unit} ", align="right", size=14
        )
        done = np.where(clocks >= end, clocks, -1)
        self.numbers(
            f"finish {name}",
            left + width * end / most,
            49,
            done,
            prefix=f"done at {unit} ",
            color="c",
            bold=True,
            align="left" if end < most / 2 else "right",
            size=12,
        )

    def words(
        self,
        x,
        y,
        text,
        color: str = "ink",
        *,
        source: ColumnDataSource | None = None,
        **style,
    ):
        """Write text at points: one for all of them, or one for each; or columns of a ``source``,
        if that is given. ``style`` has the fields of ``TextStyle``.
        """
        look = TextStyle(**style)
        if source is None:
            x, y, text = (part.tolist() for part in np.broadcast_arrays(*np.atleast_1d(x, y, text)))
        # Text that fits itself starts small: what a first, larger one leaves at the figure's edge
        # is never wiped off.
        start_size = 8 if look.fit or self._staged else look.size
        glyph = self.glyph(Text, x, y, text, source=source, **look.properties(start_size))
        drawn = self.colors.apply(glyph, text_color=color)
        if self._staged:
            self.colors.fit(self.fig, drawn, look.size, look.size)
        elif look.fit:
            self.colors.fit(self.fig, drawn, look.fit)
        return drawn

    def play_head(
        self, name: str, x: np.ndarray, y: ArrayLike, height: ArrayLike, width: float = 2, **style
    ) -> None:
        """Draw a play head: an upright at ``x`` (frames,), or several, (frames, uprights),
        ``height`` pixels long and centered at ``y``, both for all or for each.
        """
        style = style or {"color": "ink"}
        self.boxes(name, x.reshape(len(x), -1), y, width, height, moves=("x",), **style)

    def legend(self, *things: tuple[str, str, str]) -> str:
        """A legend of (words, color, look); a look is "box", "ring", "frame", "dim", "pale" or a
        dash.
        """
        spans = []
        for words, color, look in things:
            if color.split()[0] in theme.TOKENS:
                color = theme.css(color, "--ck-")
            mark = f'<span class="key {look}" style="color:{color}"></span>'
            spans.append(f'<span class="keyed">{mark}{theme.escaped(words)}</span>')
        return " &ensp;".join(spans)

    def note(self, text: str) -> str:
        """A text below the picture, marked up as ``theme.html`` says."""
        return theme.html(text)

    def player(self, captions: Sequence[str], lines: Iterable[str] = (), **settings) -> Player:
        """The finished picture: a ``Player`` of all figures that don't stand at its side. Its text
        form is the title with ``lines`` below it; ``settings`` has the fields of ``Settings``.
        """
        given = Settings(**settings)
        picture = [fig for fig in self.figures if fig not in given.side]
        text = "\n".join([self.title, *lines])
        return Player(self, picture, list(captions), text, given)


def ticks_between(start: float, end: float, most: float = 12) -> list[float]:
    """Round numbers between two: in fewer than ``most`` steps of 1, 2 or 5 and zeros."""
    steps = (factor * 10.0**power for power in range(-9, 12) for factor in (1, 2, 5))
    step = next(step for step in steps if (end - start) / step < most)
    first = int(np.ceil(start / step - 1e-6))
    last = int(np.floor(end / step + 1e-6))
    return [number * step for number in range(first, last + 1)]


def nonempty(things, what: str, kind: type | tuple[type, ...] = object) -> list:
    """``things`` as a list. Raises ``ValueError`` if it is empty, ``TypeError`` if one isn't of a
    ``kind``; ``what`` says in the message what to pass.
    """
    parts = (
        list(things) if isinstance(things, Iterable) and not isinstance(things, str) else [things]
    )
    if not parts:
        raise ValueError(f"there is nothing to draw: {what}")
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"{shortened(part)} can't be drawn: {what}")
    return parts


def together(scenes: Sequence[np.ndarray], empty=np.nan) -> np.ndarray:
    """Arrays (frames, things) of several scenes, one after the other, filled up to the most
    things.
    """
    most = max(part.shape[1] for part in scenes)
    return np.concatenate(
        [np.pad(p, ((0, 0), (0, most - p.shape[1])), constant_values=empty) for p in scenes]
    )


def by_frame(rows: Sequence[ArrayLike], columns: int) -> np.ndarray:
    """The rows that each frame has, of so many columns, as one array (columns, frames, most rows),
    filled up with NaN.
    """
    of_frames = [np.reshape(of_frame, (-1, columns)) for of_frame in rows]
    most = max(1, *map(len, of_frames))
    padded = np.full((columns, len(rows), most), np.nan, np.float32)
    for frame, of_frame in enumerate(of_frames):
        padded[:, frame, : len(of_frame)] = of_frame.T
    return padded
