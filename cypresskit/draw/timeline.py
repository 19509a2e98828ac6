"""Pipelines as Gantt charts: a row for each resource, one timeline above the other, in step.

A resource that one lane has to itself (a chip, a DMA engine, a thread) shows that lane's tasks; what is used besides
(the bus, the host's memory) shows how much of it is in use. The busiest is marked: it binds. Zoom with the tools beside
the chart, point at a task for its numbers. Left out: how a task's share changes while it runs; its average is drawn.
"""

from collections.abc import Callable

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Range1d

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.host import Machine, Span, Timeline, five_stage, four_stage

FRAMES = 240  # at most
STAGES = {
    "load1": ("yellow", "/"), "load2": ("blue", "."), "mult": ("orange", " "), "mult1": ("orange", " "),
    "send": ("blue", "."), "fetch": ("purple", "-"),
    "cpu": ("grey", "x"), "store": ("green", "\\"), "store1": ("purple", "-"), "store2": ("green", "\\"),
}  # fmt: skip


def timeline(*timelines: Timeline, names: tuple[str, ...] = ()) -> Player:
    """A player with a play head over one or more timelines, a frame for each moment at which something starts or ends.

    Without timelines: the four-stage and the five-stage pipeline on an HD 5970, m = n = 8192, k = 2048. ``names`` are
    the charts' headings. Raises ``ValueError`` for a timeline without tasks.
    """
    if not timelines:
        machine, names = Machine(), ("four stages", "five stages")
        timelines = four_stage(8192, 8192, 2048, machine), five_stage(8192, 8192, 2048, machine)
    if any(not one.spans for one in timelines):
        raise ValueError("there is nothing to draw: a timeline has no tasks")
    names = tuple(names) + tuple(f"timeline {n + 1}" for n in range(len(names), len(timelines)))
    moments = _moments(timelines)
    sheet = Sheet("Timeline: " + " and ".join(names))
    window = Range1d(0, max(one.seconds for one in timelines) * 1e3)
    charts = [part for name, one in zip(names, timelines) for part in _draw(sheet, name, one, window, moments)]
    say = [_teller(name, one) for name, one in zip(names, timelines)]
    captions = [f"At {1e3 * t:.1f} ms. " + "<br>".join(tell(t) for tell in say) for t in moments]
    text = "\n".join([sheet.title, *(line for name, one in zip(names, timelines) for line in _text(name, one))])
    note = sheet.note(
        "A row's number is the share of the whole run for which the resource worked. \N{BLACK RIGHT-POINTING TRIANGLE}"
        " and a grey band mark the one that binds: making it faster helps first."
    )
    return sheet.player(charts, captions, text, step="Moment", below=[note])


def _moments(timelines: tuple[Timeline, ...]) -> np.ndarray:
    """Seconds at which a task starts or ends; where there are too many, every so many."""
    times = np.unique(np.round([t for one in timelines for s in one.spans for t in (s.start, s.end)], 9))
    return times[np.linspace(0, len(times) - 1, min(len(times), FRAMES)).astype(int)]


def _rows(one: Timeline) -> list[str]:
    """The resources that are used, those with a lane of their own first."""
    used = {name for span in one.spans for name in span.task.uses if span.task.uses[name]}
    return sorted(used, key=lambda name: (_shared(one, name), name))


def _shared(one: Timeline, name: str) -> bool:
    """Whether several lanes use a resource, or one that has a resource of its own name besides."""
    lanes = {span.task.lane for span in one.spans if span.task.uses.get(name)}
    return len(lanes) > 1 or bool((lanes - {name}) & set(one.resources))


