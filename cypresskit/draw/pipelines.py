"""Timelines of host programs, a row per resource, and their critical paths.

A resource that only one queue uses (a chip, a DMA engine, a thread) shows that queue's tasks. A
shared one (the bus, host memory) shows each task's share of its capacity. A click on a task shows
which tasks it waited for, and which ones waited for it. Timelines share one time axis. A task's
share is drawn as its average.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.chart import choose_ticks
from cypresskit.draw.display import require_nonempty
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Bars, Rows, Sheet, TimeAxis, pixels
from cypresskit.host import Span, Task, Timeline

# In pixels:
LEFT = 20  # left edge of the rows
WIDE = 1280  # width of the rows
RIGHT = LEFT + WIDE
STAGE = RIGHT + LEFT  # width of the stage
HIGH = 430  # height of the stage
HEAD = 34  # above the rows
NAME = 16  # above each row, for its name
MAX_ROW = 48  # height of a row
BELOW = 10  # of a row, free of its bars: the critical path is in it
NAMED = 15  # height of the lowest bar that has its name in it

SHARED = 1.5  # height of a row that shows shares, relative to others
FRAMES = 240
# What a task moves or does, and its color:
MATTERS = "A", "B", "C", "the product"
TINTS = "a 0.45", "b 0.45", "c 0.45", "alu 0.45"
#: What a stage does with its part.
WAYS = {
    "load1": "to pinned memory",
    "load2": "to the card",
    "mult": "multiplied",
    "mult1": "multiplied",
    "store": "from the card, into C",
    "store1": "from the card",
    "store2": "into C",
}
PRODUCTS = "mult", "mult1", "cpu"  # stages that compute


def timeline(*timelines: Timeline, names: Sequence[str] = (), rows: Sequence[str] = ()) -> Player:
    """Draw one or more timelines, one below the other, on one time axis.

    In the last frame each critical path is underlined: the chain of tasks whose durations add up
    to the run's.

    Parameters
    ----------
    timelines
        Runs of ``ck.host``.
    names
        Their headings, one for each.
    rows
        The resources to show; by default all that are used.

    Raises
    ------
    ValueError
        For a timeline without tasks, another number of names, or a resource that no timeline
        uses.

    Examples
    --------
    >>> run = ck.host.five_stage(6144, 6144, 2048, ck.host.Machine())
    >>> ck.draw.timeline(run, rows=["chip 0", "chip 1"])
    """
    names = names or [f"timeline {n + 1}" for n in range(len(timelines))]
    if len(names) != len(timelines):
        raise ValueError(f"{len(names)} headings for {len(timelines)} timelines: pass one for each")
    for run in require_nonempty(timelines, "pass timelines of ck.host", Timeline):
        require_nonempty(run.spans, "a timeline needs at least one task")

    charts = _charts(timelines, names, rows)
    foot = charts[-1].foot
    # Runs that compute the same product can be compared.
    is_race = len(timelines) > 1 and len({run.flops for run in timelines}) == 1
    question = f"Which ends first: {' or '.join(names)}?"
    if not is_race:
        question = f"How long is each resource busy? {' and '.join(names)}"
    sheet = Sheet(question)
    label = "; ".join(f"{chart.name}: tasks of each resource" for chart in charts)
    sheet.stage(label, STAGE, foot + 18, rows=Rows(LEFT, RIGHT, 14, 20))
    _draw_ticks(sheet, charts)
    sheet.text(LEFT, [c.title for c in charts], [c.name for c in charts], **HEADING)
    any_full = False
    for chart in charts:
        any_full |= _draw_chart(sheet, chart)

    captions = [
        f"At {1e3 * t:.1f} ms. " + "\n".join(chart.say(t) for chart in charts)
        for t in charts[0].axis.moments
    ]
    if is_race:
        captions[-1] = f"{_winner(charts)}\n{captions[-1]}"
    return sheet.player(
        captions,
        "modeled",
        step="Moment",
        opens=FRAMES // 2,
        below=[_legend(sheet, charts, any_full)],
    )


def _charts(
    timelines: Sequence[Timeline], names: Sequence[str], rows: Sequence[str]
) -> "list[_Chart]":
    """Return a chart for each timeline, one below the other."""
    end = max(run.seconds for run in timelines)
    used = {row for run in timelines for row in _used(run)}
    if unknown := [row for row in rows if row not in used]:
        raise ValueError(
            f"no timeline uses {unknown[0]!r}: choose rows from {', '.join(sorted(used))}"
        )
    shared = {row for run in timelines for row in _used(run) if _is_shared(run, row)}

    heights = []
    for run in timelines:
        shown = rows or used
        high = {name: SHARED if name in shared else 1.0 for name in _used(run) if name in shown}
        heights.append(dict(sorted(high.items(), key=lambda row: row[1])))
    count = sum(sum(rows.values()) for rows in heights)
    named = NAME * sum(map(len, heights))
    row = min(MAX_ROW, (HIGH - len(timelines) * HEAD - named) / count)

    charts = []
    top = 0.0
    for number, (name, run, parts) in enumerate(zip(names, timelines, heights)):
        high = {resource: row * part for resource, part in parts.items()}
        charts.append(_Chart(number, name, run, end, shared, top, high))
        top = charts[-1].foot
    return charts


def _legend(sheet: Sheet, charts: "Sequence[_Chart]", any_full: bool) -> str:
    shown = {
        _matter_of(span)
        for chart in charts
        for span in chart.run.spans
        if chart.y(span) is not None and (span.task.matrix or span.task.stage in PRODUCTS)
    }
    keys: list[tuple[str, ...]] = [(MATTERS[n], TINTS[n]) for n in sorted(shown)]
    if charts[0].together & charts[0].rows.keys():
        keys.append(("capacity", "soft", "solid"))
    if any_full:
        keys.append(("full: its tasks slow each other down", "wait"))
    return sheet.legend(*keys, ("critical path (last moment)", "ink", "solid"))


def _winner(charts: "Sequence[_Chart]") -> str:
    """Return a sentence on which run ended first, and how much faster it was than the last."""
    first, *_, last = sorted(charts, key=lambda chart: chart.run.seconds)
    times = last.run.seconds / first.run.seconds
    speeds = f"{first.run.gflops:,.0f} Gflop/s in place of {last.run.gflops:,.0f}"
    return f"**{first.name}** ends first, {times:.2f} times as fast as {last.name}: {speeds}."


def _matter_of(span: Span) -> int:
    """Return the index in ``MATTERS`` of what a task moves or does."""
    if span.task.stage in PRODUCTS:
        return 3
    return {"A": 0, "B": 1}.get(span.task.matrix, 2)


def _part(task: Task) -> str:
    """Return what a task is about: "A strip 2", "unit 3, part 1"; "" if nothing is said."""
    if task.matrix == "AB":  # of the chip, which its row says
        names = ("unit", "part", "sub-block")
        return ", ".join(f"{name} {n}" for name, n in zip(names, task.place[1:]))
    if not task.place:
        return ""
    kind = "block" if task.matrix == "C" else "strip"
    number = task.place if len(task.place) > 1 else task.place[0]
    return f"{task.matrix} {kind} {number}"


def _full_name(task: Task) -> str:
    """Return what a task does with which part: "A strip 2, to the card (load2)"."""
    part, way = _part(task), WAYS.get(task.stage)
    return f"{part}, {way} ({task.stage})" if part and way else task.name


def _name_in(task: Task, room: float) -> str:
    """Return the longest of a task's names that fits into ``room`` pixels; "" if none does."""
    part = _part(task)
    names = [part, part.replace("strip ", "").replace("block ", "")]
    if task.matrix == "AB":
        unit, half = task.place[1:3]
        names = [f"unit {unit}, part {half}", f"unit {unit}"]
    for text in names if part else (task.name, task.label):
        if theme.LETTER * len(text) < room:
            return text
    return ""


