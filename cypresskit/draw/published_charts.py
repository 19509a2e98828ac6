"""Charts of the papers' plots: the model's curves, and every number that the texts print.

The plots themselves are pictures, so their points aren't known. What a text prints about them is
drawn: a ring with its number if its x is printed, else a thin line across, labeled at its end. The
model's curves simulate what each author timed (``published.conditions``). They are stored in
``published.json`` by ``python -m tools.stored_figures``, which simulates them by
``tools/curves.py``.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from string import Formatter
from typing import Any, NamedTuple

import numpy as np

from cypresskit import published as papers
from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.chart import (
    COLORS,
    Axes,
    Canvas,
    Chart,
    Kind,
    element,
    number_text,
    text_element,
)
from cypresskit.draw.line_chart import Curve, scale_across, scale_up
from cypresskit.draw.stored_curves import stored

WIDEST_DOT = 0.05  # of a chart's height
BESIDE = ("middle", 0.0), ("start", -20.0), ("end", 20.0)  # anchors, and pixels to the right
Rows = Mapping[str, Sequence[Sequence[float]]]  # of each curve: x, y, the share y may be off


@dataclass(frozen=True)
class PrintedLevel:
    """A printed number without its x.

    Attributes
    ----------
    words
        What it is.
    y
        The number.
    series
        The curve that it is about.
    least, most
        Of which of the curve's values it is the lowest (``extreme`` is min) or highest: those
        between these x.
    kind
        What kind of number it is.
    """

    words: str
    y: float
    series: str
    extreme: Callable[..., float] = max
    least: float = 0
    most: float = math.inf
    kind: Kind = "measured"


class PrintedPoint(NamedTuple):
    """A printed number with its x, and what kind of number it is."""

    x: float
    y: float
    kind: Kind = "measured"

    @property
    def is_predicted(self) -> bool:
        return self.kind == "published"


@dataclass(frozen=True)
class PublishedChart:
    """A plot of a paper.

    Attributes
    ----------
    finding
        What it shows. "{name at 256}" is the model's value of a curve there, "{name}" its highest
        one; the points of both have dots with their numbers.
    source
        The plot.
    miss
        Where model and paper differ, and why.
    series
        By the name of a stored curve (``tools/curves.py``): its label.
    formulas
        Those curves that are values of a printed formula; all others are modeled.
    points
        By the name of a curve: the printed point about it.
    levels
        Printed numbers without an x.
    x, y
        The units of the axes. If y is "%", the curves are shares of a whole, and their labels name
        a bar and a part, as in "four stages: mult".
    """

    finding: str
    source: str
    miss: str
    series: Mapping[str, str]
    formulas: tuple[str, ...] = ()
    points: Mapping[str, PrintedPoint] = field(default_factory=dict)
    levels: tuple[PrintedLevel, ...] = ()
    x: str = "N"
    y: str = "Gflop/s"

    def kind(self, series: str) -> Kind:
        """Return what kind of numbers a curve shows."""
        return "published" if series in self.formulas else "modeled"

    def kinds(self) -> str:
        """Return a sentence for each kind: of which marks it is."""
        found = [
            ("formulas" if name in self.formulas else "lines", self.kind(name))
            for name in self.series
        ]
        found += [
            ("predictions" if point.is_predicted else "rings", point.kind)
            for point in self.points.values()
        ]
        found += [("dashed lines", level.kind) for level in self.levels]
        marks: dict[str, list[str]] = {}
        for mark, kind in dict.fromkeys(found):
            marks.setdefault(kind, []).append(mark)
        return " ".join(f"{' and '.join(m).capitalize()}: {kind}." for kind, m in marks.items())


def _peak(kernel: str) -> PrintedPoint:
    """Return where a kernel was fastest, and its speed there."""
    row = papers.kernel(kernel)
    return PrintedPoint(row["n_at_max"], row["gflops_max"])


def _lowest(kernel: str) -> PrintedLevel:
    """Return the lowest printed speed, in Gflop/s."""
    row = papers.kernel(kernel)
    percent = row["efficiency_pct_range"][0]
    speed = percent / 100 * HD5870.peak_gflops(row["precision"])
    least = row["range_from_n"]
    return PrintedLevel("lowest", round(speed), kernel, min, least)


def _best(kernel: str) -> PrintedLevel:
    """Return the best printed speed, whose N isn't printed but assumed."""
    n, speed = papers.size_of(kernel), papers.kernel(kernel)["gflops_max"]
    return PrintedLevel("best", speed, kernel, max, n, n)


