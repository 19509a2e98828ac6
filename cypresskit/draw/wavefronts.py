"""The wavefronts of one SIMD engine over time: ALU clauses, TEX clauses, and waiting for a turn.

Drawn from timing reports. Each lane is a wavefront slot of SIMD engine 0; a TEX bar ends when the data are there. Fewer
registers, more slots: when one wavefront waits, another computes. Left out: the other engines.
"""

from itertools import pairwise

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.timing import Report, simulate

KINDS = {"ALU": ("blue", " "), "TEX": ("orange", "/"), "WRITE": ("purple", "x")}
FRAMES = 150


def wavefronts(*reports: Report | str, n: int = 1024, window: tuple[float, float] = (2000, 6000)) -> Player:
    """A player with a play head over the ``window`` (clocks) of one or more reports, one above the other.

    ``reports`` come from ``simulate``; kernels by name are simulated with size ``n``. By default "sgemm_tn" (25
    registers) above "sgemm_tn_37". Pan and zoom show the rest of the run. Raises ``ValueError`` for a report without
    timeline.
    """
    made = [simulate(r, n) if isinstance(r, str) else r for r in reports or ("sgemm_tn", "sgemm_tn_37")]
    for report in made:
        if not report.timeline:
            raise ValueError(f"{report.kernel}: the report has no timeline to draw")
    sheet = Sheet("Wavefronts of a SIMD engine: " + " and ".join(report.kernel for report in made))
    range_ = Range1d(*window)
    clocks = np.linspace(*window, FRAMES + 1)
    parts = [part for report in made for part in _draw(sheet, report, range_, clocks)]
    states = [[_state(report, clock) for clock in clocks] for report in made]
    captions = [
        f"Clock {clock:.0f}. "
        + "<br>".join(
            f"<b>{r.kernel}</b>, {r.active} slots: " + ", ".join(f"{count} {what}" for what, count in state[k].items())
            for r, state in zip(made, states)
        )
        for k, clock in enumerate(clocks)
    ]
    text = [f"{sheet.title}, clocks {window[0]:.0f} to {window[1]:.0f}"]
    for r in made:
        busy = _busy(r, "ALU", window)
        text.append(f"{r.kernel}: {r.registers} registers, {r.active} wavefronts; ALU at work {busy:.1%} of the clocks")
        text += [
            f"  slot {s}: " + ", ".join(f"{kind} {_slot(r, s, kind, window):.0f} clocks" for kind in KINDS)
            for s in range(r.active)
        ]
    note = sheet.note(
        "A lane is a slot for a wavefront; where it has no bar, its wavefront waits for its turn. The ALU works on two"
        " wavefronts at a time."
    )
    return sheet.player(parts, captions, "\n".join(text), below=[note], step="Clock")


def _inside(report: Report, kind: str, window) -> list[tuple[int, float, float]]:
    """Slot, start and end of the clauses of a kind, cut to the window."""
    return [(e.slot, max(e.start, window[0]), min(e.end, window[1])) for e in report.timeline
            if e.kind == kind and e.end > window[0] and e.start < window[1]]  # fmt: skip


def _slot(report: Report, slot: int, kind: str, window) -> float:
    return sum(end - start for s, start, end in _inside(report, kind, window) if s == slot)


def _busy(report: Report, kind: str, window) -> float:
    """The share of the window in which some wavefront is in a clause of this kind."""
    busy, last = 0.0, window[0]
    for _, start, end in sorted(_inside(report, kind, window), key=lambda row: row[1]):
        busy += max(0.0, end - max(start, last))
        last = max(last, end)
    return busy / (window[1] - window[0])


def _state(report: Report, clock: float) -> dict[str, int]:
    now = [e.kind for e in report.timeline if e.start <= clock < e.end]
    counts = {kind: now.count(kind) for kind in ("ALU", "TEX")}
    return counts | {"waiting": report.active - sum(counts.values()) - now.count("WRITE")}


def _draw(sheet: Sheet, report: Report, range_: Range1d, clocks: np.ndarray):
    heading = f"{report.kernel}: {report.registers} registers, {report.active} wavefronts, {report.gflops:.0f} Gflop/s"
    fig = sheet.chart(
        f"{heading}: lanes of ALU, TEX and waiting", "clocks", "slot", height=110 + 20 * report.active,
        tools="xpan,xzoom_in,xzoom_out,reset", x_range=range_, y_range=(report.active - 0.4, -0.6), name=report.kernel,
    )  # fmt: skip
    fig.toolbar.active_drag = None
    fig.yaxis.ticker = list(range(report.active))
    fig.grid.visible = False
    shown = [e for e in report.timeline if e.start < 4 * clocks[-1]]
    slots = [sorted((e for e in shown if e.slot == slot), key=lambda e: e.start) for slot in range(report.active)]
    gaps = [(a.slot, a.end, b.start) for slot in slots for a, b in pairwise(slot) if b.start > a.end]
    lane, start, end = np.array(gaps, np.float32).reshape(-1, 3).T
    idle = fig.segment(start, lane, end, lane, line_dash="dotted", line_width=1.5)
    items = [("waiting", [sheet.inks(idle, line_color="soft")])]
    for kind, (tint, hatch) in KINDS.items():
        events = [e for e in shown if e.kind == kind]
        if not events:
            continue
        columns = {
            key: np.array([getattr(e, key) for e in events], np.float32)
            for key in ("start", "end", "slot", "wavefront")
        }
        columns |= {"top": columns["slot"] - 0.36, "bottom": columns["slot"] + 0.36}
        source = ColumnDataSource(columns, name=f"{report.kernel} {kind}")
        look = {"fill_color": theme.KINDS[tint], "hatch_pattern": hatch, "hatch_scale": 7, "hatch_weight": 0.7}
        box = fig.quad("start", "end", "top", "bottom", source=source, line_width=0.7, **look)
        sheet.inks(box, line_color="soft", hatch_color="soft")
        tips = f"{kind} of wavefront @wavefront: @start{{0}} to @end{{0}}"
        fig.add_tools(HoverTool(renderers=[box], tooltips=tips, visible=False))
        items.append((kind, [box]))
    sheet.head(fig, clocks, -0.6, report.active - 0.4, f"head {report.kernel}")
    sheet.series(fig, items, "below", 4)
    return sheet.note(f"<b>{heading}</b>"), fig