def _used(run: Timeline) -> list[str]:
    """Return the resources that are used, in the order of their first use."""
    begun: dict[str, float] = {}
    for span in run.spans:
        for name in (name for name, amount in span.task.uses.items() if amount):
            begun[name] = min(span.start, begun.get(name, span.start))
    return sorted(begun, key=lambda name: (begun[name], name))


def _percent(share):
    """Return shares in whole percent, without rounding noise at halves."""
    return np.round(100 * np.round(share, 12))


def _is_shared(run: Timeline, name: str) -> bool:
    """Return whether several queues use a resource, or one that also has a resource of its own."""
    queues = {span.task.queue for span in run.spans if span.task.uses.get(name)}
    return len(queues) > 1 or bool((queues - {name}) & set(run.resources))


class _Chart:
    """One timeline in the picture: positions, and texts on its tasks.

    Attributes
    ----------
    end
        Of the longest timeline, in seconds.
    together
        Resources that are shared in some timeline.
    rows
        The height of each visible resource; shared ones come last.
    bands, place
        Upper and lower y of each row, and its center.
    keys
        The key of each task.
    """

    def __init__(
        self,
        number: int,
        name: str,
        run: Timeline,
        end: float,
        together: set[str],
        top: float,
        rows: dict[str, float],
    ) -> None:
        self.name, self.run, self.end = name, run, end
        self.together, self.rows = together, rows
        self.title = top + HEAD - 10
        feet = top + HEAD + np.cumsum([NAME + high for high in rows.values()])
        self.foot = feet[-1]
        self.bands = {row: (foot - rows[row], foot) for row, foot in zip(rows, feet.tolist())}
        self.place = {row: (high + low) / 2 for row, (high, low) in self.bands.items()}
        self.keys = 10_000 * number + np.arange(len(run.spans))
        self.axis = TimeAxis(
            np.linspace(0, end, FRAMES), lambda seconds: LEFT + np.asarray(seconds) / end * WIDE
        )

    @property
    def called(self) -> list[str]:
        """The name of each visible row, with the stages that it is named by."""
        stages = {
            row: dict.fromkeys(s.task.stage for s in self.run.spans if self.row(s.task) == row)
            for row in self.rows
        }
        return [f"{row}: {', '.join(named)}" if named else row for row, named in stages.items()]

    def row(self, task: Task) -> str:
        """Return the resource that names a task: its queue's or, in a serial program, the one it
        uses.
        """
        own = [name for name in task.uses if name not in self.together]
        return task.queue if task.queue in self.run.resources or not own else own[-1]

    def y(self, span: Span) -> float | None:
        """Return the y of a task's bar: in the first visible row that it uses."""
        return next((y for row, y in self.place.items() if span.task.uses.get(row)), None)

    def tip(self, span: Span) -> str:
        took = (
            f"{1e3 * span.start:.1f} to {1e3 * span.end:.1f} ms,"
            f" {1e3 * (span.end - span.start):.1f} long"
        )
        return f"{_full_name(span.task)}: {took}, {span.task.bytes / 1e6:.1f} MB"

    def say(self, time: float) -> str:
        """Return what runs at a time in the visible rows; at the end, what was busiest."""
        if time >= self.run.seconds - 1e-12:
            busiest = f"{self.run.bound}, {_percent(self.run.busy[self.run.bound]):.0f} %"
            return f"**{self.name}**: done. Busiest: {busiest}."
        doing: dict[str, list[str]] = {}  # by what is done: the rows that do it
        for span in sorted(self.run.spans, key=lambda span: self.row(span.task)):
            if span.start <= time + 1e-12 < span.end and self.y(span) is not None:
                what = _full_name(span.task)
                doing.setdefault(what, []).append(self.row(span.task))
        clauses = [f"{' and '.join(rows)}: {what}" for what, rows in doing.items()]
        return f"**{self.name}**: {'; '.join(clauses) or 'idle'}"