BUS = papers.host("dgemm_transfer_model")
PACKED = papers.kernel("sgemm_packed4")["gflops_range"]
FLUCTUATES = (
    "The paper's curves fluctuate, and slightly decrease beyond N = 2,048. The model's fluctuate,"
    " too, but have no such trend: no mechanism that was tried gives them one."
)
NO_NUMBERS = "The text prints no number of this plot, so only the model is drawn."
CHARTS = {
    "nakasato_4": PublishedChart(
        "At N = 4,096 SGEMM does {sgemm_tn at 4096:,.0f} Gflop/s with 25 registers,"
        " {sgemm_tn_37 at 4096:,.0f} with 37, in the model",
        "Nakasato's figure 4",
        FLUCTUATES,
        {"sgemm_tn": "25 registers", "sgemm_tn_37": "37 registers"},
        points={"sgemm_tn": _peak("sgemm_tn")},
        levels=(_lowest("sgemm_tn"),),
    ),
    "nakasato_5": PublishedChart(
        "At N = 2,048 one bank holds NN: {dgemm_nn at 2048:.0f} of {dgemm_tn at 2048:.0f} Gflop/s,"
        " in the model",
        "Nakasato's figure 5, DGEMM",
        FLUCTUATES,
        {"dgemm_tn": "TN", "dgemm_nn": "NN"},
        points={name: _peak(name) for name in ("dgemm_tn", "dgemm_nn")},
        levels=(_lowest("dgemm_tn"), _lowest("dgemm_nn")),
    ),
    "nakasato_7": PublishedChart(
        "With transfers DGEMM reaches {dgemm_tn with transfers:.0f} Gflop/s in the model; at most"
        f" {BUS['io_gflops_max']} were measured",
        "Nakasato's figure 7, DGEMM with transfers",
        "The formula takes one speed of the kernel for all N, the model the speed at each N. At"
        " large N both are above the 200 that the text names as the most. For 10 GB/s he"
        " expects about 300 or more from N = 2,048 on.",
        {
            "dgemm_tn with transfers": "model, 3 GB/s",
            "formula, 3 GB/s": "formula, 3 GB/s",
            "formula, 10 GB/s": "formula, 10 GB/s",
        },
        ("formula, 3 GB/s", "formula, 10 GB/s"),
        {"formula, 10 GB/s": PrintedPoint(2048, 300, "published")},
        (PrintedLevel("at most", BUS["io_gflops_max"], "dgemm_tn with transfers"),),
    ),
    "nakasato_dd": PublishedChart(
        "At N = 2,048 fused multiply-adds give {ddgemm_tn_fma at 2048:.1f} Gflop/s in place of"
        " {ddgemm_tn_nofma at 2048:.1f}",
        "Nakasato's double-double kernels",
        "Both are bound by arithmetic. The paper says that the speed is reached from N = 512 on.",
        {"ddgemm_tn_fma": "with FMA", "ddgemm_tn_nofma": "without FMA"},
        points={name: _peak(name) for name in ("ddgemm_tn_fma", "ddgemm_tn_nofma")},
    ),
    "ashraf_sgemm": PublishedChart(
        "At N = 4,096 a kernel that shares A through the LDS does {sgemm_64x64_lds at 4096:,.0f}"
        " Gflop/s, and without the LDS {sgemm_64x64 at 4096:,.0f}",
        "Ashraf's plot of the 64 x 64 kernels",
        "The slides print the best speeds without their N.",
        {"sgemm_64x64": "without the LDS", "sgemm_64x64_lds": "through the LDS"},
        levels=(_best("sgemm_64x64"), _best("sgemm_64x64_lds")),
    ),
    "ashraf_reduction": PublishedChart(
        "Three helpers beat none up to N = 512: {sgemm_nn_reduce4 at 512:,.0f} Gflop/s in place of"
        " {sgemm_nn at 512:,.0f}",
        "Ashraf's plot of SGEMM with reduction",
        NO_NUMBERS,
        {
            "sgemm_nn": "no helper",
            "sgemm_nn_reduce2": "one helper",
            "sgemm_nn_reduce4": "three helpers",
        },
    ),
    "ashraf_packed": PublishedChart(
        "Packing lifts the model from {sgemm_packed4 at 1:,.0f} to {sgemm_packed4 at 16:,.0f}"
        f" Gflop/s; {PACKED[0]} to {PACKED[1]:,} were measured",
        "Ashraf's packed products, N = 512",
        "The slides don't say what makes the difference between 450 and 1,340, nor how long a"
        " launch takes. The model's is the most that AMD's guide allows.",
        {"sgemm_packed4": "packed products"},
        levels=(
            PrintedLevel("lowest", PACKED[0], "sgemm_packed4", min, most=4),
            PrintedLevel("highest", PACKED[1], "sgemm_packed4", max, most=4),
        ),
        x="products in a launch",
    ),
    "matsumoto": PublishedChart(
        "At N = 14,336 overlap gives {padded to 1792 at 14336:.0f} Gflop/s in place of"
        " {no overlap at 14336:.0f}; the teeth are padding to blocks of 1,792",
        "Matsumoto's figures 1 and 2, products larger than the card",
        NO_NUMBERS + " It names the block of 1,792: without overlap, only its multiples are drawn.",
        {
            "padded to multiples of 128": "overlap, a block for each N",
            "padded to 1792": "overlap, blocks of 1,792",
            "no overlap": "no overlap, blocks of 1,792",
        },
    ),
    "li_stages": PublishedChart(
        "In four stages the kernel takes up to {mult of four stages:.0f} % of the time, in"
        " five up to {mult1 of five:.0f} %",
        "Li's profile",
        NO_NUMBERS + " The slide's heading says that the kernel is the bottleneck of four stages.",
        {
            "mult of four stages": "four stages: mult",
            "store of four": "four stages: store",
            "mult1 of five": "five stages: mult1",
            "store1 of five": "five stages: store1",
            "store2 of five": "five stages: store2",
            "load2 of five": "five stages: load2",
        },
        x="k",
        y="%",
    ),
}


