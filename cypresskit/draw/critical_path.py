"""What a run's time is made of, and what it would be on a faster bus: one dial turns the bus,
another zooms.

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
ZOOM = 6  # times as large
FAINT = [theme.faded(colour, 0.16) for colour in ("#0072b2", "#e69f00", "#009e73", "#cc79a7")]
PALETTE = [*TINTS[:4], *FAINT]


@dataclass(frozen=True)
class _Window:
    """A part of the time axis, in seconds."""

    start: float
    end: float
    name: str

    def to_x(self, seconds: np.ndarray) -> np.ndarray:
        part = (np.asarray(seconds) - self.start) / (self.end - self.start)
        return LEFT + WIDE * part


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
    """A picture of a timeline's critical path, with a dial for the speed of the bus and one that
    zooms.

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
    windows = _windows(max(run.timeline.seconds for run in runs), timeline.seconds)
    rows = list(dict.fromkeys(map(_row, timeline.spans)))
    sheet = Sheet(f"The critical path of {name}")
    high = ROWS + ROW * len(rows) + 22
    sheet.stage("Tasks of each resource, those of the critical path framed", STAGE, high)
    _draw_speeds(sheet, runs, len(windows))
    _draw_parts(sheet, runs, len(windows))
    _draw_axis(sheet, windows, len(runs), len(rows))
    _draw_rows(sheet, rows)
    _draw_tasks(sheet, runs, windows, rows)
    _draw_path(sheet, runs, windows, rows)
    captions = [run.say(name, timeline) for _ in windows for run in runs]
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
        dials=[
            ("The bus is", [_speed(t) for t in times]),
            ("Seen", [window.name for window in windows]),
        ],
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


def _windows(longest: float, whole: float) -> list[_Window]:
    """The whole time, and parts of it, each half of a part after the one before."""
    long = whole / ZOOM
    starts = np.arange(0, longest - long / 2, long / 2)
    parts = [_Window(t, t + long, f"{1e3 * t:.0f} to {1e3 * (t + long):.0f} ms") for t in starts]
    return [_Window(0.0, longest, "the whole run"), *parts]


def _draw_speeds(sheet: Sheet, runs: Sequence[_Run], windows: int) -> None:
    """A bar of Gflop/s for each bus; that of the dial is full."""
    speeds = np.array([run.timeline.gflops for run in runs])
    room = WIDE / len(runs)
    left = LEFT + room * np.arange(len(runs))
    long = (room - 24) * speeds / speeds.max()
    chosen = np.tile(np.eye(len(runs), dtype=int), (windows, 1))
    sheet.words(LEFT - 12, SPEEDS - 9, "Gflop/s with the bus", "soft", align="right", size=12)
    fill = (["rgba(128,128,128,0.3)", "#0072b2"], chosen)
    sheet.boxes("speeds", left + long / 2, SPEEDS + 8, long, 14, fill=fill)
    texts = [f"{_speed(run.times)}: {speed:.0f}" for run, speed in zip(runs, speeds)]
    sheet.words(left, SPEEDS - 9, texts, size=12)


def _draw_parts(sheet: Sheet, runs: Sequence[_Run], windows: int) -> None:
    """The stages that the path's time is made of, as parts of a bar as long as the slowest run."""
    most = max(run.timeline.seconds for run in runs)
    stages = list(dict.fromkeys(stage for run in runs for stage in run.parts()))
    shape = len(runs), len(stages)
    x, width = np.full(shape, np.nan, np.float32), np.full(shape, 0.01, np.float32)
    kind, shown = np.zeros((2, *shape), int)
    texts = [""]
    for number, run in enumerate(runs):
        left = float(LEFT)
        for stage, (seconds, moved) in run.parts().items():
            long = WIDE * seconds / most
            cell = number, stages.index(stage)
            x[cell] = left + long / 2
            width[cell] = max(long - 1.5, 0.5)
            kind[cell] = moved
            if text := _longest(long, f"{stage} {1e3 * seconds:.1f} ms", stage):
                texts.append(text)
                shown[cell] = len(texts) - 1
            left += long
    again = windows, 1
    sheet.words(LEFT - 12, PARTS, "its critical path", "soft", align="right", size=12)
    fill = (PALETTE, np.tile(kind, again))
    across = np.tile(x, again)
    sheet.boxes("parts", across, PARTS, np.tile(width, again), 24, fill=fill)
    words = sheet.numbers(
        "part names", 0, PARTS, np.tile(shown, again), names=texts, align="center", size=12
    )
    sheet.track(words, "x", across)


