"""Host pipelines over time: above, blocks moving from stage to stage; below, a row for each
resource.

A resource used by one queue alone (a chip, a DMA engine, a thread) shows that queue's tasks; a
shared one (the bus, the host's memory) shows how much each task takes of its capacity. A click on a
task shows what it waited for, and what waited for it. Timelines share one clock. Left out: how a
task's share varies while it runs; its average is drawn.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis, nonempty
from cypresskit.host import Machine, Span, Task, Timeline, five_stage, four_stage

FRAMES = 240  # moments
LEFT = 196  # pixels: the rows' left edge
WIDE = 850  # pixels: their width
HIGH = 480  # pixels
ROAD = 78  # pixels: the road of stages above the rows
SHARED = 1.5  # times as high as another is a row that shows shares
RIGHT = LEFT + WIDE
STAGE = RIGHT + 54  # the stage's width
STATIONS = {"program's memory": 0.07, "pinned memory": 0.37, "card's memory": 0.65, "chip": 0.88}
# Where a stage takes its block from, and to.
ROUTES = {
    "load1": (0, 1),
    "load2": (1, 2),
    "send": (0, 2),
    "mult": (3, 3),
    "mult1": (3, 3),
    "store1": (2, 1),
    "store2": (1, 0),
    "store": (1, 0),
    "fetch": (2, 0),
    "cpu": (0, 0),
}
MATTERS = (
    "A",
    "B",
    "C",
    "the product",
    "the product, slower per flop",
)  # what a task moves, or does
TINTS = [
    theme.faded(colour, 0.65) for colour in ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8f8a7c")
]
PRODUCTS = ("mult", "mult1", "cpu")
CLOSE = 1e-9  # seconds: one task begins when another ends


def timeline(*timelines: Timeline, names: tuple[str, ...] = ()) -> Player:
    """A player over one or more timelines, one below the other, on one clock.

    Without timelines: the four-stage and the five-stage pipeline on an HD 5970, m = n = 8192, k =
    2048. ``names`` are their headings. Raises ``ValueError`` for a timeline without tasks, and for
    more names than timelines.
    """
    if len(names) > len(timelines):
        raise ValueError(
            f"names has {len(names)} headings for {len(timelines)} timelines: pass a timeline for"
            f" each, as in ck.draw.timeline(mine, names=({names[0]!r},))"
        )
    if not timelines:
        machine = Machine()
        names = ("four stages, without the texture cache", "five stages, with it")
        timelines = four_stage(8192, 8192, 2048, machine), five_stage(8192, 8192, 2048, machine)
    for run in nonempty(timelines, "pass timelines of ck.host", Timeline):
        nonempty(run.spans, "a timeline needs at least one task")
    names = *names, *(f"timeline {n + 1}" for n in range(len(names), len(timelines)))
    sheet = Sheet("Timeline: " + " and ".join(names))
    end = max(run.seconds for run in timelines)
    shared = {row for run in timelines for row in _rows(run) if _shared(run, row)}
    paces = [_pace(run) for run in timelines]
    fastest = min((pace for pace in paces if pace), default=0.0)
    slower = [pace / fastest if pace > 1.05 * fastest else 0.0 for pace in paces]
    # Of one product done in several ways, it is asked which is done first, and nothing tells before
    # that time has come.
    race = len(timelines) > 1 and len({run.flops for run in timelines}) == 1
    panels = [
        _Chart(n, *parts, end, shared, race)
        for n, parts in enumerate(zip(names, timelines, slower))
    ]
    count = sum(sum(panel.rows.values()) for panel in panels)
    row = min(20.0, (HIGH - len(panels) * ROAD) / count)
    label = "; ".join(
        f"{panel.name}: blocks on their way, and tasks of each resource" for panel in panels
    )
    high = len(panels) * ROAD + count * row
    sheet.stage(label, STAGE, high + 18, most=min(1.06, 430 / (high + 18)))
    heights = [ROAD + row * sum(panel.rows.values()) for panel in panels]
    tops = np.cumsum([0.0, *heights])[:-1].tolist()
    bands = [band for panel, top in zip(panels, tops) for band in panel.bands(top, row).values()]
    sheet.ticks((LEFT, RIGHT), 1e3 * end, bands, high + 9)
    sheet.words(LEFT - 24, high + 9, "milliseconds:", "soft", align="right", size=12)
    any_full = False
    for panel, top in zip(panels, tops):
        any_full |= panel.draw(sheet, top, row)
    moments = np.linspace(0, end, FRAMES)
    captions = [
        f"At {1e3 * t:.1f} ms. " + "\n".join(panel.say(t) for panel in panels) for t in moments
    ]
    if race:
        captions[-1] += "\n" + _winner(panels)
    lines = (line for panel in panels for line in panel.text())
    shown = 4 + any(slower)
    full = [("full: each gets less of it", "wait", "box")] * any_full
    line = [("all that it can carry", "soft", "solid")] * bool(shared)
    legend = sheet.legend(
        *((words, tint, "box") for words, tint in zip(MATTERS[:shown], TINTS)), *line, *full
    )
    starts = sorted({s.start for s in timelines[0].spans})
    marks = sorted(set(np.searchsorted(moments, starts).clip(0, FRAMES - 1).tolist()))
    if any(len(span.task.place) > 2 for run in timelines for span in run.spans):
        abbreviations = sheet.note("A[i], B[chip.j]; AB and C[chip.unit.part]: of a work unit")
        legend += f" &ensp;{abbreviations}"
    guess = _question(panels) if race else None
    return sheet.player(captions, lines, step="Moment", below=[legend], marks=marks, guess=guess)


def _winner(panels: Sequence["_Chart"]) -> str:
    """The run that ended first, and by how much before the last."""
    first, *_, last = sorted(panels, key=lambda panel: panel.run.seconds)
    times = last.run.seconds / first.run.seconds
    return f"**{first.name}** ended first: {times:.2f} times as fast as {last.name}."


def _question(panels: Sequence["_Chart"]) -> Guess:
    first, *others = sorted(panels, key=lambda panel: panel.run.seconds)
    ends = [
        f"{other.name} takes {other.run.seconds / first.run.seconds:.2f} times as long"
        for other in others
    ]
    truth = f"after {1e3 * first.run.seconds:.0f} ms; {', '.join(ends)}."
    return Guess("Which run ends first?", [panel.name for panel in panels], truth, first.name)


def _rows(run: Timeline) -> list[str]:
    """The resources that are used, in the order of their first use."""
    begun: dict[str, float] = {}
    for span in run.spans:
        for name in (name for name, amount in span.task.uses.items() if amount):
            begun[name] = min(span.start, begun.get(name, span.start))
    return sorted(begun, key=lambda name: (begun[name], name))


def _shared(run: Timeline, name: str) -> bool:
    """Whether a resource is used by several queues, or by one that has a resource of its own name
    besides.
    """
    queues = {span.task.queue for span in run.spans if span.task.uses.get(name)}
    return len(queues) > 1 or bool((queues - {name}) & set(run.resources))


def _pace(run: Timeline) -> float:
    """The chips' seconds per flop; 0 if a CPU does a part of the work."""
    spans = [span for span in run.spans if span.task.stage in PRODUCTS]
    alone = run.flops and not any(span.task.stage == "cpu" for span in spans)
    return (
        sum(span.task.uses.get(span.task.queue, 0.0) for span in spans) / run.flops
        if alone
        else 0.0
    )