def _draw_ticks(sheet: Sheet, charts: Sequence[_Chart]) -> None:
    """Draw the milliseconds through all rows."""
    last, foot = 1e3 * charts[0].end, charts[-1].foot
    ticks = choose_ticks(0, last, 6)
    x = LEFT + np.array(ticks) / last * WIDE
    middle, high = (HEAD + foot) / 2, foot - HEAD
    sheet.boxes("ticks", x, middle, pixels(1), high, color="line", alpha=0.6)
    sheet.text(
        x, foot + 9, [f"{tick:,g}{' ms' * (not tick)}" for tick in ticks], "soft", align="center"
    )


def _draw_chart(sheet: Sheet, chart: _Chart) -> bool:
    """Draw a timeline. Returns whether a shared resource is ever full."""
    sheet.play_head(
        f"head {chart.name}",
        np.tile(chart.axis.to_x(chart.axis.moments)[:, np.newaxis], len(chart.rows)),
        list(chart.place.values()),
        list(chart.rows.values()),
    )

    words = np.array([chart.tip(span) for span in chart.run.spans])
    is_full = False
    for row, y in chart.place.items():
        name = f"row {row} {chart.name}"
        sheet.boxes(name, LEFT + WIDE / 2, y, WIDE, chart.rows[row] - 3, color="faint", alpha=0.4)
        if row in chart.together:
            is_full |= _draw_shared(sheet, chart, row, words)
    _draw_own(sheet, chart, words)
    _draw_labels(sheet, chart)
    sheet.about |= _stories(chart)
    _draw_path(sheet, chart)
    return is_full