def published(name: str) -> Chart:
    """Draw a plot of a paper: the model's curves, with bands for their error, and the printed
    numbers.

    Parameters
    ----------
    name
        One of ``CHARTS``, such as "nakasato_4".

    Raises
    ------
    ValueError
        For another name.

    Examples
    --------
    >>> ck.draw.published("nakasato_4")
    """
    if name not in CHARTS:
        raise ValueError(f"there is no chart {name!r}; there are {', '.join(CHARTS)}")
    plot, rows = CHARTS[name], stored()[name]
    curves = {series: {x: y for x, y, _ in rows[series]} for series in plot.series}
    named = {f"{s} at {x:g}": (s, x) for s, curve in curves.items() for x in curve}
    named |= {s: (s, max(curve, key=curve.__getitem__)) for s, curve in curves.items()}
    quoted = [named[name] for _, name, *_ in Formatter().parse(plot.finding) if name]
    said = [f"{series}: {_told(plot, curves, series)}" for series in plot.points]
    said += [
        f"{level.series} {level.words}, {level.kind}: {level.y:g}{_beside(level, curves)}."
        for level in plot.levels
    ]
    told = [
        f"{label}, {plot.kind(series)}: "
        + ", ".join(f"{x:g}: {number_text(y)}" for x, y in curves[series].items())
        for series, label in plot.series.items()
    ]
    if plot.y == "%":
        about = "Shares of the time of all stages, modeled; gray: the other loads and stores."
        paint = partial(_paint_shares, bars=_bars(plot, curves))
    else:
        about = plot.kinds()
        if any(_has_band(rows[series]) for series in plot.series):
            about += " Bands: how far off a sampled launch may be."
        paint = partial(_paint, plot=plot, rows=rows, curves=curves, quoted=quoted)
    kernels = [name for name in plot.series if name in papers.kernels()]
    timed = dict.fromkeys(f"M{str(papers.conditions(name))[1:]}." for name in kernels)
    return Chart(
        plot.finding.format_map({name: curves[s][x] for name, (s, x) in named.items()}),
        paint,
        about=f"{about} {plot.source}.",
        lines=[*told, *said],
        note=" ".join([*timed, plot.miss]),
    )