def matter_of(span: Span, slower: float = 0) -> int:
    """The index in ``MATTERS`` of what a task moves (A, B, C) or does."""
    if span.task.stage in PRODUCTS:
        return 4 if slower else 3
    return {"A": 0, "B": 1}.get(span.task.matrix, 2)


def spelled(task: Task) -> str:
    """What the numbers in the name of a pipeline's unit are, in brackets; nothing for others."""
    if task.matrix not in ("C", "AB") or len(task.place) < 3:
        return ""
    names = ("chip", "unit", "part", "sub-block")
    return f" ({', '.join(f'{name} {n}' for name, n in zip(names, task.place))})"


def _label(task: Task) -> str:
    """What a task works on, in few letters: ``A[0]``, ``AB[1.0.0.3]``; a prime for each sum after
    the first.
    """
    return task.label or task.name


def _needs(late: Task, early: Task) -> bool:
    touched = {*late.reads, *late.writes}
    return (
        early.queue == late.queue
        or not touched.isdisjoint(early.writes)
        or not set(early.reads).isdisjoint(late.writes)
    )


def task_fill(spans: Sequence[Span], slower: float = 0) -> tuple:
    """The ``fill`` of tasks' boxes: by what each moves or does; see ``_Chart.slower``."""
    return TINTS, [matter_of(span, slower) for span in spans]


