"""A picture under construction: figures, boxes, arrows, words and lines, and how they change from
frame to frame.

A view draws on a ``Sheet`` and asks it for the ``Player``. An array with one row per frame becomes
a track; anything else stands still. On a *stage* a unit is about a pixel, and words scale with it.
"""

import reprlib
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
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
from bokeh.transform import linear_cmap

from cypresskit.draw import theme
from cypresskit.draw.element import STAR
from cypresskit.draw.player import Parts, Player, Track

#: What says where each kind of glyph is.
PLACES: dict[type[Glyph], tuple[str, ...]] = {
    Line: ("x", "y"),
    Rect: ("x", "y", "width", "height"),
    Scatter: ("x", "y"),
    Segment: ("x0", "y0", "x1", "y1"),
    Text: ("x", "y", "text"),
}


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

    def stage(self, label: str, width: float, height: float, most: float = 1.2) -> None:
        """A bare figure from (0, 0) at the upper left to (width, height). A unit is a pixel or so,
        at most ``most``.
        """
        fig = self.plot(label, (0, width), (height, 0), high=most * height)
        fig.styles = dict(fig.styles) | {"min-width": theme.LEGIBLE.format(width)}

    def plot(
        self, label: str, x: tuple[float, float], y: tuple[float, float], high: float = 0, **options
    ) -> Plot:
        """A figure without axes, which a screen reader calls ``label``: with equal units of x and
        y, y downwards if its range is; as high as the window allows, or ``high`` pixels at most.
        All is drawn on the latest figure.
        """
        shape = abs((x[1] - x[0]) / (y[1] - y[0]))
        most = f"{theme.ROOM} * {shape:.3f}" + (f", {high * shape:.0f}px" if high else "")
        bare = dict.fromkeys(
            ("background_fill_color", "border_fill_color", "outline_line_color", "toolbar_location")
        )
        fig = Plot(
            x_range=Range1d(*x),
            y_range=Range1d(*y),
            aspect_ratio=shape,
            sizing_mode="scale_width",
            min_border=0,
            styles={"max-width": f"max(340px, min({most}))"},
            stylesheets=[theme.PLOT_CSS],
            title=None,
            **bare,
            **options,
        )
        self.figures.append(fig)
        self.labels[fig.id] = label
        self.fig = fig
        return fig

    def source(self, name: str, moves: Sequence[str] = (), key=None, **columns) -> ColumnDataSource:
        """A data source called ``name``. Columns of shape (frames, cells) follow the frames, and
        those named in ``moves`` glide between them. ``key``: whole numbers by which a click chooses
        cells.
        """
        if key is not None:
            columns |= {"key": np.asarray(key), "lit": [0] * np.shape(key)[-1]}
        still = {column: value for column, value in columns.items() if np.ndim(value) < 2}
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
        self.tracks.append(Track(source, column, frames, **how))

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
        self,
        name: str,
        x,
        y,
        w,
        h,
        *,
        fill=None,
        ink: str = "",
        line: str = "",
        words=None,
        key=None,
        moves: Sequence[str] = (),
        alpha=1.0,
        tip: str = "@words",
        round: float = 0,
        **columns,
    ) -> ColumnDataSource:
        """Draw boxes, and return their source. Centres and sizes: a number for all, or arrays; of
        shape (frames, boxes), they follow the frames. ``fill``: a colour or (palette, index of each
        box), or else ``ink``, a theme colour; ``line``: the edge's. ``words``: the hover's text for
        each box or (texts, index in each frame), shown as ``tip`` says. ``key``: whole numbers by
        which a click chooses boxes.
        """
        given = {"x": x, "y": y, "w": w, "h": h}
        count = max((np.shape(value)[-1] for value in given.values() if np.ndim(value)), default=1)
        columns |= {k: np.asarray(v, np.float32) for k, v in given.items() if np.ndim(v)}
        columns |= {k: np.full(count, given[k], np.float32) for k in "xy" if not np.ndim(given[k])}
        wide, high = (given[k] if np.ndim(given[k]) == 0 else k for k in "wh")
        look = {
            "fill_alpha": alpha,
            "line_width": 1 if line else 0,
            "border_radius": round,
            "line_color": None,
        }
        if isinstance(fill, tuple):
            palette, columns["shade"] = fill[0], np.asarray(fill[1])
            fill = linear_cmap("shade", list(palette), -0.5, len(palette) - 0.5)
        if words is not None:
            columns["words"] = [""] * count if isinstance(words, tuple) else list(words)
        source = self.source(name, moves, key, **columns)
        if isinstance(words, tuple):
            self.track(source, "said", words[1], text="words", names=words[0])
        look |= {} if ink else {"fill_color": fill}
        box = self.glyph(Rect, "x", "y", wide, high, source=source, **look)
        self.inks(
            box, **({"fill_color": ink} if ink else {}), **({"line_color": line} if line else {})
        )
        if words is not None:
            self.fig.add_tools(HoverTool(renderers=[box], tooltips=tip, attachment="vertical"))
        if key is not None:
            frame = self.ring(
                source, wide, high, "lit", "ink", border_radius=round, level="annotation"
            )
            thin = isinstance(high, int | float) and high < 8  # a thick frame would hide its colour
            size = {"w": wide, "h": high, "on": 1 if thin else 3}
            self._pick(source, [frame], figure=self.fig, **size)
        return source

    def star(self, source: ColumnDataSource, mine, size: int = 20, y: str = "y", **where) -> None:
        """Put a star on those boxes of a source for which ``mine`` is true."""
        if np.any(mine):
            source.data["star"] = [
                STAR * bool(is_mine) for is_mine in np.ravel(mine)[: np.shape(mine)[-1]]
            ]
            if np.ndim(mine) == 2:
                self.track(source, "mine", mine, text="star", names=["", STAR])
            for ink, wide in (
                ("edge", round(1.35 * size)),
                ("star", size),
            ):  # an outline would cover a small one
                self.words("x", y, "star", ink, source=source, align="center", size=wide, **where)

    def _pick(self, source: ColumnDataSource, marks: Sequence[GlyphRenderer], **how) -> None:
        """Let a click choose parts of a source, or be told by ``marks`` what is chosen; until
        something is, they aren't painted.
        """
        for mark in marks:
            mark.visible = False
        self.picks.append({"source": source, "marks": list(marks)} | how)

    def ring(
        self, source: ColumnDataSource, w, h, width, ink: str = "wait", **look
    ) -> GlyphRenderer:
        """Draw frames around the boxes of a source; ``width`` is the line's, a number or a column,
        0 for no frame.
        """
        edge = self.glyph(
            Rect, "x", "y", w, h, source=source, fill_color=None, line_width=width, **look
        )
        return self.inks(edge, line_color=ink)

    def past(
        self, name: str, start, end, y, h, clocks: np.ndarray, to_x, ahead: str = "", **look
    ) -> None:
        """Draw bars from ``start`` to ``end`` in time. The part before each of the ``clocks``
        (frames,) is drawn in full, the rest faintly, in the colour ``ahead``, or not at all if that
        is "hidden". Clocks of shape (frames, bars) are each bar's own, NaN where it is absent.
        ``to_x`` maps time to x; the rest is as for ``boxes``.
        """
        start, end = np.asarray(start, float), np.asarray(end, float)
        # Words and keys are those of the whole bar, so that what is to come can be chosen, too.
        plain = {name: value for name, value in look.items() if name not in ("key", "words")}
        if ahead == "hidden":
            look, plain = plain | {"alpha": 0.0}, look
        now = clocks if clocks.ndim == 2 else clocks[:, np.newaxis]
        wide = np.fmax(to_x(np.clip(now, start, end)) - to_x(start) - 0.7, 0.001)
        # Where a width isn't above zero, Bokeh draws all boxes in wrong places.
        whole = np.maximum(to_x(end) - to_x(start) - 0.7, 0.001)
        there = 0 * clocks if clocks.ndim == 2 else 0
        look |= (
            {"ink": ahead}
            if ahead not in ("", "hidden")
            else {"alpha": 0.3 * look.get("alpha", 1.0)}
        )
        self.boxes(f"{name} to come", to_x(start) + whole / 2 + there, y, whole, h, **look)
        self.boxes(name, to_x(start) + 0 * now + wide / 2, y, wide, h, moves=("x", "w"), **plain)

    def arrows(
        self,
        name: str,
        x0,
        y0,
        x1,
        y1,
        *,
        ink: str = "ink",
        key=None,
        width: float = 2,
        size: float = 7,
    ) -> None:
        """Draw arrows; those at NaN are left out. With ``key``, each is seen only while its key is
        chosen.
        """
        ends = {
            k: np.asarray(v, np.float32) for k, v in zip(("x0", "y0", "x1", "y1"), (x0, y0, x1, y1))
        }
        source, seen = self.source(name, (), key, **ends), 1.0 if key is None else "lit"
        line = self.glyph(
            Segment, "x0", "y0", "x1", "y1", source=source, line_width=width, line_alpha=seen
        )
        tip = self.glyph(
            Scatter, "x1", "y1", source=source, size=size, line_alpha=seen, fill_alpha=seen
        )
        self.inks(line, line_color=ink)
        self.inks(tip, line_color=ink, fill_color=ink)
        if key is not None:
            self._pick(source, [line, tip], figure=None, on=1)

    def numbers(
        self,
        name: str,
        x,
        y,
        values: np.ndarray,
        *,
        ink: str = "ink",
        names: Sequence[str] = (),
        prefix: str = "\N{ZERO WIDTH SPACE}",
        **style,
    ) -> ColumnDataSource:
        """Write whole numbers at ``x``, ``y`` after a prefix, or their ``names``. ``values`` is
        (frames, numbers), or (frames,) for one number; negative ones are left blank.
        """
        values = values.reshape(len(values), -1)
        source = self.source(name, x=np.full(values.shape[1], x), y=np.full(values.shape[1], y))
        self.track(source, "value", values, text="text", prefix=prefix, names=names)
        self.words("x", "y", "text", ink, source=source, **style)
        return source

    def race(
        self,
        name: str,
        left: float,
        wide: float,
        so_far: np.ndarray,
        end: float,
        most: float,
        *,
        title: str,
        unit: str = "clock",
    ) -> None:
        """Draw one runner of a race on one clock, on a stage: its title, a bar that grows with the
        clocks ``so_far`` (frames,), and its finish.
        """
        self.words(left, 12, title, bold=True, size=16)
        self.boxes(f"road {name}", left + wide / 2, 34, wide, 10, ink="faint")
        x, clocks = np.maximum(wide * so_far / most, 0.01)[:, np.newaxis], so_far.astype(int)
        self.boxes(f"clock {name}", left + x / 2, 34, x, 10, ink="read", moves=("x", "w"))
        self.numbers(
            f"clocks {name}", left + wide, 12, clocks, prefix=f"{unit} ", align="right", size=14
        )
        done, align = np.where(clocks >= end, clocks, -1), "left" if end < most / 2 else "right"
        self.numbers(
            f"finish {name}",
            left + wide * end / most,
            49,
            done,
            prefix=f"done at {unit} ",
            ink="c",
            bold=True,
            align=align,
            size=13,
        )

    def words(
        self,
        x,
        y,
        text,
        ink: str = "ink",
        *,
        align="left",
        size: int = 12,
        bold: bool = False,
        fit: float = 0.0,
        **more,
    ):
        """Write text at points: one for all of them, or one for each; or columns of a ``source``,
        if that is given.
        """
        if "source" not in more:
            x, y, text = (part.tolist() for part in np.broadcast_arrays(*np.atleast_1d(x, y, text)))
        # Text that fits itself starts small: what a first, larger one leaves at the figure's edge
        # is never wiped off.
        staged = "min-width" in self.fig.styles
        style = {
            "text_baseline": "middle",
            "text_font_size": f"{8 if fit or staged else size}px",
            "text_align": align,
        }
        style |= {"text_font_style": "bold"} if bold else {}
        drawn = self.inks(self.glyph(Text, x, y, text, **style | more), text_color=ink)
        if staged or fit:
            self.inks.fit(self.fig, drawn, *((size, 2 * size) if staged else (fit,)))
        return drawn

    def rule(
        self, name: str, x: np.ndarray, y: float, high: float, wide: float = 2, **look
    ) -> None:
        """Draw a play head that can be dragged: an upright at ``x`` (frames,), or several, (frames,
        uprights), ``high`` pixels long and centred at ``y``.
        """
        source = self.boxes(
            name, x.reshape(len(x), -1), y, wide, high, moves=("x",), **look or {"ink": "ink"}
        )
        self.heads.append({"figure": self.fig, "source": source})

    def key(self, *things: tuple[str, str, str]) -> str:
        """A legend of (words, colour, look); a look is "box", "ring", "frame", "dim", "pale",
        "star" or a dash.
        """
        spans = []
        for words, colour, look in things:
            colour = f"var(--ck-{colour})" if colour in theme.TOKENS else colour
            mark = f'<span class="key {look}" style="color:{colour}"></span>'
            if look == "star":
                mark = f'<b class="star">{STAR}</b> '
            spans.append(f'<span class="keyed">{mark}{escape(words)}</span>')
        return " &ensp;".join(spans)

    def note(self, text: str) -> str:
        """A text below the picture, marked up as ``theme.html`` says."""
        return theme.html(text)

    def player(
        self,
        captions: Sequence[str],
        lines: Iterable[str] = (),
        side: Sequence[Plot | str] = (),
        **more,
    ) -> Player:
        """The finished picture: a ``Player`` of all figures that don't stand at its ``side``. Its
        text form is the title with ``lines`` below it.
        """
        picture = [fig for fig in self.figures if fig not in side]
        return Player(self, picture, captions, "\n".join([self.title, *lines]), side=side, **more)


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
            raise TypeError(f"{reprlib.repr(part)} can't be drawn: {what}")
    return parts


def together(scenes: Sequence[np.ndarray], empty=np.nan) -> np.ndarray:
    """Arrays (frames, things) of several scenes, one after the other, filled up to the most
    things.
    """
    most = max(part.shape[1] for part in scenes)
    return np.concatenate(
        [np.pad(p, ((0, 0), (0, most - p.shape[1])), constant_values=empty) for p in scenes]
    )
