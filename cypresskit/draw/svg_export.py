"""Export a player's frame as SVG, for places where no script runs: untrusted notebooks and print.

It is drawn from the same figures and sources as the moving picture: stages, and charts with Bokeh's
axes, grid and legend. Widgets aren't drawn.
"""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import (
    ColumnDataSource,
    GlyphRenderer,
    Grid,
    Legend,
    Line,
    LinearAxis,
    LogScale,
    Plot,
    Range1d,
    Scale,
)

from cypresskit.draw import svg, theme
from cypresskit.draw.theme_colors import ThemeColors

WIDTH, HEAD = 1100, 46  # pixels: the picture's width, the height of title and a line of caption
LINE, LETTERS = 16, 160  # pixels of a further line of caption, and the letters that fit into one
GAP = 8  # between two figures
SHAPES = {
    "circle": "M-1 0a1 1 0 1 0 2 0a1 1 0 1 0-2 0z",
    "square": "M-1-1h2v2h-2z",
    "triangle": "M0-1L1 1h-2z",
    "inverted_triangle": "M0 1L1-1h-2z",
    "diamond": "M0-1.3L1 0L0 1.3L-1 0z",
    "x": "M-1-1L1 1M1-1L-1 1",
    "plus": "M-1 0h2M0-1v2",
}
ANCHORS = {"left": "start", "right": "end", "center": "middle"}
BASES = {"middle": 0.36, "top": 0.8, "bottom": -0.2}
CENTERED, RIGHT = 'text-anchor="middle"', 'text-anchor="end"'
FONT_SIZE = 12  # pixels, in charts
LEGEND, SAMPLE = 62, 20  # pixels: from the axis to a legend's first row, and a sample's width

Data = Mapping[str, Mapping[str, Sequence]]  # columns of sources, by the source's id


class _Drawing:
    """A figure placed in the picture.

    It maps the figure's coordinates to pixels and a glyph's columns to values. ``corner`` is its
    upper left corner; ``unit`` is the size in pixels of a stage's unit, or of a chart's pixel.
    """

    def __init__(
        self, fig: Plot, corner: tuple[float, float], unit: float, data: Data, colors: ThemeColors
    ) -> None:
        self.fig, self.unit, self.data = fig, unit, data
        self.width, self.height = (unit * side for side in _natural_size(fig))
        left, top = corner
        self.left = left + (fig.min_border_left or 0)
        self.right = left + self.width - (fig.min_border_right or 0)
        self.top = top + (fig.min_border_top or 0)
        self.foot = top + self.height - (fig.min_border_bottom or 0)
        self.colors = {
            (model.id, prop): theme.css(color, "--")
            for model, prop, color in colors.pairs
            if isinstance(color, str)
        }
        self.palettes = {
            mapper.id: [theme.css(tint, "--") for tint in tints]
            for mapper, _, tints in colors.pairs
            if not isinstance(tints, str)
        }
        self.fits = {glyph.id: (part, most) for _, glyph, part, most in colors.fitted}

    def x(self, value) -> np.ndarray:
        part = _part(self.fig.x_scale, self.fig.x_range, value)
        return self.left + (self.right - self.left) * part

    def y(self, value) -> np.ndarray:
        part = _part(self.fig.y_scale, self.fig.y_range, value)
        return self.foot + (self.top - self.foot) * part

    def column(self, renderer: GlyphRenderer, name: str, count: int | None = None):
        """Return a glyph's property: a value per point, or ``count`` times the same one."""
        spec = getattr(renderer.glyph, name, None)
        data = dict(renderer.data_source.data) | dict(self.data.get(renderer.data_source.id, {}))
        if isinstance(spec, Field):
            return self._shades(spec.transform, data[spec.field])
        if isinstance(spec, str) and spec in data:
            return data[spec]
        value = spec.value if isinstance(spec, Value) else spec
        return value if count is None else [value] * count

    def numbers(self, renderer: GlyphRenderer, count: int, *names: str) -> list[np.ndarray]:
        """Return some of a glyph's properties as arrays, one number per point."""
        return [np.asarray(self.column(renderer, name, count), float) for name in names]

    def color(self, renderer: GlyphRenderer, name: str, count: int) -> list[str]:
        token = self.colors.get((renderer.glyph.id, name))
        if token:
            return [token] * count
        return [str(color or "none") for color in self.column(renderer, name, count)]

    def _shades(self, transform: Any, values: Sequence) -> Sequence:
        """Return a column's values, or the colors that a palette gives them."""
        if not hasattr(transform, "palette"):
            return values
        palette = self.palettes.get(transform.id, transform.palette)
        low, high = transform.low, transform.high
        part = (np.nan_to_num(np.asarray(values, float)) - low) / (high - low)
        shade = np.clip(part * len(palette), 0, len(palette) - 1).astype(int)
        return [palette[number] for number in shade]