def draw_tasks(
    sheet: Sheet,
    name: str,
    spans: Sequence[Span],
    rows: tuple,
    axis: TimeAxis,
    *,
    future: str = "",
    **style,
) -> None:
    """Draw a bar for each task, with its name if there is room. ``rows`` are the bars' y and their
    height, ``axis`` is in seconds; the rest is as for ``Sheet.progress_bars``.
    """
    y, height = rows
    start = np.array([span.start for span in spans])
    end = np.array([span.end for span in spans])
    sheet.progress_bars(name, Bars(start, end, y, height), axis, future=future, **style)
    left, right, middle = (axis.to_x(seconds) for seconds in (start, end, (start + end) / 2))
    names = [_name_in(span, room) for span, room in zip(spans, right - left - 8)]
    name_ends = middle + 3.4 * np.array([len(text) for text in names]) + 3
    come = axis.to_x(axis.moments)[:, np.newaxis] >= (name_ends if future else -np.inf)
    shown = np.where(come, np.arange(1, len(spans) + 1), 0)
    sheet.numbers(f"labels {name}", middle, y, shown, names=["", *names], size=12, align="center")


def _name_in(span: Span, room: float) -> str:
    """The longest of a task's names that fits into a bar."""
    for text in (span.task.name, _label(span.task)):
        if 6.8 * len(text) < room:
            return text
    return ""


class _Road:
    """The road between the stations at height ``y``: where the blocks of each queue are on it."""

    def __init__(self, y: float, tasks: Sequence[Task]) -> None:
        self.y = y
        self.stops = [LEFT + part * WIDE for part in STATIONS.values()]
        self.chip = {task.queue: -1 if task.chip is None else task.chip for task in tasks}
        self.queues = list(self.chip)
        self.last_chip = max(self.chip.values())

    def _has_lane(self, queue: str) -> bool:
        """Whether a queue works for one of several chips."""
        return self.last_chip > 0 <= self.chip[queue]

    def lane(self, queue: str) -> float:
        """The y of a queue's blocks: those of two chips are one above the other."""
        if not self._has_lane(queue):
            return self.y
        return self.y + 18 * (self.chip[queue] - self.last_chip / 2)

    def aside(self, queue: str) -> float:
        """How far a queue's blocks are from the road's middle, so that those of one lane are all
        seen.
        """
        return 0 if self._has_lane(queue) else 9 * (self.queues.index(queue) % 3 - 1)

    def way(self, span: Span, moments: np.ndarray) -> np.ndarray:
        """The x of a task's block at some moments, on its way from stop to stop."""
        start, end = (self.stops[stop] for stop in ROUTES[span.task.stage])
        part = np.minimum((moments - span.start) / (span.end - span.start), 1)
        return start + part * (end - start)