def _draw_own(sheet: Sheet, chart: _Chart, words: np.ndarray) -> None:
    """Draw the tasks in rows that only one queue uses."""
    bars = [
        (n, y)
        for row, y in chart.place.items()
        if row not in chart.together
        for n, span in enumerate(chart.run.spans)
        if span.task.uses.get(row)
    ]
    if not bars:
        return
    numbers, y = (list(column) for column in zip(*bars))
    own = [chart.run.spans[n] for n in numbers]
    start, end = np.array([(span.start, span.end) for span in own]).T
    lowest = min(chart.rows.values())
    name, high = f"tasks {chart.name}", max(lowest - BELOW, lowest / 2)
    sheet.progress_bars(
        name,
        Bars(start, end, np.array(y) - 2, high),
        chart.axis,
        fill=(TINTS, [_matter_of(span) for span in own]),
        words=words[numbers],
        key=chart.keys[numbers],
    )
    left, right, middle = (chart.axis.to_x(seconds) for seconds in (start, end, (start + end) / 2))
    if high < NAMED:
        return
    names = [_name_in(span.task, room) for span, room in zip(own, right - left - 8)]
    # On a plate: the play head doesn't run through it. On a phone there is no room for it.
    plate: dict = {"align": "center", "fit": 12, "background_fill_alpha": 0.7}
    text = sheet.text(middle, np.array(y) - 2, names, **plate)
    sheet.paint(text, background_fill_color="page")