def _natural_size(fig: Plot) -> tuple[float, float]:
    """Return width and height: of a chart in pixels, of a stage in its units."""
    if _is_chart(fig):
        return fig.width, fig.height
    return fig.x_range.end - fig.x_range.start, fig.y_range.start - fig.y_range.end


def _is_chart(fig: Plot) -> bool:
    """Return whether a figure has axes."""
    return bool(fig.below)


def _part(scale: Scale, ends: Range1d, value) -> np.ndarray:
    """Return where numbers are between the ends of an axis, from 0 to 1."""
    start = np.asarray(ends.start)
    end = np.asarray(ends.end)
    number = np.asarray(value, float)
    if isinstance(scale, LogScale):
        with np.errstate(divide="ignore", invalid="ignore"):
            start, end, number = np.log10(start), np.log10(end), np.log10(number)
    return (number - start) / (end - start)


# -- glyphs


def _styles(d: _Drawing, renderer: GlyphRenderer, count: int) -> Iterator[str]:
    """Yield the SVG stroke and fill of each point of a glyph; "" for invisible points."""
    dashed = _dashed(renderer.glyph.line_dash)
    strokes = d.color(renderer, "line_color", count)
    fills = d.color(renderer, "fill_color", count)
    looks = (d.column(renderer, n, count) for n in ("line_width", "line_alpha", "fill_alpha"))
    for stroke, fill, width, line_alpha, fill_alpha in zip(strokes, fills, *looks):
        is_drawn = stroke != "none" and width * line_alpha
        edge = (
            f' stroke="{stroke}" stroke-width="{width:g}" stroke-opacity="{line_alpha:g}"{dashed}'
        )
        inside = 'fill="none"' if fill == "none" else f'fill="{fill}" fill-opacity="{fill_alpha:g}"'
        if is_drawn:
            yield inside + edge
        else:
            yield "" if fill == "none" else inside


def _dashed(dash: Any) -> str:
    """Return a dash pattern as SVG. Rectangles keep the pattern's name."""
    lengths = [6] if dash == "dashed" else dash
    return f' stroke-dasharray="{",".join(map(str, lengths))}"' if lengths else ""


def _glyph(d: _Drawing, renderer: GlyphRenderer) -> Iterable[str]:
    """Draw a glyph."""
    painters = {
        "Line": _line,
        "Rect": _boxes,
        "Scatter": _marks,
        "Segment": _segments,
        "Text": _texts,
    }
    return painters[type(renderer.glyph).__name__](d, renderer)


def _line(d: _Drawing, renderer: GlyphRenderer) -> Iterator[str]:
    x, y = (np.asarray(d.column(renderer, side), float) for side in "xy")
    points = zip(np.atleast_1d(d.x(x)), np.atleast_1d(d.y(y)))
    path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points if np.isfinite([a, b]).all())
    if path:
        yield f'<path d="M{path}" {next(_styles(d, renderer, 1))}/>'


def _marks(d: _Drawing, renderer: GlyphRenderer) -> Iterator[str]:
    count = np.size(d.column(renderer, "x"))
    x, y, size = d.numbers(renderer, count, "x", "y", "size")
    for across, down, half, style in zip(d.x(x), d.y(y), size / 2, _styles(d, renderer, count)):
        if np.isfinite([across, down]).all() and style:
            yield _mark(renderer, across, down, half, style)


def _mark(renderer: GlyphRenderer, x: float, y: float, half: float, style: str) -> str:
    marker = renderer.glyph.marker
    shape = SHAPES[marker if isinstance(marker, str) else "circle"]
    place = f'transform="translate({x:.1f} {y:.1f}) scale({half:g})"'
    return f'<path d="{shape}" {place} vector-effect="non-scaling-stroke" {style}/>'


def _boxes(d: _Drawing, renderer: GlyphRenderer) -> Iterator[str]:
    count = np.size(d.column(renderer, "x"))
    x, y, width, height = d.numbers(renderer, count, "x", "y", "width", "height")
    ends = x - width / 2, y - height / 2, x + width / 2, y + height / 2
    return _paths(d, renderer, ends, _box_path)


