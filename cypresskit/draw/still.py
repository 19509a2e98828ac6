"""A player's frame as SVG, so that there is a picture wherever no script may run: in an untrusted notebook, on a web
page that shows notebooks, in print.

It is drawn from the same figures and sources as the moving picture. Left out: what widgets show.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import ColumnDataSource, Legend

from cypresskit.draw import theme

WIDTH, HEAD = 1100, 46  # of the whole picture, and of title and caption, in pixels
AROUND = (150, 12, 60, 8)  # room left, right, below and above of a figure with axes
DASHES = {"dashed": "6", "dotted": "2,4", "dotdash": "2,4,6,4", "dashdot": "6,4,2,4"}
SHAPES = {"square": "M-1-1h2v2h-2z", "triangle": "M0-1L1 1h-2z", "inverted_triangle": "M0 1L1-1h-2z",
          "diamond": "M0-1.3L1 0L0 1.3L-1 0z", "x": "M-1-1L1 1M1-1L-1 1", "plus": "M-1 0h2M0-1v2",
          "star": "M0-1L.3-.3H1L.4.2L.6 1L0 .5L-.6 1L-.4.2L-1-.3H-.3z"}  # fmt: skip
ANCHORS = {"left": "start", "right": "end", "center": "middle"}
BASES = {"middle": 0.36, "top": 0.8, "bottom": -0.2}

Data = Mapping[str, Mapping[str, Sequence]]  # what a source's columns hold, by the source's id


class _Drawing:
    """A figure's place in the picture: from its coordinates to pixels, and a glyph's columns as numbers."""

    def __init__(self, fig, top: float, data: Data, inks: theme.Inks) -> None:
        self.fig, self.data = fig, data
        x, y = fig.x_range, fig.y_range
        self.bare = not fig.xaxis[0].visible
        shape = abs((x.end - x.start) / (y.end - y.start))
        left, right, below, above = (0, 0, 0, 0) if self.bare else AROUND
        self.logs = [type(scale).__name__ == "LogScale" for scale in (fig.x_scale, fig.y_scale)]
        high = min(WIDTH / shape, theme.HIGH) if self.bare else min(fig.height or 300, 480)
        wide = high * shape if self.bare else WIDTH
        self.box = left, top + above, wide - left - right, high - below - above
        self.top, self.high = top, high
        self.unit = self.box[2] / abs(x.end - x.start)
        self.inks = {(model.id, prop): f"var(--{token})" for model, prop, token in inks.pairs}
        self.fits = {glyph.id: (part, most) for _, glyph, part, most in inks.fitted}

    def x(self, value):
        return self.box[0] + self.box[2] * self._part(value, self.fig.x_range, self.logs[0])

    def y(self, value):
        return self.box[1] + self.box[3] * (1 - self._part(value, self.fig.y_range, self.logs[1]))

    @staticmethod
    def _part(value, range_, log: bool):
        value, ends = np.asarray(value, float), np.array([range_.start, range_.end], float)
        if log:
            value, ends = np.log10(np.maximum(value, 1e-9)), np.log10(ends)
        return (value - ends[0]) / (ends[1] - ends[0])

    def column(self, renderer, name: str, count: int | None = None):
        """A property of a glyph for every point."""
        spec = getattr(renderer.glyph, name)
        data = dict(renderer.data_source.data) | dict(self.data.get(renderer.data_source.id, {}))
        if isinstance(spec, Value):
            spec = spec.value
        elif isinstance(spec, Field) or (isinstance(spec, str) and spec in data):
            transform = spec.transform if isinstance(spec, Field) else None
            values = data[spec.field if isinstance(spec, Field) else spec]
            if transform is not None and hasattr(transform, "palette"):
                part = (np.nan_to_num(np.asarray(values, float)) - transform.low) / (transform.high - transform.low)
                at = np.clip(part * len(transform.palette), 0, len(transform.palette) - 1).astype(int)
                return [transform.palette[i] for i in at]
            return values
        return [spec] * count if count is not None else spec

    def colour(self, renderer, name: str, count: int) -> list[str]:
        token = self.inks.get((renderer.glyph.id, name))
        return [token] * count if token else [str(c or "none") for c in self.column(renderer, name, count)]


def _style(d: _Drawing, r, n: int) -> list[str]:
    """Stroke and fill of a glyph's n points."""
    stroke, width = d.colour(r, "line_color", n), d.column(r, "line_width", n)
    alpha = d.column(r, "line_alpha", n)
    dash = r.glyph.line_dash
    dash = dash if isinstance(dash, str) else ""
    dashed = f' stroke-dasharray="{DASHES[dash]}"' if dash in DASHES else ""
    fills, clear = ["none"] * n, [1.0] * n
    if hasattr(r.glyph, "fill_color"):
        fills, clear = d.colour(r, "fill_color", n), d.column(r, "fill_alpha", n)
    strokes = [
        f' stroke="{s}" stroke-width="{w:g}" stroke-opacity="{o:g}"{dashed}' if s != "none" and w * o else ""
        for s, w, o in zip(stroke, width, alpha)
    ]
    return [f'fill="{f}" fill-opacity="{a:g}"{s}' for f, a, s in zip(fills, clear, strokes)]