def _draw(sheet: Sheet, name: str, one: Timeline, window: Range1d, moments: np.ndarray):
    rows = _rows(one)
    label = f"{name}: {1e3 * one.seconds:.1f} ms, {one.gflops:.0f} Gflop/s, bound by {one.bound}"
    fig = sheet.chart(
        label, "ms", "", height=105 + 26 * len(rows), tools="xpan,xzoom_in,xzoom_out,xbox_zoom,reset",
        x_range=window, y_range=(len(rows) - 0.4, -0.6), name=name,
    )  # fmt: skip
    fig.toolbar.active_drag = None
    fig.yaxis.ticker = list(range(len(rows)))
    fig.yaxis.major_label_overrides = {
        n: f"{'▶ ' if row == one.bound else ''}{row} {one.busy[row]:.0%}" for n, row in enumerate(rows)
    }
    if one.bound in rows:
        n = rows.index(one.bound)
        band = fig.quad([0], [1e3 * one.seconds], [n - 0.5], [n + 0.5], line_color=None)
        sheet.inks(band, fill_color="shade")
    fig.ygrid.visible = False
    drawn: dict[str, list] = {}
    for stage in one.stages():
        bars = [(n, s) for n, row in enumerate(rows) if not _shared(one, row) for s in one.spans
                if s.task.stage == stage and s.task.uses.get(row)]  # fmt: skip
        if bars:
            drawn[stage] = [_bars(sheet, fig, f"{name} {stage}", stage, bars)]
    for n, row in enumerate(rows):
        if _shared(one, row):
            drawn.setdefault("share in use", []).append(_profile(sheet, fig, one, n, row))
    sheet.head(fig, moments * 1e3, -0.6, len(rows) - 0.4, f"head {name}")
    sheet.series(fig, list(drawn.items()), "below", 4)
    return sheet.note(f"<b>{label}</b>"), fig


def _bars(sheet: Sheet, fig, name: str, stage: str, bars: list[tuple[int, Span]]):
    tint, hatch = STAGES.get(stage, ("grey", " "))
    source = ColumnDataSource(
        {
            "left": [1e3 * s.start for _, s in bars], "right": [1e3 * s.end for _, s in bars],
            "top": [n - 0.38 for n, _ in bars], "bottom": [n + 0.38 for n, _ in bars],
            "task": [s.task.name for _, s in bars], "mb": [s.task.bytes / 1e6 for _, s in bars],
        }, name=name,
    )  # fmt: skip
    box = fig.quad(
        "left", "right", "top", "bottom", source=source, fill_color=theme.KINDS[tint], hatch_pattern=hatch,
        hatch_scale=8, hatch_weight=0.7, line_width=0.7,
    )  # fmt: skip
    sheet.inks(box, line_color="soft", hatch_color="soft")
    fig.add_tools(
        HoverTool(renderers=[box], tooltips="@task: @left{0.0} to @right{0.0} ms, @mb{0.0} MB", visible=False)
    )
    return box


def _profile(sheet: Sheet, fig, one: Timeline, n: int, row: str):
    """The share of a resource in use, as an area of the row's height."""
    spans = [s for s in one.spans if s.task.uses.get(row)]
    rate = np.array([s.task.uses[row] / (s.end - s.start) / one.resources[row].capacity for s in spans])
    times = np.array([s.start for s in spans] + [s.end for s in spans])
    order = np.argsort(times, kind="stable")
    level = np.clip(np.cumsum(np.concatenate([rate, -rate])[order]), 0, 1)
    x, y = np.repeat(times[order] * 1e3, 2), n + 0.38 - 0.76 * np.insert(np.repeat(level, 2), 0, 0)[:-1]
    area = fig.varea(x, y, n + 0.38, fill_color=theme.KINDS["grey"], hatch_pattern="v", hatch_scale=8, hatch_weight=0.6)
    return sheet.inks(area, hatch_color="soft")


def _teller(name: str, one: Timeline) -> Callable[[float], str]:
    """Says what runs at a time."""

    def tell(time: float) -> str:
        running = [s for s in one.spans if s.start <= time + 1e-12 < s.end]
        names = [f"{s.task.lane}: {s.task.name}" for s in sorted(running, key=lambda s: s.task.lane)]
        more = f" and {len(names) - 4} more" if len(names) > 4 else ""
        return f"<b>{name}</b>: " + (
            "done" if time >= one.seconds else "; ".join(names[:4]) + more if names else "idle"
        )

    return tell


def _text(name: str, one: Timeline) -> list[str]:
    lines = [
        f"{name}: {1e3 * one.seconds:.1f} ms, {one.gflops:.0f} Gflop/s, {len(one.spans)} tasks, bound by {one.bound}"
    ]
    lines += [f"  {row}: {one.busy[row]:.1%}" for row in _rows(one)]
    return lines + ["  stages in ms: " + ", ".join(f"{stage} {1e3 * t:.1f}" for stage, t in one.stages().items())]
