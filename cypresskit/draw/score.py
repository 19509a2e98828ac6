"""Published figures against simulated ones: a row each, the ratio as a point, misses in plain sight.

Rows come from ``host.host_rows`` and from simulating the published kernels at their published N, all with one set of
device parameters. A miss is a ratio outside ``within``; its point is a cross, and its row says so.
"""

import json
from collections.abc import Iterable
from importlib.resources import files

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.host import host_rows
from cypresskit.kernels import KERNELS
from cypresskit.timing.simulate import simulate

PLAIN_N = 2048  # for kernels published without their N


def kernel_rows() -> list[dict]:
    """Published kernels that run on an HD 5870, simulated: ``id``, ``quantity``, ``published``, ``simulated``,
    ``ratio``."""
    rows = []
    for row in json.loads(files("cypresskit.data").joinpath("published.json").read_text())["kernels"]:
        if row["id"] in KERNELS and "gflops_max" in row:
            value = simulate(row["id"], row.get("n_at_max", PLAIN_N), device=HD5870).gflops
            rows.append({"id": row["id"], "quantity": "gflops_max", "published": row["gflops_max"], "simulated": value,
                         "ratio": value / row["gflops_max"]})  # fmt: skip
    return rows


def score(rows: Iterable[dict] | None = None, *, within: float = 0.05) -> Player:
    """A picture of all rows; by default the kernels' and the host's, which takes some seconds to simulate. ``within``
    is the deviation above which a row is a miss. Raises ``ValueError`` if there are no rows."""
    made = [*kernel_rows(), *host_rows()] if rows is None else list(rows)
    if not made:
        raise ValueError("there are no rows to draw")
    ratio = np.array([row["ratio"] for row in made])
    missed = np.abs(ratio - 1) > within
    sheet = Sheet(f"Score: {len(made) - missed.sum()} of {len(made)} published figures within {within:.0%}")
    low, high = min(0.7, ratio.min() - 0.05), max(1.3, ratio.max() + 0.05)
    fig = sheet.chart(
        f"Ratio of simulated to published for {len(made)} figures", "simulated / published", "",
        height=70 + 24 * len(made), x_range=(low, high), y_range=(len(made) - 0.4, -0.6),
    )  # fmt: skip
    fig.yaxis.ticker = list(range(len(made)))
    fig.yaxis.major_label_overrides = {n: _label(row) for n, row in enumerate(made)}
    fig.yaxis.major_label_text_font_size = "11px"
    band = fig.quad([1 - within], [1 + within], [-0.6], [len(made) - 0.4], line_color=None)
    sheet.inks(band, fill_color="shade")
    down = np.arange(len(made))
    sheet.inks(fig.segment([1], [-0.6], [1], [len(made) - 0.4], line_width=1.5), line_color="ink")
    sheet.inks(fig.segment(np.ones(len(made)), down, ratio, down, line_width=2), line_color="soft")
    source = sheet.source("rows", x=ratio, y=down)
    for hit, shape, ink in ((True, "circle", "read"), (False, "x", "wrote")):
        chosen = missed != hit
        points = fig.scatter(ratio[chosen], down[chosen], marker=shape, size=11, line_width=3)
        sheet.inks(points, line_color=ink, fill_color=ink)
    source.data["missed"] = missed.astype(np.uint8)
    lines = [sheet.title]
    lines += [
        f"{'MISS' if miss else 'ok  '} {row['id']}, {row['quantity']}: published {row['published']:.6g}, simulated "
        f"{row['simulated']:.6g}, ratio {row['ratio']:.3f}"
        for row, miss in zip(made, missed)
    ]
    misses = "; ".join(f"{row['id']} {row['quantity']} {row['ratio']:.2f}" for row, miss in zip(made, missed) if miss)
    caption = f"<b>{sheet.title}.</b> " + (f"Misses: {misses}." if misses else "No misses.")
    body = "".join(
        f"<tr><td>{row['id']}</td><td>{row['quantity']}</td><td>{row['published']:.5g}</td><td>{row['simulated']:.5g}</td>"
        f"<td>{'&#10005; ' * int(miss)}{row['ratio']:.3f}</td></tr>"
        for row, miss in zip(made, missed)
    )
    head = "".join(f"<th>{name}</th>" for name in ("source", "quantity", "published", "simulated", "ratio"))
    table = sheet.note(f"<table>{head}{body}</table>")
    note = sheet.note(f"The grey band is {within:.0%} to either side. Dots lie in it; crosses are misses.")
    return sheet.player([fig], [caption], "\n".join(lines), below=[note], side=[table])


def _label(row: dict) -> str:
    return row["id"] if row["quantity"] == "gflops_max" else row["quantity"]
