"""A picture under construction: figures, coloured cells, outlines, words and lines, and how they change with the frame.

A view fills a ``Sheet`` and asks it for the ``Player``. An array given with one row per frame becomes a track; anything
else stands still. Cells have a *kind*, a number per frame into a list of (name, tint, mark): the tint is for the eye,
the mark is written into the cell, the name is in the hover, so that nothing is said by colour alone.
"""

from collections.abc import Sequence

import numpy as np
from bokeh.models import Column, ColumnDataSource, Div, HoverTool, LayoutDOM, Legend, Row
from bokeh.plotting import figure
from bokeh.transform import linear_cmap

from cypresskit.draw import theme
from cypresskit.draw.player import Player, Track

Kinds = Sequence[tuple[str, str, str]]  # name, tint (of theme.KINDS), mark


class Sheet:
    """See the module; ``tracks``, ``figures`` and ``inks`` are what a ``Player`` takes."""

    def __init__(self, title: str) -> None:
        self.title, self.inks = title, theme.Inks()
        self.tracks: list[Track] = []
        self.figures: list[figure] = []

    def plot(self, label: str, x: tuple[float, float], y: tuple[float, float], **options) -> figure:
        """A bare figure with x and y in the same unit; ``label`` is what a screen reader calls it."""
        self.figures.append(theme.plot(label, x, y, **options))
        return self.figures[-1]

    def chart(self, label: str, x_title: str, y_title: str, **options) -> figure:
        """A figure with axes."""
        self.figures.append(theme.chart(label, x_title, y_title, **options))
        return self.figures[-1]

    def source(self, name: str, **columns) -> ColumnDataSource:
        """A source called ``name``; columns of shape (frames, cells) follow the frames."""
        still = {key: value for key, value in columns.items() if np.ndim(value) < 2}
        source = ColumnDataSource(still, name=name)
        for key, value in columns.items():
            if np.ndim(value) == 2:
                self.tracks.append(Track(source, key, np.ascontiguousarray(value)))
                source.data[key] = value[0].copy()
        return source

    def cells(self, fig: figure, name: str, x, y, states: np.ndarray, kinds: Kinds, *, w=0.92, h=0.92, size: int = 11,
              words: Sequence[str] = (), fit: float = 0.0, more: dict | None = None) -> ColumnDataSource:  # fmt: skip
        """Boxes with centres ``x``, ``y``; ``states`` (frames, cells) uint8 are their kinds. ``words`` say in the hover
        what each is; with ``fit`` marks are this part of a unit high; ``more`` columns may hold ``w`` and ``h``."""
        words = list(words) or [""] * states.shape[1]
        source = self.source(name, x=x, y=y, words=words, **more or {})
        marks = [mark for *_, mark in kinds]
        few = ColumnDataSource({"x": [], "y": [], "mark": []}, name=f"marks of {name}") if any(marks) else None
        self.tracks.append(Track(source, "kind", states.astype(np.uint8), text="mark", names=marks, few=few))
        tints = [theme.KINDS[tint] for _, tint, _ in kinds]
        tints += tints[:1] * (len(tints) == 1)
        box = fig.rect("x", "y", w, h, source=source, fill_color=linear_cmap("kind", tints, -0.5, len(tints) - 0.5))
        fig.add_tools(HoverTool(renderers=[self.inks(box, line_color="line")], tooltips="@words @mark"))
        if few is not None:
            self.words(fig, "x", "y", "mark", source=few, align="center", size=size, fit=fit)
        return source

    def numbers(self, fig: figure, name: str, x, y, values: np.ndarray, *, ink: str = "ink",
                prefix: str = "\N{ZERO WIDTH SPACE}", **style) -> ColumnDataSource:  # fmt: skip
        """Whole numbers at ``x``, ``y`` after a prefix; ``values`` (frames, numbers); negative ones are left blank."""
        source = self.source(name, x=x, y=y)
        self.tracks.append(Track(source, "value", values.astype(np.int32), text="text", prefix=prefix))
        self.words(fig, "x", "y", "text", ink, source=source, **style)
        return source

    def levels(self, fig: figure, name: str, x, y, shares: np.ndarray, *, w=0.92, h=0.92, words: Sequence[str] = (),
               fit: float = 0.0) -> ColumnDataSource:  # fmt: skip
        """Boxes lit by ``shares`` (frames, cells) of 1, each with its per cent written in; NaN leaves one blank."""
        source = self.source(name, x=x, y=y, words=list(words) or [""] * shares.shape[1])
        percent = np.nan_to_num(np.round(100 * shares), nan=-1).astype(np.int32)
        self.tracks.append(Track(source, "percent", percent, text="text", prefix="\N{ZERO WIDTH SPACE}"))
        fill = linear_cmap("percent", theme.LEVELS, 0, 100)
        box = fig.rect("x", "y", w, h, source=source, fill_color=fill)
        fig.add_tools(HoverTool(renderers=[self.inks(box, line_color="line")], tooltips="@words: @percent %"))
        self.words(fig, "x", "y", "text", source=source, align="center", size=10, fit=fit)
        return source

    def outline(self, fig: figure, name: str, x, y, w, h, ink: str = "wrote", dash: str = "solid") -> ColumnDataSource:
        """Frames round places; those at NaN are not there. x, y, w, h as for ``source``."""
        columns = {key: np.asarray(value, np.float32) for key, value in zip("xywh", (x, y, w, h))}
        source = self.source(name, **columns)
        box = fig.rect("x", "y", "w", "h", source=source, fill_color=None, line_width=3, line_dash=dash)
        self.inks(box, line_color=ink)
        return source

    def words(self, fig: figure, x, y, text, ink: str = "ink", *, align="left", size: int = 12, bold: bool = False,
              fit: float = 0.0, **more):  # fmt: skip
        """Text at points."""
        # Text that fits itself starts small: what a first, larger one leaves at the figure's edge is never wiped off.
        style = {"text_baseline": "middle", "text_font_size": f"{8 if fit else size}px", "text_align": align}
        style |= {"text_font_style": "bold"} if bold else {}
        drawn = self.inks(fig.text(x, y, text=text, **style | more), text_color=ink)
        if fit:
            self.inks.fit(fig, drawn, fit)
        return drawn

    def line(self, fig: figure, x, y, number: int, *, shapes: bool = False, **more) -> list:
        """A line in the look of series ``number``: a colour, a dash, and with ``shapes`` a shape at each point."""
        ink = theme.LINES[number % len(theme.LINES)]
        dash = theme.DASHES[number % len(theme.DASHES)]
        drawn = [self.inks(fig.line(x, y, line_width=2, line_dash=dash, **more), line_color=ink)]
        if shapes:
            drawn.append(self.points(fig, x, y, number))
        return drawn

    def points(self, fig: figure, x, y, number: int, *, hollow: bool = False, size: int = 9, **more):
        """Points in the colour and shape of series ``number``."""
        ink, shape = (names[number % len(names)] for names in (theme.LINES, theme.SHAPES))
        drawn = fig.scatter(x, y, marker=shape, size=size, line_width=2, **more)
        if hollow:
            drawn.glyph.fill_color = None
            return self.inks(drawn, line_color=ink)
        return self.inks(drawn, line_color=ink, fill_color=ink)

    def head(self, fig: figure, x: np.ndarray, bottom: float, top: float, name: str = "head") -> ColumnDataSource:
        """A play head: an upright line at ``x`` (frames,)."""
        source = self.source(name, x=np.asarray(x, np.float64)[:, np.newaxis], y0=[bottom], y1=[top])
        line = fig.segment("x", "y0", "x", "y1", source=source, line_width=2, line_dash="dashed")
        self.inks(line, line_color="ink")
        return source

    def series(self, fig: figure, items: Sequence[tuple[str, list]], place: str = "above", columns: int = 3) -> None:
        """A chart's legend: names and what is drawn for each."""
        legend = Legend(
            items=items, ncols=columns, background_fill_color=None, border_line_color=None, padding=2, spacing=2,
            margin=2, label_text_font_size="12px", label_height=16, glyph_height=16,
        )  # fmt: skip
        self.inks.plain(legend, label_text_color="ink")
        fig.add_layout(legend, place)

    def legend(self, kinds: Kinds) -> Div:
        """What the cells' kinds mean."""
        words = " &ensp;".join(
            f'<span style="white-space:nowrap"><span class="key none" style="background:{theme.KINDS[tint]}">'
            f"<span>{mark}</span></span>{name}</span>"
            for name, tint, mark in kinds
        )
        return self.note(words)

    def note(self, html: str) -> Div:
        """Words below a picture."""
        return Div(text=html, stylesheets=[theme.TEXT_CSS], sizing_mode="stretch_width")

    def player(self, picture: Sequence[LayoutDOM], captions: Sequence[str], text: str, *, side=(), **more) -> Player:
        """The finished picture: ``picture`` one below the other, ``side`` beside it."""
        layout = Column(*picture, sizing_mode="stretch_width")
        return Player(
            self.title,
            layout,
            list(side),
            captions,
            self.tracks,
            figures=self.figures,
            text=text,
            inks=self.inks,
            **more,
        )


def beside(*parts: LayoutDOM, room: int = 300) -> Row:
    """Parts side by side as long as each finds ``room`` pixels, else one below the other."""
    for part in parts:
        part.styles = dict(part.styles) | {"flex": f"1 1 {room}px", "min-width": "0"}
    return Row(
        *parts, sizing_mode="stretch_width", styles={"flex-wrap": "wrap", "gap": "4px 16px", "align-items": "start"}
    )


def held(frames: np.ndarray, count: int) -> np.ndarray:
    """An array with a row per frame, made ``count`` rows long by holding its last."""
    return np.concatenate([frames, np.repeat(frames[-1:], count - len(frames), axis=0)])
