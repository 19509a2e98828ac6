"""What a run's time is made of, and what it would be on a faster bus, which a dial turns.

From a timeline of ``host``. The critical path are the tasks that began at the moment when the one
before had ended; their times add up to the run's. Each setting of the bus is a run of the model.
Left out: how much later a task off the path could be.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.pipelines import MATTERS, TINTS, matter_of, spelled
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.host import Span, Timeline

LEFT, WIDE, STAGE = 196, 850, 1100  # the rows' left edge and width, and the stage's width
SPEEDS, PARTS, ROWS, ROW = 32, 84, 122, 38  # the y of bars, of the path's parts, of rows; a row's
BUS = ("PCIe", "DMA", "bus")  # what a resource of the bus begins with
TIMES = (0.5, 1.0, 2.0, 4.0, 8.0)  # as fast
FAINT = [theme.faded(colour, 0.16) for colour in ("#0072b2", "#e69f00", "#009e73", "#cc79a7")]
PALETTE = [*TINTS[:4], *FAINT]


@dataclass(frozen=True)
class _Run:
    """The plan, run on a bus that is so many times as fast."""

    times: float
    timeline: Timeline

    @cached_property
    def path(self) -> tuple[int, ...]:
        return self.timeline.critical_path()

    @property
    def spans(self) -> Sequence[Span]:
        return self.timeline.spans

    def parts(self) -> dict[str, tuple[float, int]]:
        """The path's seconds by stage, the longest first, and what each moves or does."""
        parts: dict[str, tuple[float, int]] = {}
        for number in self.path:
            span = self.spans[number]
            seconds, _ = parts.get(span.task.stage, (0.0, 0))
            parts[span.task.stage] = seconds + span.end - span.start, matter_of(span)
        return dict(sorted(parts.items(), key=lambda part: -part[1][0]))

    def say(self, name: str, plain: Timeline) -> str:
        """What the run has come to, beside that on the ``plain`` bus."""
        run = self.timeline
        longest = list(self.parts().items())[:3]
        shares = ", ".join(f"{stage} {100 * s / run.seconds:.0f} %" for stage, (s, _) in longest)
        change = 100 * (run.gflops / plain.gflops - 1)
        moved = "" if self.times == 1 else f", {change:+.1f} %".replace("-", "\N{MINUS SIGN}")
        speed = f"{1e3 * run.seconds:.1f} ms, {run.gflops:.0f} Gflop/s{moved}"
        return f"**{name}**, the bus {_speed(self.times)}: {speed}. Its critical path: {shares}."


def critical_path(timeline: Timeline, *, name: str = "the run", times=TIMES) -> Player:
    """A picture of a timeline's critical path, with a dial for the speed of the bus.

    Parameters
    ----------
    timeline
        A run of ``host``.
    name
        What it is called.
    times
        How many times as fast the bus can be made: numbers above 0, among them 1.

    Raises
    ------
    ValueError
        For a timeline without tasks or without a bus, and for ``times`` without 1.

    Examples
    --------
        ck.draw.critical_path(ck.host.five_stage(6144, 6144, 2048, ck.host.Machine()))
    """
    nonempty([timeline], "pass a timeline of ck.host", Timeline)
    nonempty(timeline.spans, "a timeline needs at least one task")
    bus = [row for row in timeline.resources if row.startswith(BUS)]
    if not bus:
        raise ValueError(f"there is no bus among {', '.join(timeline.resources)}: no {BUS}")
    if 1 not in times:
        raise ValueError(f"times = {times!r}: 1, the bus as it is, has to be among them")
    runs = [_Run(t, timeline.faster(dict.fromkeys(bus, t))) for t in times]
    longest = max(run.timeline.seconds for run in runs)
    rows = list(dict.fromkeys(map(_row, timeline.spans)))
    sheet = Sheet(f"The critical path of {name}")
    high = ROWS + ROW * len(rows) + 22
    sheet.stage("Tasks of each resource, those of the critical path framed", STAGE, high)
    _draw_speeds(sheet, runs)
    _draw_parts(sheet, runs, longest)
    foot = ROWS + ROW * len(rows)
    sheet.ticks((LEFT, LEFT + WIDE), 1e3 * longest, [(ROWS, foot)], foot + 11)
    sheet.words(LEFT - 24, foot + 11, "milliseconds", "soft", align="right", size=12)
    _draw_rows(sheet, rows)
    _draw_tasks(sheet, runs, longest, rows)
    _draw_path(sheet, runs, longest, rows)
    captions = [run.say(name, timeline) for run in runs]
    lines = [run.say(name, timeline).replace("**", "") for run in runs]
    moved = {matter_of(span) for span in timeline.spans}
    legend = sheet.legend(
        *((MATTERS[n], TINTS[n], "box") for n in sorted(moved)),
        ("on the critical path", "ink", "ring"),
    )
    return sheet.player(
        captions,
        lines,
        below=[legend],
        dials=[("The bus is", [_speed(t) for t in times])],
        still_frame=list(times).index(1),
    )


def _speed(times: float) -> str:
    return "as it is" if times == 1 else f"{times:g} times as fast"


def _row(span: Span) -> str:
    """The row of a task: its queue's or, in a program that does one thing at a time, that of the
    unit it uses.
    """
    used = list(span.task.uses)
    return span.task.queue if span.task.queue in used else used[-1]