def _box_path(x0: float, y0: float, x1: float, y1: float) -> str:
    """Return a rectangle as a short path: a picture of the chip has thousands."""
    return f"M{_short(x0)} {_short(y0)}h{_short(x1 - x0)}v{_short(y1 - y0)}h{_short(x0 - x1)}z"


def _line_path(x0: float, y0: float, x1: float, y1: float) -> str:
    return f"M{_short(x0)} {_short(y0)}L{_short(x1)} {_short(y1)}"


def _short(number: float) -> str:
    """Return a number with at most one decimal."""
    return f"{number:.1f}".removesuffix(".0")


def _segments(d: _Drawing, renderer: GlyphRenderer) -> Iterator[str]:
    count = np.size(d.column(renderer, "x0"))
    ends = d.numbers(renderer, count, "x0", "y0", "x1", "y1")
    return _paths(d, renderer, ends, _line_path)


def _paths(
    d: _Drawing,
    renderer: GlyphRenderer,
    ends: Sequence[np.ndarray],
    form: Callable[..., str],
) -> Iterator[str]:
    """Yield shapes between ``ends`` (x, y, x, y). Equal styles share a path."""
    x0, y0, x1, y1 = ends
    alike: dict[str, list[str]] = {}
    for *place, style in zip(d.x(x0), d.y(y0), d.x(x1), d.y(y1), _styles(d, renderer, len(x0))):
        if np.isfinite(place).all() and style:
            alike.setdefault(style, []).append(form(*place))
    yield from (f'<path d="{"".join(parts)}" {style}/>' for style, parts in alike.items())


def _texts(d: _Drawing, renderer: GlyphRenderer) -> Iterator[str]:
    glyph = renderer.glyph
    count = np.size(d.column(renderer, "x"))
    size = float(str(d.column(renderer, "text_font_size")).removesuffix("px"))
    if glyph.id in d.fits:
        part, most = d.fits[glyph.id]
        size = min(most, part * d.unit)
    bold = ' font-weight="bold"' if glyph.text_font_style == "bold" else ""
    base = BASES.get(str(d.column(renderer, "text_baseline")), 0) * size
    columns = (d.column(renderer, name, count) for name in ("text", "text_align"))
    places = d.x(d.column(renderer, "x", count)), d.y(d.column(renderer, "y", count))
    colors = d.color(renderer, "text_color", count)
    for x, y, text, align, color in zip(*places, *columns, colors):
        if str(text).strip("\N{ZERO WIDTH SPACE} ") and np.isfinite([x, y]).all():
            anchor = f'text-anchor="{ANCHORS[align]}"{bold}'
            yield _text(x, y + base, text, size, color, anchor)


def _text(
    x: float, y: float, text: str, size: float, color: str = "var(--ink)", more: str = ""
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{color}" font-size="{size:.1f}"'
        f" {more}>{theme.escape_html(str(text))}</text>"
    )


# -- charts


def _apparatus(d: _Drawing) -> Iterator[str]:
    """Draw a chart's grid, axes and legend."""
    for part in d.fig.center:
        yield _grid(d, part)
    corner = f"M{d.left:.1f} {d.top:.1f}V{d.foot:.1f}H{d.right:.1f}"
    stroke = d.colors[d.fig.below[0].id, "axis_line_color"]
    yield f'<path d="{corner}" stroke="{stroke}" fill="none"/>'
    for part in d.fig.below:
        yield from _x_axis(d, part) if isinstance(part, LinearAxis) else _legend(d, part)
    for part in d.fig.left:
        yield from _y_axis(d, part)


def _grid(d: _Drawing, grid: Grid) -> str:
    ticks = grid.ticker.ticks
    if grid.dimension == 0:
        lines = [f"M{x:.1f} {d.top:.1f}V{d.foot:.1f}" for x in d.x(ticks)]
    else:
        lines = [f"M{d.left:.1f} {y:.1f}H{d.right:.1f}" for y in d.y(ticks)]
    color = d.colors[grid.id, "grid_line_color"]
    alpha = grid.grid_line_alpha
    return f'<path d="{"".join(lines)}" stroke="{color}" stroke-opacity="{alpha:g}" fill="none"/>'