@dataclass(frozen=True, eq=False)
class _Chart:
    """One timeline in the picture: its heading, its road of stages, its rows of resources."""

    number: int
    name: str
    run: Timeline
    slower: float  # times as long per flop as the fastest beside it; 0 if it is no slower
    end: float  # of the longest timeline, in seconds
    together: set[str]  # resources that are shared in some timeline
    hides: bool = False  # whether tasks are invisible until they begin

    @cached_property
    def rows(self) -> dict[str, float]:
        """The resources with their heights, in rows; shared ones are higher, and come last."""
        rows = {name: SHARED if name in self.together else 1.0 for name in _rows(self.run)}
        return dict(sorted(rows.items(), key=lambda row: row[1]))

    @cached_property
    def keys(self) -> np.ndarray:
        return 10_000 * self.number + np.arange(len(self.run.spans))

    @property
    def future(self) -> str:
        return "hidden" if self.hides else ""

    @property
    def axis(self) -> TimeAxis:
        return TimeAxis(self.moments, self.to_x)

    @property
    def moments(self) -> np.ndarray:
        return np.linspace(0, self.end, FRAMES)

    def to_x(self, seconds):
        return LEFT + np.asarray(seconds) / self.end * WIDE

    def causes(self) -> list[tuple[int, int]]:
        """(earlier, later) for each task that began the moment a task it depends on ended: the one
        before it in its queue, the writer of what it reads, or a user of what it overwrites.
        """
        spans = self.run.spans
        close = CLOSE * max(1.0, self.end)
        pairs = [
            (m, n)
            for n, late in enumerate(spans)
            for m, early in enumerate(spans)
            if m != n and abs(early.end - late.start) < close
        ]
        return [(m, n) for m, n in pairs if _needs(spans[n].task, spans[m].task)]

    def row(self, task: Task) -> str:
        """The row that shows a task: its queue's or, in a serial program, that of the resource it
        uses.
        """
        own = [name for name in task.uses if name not in self.together]
        return task.queue if task.queue in self.run.resources or not own else own[-1]

    def bands(self, top: float, row: float) -> dict[str, tuple[float, float]]:
        """The upper and the lower y of each row."""
        ends = top + ROAD - 4 + row * np.cumsum([0, *self.rows.values()])
        return dict(zip(self.rows, pairwise(ends.tolist())))

    def draw(self, sheet: Sheet, top: float, row: float) -> bool:
        """Draw the timeline. Returns whether a shared resource is full at some time."""
        sheet.words(4, top + 12, self.name, bold=True, size=14)
        spans = self.run.spans
        words = np.array([self._tip(s) for s in self.run.spans])
        bands = self.bands(top, row)
        place = {name: (high + low) / 2 for name, (high, low) in bands.items()}
        sheet.play_head(
            f"head {self.name}",
            np.tile(self.to_x(self.moments)[:, np.newaxis], len(place)),
            np.array(list(place.values())),
            np.array([low - high for high, low in bands.values()]),
        )
        self._draw_road(sheet, top + 24)
        is_full = False
        for name, y in place.items():
            high = self.rows[name] * row - 3
            sheet.boxes(
                f"row {name} {self.name}", LEFT + WIDE / 2, y, WIDE, high, ink="faint", alpha=0.4
            )
            if name in self.together:
                is_full |= self._draw_shared(sheet, name, y, high, words)
        bars = [
            (n, y)
            for name, y in place.items()
            if name not in self.together
            for n, span in enumerate(spans)
            if span.task.uses.get(name)
        ]
        if bars:
            at, down = (list(column) for column in zip(*bars))
            own = [spans[n] for n in at]
            draw_tasks(
                sheet,
                f"tasks {self.name}",
                own,
                (down, row - 4),
                self.axis,
                future=self.future,
                fill=task_fill(own, self.slower),
                words=words[at],
                key=self.keys[at],
            )
        self._draw_labels(sheet, place, top)
        self._draw_causes(sheet, place)
        return is_full

    def _draw_causes(self, sheet: Sheet, place: dict[str, float]) -> None:
        """Draw arrows to a chosen task from those that it waited for, and from it to those that
        waited for it.
        """
        spans = self.run.spans
        pairs = self.causes()
        y = [next(y for row, y in place.items() if span.task.uses.get(row)) for span in spans]
        ends = [
            (self.to_x(spans[m].end) - 3, y[m], self.to_x(spans[n].start) + 3, y[n])
            for m, n in pairs
        ]
        arrow = np.tile(np.array(ends, np.float32).reshape(-1, 4).T, 2)
        sheet.arrows(
            f"causes {self.name}",
            (arrow[0], arrow[1]),
            (arrow[2], arrow[3]),
            key=[self.keys[p[which]] for which in (1, 0) for p in pairs],
        )
        for n, span in enumerate(spans):
            before = ", ".join(spans[m].task.name for m, late in pairs if late == n) or "nothing"
            after = ", ".join(spans[late].task.name for m, late in pairs if m == n) or "nothing"
            story = (
                f"**{self.row(span.task)}**, {self._tip(span)}. Waited for: {before}. Waits for it:"
                f" {after}."
            )
            sheet.about[int(self.keys[n])] = story

    def _draw_labels(self, sheet: Sheet, place: dict[str, float], top: float) -> None:
        """Draw the rows' names, the share of the time so far that each has worked, and a mark on
        the busiest.
        """
        y = list(place.values())
        right = LEFT + WIDE
        moments = self.moments
        stages = {
            row: dict.fromkeys(s.task.stage for s in self.run.spans if self.row(s.task) == row)
            for row in place
        }
        called = [f"{row}: {', '.join(stages[row])}" if stages[row] else row for row in place]
        sheet.words(LEFT - 8, y, called, align="right", size=12)
        sheet.words(right + 46, top + ROAD - 13, "worked", "soft", align="right", size=12)
        capacity = {row: self.run.resources[row].capacity for row in place}
        uses = [[s.task.uses.get(row, 0) / capacity[row] for row in place] for s in self.run.spans]
        part = [np.clip((moments - s.start) / (s.end - s.start), 0, 1) for s in self.run.spans]
        so_far = np.minimum(moments, self.run.seconds).clip(1e-12)[:, np.newaxis]
        percent = np.round(100 * np.transpose(part) @ uses / so_far).clip(0, 100).astype(int)
        names = [f"{n} %" for n in range(101)]
        sheet.numbers(
            f"worked {self.name}", right + 44, y, percent, names=names, align="right", size=12
        )
        over = (moments >= self.run.seconds - 1e-12)[:, np.newaxis] * np.array(
            [row == self.run.bound for row in place]
        )
        mark = ["", "\N{BLACK RIGHT-POINTING TRIANGLE}"]
        sheet.numbers(f"binds {self.name}", 4, y, over, names=mark, bold=True, size=12)
        answer = (
            f"{1e3 * self.run.seconds:.1f} ms, {self.run.gflops:.0f} Gflop/s, busiest:"
            f" {self.run.bound}, {100 * self.run.busy[self.run.bound]:.0f} %"
        )
        sheet.numbers(
            f"finish {self.name}",
            right,
            top + 10,
            over.any(axis=1),
            names=["", answer],
            align="right",
            bold=True,
            size=14,
            ink="c",
        )

    def _draw_shared(
        self, sheet: Sheet, row: str, y: float, high: float, words: np.ndarray
    ) -> bool:
        """Draw the use of a shared resource: a stack of boxes between any two events, under its
        capacity. Returns whether it is full at some time.
        """
        users = [(n, s) for n, s in enumerate(self.run.spans) if s.task.uses.get(row)]
        boxes, full = [], []
        for start, end in pairwise(np.unique([t for _, s in users for t in (s.start, s.end)])):
            level, takers = 0.0, 0
            for n, s in users:
                if s.start < end - 1e-12 and s.end > start + 1e-12:
                    part = s.task.uses[row] / (s.end - s.start) / self.run.resources[row].capacity
                    boxes.append(
                        (start, end, level, min(part, 1 - level), matter_of(s, self.slower), n)
                    )
                    level, takers = min(1.0, level + part), takers + 1
            if level > 0.995 and takers > 1:
                full.append((start, end))
        start, end, under, height, matter, at = (np.array(column) for column in zip(*boxes))
        middle = y + high / 2 - (under + height / 2) * high
        sheet.progress_bars(
            f"{row} {self.name}",
            Bars(start, end, middle, np.maximum(height * high, 0.3)),
            self.axis,
            future=self.future,
            fill=(TINTS, matter),
            words=words[at],
            key=self.keys[at],
        )
        sheet.boxes(
            f"capacity {row} {self.name}", LEFT + WIDE / 2, y - high / 2, WIDE, 1, ink="soft"
        )
        if full:
            start, end = np.transpose(full)
            bars = Bars(start, end, y - high / 2, 3)
            name = f"{row} full {self.name}"
            sheet.progress_bars(name, bars, self.axis, future=self.future, ink="wait")
        return bool(full)

    def _draw_road(self, sheet: Sheet, top: float) -> None:
        """Draw the stages' stations, and each queue's block on the road between two of them."""
        road = _Road(top + 29, [span.task for span in self.run.spans])
        self._draw_stations(sheet, road)

        # A queue's blocks take turns in two boxes, so that none goes back to where it began.
        shape = FRAMES, 2 * len(road.queues)
        place = np.full(shape, np.nan, np.float32)
        label, matter, key = np.zeros((3, *shape), int)
        key -= 1
        names = ["", *dict.fromkeys(_label(span.task) for span in self.run.spans)]
        turns = Counter[str]()
        for span, chosen in zip(self.run.spans, self.keys):
            queue = span.task.queue
            box = 2 * road.queues.index(queue) + turns[queue] % 2
            turns[queue] += 1
            if span.task.stage not in ROUTES:
                continue
            now = self._frames_of(span)
            place[now, box] = road.way(span, self.moments[now]) + road.aside(queue)
            label[now, box] = names.index(_label(span.task))
            matter[now, box] = matter_of(span, self.slower)
            key[now, box] = chosen

        width = max(38, 8 + 7 * max(map(len, names)))  # of a block, with its name
        y = np.repeat([road.lane(queue) for queue in road.queues], 2)
        look: dict = {"round": 3, "moves": ("x",)}
        sheet.boxes(f"under {self.name}", place, y, width, 17, ink="faint", **look)
        sheet.boxes(
            f"blocks {self.name}", place, y, width, 17, fill=(TINTS, matter), key=key, **look
        )
        words = sheet.numbers(
            f"names {self.name}", 0, y, label, names=names, size=12, align="center"
        )
        sheet.track(words, "x", place, moves=True)

    def _draw_stations(self, sheet: Sheet, road: "_Road") -> None:
        """Draw the road and those of its stations at which a task stops."""
        used = sorted({n for span in self.run.spans for n in ROUTES.get(span.task.stage, ())})
        x = [road.stops[n] for n in used]
        names = [list(STATIONS)[n] for n in used]
        sheet.boxes(f"road {self.name}", LEFT + WIDE / 2, road.y, WIDE * 0.9, 2, ink="line")
        sheet.boxes(f"stations {self.name}", x, road.y, 118, 40, ink="faint", line="line", round=5)
        sheet.words(x, road.y - 28, names, "soft", align="center", size=12)

    def _frames_of(self, span: Span) -> np.ndarray:
        """The frames in which a task's block is on the road; a run's last one stays."""
        stays = span.end >= self.run.seconds
        now = (self.moments >= span.start) & ((self.moments <= span.end) | stays)
        return np.flatnonzero(now)

    def _slow(self, span: Span) -> str:
        return f", a kernel {self.slower:.1f} times slower per flop" * (
            self.slower > 0 and span.task.stage in PRODUCTS
        )

    def _tip(self, span: Span) -> str:
        took = (
            f"{1e3 * span.start:.1f} to {1e3 * span.end:.1f} ms,"
            f" {1e3 * (span.end - span.start):.1f} long"
        )
        name = f"{span.task.name}{spelled(span.task)}"
        return f"{name}: {took}, {span.task.bytes / 1e6:.1f} MB{self._slow(span)}"

    def say(self, time: float) -> str:
        if time >= self.run.seconds - 1e-12:
            return f"**{self.name}**: done"
        running = sorted(
            (s for s in self.run.spans if s.start <= time + 1e-12 < s.end),
            key=lambda s: self.row(s.task),
        )
        product = next(
            (s for s in running if s.task.stage in PRODUCTS), None
        )  # said once, and the caption stays short
        clauses = [
            f"{self.row(s.task)}: {s.task.name}{self._slow(s) if s is product else ''}"
            for s in running
        ]
        more = f" and {len(clauses) - 4} more" if len(clauses) > 4 else ""
        return f"**{self.name}**: {'; '.join(clauses[:4]) or 'idle'}{more}"

    def text(self) -> Sequence[str]:
        stages = ", ".join(self.run.stages())
        return [
            f"{self.name}: {len(self.run.spans)} tasks; stages {stages}",
            *(f"  {row}" for row in self.rows),
        ]