def _draw_speeds(sheet: Sheet, runs: Sequence[_Run]) -> None:
    """A bar of Gflop/s for each bus; that of the dial is full."""
    speeds = np.array([run.timeline.gflops for run in runs])
    room = WIDE / len(runs)
    left = LEFT + room * np.arange(len(runs))
    long = (room - 24) * speeds / speeds.max()
    chosen = np.eye(len(runs), dtype=int)
    sheet.words(LEFT - 12, SPEEDS - 9, "Gflop/s with the bus", "soft", align="right", size=12)
    fill = (["rgba(128,128,128,0.3)", "#0072b2"], chosen)
    sheet.boxes("speeds", left + long / 2, SPEEDS + 8, long, 14, fill=fill)
    texts = [f"{_speed(run.times)}: {speed:.0f}" for run, speed in zip(runs, speeds)]
    sheet.words(left, SPEEDS - 9, texts, size=12)


def _draw_parts(sheet: Sheet, runs: Sequence[_Run], longest: float) -> None:
    """The stages that the path's time is made of, as parts of a bar as long as the slowest run."""
    stages = list(dict.fromkeys(stage for run in runs for stage in run.parts()))
    shape = len(runs), len(stages)
    x, width = np.full(shape, np.nan, np.float32), np.full(shape, 0.01, np.float32)
    kind, shown = np.zeros((2, *shape), int)
    texts = [""]
    for number, run in enumerate(runs):
        left = float(LEFT)
        for stage, (seconds, moved) in run.parts().items():
            long = WIDE * seconds / longest
            cell = number, stages.index(stage)
            x[cell] = left + long / 2
            width[cell] = max(long - 1.5, 0.5)
            kind[cell] = moved
            if text := _longest(long, f"{stage} {1e3 * seconds:.1f} ms", stage):
                texts.append(text)
                shown[cell] = len(texts) - 1
            left += long
    sheet.words(LEFT - 12, PARTS, "its critical path", "soft", align="right", size=12)
    sheet.boxes("parts", x, PARTS, width, 24, fill=(PALETTE, kind))
    words = sheet.numbers("part names", 0, PARTS, shown, names=texts, align="center", size=12)
    sheet.track(words, "x", x)


def _draw_rows(sheet: Sheet, rows: Sequence[str]) -> None:
    y = _middle(np.arange(len(rows)))
    sheet.boxes("rows", LEFT + WIDE / 2, y, WIDE, ROW - 6, ink="faint", alpha=0.4)
    sheet.words(LEFT - 12, y, list(rows), align="right", size=14)


def _middle(row):
    return ROWS + ROW * (row + 0.5)


def _to_x(seconds, longest: float):
    """The x of a moment, if the slowest run takes all of the width."""
    return LEFT + WIDE * np.asarray(seconds) / longest


def _draw_tasks(sheet: Sheet, runs: Sequence[_Run], longest: float, rows: Sequence[str]) -> None:
    """A bar for each task, framed on the critical path, with its name where there is room."""
    shape = len(runs), len(runs[0].spans)
    x, width = np.zeros((2, *shape), np.float32)
    kind, named, frame, text_row = np.zeros((4, *shape), int)
    names = [""]
    texts = []
    order = [id(span.task) for span in runs[0].spans]  # every run has the same tasks
    y = [_middle(rows.index(_row(span))) for span in runs[0].spans]
    for r, run in enumerate(runs):
        for number, span in enumerate(run.spans):
            cell = r, order.index(id(span.task))
            on = number in run.path
            texts.append(_say_task(span, on))
            left, right = _to_x([span.start, span.end], longest)
            x[cell] = (left + right) / 2
            width[cell] = max(right - left - 1.5, 0.6)
            kind[cell] = min(matter_of(span), 3) + 4 * (not on)
            frame[cell] = 2 * on
            text_row[cell] = len(texts) - 1
            text = _longest(right - left, span.task.name, span.task.label, span.task.stage)
            if text and text not in names:
                names.append(text)
            named[cell] = names.index(text)
    source = sheet.boxes(
        "tasks",
        x,
        y,
        width,
        ROW - 10,
        fill=(PALETTE, kind),
        words=(texts, text_row),
        columns={"frame": frame},
    )
    sheet.ring(source, "w", ROW - 10, "frame", "ink")
    words = sheet.numbers("names", 0, 0, named, names=names, align="center", size=12)
    words.data["y"] = y
    sheet.track(words, "x", x)


def _longest(room: float, *texts: str) -> str:
    """The first of several texts that fits into so many pixels; empty if none does."""
    return next((text for text in texts if 7.2 * len(text) + 6 < room), "")


def _say_task(span: Span, on: bool) -> str:
    start, end = 1e3 * span.start, 1e3 * span.end
    path = "on the critical path" if on else "others are waited for"
    when = f"{start:.1f} to {end:.1f} ms, {end - start:.1f} long"
    return f"{span.task.name}{spelled(span.task)}: {when}; {path}"


def _draw_path(sheet: Sheet, runs: Sequence[_Run], longest: float, rows: Sequence[str]) -> None:
    """A line from each task of the path to the next, where that is in another row."""
    ends = np.full((4, len(runs), max(len(run.path) for run in runs)), np.nan, np.float32)
    for r, run in enumerate(runs):
        path = [run.spans[number] for number in run.path]
        for n, (early, late) in enumerate(pairwise(path)):
            x = _to_x(late.start, longest)
            y = [_middle(rows.index(_row(span))) for span in (early, late)]
            ends[:, r, n] = x, y[0], x, y[1]
    sheet.arrows("path", ends[:2], ends[2:], width=2, size=5)
