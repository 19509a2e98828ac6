"""The contest's leaderboard as a page that a class can look at: each entry's speed as a bar below
its ceilings, what binds it, the records as they came, and the winner on the chip.

It is one file of HTML. The winner plays in a second file beside it, and a page that is to show
itself anew asks a third one, a line of script, whether it has been written again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from urllib.parse import quote

from cypresskit import tables
from cypresskit.devices import HD5870
from cypresskit.teach.l12_contest import checks as contest
from cypresskit.teach.leaderboard import UNITS, Row, ranked

HERE = Path(__file__).parent
LOOK = (HERE.parent / "draw/look.css").read_text(encoding="utf-8")
PAGE = Template((HERE / "leaderboard.html").read_text(encoding="utf-8").replace("$look", LOOK))
LIVE = Template((HERE / "leaderboard_live.js").read_text(encoding="utf-8"))
#: The colours of ``look.css`` for the units; what binds a kernel otherwise is a wait.
COLOURS = dict(zip(UNITS, ("alu", "texture", "c", "read", "wrote"), strict=True))
WAITS = "soft"
COLUMNS = ("place", "name", "file", "", "Gflop/s", "% of peak", "registers", "bound by", "")
SILENT = {3: "speed below its ceilings", 8: "notes"}  # what a screen reader hears of empty heads
WIDTH, HEIGHT, EDGE, BELOW = 900, 230, 48, 26  # of the chart of records, and room for its numbers


@dataclass(frozen=True)
class Record:
    """A right entry as it came in: whose, and how fast."""

    name: str
    file: str
    gflops: float


def page(
    rows: list[Row],
    n: int = contest.N,
    *,
    history: Sequence[Record] = (),
    winner: str = "",
    live: str = "",
    written: int = 0,
) -> str:
    """The leaderboard as a web page.

    history : right entries in the order in which they came.
    winner : the file, beside the page, in which the winner plays on the chip.
    live : the file, beside the page, that says which time the page has been written: see ``stamp``.
        The page shows itself anew when that is no longer the time ``written``.
    """
    places = ranked(rows, n)
    right: dict[str, list[str]] = {"On the HD 5870": [], "On chips of their own": []}
    for place, entry in places:
        if entry.gflops:
            right[[*right][bool(entry.chip)]].append(_line(place, entry))
    wrong = [(entry.name, entry.file, entry.verdict) for _, entry in places if not entry.gflops]

    heads = "".join(
        f'<th scope="col">{name or f"<span>{SILENT[n]}</span>"}</th>'
        for n, name in enumerate(COLUMNS)
    )
    parts = [_group(title, heads, lines) for title, lines in right.items() if lines]
    if history:
        parts.append(f"<h2>The records</h2>{_records(history)}")
    if winner:
        frame = f'<iframe src="{quote(winner)}#frame=40" title="The winner on the chip"></iframe>'
        parts.append(f"<h2>The winner on the chip</h2>{frame}")
    if wrong:
        parts.append(f"<h2>Not yet</h2>{tables.table(('name', 'file', 'why'), wrong)}")
    script = (
        f"<script>{LIVE.substitute(file=quote(live), written=written)}</script>" if live else ""
    )
    peak = f"{HD5870.single_gflops:.0f}"
    return PAGE.substitute(n=n, peak=peak, key=_key(), tables="\n".join(parts), live=script)


def stamp(written: int) -> str:
    """The script that says which time the page has been written."""
    return f"cypresskitWritten({written})\n"


def _group(title: str, heads: str, lines: Sequence[str]) -> str:
    """A table of the page, which scrolls by itself where it is wider than the page."""
    table = f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    box = f'<div class="wide" tabindex="0" role="region" aria-label="{title}">'
    return f"<h2>{title}</h2>{box}{table}</div>"


def _line(place: int | str, entry: Row) -> str:
    """A row of the page."""
    note = "; ".join(filter(None, (entry.chip, entry.note)))
    before = [str(place), entry.name, entry.file]
    speed = [f"{entry.gflops:.0f}", f"{entry.percent:.0f}"]
    after = [*speed, str(entry.registers or ""), entry.bound, note]
    cells = [*map(escape, before), _bar(entry), *map(escape, after)]
    return f"<tr>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _bar(entry: Row) -> str:
    """An entry's speed as a bar on the chip's peak, with a mark for each unit's ceiling."""
    peak = 100 * entry.gflops / entry.percent if entry.percent else HD5870.single_gflops
    marks = "".join(
        f'<i style="left: {100 * limit / peak:.1f}%; --hue: var(--ck-{COLOURS[unit]})"></i>'
        for unit, limit in entry.ceilings.items()
        if limit < peak
    )
    words = f"{entry.gflops:.0f} of {peak:.0f} Gflop/s"
    if entry.ceilings:
        limits = (f"{unit} {limit:.0f}" for unit, limit in entry.ceilings.items())
        words += f"; ceilings: {', '.join(limits)}"
    colour = next((COLOURS[unit] for unit in UNITS if entry.bound.startswith(unit)), WAITS)
    bar = f'<b style="width: {entry.percent:.1f}%; --hue: var(--ck-{colour})"></b>'
    return f'<div class="bar" role="img" title="{words}" aria-label="{words}">{bar}{marks}</div>'


def _key() -> str:
    """What the colours of bars and marks mean."""
    meanings = COLOURS | {"waiting": WAITS}
    return "".join(
        f'<span style="--hue: var(--ck-{colour})">{name}</span>'
        for name, colour in meanings.items()
    )


def _records(history: Sequence[Record]) -> str:
    """The chart of right entries in the order in which they came, and of the best so far."""
    top = 200 * (1 + max(entry.gflops for entry in history) // 200)
    low = HEIGHT - BELOW
    right = WIDTH - 8

    def x(number: float) -> float:
        return EDGE + (right - EDGE) * number / len(history)

    def y(gflops: float) -> float:
        return low - (low - 22) * gflops / top

    drawn = [_grid(gflops, y(gflops), right) for gflops in (0, top / 2, top)]
    points = []
    best = 0.0
    for number, entry in enumerate(history):
        at = x(number + 0.5), y(entry.gflops)
        words = escape(f"{entry.name}: {entry.gflops:.0f} Gflop/s")
        if entry.gflops > best:
            points += [f"{at[0]:.1f},{y(best):.1f}", f"{at[0]:.1f},{at[1]:.1f}"]
            best, holder = entry.gflops, entry.name
        drawn.append(
            f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4"><title>{words}</title></circle>'
        )
    points.append(f"{right:.1f},{y(best):.1f}")
    drawn.append(f'<polyline points="{" ".join(points)}"/>')
    title = escape(f"the record: {holder}, {best:.0f} Gflop/s")
    drawn.append(f'<text x="{right}" y="{y(best) - 8:.1f}" text-anchor="end">{title}</text>')
    axis = f"right entries, {len(history)} of them, in the order in which they came"
    drawn.append(f'<text x="{EDGE}" y="{HEIGHT - 6}">{axis}</text>')
    label = escape(f"Gflop/s of {axis}; {title}")
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'<svg {size} role="img" aria-label="{label}">{"".join(drawn)}</svg>'


def _grid(gflops: float, y: float, right: float) -> str:
    """A line across the chart, and its number."""
    number = f'<text x="{EDGE - 8}" y="{y + 5:.1f}" text-anchor="end">{gflops:.0f}</text>'
    return f'<line x1="{EDGE}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>{number}'
