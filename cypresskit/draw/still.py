"""A player's frame as SVG: a picture for places where no script may run, such as untrusted
notebooks, web pages that show notebooks, and print.

It is drawn from the same figures and sources as the moving picture. Left out: widgets.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import ColumnDataSource

from cypresskit.draw import theme

WIDTH, HEAD = 1100, 46  # of the whole picture, and of title and caption, in pixels
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

Data = Mapping[str, Mapping[str, Sequence]]  # what a source's columns hold, by the source's id


class _Drawing:
    """A figure placed in the picture: maps its coordinates to pixels, and a glyph's columns to
    numbers.
    """

    def __init__(self, fig, at: tuple[float, float], data: Data, inks: theme.Inks) -> None:
        x, y = fig.x_range, fig.y_range  # y goes down
        self.unit = min(WIDTH / (x.end - x.start), theme.HIGH / (y.start - y.end))
        self.wide, self.high = self.unit * (x.end - x.start), self.unit * (y.start - y.end)
        self.data, self.corner = data, (at[0] - self.unit * x.start, at[1] - self.unit * y.end)
        self.inks = {(model.id, prop): f"var(--{token})" for model, prop, token in inks.pairs}
        self.fits = {glyph.id: (part, most) for _, glyph, part, most in inks.fitted}

    def x(self, value):
        return self.corner[0] + self.unit * np.asarray(value, float)

    def y(self, value):
        return self.corner[1] + self.unit * np.asarray(value, float)

    def column(self, renderer, name: str, count: int | None = None):
        """A glyph's property, one value for every point."""
        spec = getattr(renderer.glyph, name, None)
        data = dict(renderer.data_source.data) | dict(self.data.get(renderer.data_source.id, {}))
        if isinstance(spec, Field) or (isinstance(spec, str) and spec in data):
            transform: Any = spec.transform if isinstance(spec, Field) else None
            values = data[spec.field if isinstance(spec, Field) else spec]
            if not hasattr(transform, "palette"):
                return values
            part = (np.nan_to_num(np.asarray(values, float)) - transform.low) / (
                transform.high - transform.low
            )
            shade = np.clip(part * len(transform.palette), 0, len(transform.palette) - 1).astype(
                int
            )
            return [transform.palette[i] for i in shade]
        spec = spec.value if isinstance(spec, Value) else spec
        return [spec] * count if count is not None else spec

    def colour(self, renderer, name: str, count: int) -> list[str]:
        token = self.inks.get((renderer.glyph.id, name))
        return (
            [token] * count
            if token
            else [str(c or "none") for c in self.column(renderer, name, count)]
        )


def _styles(d: _Drawing, r, n: int) -> Iterator[str]:
    """SVG stroke and fill of each of a glyph's n points; "" for a point that can't be seen."""
    columns = [d.column(r, name, n) for name in ("line_width", "line_alpha", "fill_alpha")]
    dash = (
        r.glyph.line_dash
    )  # numbers: of pixels that are drawn, and that are not; a rectangle keeps the name
    dash = [6] if dash == "dashed" else dash
    dashed = f' stroke-dasharray="{",".join(map(str, dash))}"' if dash else ""
    colours = d.colour(r, "line_color", n), d.colour(r, "fill_color", n)
    for stroke, fill, width, alpha, clear in zip(*colours, *columns):
        drawn = stroke != "none" and width * alpha
        edge = (
            f' stroke="{stroke}" stroke-width="{width:g}" stroke-opacity="{alpha:g}"{dashed}'
            if drawn
            else ""
        )
        inside = f'fill="{fill}" fill-opacity="{clear:g}"' if fill != "none" else 'fill="none"'
        yield inside + edge if drawn or fill != "none" else ""