def _draw_shared(sheet: Sheet, chart: _Chart, row: str, words: np.ndarray) -> bool:
    """Draw how tasks share a resource: boxes stacked up to its capacity.

    Returns whether it is ever full.
    """
    y = chart.place[row]
    high = chart.rows[row] - 3
    capacity = chart.run.resources[row]
    users = [(n, s) for n, s in enumerate(chart.run.spans) if s.task.uses.get(row)]
    boxes, full = [], []
    for start, end in pairwise(np.unique([t for _, s in users for t in (s.start, s.end)])):
        level, takers = 0.0, 0
        for n, span in users:
            if span.start < end - 1e-12 and span.end > start + 1e-12:
                part = span.task.uses[row] / (span.end - span.start) / capacity
                matter = _matter_of(span)
                boxes.append((start, end, level, min(part, 1 - level), matter, n))
                level, takers = min(1.0, level + part), takers + 1
        if level > 0.995 and takers > 1:
            full.append((start, end))

    start, end, under, height, matters, numbers = (np.array(column) for column in zip(*boxes))
    middle = y + high / 2 - (under + height / 2) * high
    sheet.progress_bars(
        f"{row} {chart.name}",
        Bars(start, end, middle, np.maximum(height * high, 0.3)),
        chart.axis,
        fill=(TINTS, matters),
        words=words[numbers],
        key=chart.keys[numbers],
    )
    over = y - high / 2
    sheet.boxes(f"capacity {row} {chart.name}", LEFT + WIDE / 2, over, WIDE, 1, color="soft")
    if full:
        start, end = np.transpose(full)
        bars = Bars(start, end, over, 3)
        name = f"{row} full {chart.name}"
        sheet.progress_bars(name, bars, chart.axis, color="wait")
    return bool(full)


def _draw_labels(sheet: Sheet, chart: _Chart) -> None:
    """Draw the rows' names and utilizations so far above them, and the result at the end."""
    run = chart.run
    y = [top - NAME / 2 for top, _ in chart.bands.values()]
    sheet.text(LEFT, y, chart.called)

    moments = chart.axis.moments
    uses = [[s.task.uses.get(row, 0) / run.resources[row] for row in chart.rows] for s in run.spans]
    part = [np.clip((moments - s.start) / (s.end - s.start), 0, 1) for s in run.spans]
    so_far = np.minimum(moments, run.seconds).clip(1e-12)[:, np.newaxis]
    percent = _percent(np.transpose(part) @ uses / so_far).clip(0, 100).astype(int)
    names = [f"busy {n} %" for n in range(101)]
    sheet.numbers(f"worked {chart.name}", RIGHT, y, percent, names=names, align="right")

    answer = f"{1e3 * run.seconds:.1f} ms, {run.gflops:,.0f} Gflop/s"
    sheet.numbers(
        f"finish {chart.name}",
        RIGHT,
        chart.title,
        (moments >= run.seconds - 1e-12).astype(int),
        names=["", answer],
        align="right",
        **HEADING,
        color="c",
    )


def _stories(chart: _Chart) -> dict[int, str]:
    """Return a text for each task: what it waited for, and what waited for it."""
    spans = chart.run.spans
    stories = {}
    for n, (span, awaited) in enumerate(zip(spans, chart.run.predecessors)):
        before = "; ".join(_full_name(spans[m].task) for m in awaited) or "nothing"
        late = [later for later, of_later in zip(spans, chart.run.predecessors) if n in of_later]
        after = "; ".join(_full_name(later.task) for later in late) or "nothing"
        stories[int(chart.keys[n])] = (
            f"**{chart.row(span.task)}**, {chart.tip(span)}. It waited for: {before}. What waited"
            f" for it: {after}."
        )
    return stories


def _draw_path(sheet: Sheet, chart: _Chart) -> None:
    """Underline the tasks of the critical path in the last frame."""
    spans = [chart.run.spans[number] for number in chart.run.critical_path()]
    path = [span for span in spans if chart.y(span) is not None]
    if not path:
        return
    y = np.array([chart.y(span) for span in path])
    left, right = chart.axis.to_x(np.array([(span.start, span.end) for span in path]).T)
    last = np.full((FRAMES, 1), np.nan, np.float32)
    last[-1] = 0
    foot = y + min(chart.rows.values()) / 2 - 3
    width = np.maximum(right - left - 2, 1)
    sheet.boxes(f"path {chart.name}", last + (left + right) / 2, foot, width, 3, color="ink")
