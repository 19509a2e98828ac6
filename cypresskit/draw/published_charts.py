"""Charts of the papers' plots: the model's curves, and every number that the texts print.

The plots themselves are pictures, so their points aren't known. What a text prints about them is
drawn: a ring if its x is printed, else a line across. The model's curves simulate what each author
timed (``published.conditions``). They are stored in ``published.json`` by
``python -m tools.stored_figures``, which simulates them by ``tools/curves.py``.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cypresskit import published as papers
from cypresskit.devices import HD5870
from cypresskit.draw import theme
from cypresskit.draw.chart import Chart
from cypresskit.draw.line_chart import Curve, scale_across, scale_up, value_text
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.draw.stored_curves import stored


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
        The curve that it is about; "" if it is about none.
    least, most
        Of which of the curve's values it is the lowest (``extreme`` is min) or highest: those
        between these x.
    """

    words: str
    y: float
    series: str = ""
    extreme: Callable[..., float] = max
    least: float = 0
    most: float = math.inf


@dataclass(frozen=True)
class PublishedChart:
    """A plot of a paper.

    Attributes
    ----------
    title
        The heading, with the source.
    x, y
        The titles of the axes.
    series
        Names of stored curves, as ``tools/curves.py`` has them.
    points
        By the name of a curve: the printed point (x, y) about it.
    levels
        Printed numbers without an x.
    miss
        Where model and paper differ, and why.
    """

    title: str
    miss: str
    series: tuple[str, ...]
    points: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    levels: tuple[PrintedLevel, ...] = ()
    x: str = "N"
    y: str = "Gflop/s"


def _peak(kernel: str) -> tuple[float, float]:
    """Return where a kernel was fastest, and its speed there."""
    row = papers.kernel(kernel)
    return row["n_at_max"], row["gflops_max"]


def _lowest(kernel: str) -> PrintedLevel:
    """Return the lowest printed speed, in Gflop/s."""
    row = papers.kernel(kernel)
    percent = row["efficiency_pct_range"][0]
    speed = percent / 100 * HD5870.peak_gflops(row["precision"])
    least = row["range_from_n"]
    return PrintedLevel(
        f"Lowest of {kernel} ({percent} % of peak)", round(speed), kernel, min, least
    )


def _best(kernel: str) -> PrintedLevel:
    """Return the best printed speed, whose N isn't printed but assumed."""
    n, speed = papers.size_of(kernel), papers.kernel(kernel)["gflops_max"]
    return PrintedLevel(f"Best of {kernel} (at N = {n}, assumed)", speed, kernel, max, n, n)


BUS = papers.host("dgemm_transfer_model")
CPU = papers.host("cpu_baselines")
PACKED = papers.kernel("sgemm_packed4")["gflops_range"]
FLUCTUATES = (
    "The paper's curves fluctuate, and slightly decrease beyond N = 2048. The model's fluctuate,"
    " too, but don't decrease: no mechanism that was tried makes them."
)
NO_NUMBERS = "The text prints no number of this plot, so only the model is drawn."
CHARTS = {
    "nakasato_4": PublishedChart(
        "Nakasato's figure 4: SGEMM with 25 and 37 registers",
        FLUCTUATES,
        ("sgemm_tn", "sgemm_tn_37"),
        {"sgemm_tn": _peak("sgemm_tn")},
        (_lowest("sgemm_tn"),),
    ),
    "nakasato_5": PublishedChart(
        "Nakasato's figure 5: DGEMM, TN and NN",
        FLUCTUATES,
        ("dgemm_tn", "dgemm_nn", "dgemm_tn with transfers"),
        {name: _peak(name) for name in ("dgemm_tn", "dgemm_nn")},
        (
            _lowest("dgemm_tn"),
            _lowest("dgemm_nn"),
            PrintedLevel("GotoBLAS2 on four cores", CPU["gotoblas2_dgemm_gflops"]),
            PrintedLevel("MAGMA on Fermi", CPU["magma_fermi_dgemm_gflops"]),
        ),
    ),
    "nakasato_7": PublishedChart(
        "Nakasato's figure 7: DGEMM with transfers, and his formula",
        "The formula takes one speed of the kernel for all N, the model the speed at each N. At"
        " large N both are above the 200 that the text names as the most. For 10 GB/s he expects"
        " about 300 or more from N = 2048 on.",
        ("dgemm_tn with transfers", "formula, 3 GB/s", "formula, 10 GB/s"),
        {"formula, 10 GB/s": (2048, 300)},
        (PrintedLevel("Most with transfers", BUS["io_gflops_max"], "dgemm_tn with transfers"),),
    ),
    "nakasato_dd": PublishedChart(
        "Nakasato's double-double kernels",
        "Both are bound by arithmetic. The text says that the speed is reached from N = 512 on.",
        ("ddgemm_tn_fma", "ddgemm_tn_nofma"),
        {name: _peak(name) for name in ("ddgemm_tn_fma", "ddgemm_tn_nofma")},
    ),
    "ashraf_sgemm": PublishedChart(
        "Ashraf's plot: the 64 x 64 kernels",
        "The slides print the best speeds without their N.",
        ("sgemm_64x64", "sgemm_64x64_lds"),
        levels=(_best("sgemm_64x64"), _best("sgemm_64x64_lds")),
    ),
    "ashraf_sgemv": PublishedChart(
        "Ashraf's plot: matrix times vector",
        NO_NUMBERS,
        ("sgemv_n", "sgemv_n_reduce2", "sgemv_n_reduce4"),
    ),
    "ashraf_reduction": PublishedChart(
        "Ashraf's plot: SGEMM with reduction",
        NO_NUMBERS,
        ("sgemm_nn", "sgemm_nn_reduce2", "sgemm_nn_reduce4"),
    ),
    "ashraf_packed": PublishedChart(
        "Ashraf's packed products, N = 512",
        "The slides don't say what makes the difference between 450 and 1340, nor how long a launch"
        " takes. The model's overhead was fitted to this range.",
        ("sgemm_packed4",),
        levels=(
            PrintedLevel("Lowest", PACKED[0], "sgemm_packed4", min, most=4),
            PrintedLevel("Highest", PACKED[1], "sgemm_packed4", max, most=4),
        ),
        x="products in a launch",
    ),
    "matsumoto": PublishedChart(
        "Matsumoto's figures 1 and 2: products larger than the card",
        NO_NUMBERS + " It names the block of 1792, to whose multiples the upper curves belong.",
        ("overlap", "no overlap", "padded to 1792", "padded to multiples of 128"),
    ),
    "li_stages": PublishedChart(
        "Li's profile: the time of each stage",
        NO_NUMBERS + " The slide's heading says that the kernel is the bottleneck of four stages.",
        (
            "mult of four stages",
            "store of four",
            "mult1 of five",
            "store1 of five",
            "store2 of five",
            "load2 of five",
        ),
        x="k",
        y="percent of the time of all stages",
    ),
}