def _glyph(d: _Drawing, r) -> Iterator[str]:
    kind = type(r.glyph).__name__
    count = np.size(d.column(r, "x0" if kind == "Segment" else "x"))

    def get(*names: str) -> list[np.ndarray]:
        return [np.asarray(d.column(r, name, count), float) for name in names]

    if kind == "Text":
        yield from _texts(d, r, count)
    elif kind == "Line":
        points = zip(*(np.atleast_1d(place) for place in (d.x(get("x")[0]), d.y(get("y")[0]))))
        path = "L".join(f"{a:.1f} {b:.1f}" for a, b in points if np.isfinite([a, b]).all())
        yield f'<path d="M{path}" {next(_styles(d, r, 1))}/>' if path else ""
    elif kind == "Scatter":
        shape = SHAPES[r.glyph.marker if isinstance(r.glyph.marker, str) else "circle"]
        for x, y, half, style in zip(
            *_placed(d, get("x", "y")), get("size")[0] / 2, _styles(d, r, count)
        ):
            if np.isfinite([x, y]).all() and style:
                where = f'transform="translate({x:.1f} {y:.1f}) scale({half:g})"'
                yield f'<path d="{shape}" {where} vector-effect="non-scaling-stroke" {style}/>'
    elif kind in ("Rect", "Segment"):
        ends = (
            get("x0", "y0", "x1", "y1")
            if kind == "Segment"
            else _corners(*get("x", "y", "width", "height"))
        )
        form = (
            "M{:.1f} {:.1f}L{:.1f} {:.1f}"
            if kind == "Segment"
            else "M{0:.1f} {1:.1f}H{2:.1f}V{3:.1f}H{0:.1f}z"
        )
        alike: dict[str, list[str]] = {}  # what looks alike is one path: a tenth of the text
        for *place, style in zip(*_placed(d, ends), _styles(d, r, count)):
            if np.isfinite(place).all() and style:
                alike.setdefault(style, []).append(form.format(*place))
        yield from (f'<path d="{"".join(parts)}" {style}/>' for style, parts in alike.items())


def _placed(d: _Drawing, places: Sequence) -> list:
    """Coordinates (x, y, x, y) in pixels."""
    return [(d.y if n % 2 else d.x)(place) for n, place in enumerate(places)]


def _corners(x, y, w, h) -> tuple:
    return x - w / 2, y - h / 2, x + w / 2, y + h / 2


def _texts(d: _Drawing, r, count: int) -> Iterator[str]:
    fit = d.fits.get(r.glyph.id)
    size = (
        min(fit[1], fit[0] * d.unit)
        if fit
        else float(str(d.column(r, "text_font_size")).removesuffix("px"))
    )
    columns = [d.column(r, name, count) for name in ("text", "text_align", "x_offset", "y_offset")]
    bold = ' font-weight="bold"' if r.glyph.text_font_style == "bold" else ""
    base = BASES.get(str(d.column(r, "text_baseline")), 0) * size
    place = d.x(d.column(r, "x", count)), d.y(d.column(r, "y", count))
    for x, y, text, align, dx, dy, ink in zip(*place, *columns, d.colour(r, "text_color", count)):
        if str(text).strip("\N{ZERO WIDTH SPACE} ") and np.isfinite([x, y]).all():
            yield _text(
                x + dx, y + dy + base, text, size, ink, f'text-anchor="{ANCHORS[align]}"{bold}'
            )


def _text(
    x: float, y: float, text: str, size: float, ink: str = "var(--ink)", more: str = ""
) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" fill="{ink}" font-size="{size:.1f}"'
        f" {more}>{theme.escaped(str(text))}</text>"
    )


def svg(title: str, caption: str, figures: Sequence, data: Data, inks: theme.Inks) -> str:
    """``figures`` as an SVG picture, side by side where there is room, with title and caption.
    ``data``: columns of sources at the frame shown, where they differ from what the sources
    hold.
    """
    plain = caption.replace("**", "").replace("`", "").split("\n")[0]
    parts = [
        _text(4, 18, title, 15, more='font-weight="bold"'),
        _text(4, 37, plain, 12, "var(--soft)"),
    ]
    left, top, below = 0.0, float(HEAD), float(HEAD)
    for fig in figures:
        drawing = _Drawing(fig, (left, top), data, inks)
        if left and left + drawing.wide > WIDTH:  # no room beside the last
            left, top = 0.0, below
            drawing = _Drawing(fig, (left, top), data, inks)
        for renderer in fig.renderers:
            if isinstance(renderer.data_source, ColumnDataSource):
                parts += _glyph(drawing, renderer)
        left, below = left + drawing.wide + GAP, max(below, top + drawing.high + GAP)
    colours = [
        ";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {below:.0f}" width="{WIDTH}"'
        ' font-family="sans-serif"'
        f' role="img"><title>{theme.escaped(title)}</title>'
        f"<style>svg{{{colours[0]};background:#fff}}"
        f"@media(prefers-color-scheme:dark){{svg{{{colours[1]};background:#17171b}}}}</style>{''.join(parts)}</svg>"
    )
