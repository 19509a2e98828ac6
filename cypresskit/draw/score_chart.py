"""Published figures against simulated ones: a row each, the ratio as a point, misses in plain sight.

Rows come from ``timing.score`` (kernels) and ``host.host_rows``, all with one set of device parameters. A miss is a
ratio outside ``within``; its point is a cross, and its row says so. Of a published range both ends are rows.
"""

from collections.abc import Iterable, Iterator
from html import escape

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.host import host_rows
from cypresskit.timing import score as kernel_score


def _flat(rows: Iterable[dict]) -> Iterator[dict]:
    """Rows with one figure each, and a ratio; where 0 was published it is 1 for 0 and endless otherwise.
    What was published as a picture has no figure and is left out."""
    for row in rows:
        if row["published"] is None:
            continue
        pairs = [(row["quantity"], row["published"], row["simulated"])]
        if isinstance(row["published"], list):
            ends = zip(("least", "most"), row["published"], row["simulated"])
            pairs = [(f"{row['quantity']}, {end}", figure, value) for end, figure, value in ends]
        for quantity, figure, value in pairs:
            ratio = value / figure if figure else 1.0 if value == figure else np.inf
            yield {"id": row["id"], "quantity": quantity, "published": figure, "simulated": value, "ratio": ratio}


def score(rows: Iterable[dict] | None = None, *, within: float = 0.05) -> Player:
    """A picture of all rows; by default the kernels' and the host's, which take a minute or two to simulate.
    ``within`` is the deviation above which a row is a miss. Raises ``ValueError`` if there are no rows."""
    made = list(_flat([*kernel_score(progress=False), *host_rows()] if rows is None else rows))
    if not made:
        raise ValueError("there are no rows to draw")
    ratio = np.array([row["ratio"] for row in made])
    missed = np.abs(ratio - 1) > within
    sheet = Sheet(f"Score: {len(made) - missed.sum()} of {len(made)} published figures within {within:.0%}")
    low, high = 0.6, 1.4
    drawn = np.clip(ratio, low + 0.02, high - 0.02)  # what lies further out stands at the edge
    fig = sheet.chart(
        f"Ratio of simulated to published for {len(made)} figures", "simulated / published", "",
        height=70 + 20 * len(made), x_range=(low, high), y_range=(len(made) - 0.4, -0.6),
    )  # fmt: skip
    fig.xaxis.ticker = [0.6, 0.8, 1.0, 1.2, 1.4]
    fig.yaxis.ticker = list(range(len(made)))
    fig.yaxis.major_label_overrides = {n: f"{row['id']} {row['quantity']}" for n, row in enumerate(made)}
    fig.yaxis.major_label_text_font_size = "10px"
    band = fig.quad([1 - within], [1 + within], [-0.6], [len(made) - 0.4], line_color=None)
    sheet.inks(band, fill_color="shade")
    down = np.arange(len(made))
    sheet.inks(fig.segment([1], [-0.6], [1], [len(made) - 0.4], line_width=1.5), line_color="ink")
    sheet.inks(fig.segment(np.ones(len(made)), down, drawn, down, line_width=2), line_color="soft")
    source = sheet.source("rows", x=drawn, y=down)
    for hit, shape, ink in ((True, "circle", "read"), (False, "x", "wrote")):
        chosen = missed != hit
        points = fig.scatter(drawn[chosen], down[chosen], marker=shape, size=11, line_width=3)
        sheet.inks(points, line_color=ink, fill_color=ink)
    source.data["missed"] = missed.astype(np.uint8)
    lines = [sheet.title]
    lines += [
        f"{'MISS' if miss else 'ok  '} {row['id']}, {row['quantity']}: published {row['published']:.6g}, simulated "
        f"{row['simulated']:.6g}, ratio {row['ratio']:.3f}"
        for row, miss in zip(made, missed)
    ]
    named = [f"{row['id']} {row['quantity']} {row['ratio']:.2f}" for row, miss in zip(made, missed) if miss]
    more = f" and {len(named) - 6} more" if len(named) > 6 else ""
    caption = f"**{sheet.title}.** " + (f"Misses: {'; '.join(named[:6])}{more}." if named else "No misses.")
    body = "".join(
        f"<tr><th colspan=4>{escape(str(row['id']))}</th></tr>"
        * (n == 0 or made[n - 1]["id"] != row["id"])
        + f"<tr><td>{escape(str(row['quantity']).replace('_', ' '))}</td><td>{row['published']:.5g}</td>"
        f"<td>{row['simulated']:.5g}</td><td>{'&#10005; ' * int(missed[n])}{row['ratio']:.3f}</td></tr>"
        for n, row in enumerate(made)
    )
    head = "".join(f"<th>{name}</th>" for name in ("quantity", "published", "simulated", "ratio"))
    table = sheet.html(f"<table>{head}{body}</table>")
    note = sheet.note(
        f"The grey band is {within:.0%} to either side. Dots lie in it; crosses are misses, at the edge of the chart if"
        " they lie further out."
    )
    return sheet.player([fig], [caption], "\n".join(lines), below=[note], side=[table])