def _glyph(d: _Drawing, r) -> Iterator[str]:
    kind = type(r.glyph).__name__
    count = np.size(d.column(r, "x0" if kind == "Segment" else "x"))

    def get(name: str):
        return np.asarray(d.column(r, name, count), float)

    if kind == "Rect":
        x, y, w, h = (get(name) for name in ("x", "y", "width", "height"))
        x0, x1, y0, y1 = d.x(x - w / 2), d.x(x + w / 2), d.y(y - h / 2), d.y(y + h / 2)
        alike: dict[str, list[str]] = {}  # boxes of one look are one path: a tenth of the text
        for a, b, c, e, style in zip(x0, x1, y0, y1, _style(d, r, count)):
            if np.isfinite([a, b, c, e]).all() and ("stroke" in style or 'fill="none"' not in style):
                alike.setdefault(style, []).append(f"M{a:.1f} {c:.1f}H{b:.1f}V{e:.1f}H{a:.1f}z")
        yield from (f'<path d="{"".join(boxes)}" {style}/>' for style, boxes in alike.items())
    elif kind == "Segment":
        ends = d.x(get("x0")), d.y(get("y0")), d.x(get("x1")), d.y(get("y1"))
        for x0, y0, x1, y1, style in zip(*ends, _style(d, r, count)):
            if np.isfinite([x0, y0, x1, y1]).all() and "stroke" in style:
                yield f'<path d="M{x0:.1f} {y0:.1f}L{x1:.1f} {y1:.1f}" {style}/>'
    elif kind == "Line":
        points = zip(d.x(get("x")), d.y(get("y")))
        path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in points if np.isfinite([a, b]).all())
        yield f'<path d="{path}" {_style(d, r, 1)[0]}/>' if len(path) > 1 else ""
    elif kind == "Text":
        yield from _texts(d, r, count)
    elif kind == "Scatter":
        shape = SHAPES.get(r.glyph.marker if isinstance(r.glyph.marker, str) else "", "")
        for x, y, half, style in zip(d.x(get("x")), d.y(get("y")), get("size") / 2, _style(d, r, count)):
            if np.isfinite([x, y]).all():
                where = f'transform="translate({x:.1f} {y:.1f}) scale({half:g})" vector-effect="non-scaling-stroke"'
                circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{half:g}" {style}/>'
                yield f'<path d="{shape}" {where} {style}/>' if shape else circle


def _texts(d: _Drawing, r, count: int) -> Iterator[str]:
    fit = d.fits.get(r.glyph.id)
    size = min(fit[1], fit[0] * d.unit) if fit else float(str(d.column(r, "text_font_size")).removesuffix("px"))
    columns = [d.column(r, name, count) for name in ("text", "text_align", "x_offset", "y_offset")]
    bold = ' font-weight="bold"' if r.glyph.text_font_style == "bold" else ""
    base = BASES.get(str(d.column(r, "text_baseline")), 0) * size
    place = d.x(d.column(r, "x", count)), d.y(d.column(r, "y", count))
    for x, y, text, align, dx, dy, ink in zip(*place, *columns, d.colour(r, "text_color", count)):
        if str(text).strip("\N{ZERO WIDTH SPACE} ") and np.isfinite([x, y]).all():
            look = f'font-size="{size:.1f}" text-anchor="{ANCHORS[align]}" fill="{ink}"{bold}'
            yield f'<text x="{x + dx:.1f}" y="{y + dy + base:.1f}" {look}>{escape(str(text))}</text>'