def _paint(
    width: float,
    plot: PublishedChart,
    rows: Rows,
    curves: Mapping[str, Curve],
    quoted: Sequence[tuple[str, float]],
) -> Canvas:
    """Draw the curves of a plot, their bands, the points that its finding quotes, and the printed
    numbers.
    """
    subjects = {*dict(quoted), *(level.series for level in plot.levels)}
    about = [name for name in plot.series if name in subjects]
    colors = dict.fromkeys(plot.series, "soft") | dict(zip(about, COLORS))
    tops = [y * (1 + error) for series in plot.series for _, y, error in rows[series]]
    across = scale_across(plot.x, sorted({x for curve in curves.values() for x in curve}))
    up = scale_up(plot.y, [0.0, *tops, *(level.y for level in plot.levels)])
    axes = Axes(width, across, up, [*plot.series.values()])
    for level in plot.levels:
        start = level.least if level.extreme is min else 0
        text = f"{'≥' if start else level.words} {number_text(level.y)}"
        name, color = f"level {level.series} {level.words}", colors[level.series]
        axes.level(name, start, level.y, color, level.kind, text)
    for series, label in plot.series.items():
        x, y, error = np.array(rows[series]).T
        color, kind = colors[series], plot.kind(series)
        if _has_band(rows[series]):
            axes.band(f"band {series}", x, y * (1 - error), y * (1 + error), color, kind)
        places = {at: "" for name, at in quoted if name == series}
        axes.curve(series, x, y, color, label, kind, quoted=places)
    for series, point in plot.points.items():
        told = _told(plot, curves, series)
        text = number_text(point.y) + ", predicted" * point.is_predicted
        where = f"published {series}", point.x, point.y, colors[series]
        axes.dot(*where, point.kind, told, text, is_ring=True)
    return axes


def _has_band(rows: Sequence[Sequence[float]]) -> bool:
    """Whether the errors of a curve are larger than its dots."""
    return max(y * error for _, y, error in rows) > WIDEST_DOT * max(y for _, y, _ in rows)


def _bars(plot: PublishedChart, curves: Mapping[str, Curve]) -> dict[str, dict[str, float]]:
    """Return the shares of a plot, by bar and part."""
    bars: dict[str, dict[str, float]] = {}
    for series, label in plot.series.items():
        bar, part = label.split(": ")
        for x, y in curves[series].items():
            bars.setdefault(f"{bar}, {plot.x} = {x:,g}", {})[part] = y
    return bars


def _paint_shares(width: float, bars: Mapping[str, Mapping[str, float]]) -> Canvas:
    """Draw parts of a whole, in percent, as bars with the parts' names inside or beside them, those
    first that are the largest in sum. What is left of a hundred is gray.
    """
    row = 62
    canvas = Canvas(width, row * len(bars))
    sizes: Counter[str] = Counter()
    for shares in bars.values():
        sizes.update(shares)
    parts = []
    for number, (bar, shares) in enumerate(bars.items()):
        y, x = row * number + 32, 0.0
        canvas.write(0, y - 21, bar)
        whole = {**shares, "": 100 - sum(shares.values())}
        for part in sorted(whole, key=lambda part: -sizes[part]):
            share = whole[part]
            wide = width * share / 100
            place: dict[str, Any] = {"x": x, "y": y - 13, "width": wide, "height": 26, "rx": 2}
            shape = element("rect", "page", _part_color(part), **place)
            text = f"{part} {share:.0f} %".strip()
            if len(text) * theme.LETTER + 8 < wide:
                shape += text_element(x + 6, y, text, "ink", class_="on")
            elif part:
                places = [(at, away, down) for down in (-21, 21) for at, away in BESIDE]
                canvas.write_free(x + wide / 2, y, places, text, "ink")
            words = f"{bar}, {part or 'the rest'}, modeled: {share:.1f} %"
            parts.append((words, shape))
            x += wide
    canvas.group("shares", parts, "modeled")
    return canvas


def _part_color(part: str) -> str:
    """Return the color of a stage, which is that of timelines."""
    colors = {"mult": "alu 0.45", "store2": "c 0.2", "store": "c 0.45", "load": "a 0.45"}
    return next((color for kind, color in colors.items() if part.startswith(kind)), "faint")


def _told(plot: PublishedChart, curves: Mapping[str, Curve], series: str) -> str:
    """Return a printed point, and what its curve has there."""
    x, y, kind = plot.points[series]
    there = curves[series][x]
    more = f"{100 * (there / y - 1):+.1f} %"
    return f"{kind} {y:g} at {x:g}; {plot.kind(series)} {there:.0f} there ({more})."


def _beside(level: PrintedLevel, curves: Mapping[str, Curve]) -> str:
    """Return what the model has beside a printed number."""
    inside = (y for x, y in curves[level.series].items() if level.least <= x <= level.most)
    where = f" (from N = {level.least:g} on)" if level.extreme is min and level.least else ""
    if level.least == level.most:
        where = f" (at N = {level.least:g}, assumed)"
    return f", modeled {level.extreme(inside):.0f}{where}"