def published(name: str) -> Player:
    """Draw a plot of a paper: the model's curves, with bars for their error, and the printed
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
    plot = CHARTS[name]
    rows = stored()[name]
    curves = {series: {x: y for x, y, _ in rows[series]} for series in plot.series}
    places = sorted({x for curve in curves.values() for x in curve})
    tops = [y * (1 + error) for series in plot.series for _, y, error in rows[series]]
    heights = [0.0, *tops, *(level.y for level in plot.levels)]
    sheet = Sheet(plot.title)
    names = [f"{series}, modeled" for series in plot.series]
    names += [f"{series}, published" for series in plot.points]
    names += [f"{level.words}, published: {level.y:g}" for level in plot.levels]
    across, up = scale_across(plot.x, places), scale_up(plot.y, heights)
    chart = Chart(sheet, across, up, label=plot.title, height=300, legend=names)

    lines = []
    for number, series in enumerate(plot.series):
        x, y, error = np.array(rows[series]).T
        values = [f"{at:g}: {value_text(value)}" for at, value in curves[series].items()]
        chart.bars(x, y * (1 - error), y * (1 + error), number)
        chart.curve(names[number], x, y, number, [f"{series}, N and Gflop/s {v}" for v in values])
        lines.append(f"{series}, modeled: {', '.join(values)}")
    said = []
    for series, (x, y) in plot.points.items():
        number = plot.series.index(series)
        words = f"{series}: published {y:g} at {x:g}"
        chart.curve(f"{series}, published", [x], [y], number, [words], size=20)
        said.append(f"{words}; {_compare(curves[series], x, y)}")
    for n, level in enumerate(plot.levels):
        number = plot.series.index(level.series) if level.series else len(plot.series)
        ends = across.low, across.high
        dash = theme.DASHES[1 + n % 4]
        chart.line(ends, [level.y] * 2, number, line_dash=dash, line_width=1)
        said.append(f"{level.words}: published {level.y:g}{_beside(level, curves)}.")
    modeled = {str(papers.conditions(name)) for name in plot.series if name in papers.kernels()}
    caption = " ".join([*said, *(f"{words.capitalize()}." for words in modeled), plot.miss])
    return sheet.player([caption], [*lines, *said], step=plot.x, seconds=1)


def _compare(curve: Curve, x: float, y: float) -> str:
    """Return what the model's curve has at a printed point, and at its top."""
    top = max(curve, key=lambda place: curve[place])
    there = curve[x]
    return (
        f"modeled {there:.0f} there ({100 * (there / y - 1):+.1f} %), and at most"
        f" {curve[top]:.0f}, at {top:g}."
    )


def _beside(level: PrintedLevel, curves: Mapping[str, Curve]) -> str:
    """Return what the model has beside a printed number."""
    if not level.series:
        return ""
    inside = (y for x, y in curves[level.series].items() if level.least <= x <= level.most)
    since = f" (from N = {level.least:g} on)" if level.extreme is min else ""
    return f", modeled {level.extreme(inside):.0f}{since}"