def _axes(d: _Drawing) -> Iterator[str]:
    """Ticks and titles of a figure with axes, and its legend."""
    fig, (left, top, wide, high) = d.fig, d.box
    yield f'<rect x="{left}" y="{top}" width="{wide}" height="{high}" fill="none" stroke="var(--line)"/>'
    for axis, range_, across in ((fig.xaxis[0], fig.x_range, True), (fig.yaxis[0], fig.y_range, False)):
        ticks = getattr(axis.ticker, "ticks", None) or np.linspace(range_.start, range_.end, 5)
        names = axis.major_label_overrides
        for tick in ticks:
            at = float(d.x(tick) if across else d.y(tick))
            name = names.get(tick, names.get(str(tick), f"{tick:.4g}"))
            place = f'x="{at:.1f}" y="{top + high + 15}" text-anchor="middle"'
            if not across:
                place = f'x="{left - 5}" y="{at + 4:.1f}" text-anchor="end"'
            yield f'<text {place} font-size="11" fill="var(--ink)">{escape(str(name))}</text>'
    title = escape(" against ".join(t for t in (fig.yaxis[0].axis_label, fig.xaxis[0].axis_label) if t))
    yield f'<text x="{left}" y="{top + high + 31}" font-size="12" fill="var(--soft)">{title}</text>'
    items = [item for legend in fig.select({"type": Legend}) for item in legend.items]
    at = left
    for item in items:
        label, glyph = escape(str(getattr(item.label, "value", item.label))), item.renderers[0].glyph
        ink = d.inks.get((glyph.id, "line_color")) or str(getattr(glyph, "fill_color", "none") or "none")
        yield f'<rect x="{at}" y="{top + high + 38}" width="14" height="10" fill="{ink}"/>'
        yield f'<text x="{at + 18}" y="{top + high + 47}" font-size="11" fill="var(--ink)">{label}</text>'
        at += 30 + 6.2 * len(label)


def svg(title: str, caption: str, figures: Sequence, data: Data, inks: theme.Inks) -> str:
    """A picture of ``figures``, one below the other, with title and caption; ``data``: columns of sources at the frame
    that is shown, where they differ from what the sources hold."""
    parts: list[str] = []
    top = float(HEAD)
    for fig in figures:
        drawing = _Drawing(fig, top, data, inks)
        for renderer in fig.renderers:
            if isinstance(renderer.data_source, ColumnDataSource):
                parts += _glyph(drawing, renderer)
        parts += [] if drawing.bare else _axes(drawing)
        top += drawing.high + 8
    plain = escape(caption.replace("**", "").replace("`", "").split("\n")[0])
    colours = [";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {top:.0f}" width="{WIDTH}"'
        f' font-family="sans-serif" role="img"><title>{escape(title)}</title><style>svg{{{colours[0]};background:#fff}}'
        f"@media(prefers-color-scheme:dark){{svg{{{colours[1]};background:#17171b}}}}</style>"
        f'<text x="4" y="18" font-size="15" font-weight="bold" fill="var(--ink)">{escape(title)}</text>'
        f'<text x="4" y="37" font-size="12" fill="var(--soft)">{plain}</text>{"".join(parts)}</svg>'
    )


def png(picture: str, path: Path) -> None:
    """Write an SVG picture as PNG, with Chromium. Raises ``RuntimeError`` where there is none."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise RuntimeError("a PNG picture needs Chromium, which is not installed: save an .svg")
    high = int(picture.split('viewBox="0 0 ', 1)[1].split('"')[0].split()[1])
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "still.html"
        page.write_text(f'<body style="margin:0">{picture}</body>', encoding="utf-8")
        subprocess.run(
            [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             f"--window-size={WIDTH},{high}", f"--screenshot={path.resolve()}", page.as_uri()],
            check=True, capture_output=True, timeout=60,
        )  # fmt: skip
