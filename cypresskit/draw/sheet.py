"""Build a picture: figures, boxes, arrows, text and lines, and how they change over the frames.

A view draws on a ``Sheet`` and returns its ``player``. An array with one row per frame becomes a
track; everything else is constant. On a *stage* one unit is about a pixel, and text scales with the
figure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from bokeh.core.property.vectorization import Field
from bokeh.models import (
    AllIndices,
    CDSView,
    ColumnDataSource,
    Glyph,
    GlyphRenderer,
    HoverTool,
    Plot,
    Range1d,
    Rect,
    Scatter,
    Segment,
    Text,
    UnionRenderers,
)
from bokeh.transform import linear_cmap
from numpy.typing import ArrayLike

from cypresskit.draw import theme
from cypresskit.draw.player import Parts, Player, Settings, Track

#: The properties that give each glyph's position.
PLACES: dict[type[Glyph], tuple[str, ...]] = {
    Rect: ("x", "y", "width", "height"),
    Scatter: ("x", "y"),
    Segment: ("x0", "y0", "x1", "y1"),
    Text: ("x", "y", "text"),
}

ENLARGED = 1.2  # pixels of a stage's unit, at most
HEADING: dict[str, Any] = {"bold": True, "size": 14}  # of a panel, or its result


@dataclass(frozen=True, kw_only=True)
class BoxStyle:
    """How boxes look, and what happens on hover and click."""

    #: A CSS color, or (palette of colors or tints, index of each box).
    fill: str | tuple | None = None
    color: str = ""  #: a theme color to fill with, instead of ``fill``
    line: str = ""  #: the edge's theme color
    alpha: float | str = 1.0
    round: float = 0  #: the corners' radius
    #: The hover text of each box, or (texts, index of each box in each frame).
    words: Sequence[str] | tuple | None = None
    tip: str = "@words"  #: Bokeh's template of the hover text
    key: ArrayLike | None = None  #: whole numbers; a click selects boxes of one number
    moves: Sequence[str] = ()  #: columns that glide from frame to frame


class Bars(NamedTuple):
    """Bars over time: start, end, vertical center and height of each; numbers or arrays."""

    start: ArrayLike
    end: ArrayLike
    y: ArrayLike
    height: ArrayLike


class Grid(NamedTuple):
    """Cells in rows and columns: where the first one begins, and the size of each."""

    left: float
    top: float
    width: float
    height: float

    def center(self, row: ArrayLike, column: ArrayLike) -> tuple[Any, Any]:
        """Return the centers of cells: x and y."""
        x = self.left + (np.asarray(column) + 0.5) * self.width
        return x, self.top + (np.asarray(row) + 0.5) * self.height


class Rows(NamedTuple):
    """What makes a stage of rows fit a phone, where its axis is shorter and its texts aren't."""

    start: float  #: x at which all rows begin
    end: float
    left: float = 12  #: pixels beside the rows, for what is written there
    right: float = 12


class TimeAxis(NamedTuple):
    """The moment of each frame, and the x coordinate of a moment."""

    moments: np.ndarray
    to_x: Callable[[np.ndarray], np.ndarray]

    @property
    def window(self) -> tuple[float, float]:
        """The first and the last moment."""
        return float(self.moments[0]), float(self.moments[-1])


def pixels(width: float) -> dict[str, Any]:
    """Return a width that is the same in each figure."""
    return {"value": width, "units": "screen"}