def _draw_axis(sheet: Sheet, windows: Sequence[_Window], runs: int, rows: int) -> None:
    """Milliseconds below the rows, those of the window."""
    texts = [""]
    high = ROW * rows
    x = np.full((len(windows), 13), np.nan, np.float32)
    shown = np.zeros(x.shape, int)
    for n, window in enumerate(windows):
        steps = (s * 10.0**power for power in range(-9, 9) for s in (1, 2, 5))
        step = next(s for s in steps if (window.end - window.start) / s < 12)
        first = np.ceil(window.start / step - 1e-9)
        ticks = step * np.arange(first, window.end / step + 1e-9)
        x[n, : len(ticks)] = window.to_x(ticks)
        shown[n, : len(ticks)] = len(texts) + np.arange(len(ticks))
        texts += [f"{1e3 * tick:g}" for tick in np.abs(np.round(ticks, 9))]
    across = np.repeat(x, runs, axis=0)
    sheet.boxes("ticks", across, ROWS + high / 2, 1, high, ink="line", alpha=0.6)
    named = np.repeat(shown, runs, axis=0)
    source = sheet.numbers(
        "tick names", 0, ROWS + high + 11, named, names=texts, ink="soft", align="center", size=12
    )
    sheet.track(source, "x", across)
    sheet.words(LEFT - 24, ROWS + high + 11, "milliseconds", "soft", align="right", size=12)


def _draw_rows(sheet: Sheet, rows: Sequence[str]) -> None:
    y = _middle(np.arange(len(rows)))
    sheet.boxes("rows", LEFT + WIDE / 2, y, WIDE, ROW - 6, ink="faint", alpha=0.4)
    sheet.words(LEFT - 12, y, list(rows), align="right", size=14)


def _middle(row):
    return ROWS + ROW * (row + 0.5)


def _draw_tasks(
    sheet: Sheet, runs: Sequence[_Run], windows: Sequence[_Window], rows: Sequence[str]
) -> None:
    """A bar for each task, framed on the critical path, with its name where there is room."""
    shape = len(windows), len(runs), len(runs[0].spans)
    x, width = np.full(shape, np.nan, np.float32), np.full(shape, 0.01, np.float32)
    kind, named, frame, text_row = np.zeros((4, *shape), int)
    names = [""]
    texts = []
    order = [id(span.task) for span in runs[0].spans]  # every run has the same tasks
    y = [_middle(rows.index(_row(span))) for span in runs[0].spans]
    for r, run in enumerate(runs):
        for number, span in enumerate(run.spans):
            task = order.index(id(span.task))
            on = number in run.path
            texts.append(_say_task(span, on))
            for w, window in enumerate(windows):
                start, end = np.clip((span.start, span.end), window.start, window.end)
                cell = w, r, task
                text_row[cell] = len(texts) - 1
                if end <= start:
                    continue
                left, right = window.to_x(np.array([start, end]))
                x[cell] = (left + right) / 2
                width[cell] = max(right - left - 1.5, 0.6)
                kind[cell] = min(matter_of(span), 3) + 4 * (not on)
                frame[cell] = 2 * on
                text = _longest(right - left, span.task.name, span.task.label, span.task.stage)
                if text and text not in names:
                    names.append(text)
                named[cell] = names.index(text)

    def by_frame(values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, shape[-1])

    source = sheet.boxes(
        "tasks",
        by_frame(x),
        y,
        by_frame(width),
        ROW - 10,
        fill=(PALETTE, by_frame(kind)),
        words=(texts, by_frame(text_row)),
        columns={"frame": by_frame(frame)},
    )
    sheet.ring(source, "w", ROW - 10, "frame", "ink")
    words = sheet.numbers("names", 0, 0, by_frame(named), names=names, align="center", size=12)
    words.data["y"] = y
    sheet.track(words, "x", by_frame(x))


def _longest(room: float, *texts: str) -> str:
    """The first of several texts that fits into so many pixels; empty if none does."""
    return next((text for text in texts if 7.2 * len(text) + 6 < room), "")


def _say_task(span: Span, on: bool) -> str:
    start, end = 1e3 * span.start, 1e3 * span.end
    path = "on the critical path" if on else "others are waited for"
    when = f"{start:.1f} to {end:.1f} ms, {end - start:.1f} long"
    return f"{span.task.name}{spelled(span.task)}: {when}; {path}"


def _draw_path(
    sheet: Sheet, runs: Sequence[_Run], windows: Sequence[_Window], rows: Sequence[str]
) -> None:
    """A line from each task of the path to the next, where that is in another row."""
    most = max(len(run.path) for run in runs)
    ends = np.full((4, len(windows), len(runs), most), np.nan, np.float32)
    for r, run in enumerate(runs):
        path = [run.spans[number] for number in run.path]
        for n, (early, late) in enumerate(pairwise(path)):
            for w, window in enumerate(windows):
                if not window.start <= late.start <= window.end:
                    continue
                x = window.to_x(np.array(late.start))
                y = [_middle(rows.index(_row(span))) for span in (early, late)]
                ends[:, w, r, n] = x, y[0], x, y[1]
    by_frame = ends.reshape(4, -1, most)
    sheet.arrows("path", by_frame[:2], by_frame[2:], width=2, size=5)