def _x_axis(d: _Drawing, axis: LinearAxis) -> Iterator[str]:
    ticks = axis.ticker.ticks
    for tick, x in zip(ticks, d.x(ticks)):
        yield _text(x, d.foot + 18, axis.major_label_overrides[tick], FONT_SIZE, more=CENTERED)
    color = d.colors[axis.id, "axis_label_text_color"]
    yield _text((d.left + d.right) / 2, d.foot + 38, axis.axis_label, FONT_SIZE, color, CENTERED)


def _y_axis(d: _Drawing, axis: LinearAxis) -> Iterator[str]:
    ticks = axis.ticker.ticks
    for tick, y in zip(ticks, d.y(ticks)):
        yield _text(d.left - 9, y + 5, axis.major_label_overrides[tick], FONT_SIZE, more=RIGHT)
    x = d.left - 48
    y = (d.top + d.foot) / 2
    color = d.colors[axis.id, "axis_label_text_color"]
    turned = f'{CENTERED} transform="rotate(-90 {x:.1f} {y:.1f})"'
    yield _text(x, y, axis.axis_label, FONT_SIZE, color, turned)


def _legend(d: _Drawing, legend: Legend) -> Iterator[str]:
    longest = max(len(item.label.value) for item in legend.items)
    for number, item in enumerate(legend.items):
        row, column = divmod(number, legend.ncols)
        x = d.left + column * (theme.KEY + theme.LETTER * longest)
        y = d.foot + LEGEND + theme.ENTRY * row
        for renderer in item.renderers:
            yield _sample(d, renderer, x, y)
        yield _text(x + SAMPLE + 5, y + 5, item.label.value, FONT_SIZE)


def _sample(d: _Drawing, renderer: GlyphRenderer, x: float, y: float) -> str:
    """Draw the sample beside a name in a legend: a piece of its line, or a mark."""
    style = next(_styles(d, renderer, 1))
    if isinstance(renderer.glyph, Line):
        return f'<path d="M{x:.1f} {y:.1f}h{SAMPLE}" {style}/>'
    return _mark(renderer, x + SAMPLE / 2, y, 4.5, style)


# -- the whole


def _placed(
    figures: Sequence[Plot], data: Data, colors: ThemeColors, top: float
) -> Iterator[_Drawing]:
    """Place figures side by side where they fit, from ``top`` on."""
    left = 0.0
    below = top
    for fig in figures:
        width, height = _natural_size(fig)
        unit = 1.0 if _is_chart(fig) else min(WIDTH / width, theme.HIGH / height)
        if left and left + unit * width > WIDTH + 0.5:
            left, top = 0.0, below
        drawing = _Drawing(fig, (left, top), unit, data, colors)
        yield drawing
        left += drawing.width + GAP
        below = max(below, top + drawing.height + GAP)


def _figure(d: _Drawing) -> Iterator[str]:
    """Draw a figure. A chart's lines are clipped at its axes."""
    glyphs = "".join(
        part
        for renderer in d.fig.renderers
        if isinstance(renderer.data_source, ColumnDataSource)
        for part in _glyph(d, renderer)
    )
    if not _is_chart(d.fig):
        yield glyphs
        return
    yield from _apparatus(d)
    width, height = d.right - d.left, d.foot - d.top
    frame = f"{d.left:.1f} {d.top:.1f} {width:.1f} {height:.1f}"
    place = f'x="{d.left:.1f}" y="{d.top:.1f}" width="{width:.1f}" height="{height:.1f}"'
    yield f'<svg {place} viewBox="{frame}">{glyphs}</svg>'


def render(
    title: str, caption: str, figures: Sequence[Plot], data: Data, colors: ThemeColors
) -> str:
    """Return figures as SVG, with title and caption.

    ``data`` has the columns that differ from the sources in the frame that is shown.
    """
    lines = textwrap.wrap(
        theme.unmarked(caption).split("\n")[0], LETTERS, break_on_hyphens=False
    ) or [""]
    parts = [_text(4, 18, title, 15, more='font-weight="bold"')]
    parts += [_text(4, 37 + LINE * n, line, 12, "var(--soft)") for n, line in enumerate(lines)]
    below = 0.0
    for drawing in _placed(figures, data, colors, HEAD + LINE * (len(lines) - 1.0)):
        parts += _figure(drawing)
        below = max(below, drawing.foot + (drawing.fig.min_border_bottom or 0) + GAP)
    return svg.picture(parts, (WIDTH, round(below)), title=title)