class Sheet(Parts):
    """A picture under construction."""

    def __init__(self, title: str) -> None:
        super().__init__(title)
        # Shared, since Bokeh would make one of each per source or glyph: half of all models.
        self._policy = UnionRenderers()
        self._everything = AllIndices()
        # Stands for the glyphs of selected, unselected and muted points, which don't occur here.
        self._unused = Scatter(x=0, y=0)
        self._staged = False  # whether text scales with the latest figure

    def stage(
        self,
        label: str,
        width: float,
        height: float,
        left: float = 0,
        rows: Rows | None = None,
    ) -> None:
        """Add a bare figure from (left, 0) at the upper left to (left + width, height).

        A unit is about a pixel, and at most ``ENLARGED`` pixels. No stage is wider than a phone.
        """
        fig = self.plot(label, (left, left + width), (height, 0), high=ENLARGED * height)
        if rows:
            self.squeezed.append((fig, *rows, theme.SMALL * height))
        else:
            fig.styles = dict(fig.styles) | {
                "min-width": f"min(100%, {theme.SMALLEST * width:.0f}px)"
            }
        self._staged = True

    def plot(
        self, label: str, x: tuple[float, float], y: tuple[float, float], high: float = 0
    ) -> Plot:
        """Add a figure without axes.

        Units of x and y have the same length; y goes down if its range does. The figure is as high
        as the window allows, and at most ``high`` pixels. ``label`` is its name for screen readers.
        Everything is drawn on the latest figure.
        """
        shape = abs((x[1] - x[0]) / (y[1] - y[0]))
        most = f"{theme.ROOM} * {shape:.3f}" + (f", {high * shape:.0f}px" if high else "")
        bare = dict.fromkeys(
            ("background_fill_color", "border_fill_color", "outline_line_color", "toolbar_location")
        )
        self.fig = Plot(
            x_range=Range1d(*x),
            y_range=Range1d(*y),
            min_border=0,
            aspect_ratio=shape,
            sizing_mode="scale_width",
            styles={"max-width": f"max(min(340px, {(high or 340) * shape:.0f}px), min({most}))"},
            stylesheets=[theme.PLOT_CSS],
            title=None,
            **bare,
        )
        self.figures.append(self.fig)
        self.labels[self.fig.id] = theme.make_readable(label)
        self._staged = False
        return self.fig

    def source(self, name: str, moves: Sequence[str] = (), key=None, **columns) -> ColumnDataSource:
        """Add a data source.

        Columns of shape (frames, cells) follow the frames; those named in ``moves`` glide between
        them. ``key`` are whole numbers; a click selects cells of one number.
        """
        if key is not None:
            columns |= {"key": np.asarray(key), "lit": [0] * np.shape(key)[-1]}
        still = {
            column: [theme.make_readable(v) if isinstance(v, str) else v for v in value]
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
        """Let a column follow the frames. ``how`` are further fields of ``Track``.

        Whole numbers are stored in as few bytes as they need.
        """
        frames = np.ascontiguousarray(frames)
        if frames.dtype.kind != "f":
            frames = frames.astype(
                np.uint8 if frames.min(initial=0) >= 0 and frames.max(initial=0) < 256 else np.int32
            )
        names = [theme.make_readable(name) for name in how.pop("names", ())]
        self.tracks.append(Track(source, column, frames, names=names, **how))

    def glyph(
        self,
        kind: type[Glyph],
        *places,
        source: ColumnDataSource | None = None,
        level: str = "glyph",
        **look,
    ) -> GlyphRenderer:
        """Draw a glyph.

        Parameters
        ----------
        kind
            The class of the glyph.
        places
            The properties in ``PLACES``: numbers, sequences, or columns of ``source``.
        source
            By default a new one.
        look
            Further properties of the glyph.
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

    def paint(self, drawn, **tokens: str):
        """Give properties a theme color: ``sheet.paint(legend, label_text_color="ink")``.

        ``drawn`` is a renderer with a glyph, or a model such as a legend. It is returned. It has
        the light theme's colors here; ``player.js`` looks those of the page up.
        """
        model = getattr(drawn, "glyph", drawn)
        for prop, token in tokens.items():
            setattr(model, prop, theme.TOKENS[token][0])
            self.colors.append((model, prop, token))
        return drawn

    def _map_shades(self, palette: Sequence[str]) -> Field:
        """Return the mapping of the column ``shade``, of indices, to colors or theme tints.

        See ``theme.light`` for tints.
        """
        ends = -0.5, len(palette) - 0.5
        if palette[0].split()[0] not in theme.TOKENS:
            return linear_cmap("shade", list(palette), *ends)
        mapped = linear_cmap("shade", [theme.light(tint) for tint in palette], *ends)
        self.colors.append((mapped.transform, "palette", list(palette)))
        return mapped

    def boxes(
        self, name: str, x, y, w, h, *, columns: Mapping[str, ArrayLike] | None = None, **style
    ) -> ColumnDataSource:
        """Draw boxes, and return their source.

        Parameters
        ----------
        name
            The name of the source.
        x, y, w, h
            Centers and sizes: a number for all boxes, or arrays. Arrays of shape (frames, boxes)
            follow the frames.
        columns
            Further columns of the source.
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
            fill = self._map_shades(fill[0])
        if look.words is not None:
            data["words"] = [""] * count if isinstance(look.words, tuple) else list(look.words)
        source = self.source(name, look.moves, look.key, **data)
        if isinstance(look.words, tuple):
            texts, index = look.words
            self.track(source, "hover", index, text="words", names=texts)

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
        return self.paint(box, **{part: color for part, color in colors.items() if color})

    def _choose_boxes(self, source: ColumnDataSource, width, height, look: BoxStyle) -> None:
        """Let a click select boxes, which then get a frame."""
        style: dict = {"border_radius": look.round, "level": "annotation"}
        frame = self.ring(source, width, height, "lit", "ink", **style)
        # A thick frame would hide a flat box.
        is_flat = isinstance(height, int | float) and height < 8
        size = {"w": width, "h": height, "on": 1 if is_flat else 3}
        frame.visible = False
        self.picks.append({"source": source, "marks": [frame], "figure": self.fig} | size)

    def ring(
        self, source: ColumnDataSource, w, h, width, color: str = "wait", **look
    ) -> GlyphRenderer:
        """Draw frames around the boxes of a source. ``width`` is a number or a column, 0 for no
        frame.
        """
        edge = self.glyph(
            Rect, "x", "y", w, h, source=source, fill_color=None, line_width=width, **look
        )
        return self.paint(edge, line_color=color)

    def progress_bars(
        self, name: str, bars: Bars, axis: TimeAxis, *, future: str = "", **style
    ) -> None:
        """Draw bars that fill as time passes.

        Parameters
        ----------
        name
            The name of the source of the filled parts.
        bars
            The bars.
        axis
            The moments of the frames, shape (frames,), and their x coordinates.
        future
            The theme color of the unfilled part; by default the bar's own color, fainter.
        style
            The fields of ``BoxStyle``.
        """
        start, end = np.asarray(bars.start, float), np.asarray(bars.end, float)
        moments, to_x = axis
        # The whole bar has the text and the key, so that its unfilled part can be selected, too.
        plain = {field: given for field, given in style.items() if field not in ("key", "words")}
        to_come = style | ({"color": future} if future else {"alpha": 0.3})

        now = moments[:, np.newaxis]
        left = to_x(start)
        y = bars.y
        height = bars.height
        # With a width of 0, Bokeh would draw all boxes in wrong places.
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
        width: float,
        size: float,
    ) -> None:
        """Draw arrows from ``start`` to ``end``, each a pair (x, y). Arrows at NaN are omitted."""
        ends = zip(("x0", "y0", "x1", "y1"), (*start, *end))
        columns: dict = {column: np.asarray(value, np.float32) for column, value in ends}
        source = self.source(name, **columns)
        line = self.glyph(Segment, "x0", "y0", "x1", "y1", source=source, line_width=width)
        tip = self.glyph(Scatter, "x1", "y1", source=source, size=size)
        self.paint(line, line_color=color)
        self.paint(tip, line_color=color, fill_color=color)

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
        """Write whole numbers at ``x``, ``y``, after a prefix or replaced by ``names``.

        ``values`` has shape (frames, numbers), or (frames,) for one number; negative ones are left
        blank. ``style`` is that of ``text``.
        """
        values = values.reshape(len(values), -1)
        source = self.source(name, x=np.full(values.shape[1], x), y=np.full(values.shape[1], y))
        self.track(source, "value", values, text="text", prefix=prefix, names=names)
        self.text("x", "y", "text", source=source, **style)
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
        """Draw one runner of a race: a title, a bar that grows, and its finish.

        Parameters
        ----------
        name
            The runner's name.
        lane
            Left edge and width of the bar at the clock ``most``.
        so_far
            The runner's clocks in each frame, shape (frames,).
        end
            The clock at which it finishes.
        most
            The clock at which the last runner finishes.
        title
            The text above the bar.
        unit
            The unit of the clocks.
        """
        left, width = lane
        self.text(left, 12, title, **HEADING)
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
        )

    @staticmethod
    def winner(ends: Mapping[str, float], unit: str) -> str:
        """Return the sentence with which a race ends: when each runner is done."""
        first, *others = sorted(ends, key=lambda name: ends[name])
        later = "".join(f", {name} at {ends[name]:,}" for name in others)
        return f"**{first} is done at {unit} {ends[first]:,}{later}.**"

    def text(
        self,
        x,
        y,
        text,
        color: str = "ink",
        *,
        source: ColumnDataSource | None = None,
        align: str = "left",
        size: int = 12,
        bold: bool = False,
        fit: float = 0.0,
        **look,
    ):
        """Write text at points.

        ``x``, ``y`` and ``text`` are single values or sequences, also of numbers as text; or
        columns of ``source``, if that is given. ``align`` may be a column, too. ``fit``, if given,
        is the size in units of x.
        ``look`` are further properties of Bokeh's ``Text``.
        """
        if source is None:
            x, y, text = (
                part.tolist()
                for part in np.broadcast_arrays(*np.atleast_1d(x, y, np.asarray(text, str)))
            )
        # Fitted text starts small: Bokeh never erases what a larger text leaves at the edge.
        start_size = 8 if fit or self._staged else size
        look = {"text_baseline": "middle", "text_font_size": f"{start_size}px"} | look
        if bold:
            look["text_font_style"] = "bold"
        glyph = self.glyph(Text, x, y, text, source=source, text_align=align, **look)
        drawn = self.paint(glyph, text_color=color)
        if self._staged or fit:
            down, most = (size, size) if self._staged else (0, 13)
            self.fitted.append((self.fig, drawn, fit, down, most))
        return drawn

    def play_head(
        self, name: str, x: np.ndarray, y: ArrayLike, height: ArrayLike, width: float = 2
    ) -> None:
        """Draw vertical lines at ``x``, of shape (frames,) or (frames, lines).

        ``y`` and ``height``, their centers and lengths, are numbers or one per line.
        """
        lines = x.reshape(len(x), -1)
        self.boxes(name, lines, y, pixels(width), height, moves=("x",), color="ink")

    def legend(self, *things: tuple[str, ...]) -> str:
        """Return a legend of (text, color) or (text, color, look). A look is "ring", "frame",
        "pale", "solid" or, by default, "box".
        """
        spans = []
        for words, color, *looks in things:
            if color.split()[0] in theme.TOKENS:
                color = theme.css(color)
            look = "".join(looks) or "box"
            mark = f'<span class="key {look}" style="color:{color}"></span>'
            spans.append(f'<span class="keyed">{mark}{theme.escape_html(words)}</span>')
        return " &ensp;".join(spans)

    def player(
        self, captions: Sequence[str], kind: str, lines: Iterable[str] = (), **settings
    ) -> Player:
        """Return the finished picture: a ``Player`` of all figures that aren't in
        ``settings["side"]``.

        Each scene's last caption says of which ``kind`` its numbers are: "modeled", "counted" or
        "computed". The text form is the title, with ``lines`` or the last caption below it.
        ``settings`` has the fields of ``Settings``.
        """
        given = Settings(**settings)
        captions = list(captions)
        for end in np.cumsum([frames for _, frames in given.scenes] or [len(captions)]):
            captions[end - 1] += f" All numbers are {kind}."
        picture = [fig for fig in self.figures if fig not in given.side]
        told = list(lines) or [theme.unmarked(caption) for caption in captions[-1:]]
        text = "\n".join([self.title, *told])
        return Player(self, picture, captions, text, given)
