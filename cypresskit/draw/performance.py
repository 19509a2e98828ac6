"""Gflop/s against N: simulated curves, published points, and what the busiest unit would allow.

Curves come from the rows of ``timing.sweep``; published figures from the papers. A curve's ceiling is its largest N's
Gflop/s divided by the share of clocks in which its busiest unit worked: what that unit would do without a pause. Left
out: published curves, which exist as pictures only.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from cypresskit import published
from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.timing import sweep

KERNELS = ("sgemm_tn", "dgemm_tn", "dgemm_nn")
SIZES = (128, 256, 384, 512, 768, 1024, 1536, 2048)


def performance(rows: Iterable[dict] | Sequence[str] = KERNELS, sizes: Sequence[int] = SIZES) -> Player:
    """A player with a frame for each N. ``rows`` come from ``sweep`` (square matrices; with ``ranges=True`` each point
    has a bar for what the calibrations leave open); kernels by name are swept over ``sizes`` first, which takes a
    second or so each. Raises ``ValueError`` if there are no rows."""
    given = list(rows)
    if given and all(isinstance(row, str) for row in given):
        given = list(sweep(given, sizes, progress=False))  # type: ignore[arg-type]
    table: list[dict] = [row for row in given if isinstance(row, dict)]
    if not table:
        raise ValueError("there are no rows to draw: pass those of timing.sweep, or names of kernels")
    names = list(dict.fromkeys(row["kernel"] for row in table))
    sizes = sorted({row["n"] for row in table})
    curves = {name: {row["n"]: row for row in table if row["kernel"] == name} for name in names}
    known = {name: row for name, row in published.kernels().items() if "gflops_max" in row}
    top = max([*(row["gflops"] for row in table), *(known[n]["gflops_max"] for n in names if n in known)])
    right = max([*sizes, *(known[n]["n_at_max"] for n in names if "n_at_max" in known.get(n, {}))])
    ceilings = {name: _ceiling(curve[max(curve)]) for name, curve in curves.items()}
    high = min(2 * top, max(1.2 * top, *(1.06 * ceiling for _, ceiling in ceilings.values())))
    sheet = Sheet("Performance against N: " + ", ".join(names))
    fig = sheet.chart(sheet.title, "N", "Gflop/s", height=430, x_range=(0, 1.05 * right), y_range=(0, high))
    items, lines = [], [sheet.title]
    for number, name in enumerate(names):
        curve = curves[name]
        y = [curve[n]["gflops"] for n in sorted(curve)]
        unit, ceiling = ceilings[name]
        words = [f"N = {n}. {_said(name, curve[n])}".replace("**", "") for n in sorted(curve)]
        _draw_ranges(sheet, fig, [curve[n] for n in sorted(curve) if "low" in curve[n]], number)
        drawn = sheet.curve(fig, name, sorted(curve), y, number, words)
        items.append((f"{name}, simulated; {unit} allows {ceiling:.0f}", drawn))
        speeds = ", ".join(f"N {n}: {curve[n]['gflops']:.0f}" for n in sorted(curve))
        lines.append(f"{name}: ceiling {ceiling:.0f}; {speeds}")
        if name in known:
            at, best = known[name].get("n_at_max", right), known[name]["gflops_max"]
            items.append((f"{name}, published {best}", [sheet.points(fig, [at], [best], number, hollow=True, size=14)]))
            lines.append(f"  published {best} at N = {at}")
    _draw_ceilings(sheet, fig, [ceiling for _, ceiling in ceilings.values()], right)
    sheet.head(fig, np.array(sizes, float), 0, high)
    sheet.series(fig, items, "below", 1)
    captions = [f"N = {n}. " + "\n".join(_said(name, curves[name].get(n)) for name in names) for n in sizes]
    hollow = " Hollow and large: the published best." * any(name in known for name in names)
    bars = " Bars: what the calibrations leave open." * any("low" in row for row in table)
    note = sheet.note(f"Filled: simulated.{bars}{hollow} Thin: what the busiest unit would allow if it never paused.")
    return sheet.player([fig], captions, "\n".join(lines), below=[note], step="N")


def _draw_ranges(sheet: Sheet, fig, rows: Sequence[dict], number: int) -> None:
    """A thin bar each: what the calibrations leave open."""
    ns, (low, high) = [row["n"] for row in rows], ([row[end] for row in rows] for end in ("low", "high"))
    sheet.inks(fig.segment(ns, low, ns, high, line_width=1.5), line_color=theme.LINES[number % len(theme.LINES)])


def _draw_ceilings(sheet: Sheet, fig, ceilings: Sequence[float], right: float) -> None:
    """A thin line each; those within a per cent of each other take turns, a dash each."""
    for number, ceiling in enumerate(ceilings):
        alike = [n for n, other in enumerate(ceilings) if abs(other / ceiling - 1) < 0.01]
        turn = {"line_dash": [8, 8 * len(alike) - 8], "line_dash_offset": -8 * alike.index(number)}
        line = fig.line([0, right], [ceiling] * 2, line_width=1.5, **(turn if len(alike) > 1 else {}))
        sheet.inks(line, line_color=theme.LINES[number % len(theme.LINES)])


def _ceiling(row: dict) -> tuple[str, float]:
    """The busiest unit and what it would allow."""
    busy = {key.removeprefix("busy_"): value for key, value in row.items() if key.startswith("busy_")}
    unit = max(busy, key=busy.__getitem__)
    return unit, row["gflops"] / busy[unit]


def _said(name: str, row: dict | None) -> str:
    if row is None:
        return f"**{name}** was not simulated"
    said = f"**{name}**: {row['gflops']:.0f} Gflop/s, {row['percent']:.0f} % of peak, bound by {row['bound']}"
    if "registers" not in row:
        return said
    fetched = row["bytes_L1"] / (row["gflops"] * row["seconds"] * 1e9 / 2)
    said += f"; {row['registers']} registers, room for {row['active']} wavefronts an engine, {row['wavefronts']} in all"
    return f"{said}; {fetched:.2g} bytes fetched for a multiply-add" if fetched else said
