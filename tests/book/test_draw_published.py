"""Charts of the papers' plots: their curves are the model's, their numbers the papers'."""

import random

import pytest
from sampling import drawn_by_day

from cypresskit import published
from cypresskit.draw.published_charts import CHARTS
from cypresskit.draw.stored_curves import stored
from tools import curves

QUICK = 1152  # N up to which a launch is simulated again
STORED = {name: rows for series in stored().values() for name, rows in series.items()}


def test_every_chart_has_its_curves():
    assert {name: list(chart.series) for name, chart in CHARTS.items()} == {
        name: list(series) for name, series in stored().items()
    }


@drawn_by_day("name", sorted(STORED), 4)
def test_stored_curves_are_the_models(name, monkeypatch):
    """A point of each curve is simulated again: another one for each curve."""
    rows = {x: (y, error) for x, y, error in STORED[name]}
    x = random.Random(name).choice([x for x in rows if x <= QUICK] or list(rows))
    for sizes in ("STEPS", "SMALL", "COUNTS"):
        monkeypatch.setattr(curves, sizes, [x])
    if name in published.kernels() and name != "sgemm_packed4":  # whose curve is over the number
        made = curves.kernel_row(name, int(x))
    else:
        made = next(row for row in curves.curve(name, STORED) if row[0] == x)
    assert made[1:] == pytest.approx(rows[x], abs=2e-2)


def test_what_is_printed_is_what_the_papers_print():
    """Each published figure of a plotted kernel is in a chart."""
    shown = {point.y for chart in CHARTS.values() for point in chart.points.values()}
    shown |= {level.y for chart in CHARTS.values() for level in chart.levels}
    printed = {row.get("gflops_max") for name, row in published.kernels().items() if name in STORED}
    assert printed - {None} | {*published.kernel("sgemm_packed4")["gflops_range"]} <= shown
