"""Pipelines in time: above, the blocks on their way; below, a row for each resource; several on one clock.

A resource that one lane has to itself (a chip, a DMA engine, a thread) shows that lane's tasks; what is shared (the
bus, the host's memory) shows who takes how much of it, under its capacity. A click on a task shows what it waited for,
and what waited for it. Left out: how a task's share changes while it runs; its average is drawn.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.host import Machine, Span, Timeline, five_stage, four_stage

FRAMES, LEFT, WIDE, HIGH, ROAD = 240, 168, 878, 436, 40  # moments; pixels: the rows' left edge, their width; the stage
STATIONS = {"program's memory": 0.07, "pinned memory": 0.37, "card's memory": 0.67, "chip": 0.94}
# Where a stage takes its block from, and to.
ROUTES = {"load1": (0, 1), "load2": (1, 2), "send": (0, 2), "mult": (3, 3), "mult1": (3, 3), "store1": (2, 1),
          "store2": (1, 0), "store": (1, 0), "fetch": (2, 0), "cpu": (0, 0)}  # fmt: skip
MATTERS = ("A", "B", "C", "the product")  # what a task moves, or does
TINTS = (theme.SERIES[0], theme.SERIES[4], theme.SERIES[2], theme.SERIES[6])
PRODUCTS = ("mult", "mult1", "cpu")
CLOSE = 1e-9  # seconds: one task begins when another ends


def timeline(*timelines: Timeline, names: tuple[str, ...] = ()) -> Player:
    """A player over one or more timelines, one below the other, on one clock.

    Without timelines: the four-stage and the five-stage pipeline on an HD 5970, m = n = 8192, k = 2048. ``names`` are
    their headings. Raises ``ValueError`` for a timeline without tasks.
    """
    if not timelines:
        machine, names = Machine(), ("four stages, without the texture cache", "five stages, with it")
        timelines = four_stage(8192, 8192, 2048, machine), five_stage(8192, 8192, 2048, machine)
    if any(not one.spans for one in timelines):
        raise ValueError("there is nothing to draw: a timeline has no tasks")
    names = tuple(names) + tuple(f"timeline {n + 1}" for n in range(len(names), len(timelines)))
    sheet = Sheet("Timeline: " + " and ".join(names))
    end = max(one.seconds for one in timelines)
    shared = {row for one in timelines for row in _rows(one) if _shared(one, row)}
    paces = [_pace(one) for one in timelines]
    fastest = min((pace for pace in paces if pace), default=0.0)
    slower = [pace / fastest if pace > 1.05 * fastest else 0.0 for pace in paces]
    panels = [_Chart(n, *parts, end, shared) for n, parts in enumerate(zip(names, timelines, slower))]
    count = sum(len(panel.rows) for panel in panels)
    row = min(24.0, (HIGH - len(panels) * (ROAD + 30)) / count)
    high = len(panels) * (ROAD + 30) + count * row + 6
    fig = sheet.stage("; ".join(f"{p.name}: blocks on their way, and tasks of each resource" for p in panels),
                      LEFT + WIDE + 54, high, most=1.06)  # fmt: skip
    top = 0.0
    for panel in panels:
        panel.draw(sheet, fig, top, row)
        top += ROAD + 30 + len(panel.rows) * row
    moments = np.linspace(0, end, FRAMES)
    captions = [f"At {1e3 * t:.1f} ms. " + "\n".join(panel.say(t) for panel in panels) for t in moments]
    text = "\n".join([sheet.title, *(line for panel in panels for line in panel.text())])
    full = [("full: all who share it get less", "wait", "box")] * any(panel.full for panel in panels)
    hatched = [("hatched: a kernel slower per flop", TINTS[3], "hatch")] * any(slower)
    key = sheet.key(*((words, tint, "box") for words, tint in zip(MATTERS, TINTS)), *hatched, *full)
    starts = sorted({s.start for s in timelines[0].spans})
    marks = sorted(set(np.searchsorted(moments, starts).clip(0, FRAMES - 1).tolist()))
    return sheet.player([fig], captions, text, step="Moment", below=[key], marks=marks)


def _rows(one: Timeline) -> list[str]:
    """The resources that are used, in the order in which they are first."""
    first: dict[str, float] = {}
    for span in one.spans:
        for name in (name for name, amount in span.task.uses.items() if amount):
            first[name] = min(span.start, first.get(name, span.start))
    return sorted(first, key=lambda name: (first[name], name))


def _shared(one: Timeline, name: str) -> bool:
    """Whether several lanes use a resource, or one that has a resource of its own name besides."""
    lanes = {span.task.lane for span in one.spans if span.task.uses.get(name)}
    return len(lanes) > 1 or bool((lanes - {name}) & set(one.resources))


def _pace(one: Timeline) -> float:
    """The chips' seconds per flop; 0 where a CPU does a part of them."""
    spans = [span for span in one.spans if span.task.stage in PRODUCTS]
    alone = one.flops and not any(span.task.stage == "cpu" for span in spans)
    return sum(span.task.uses.get(span.task.lane, 0.0) for span in spans) / one.flops if alone else 0.0


def matter_of(span: Span) -> int:
    """What a task moves (A, B, C) or does: a number into ``MATTERS``."""
    if span.task.stage in PRODUCTS:
        return 3
    what = span.task.name.split(" ", 1)[-1]
    return {"A": 0, "B": 1}.get(what[0], 2) if not what.startswith("AB") else 2


def short_name(span: Span) -> str:
    """A task's name in a bar: ``A0``, ``B1``, ``C1.0``; a prime for each sum so far."""
    what = span.task.name.split(" ", 1)[-1]
    number = re.sub(r"[\[\]]", "", what.lstrip("ABC")).split(".", 1)[-1]
    return number if number.isalpha() else f"{'ABCC'[matter_of(span)]}{number}"


@dataclass(frozen=True, eq=False)
class _Chart:
    """One timeline: its heading, its blocks on the road, its rows."""

    number: int
    name: str
    one: Timeline
    slower: float  # how many times as long per flop its kernel takes as the fastest beside it; 0 for no longer
    end: float  # of the longest timeline, in seconds
    together: set[str]  # resources that are shared in some timeline
    full: list[str] = field(default_factory=list)  # those of them that are full at some time

    @property
    def rows(self) -> list[str]:
        return sorted(_rows(self.one), key=lambda name: name in self.together)

    def at(self, seconds):
        return LEFT + np.asarray(seconds) / self.end * WIDE

    @property
    def title(self) -> str:
        return f"{self.name}: {1e3 * self.one.seconds:.1f} ms, {self.one.gflops:.0f} Gflop/s, bound by {self.one.bound}"

    def causes(self) -> list[tuple[int, int]]:
        """(earlier, later) for each task that began as soon as another was over, on which it depends: the one before it
        in its lane, who wrote what it reads, or who used what it overwrites."""
        found = []
        for n, late in enumerate(self.one.spans):
            for m, early in enumerate(self.one.spans):
                a, b = early.task, late.task
                needs = (
                    a.lane == b.lane or set(a.writes) & (set(b.reads) | set(b.writes)) or set(a.reads) & set(b.writes)
                )
                if m != n and abs(early.end - late.start) < CLOSE * max(1.0, self.end) and needs:
                    found.append((m, n))
        return found

    def key(self, number: int) -> int:
        return 10_000 * self.number + number

    def draw(self, sheet: Sheet, fig, top: float, high: float) -> None:
        sheet.words(fig, [4], [top + 12], [self.name], bold=True, size=15)
        moments = np.linspace(0, self.end, FRAMES)
        self._draw_road(sheet, fig, top + 24, moments)
        spans, name, first = self.one.spans, self.name, top + ROAD + 26
        place = {row: first + (n + 0.5) * high for n, row in enumerate(self.rows)}
        for row, y in place.items():
            sheet.boxes(fig, f"row {row} {name}", [LEFT + WIDE / 2], [y], [WIDE], high - 3, ink="faint", alpha=0.4)
        keys, words = [self.key(n) for n in range(len(spans))], [self._tip(span) for span in spans]
        bars = [(n, y) for row, y in place.items() if row not in self.together
                for n, span in enumerate(spans) if span.task.uses.get(row)]  # fmt: skip
        if bars:
            at, down = (np.array(column) for column in zip(*bars))
            start, end = (np.array([getattr(spans[n], side) for n in at]) for side in ("start", "end"))
            matter = np.array([matter_of(spans[n]) for n in at], np.uint8)
            sheet.past(fig, f"tasks {name}", start, end, down, high - 5, moments, self.at, fill=("matter", TINTS),
                       matter=matter, words=[words[n] for n in at], key=[keys[n] for n in at])  # fmt: skip
            room = (end - start) / self.end * WIDE - 3
            said = [short_name(spans[n]) for n in at]
            long = [f"{spans[n].task.stage} {text}" for n, text in zip(at, said)]
            said = [b if 6.5 * len(b) < wide else a for a, b, wide in zip(said, long, room)]
            fits = [k for k, text in enumerate(said) if room[k] > 6.5 * len(text)]
            slow = np.flatnonzero((matter == 3) & bool(self.slower))
            self._hatch(sheet, fig, self.at((start + end) / 2)[slow], down[slow], room[slow], high - 5)
            x = self.at((start + end) / 2)[fits]
            sheet.words(fig, x, down[fits], [said[k] for k in fits], size=11, align="center")
        for row in (row for row in place if row in self.together):
            self._draw_shared(sheet, fig, row, place[row], high - 4, moments, keys, words)
        self._draw_labels(sheet, fig, place, moments)
        tall = len(place) * high
        sheet.rule(fig, f"head {name}", self.at(moments), first + tall / 2, tall)
        lanes = {n: next(y for row, y in place.items() if span.task.uses.get(row)) for n, span in enumerate(spans)}
        pairs = self.causes()
        for ink, which in (("wait", 1), ("read", 0)):
            ends = [(self.at(spans[m].end) - 3, lanes[m], self.at(spans[n].start) + 3, lanes[n]) for m, n in pairs]
            arrow = np.array(ends, np.float32).reshape(-1, 4).T
            x0, y0, x1, y1 = arrow
            called, chosen = f"{'causes' if which else 'effects'} {name}", [keys[p[which]] for p in pairs]
            sheet.arrows(fig, called, x0, y0, x1, y1, ink, key=chosen)
        for n, span in enumerate(spans):
            before = [spans[m].task.name for m, late in pairs if late == n]
            after = [spans[late].task.name for m, late in pairs if m == n]
            sheet.about[keys[n]] = (
                f"**{span.task.name}** on {span.task.lane}: {1e3 * span.start:.1f} to {1e3 * span.end:.1f} ms, "
                f"{span.task.bytes / 1e6:.1f} MB{self._slow(span)}. Waited for: {', '.join(before) or 'nothing'}. "
                f"Waits for it: {', '.join(after) or 'nothing'}."
            )

    def _hatch(self, sheet: Sheet, fig, x, y, w, h: float) -> None:
        """The tasks of a kernel that takes longer than another here for the same work."""
        source = sheet.source(f"slow {self.name}", x=x, y=y, w=w)
        hatch = {"hatch_pattern": "right_diagonal_line", "hatch_alpha": 0.25, "hatch_scale": 10}
        drawn = fig.rect("x", "y", "w", h, source=source, fill_color=None, line_color=None, **hatch)
        sheet.inks(drawn, hatch_color="ink")

    def _draw_labels(self, sheet: Sheet, fig, place: dict[str, float], moments: np.ndarray) -> None:
        """Names of the rows; at the right what share of the time so far each has worked; a mark at what binds."""
        y = list(place.values())
        stages = {row: dict.fromkeys(s.task.stage for s in self.one.spans if s.task.lane == row) for row in place}
        called = [f"{row}: {', '.join(stages[row])}" if stages[row] else row for row in place]
        sheet.words(fig, [LEFT - 8] * len(y), y, called, align="right", size=12)
        sheet.words(fig, [LEFT + WIDE + 46], [min(y) - 24], ["worked"], "soft", align="right", size=12)
        done = np.zeros((FRAMES, len(y)))
        for span in self.one.spans:
            part = np.clip((moments - span.start) / (span.end - span.start), 0, 1)
            for n, row in enumerate(place):
                done[:, n] += part * span.task.uses.get(row, 0) / self.one.resources[row].capacity
        so_far = np.minimum(moments, self.one.seconds).clip(1e-12)[:, np.newaxis]
        percent = np.round(100 * done / so_far).clip(0, 100).astype(np.uint8)
        names = [f"{n} %" for n in range(101)]
        sheet.numbers(
            fig, f"worked {self.name}", [LEFT + WIDE + 44] * len(y), y, percent, names=names, align="right", size=12
        )
        over = (moments >= self.one.seconds - 1e-12)[:, np.newaxis] * np.array([row == self.one.bound for row in place])
        sheet.numbers(fig, f"binds {self.name}", [4] * len(y), y, over.astype(np.uint8), bold=True, size=12,
                      names=["", "\N{BLACK RIGHT-POINTING TRIANGLE}"])  # fmt: skip
        done_at = np.where(over.any(axis=1, keepdims=True), 1, 0)
        sheet.numbers(fig, f"finish {self.name}", [LEFT + WIDE], [min(y) - 9 - ROAD - 15], done_at, size=14, bold=True,
                      names=["", self.title.split(": ", 1)[1]], align="right", ink="c")  # fmt: skip

    def _draw_shared(self, sheet: Sheet, fig, row: str, y: float, high: float, moments, keys, words) -> None:
        """Who takes how much of a shared resource: stacked boxes from event to event, under its capacity."""
        users = [(n, s) for n, s in enumerate(self.one.spans) if s.task.uses.get(row)]
        edges = np.unique([t for _, s in users for t in (s.start, s.end)])
        boxes, full = [], []
        for start, end in pairwise(edges):
            level, takers = 0.0, 0
            for n, s in users:
                if s.start < end - 1e-12 and s.end > start + 1e-12:
                    part = s.task.uses[row] / (s.end - s.start) / self.one.resources[row].capacity
                    boxes.append((start, end, level, min(part, 1 - level), matter_of(s), n))
                    level, takers = min(1.0, level + part), takers + 1
            if level > 0.995 and takers > 1:
                full.append((start, end))
        start, end, under, height, matter, at = (np.array(column) for column in zip(*boxes))
        middle = y + high / 2 - (under + height / 2) * high
        sheet.past(fig, f"{row} {self.name}", start, end, middle, np.maximum(height * high, 0.3), moments, self.at,
                   fill=("matter", TINTS), matter=matter.astype(np.uint8), words=[words[int(n)] for n in at],
                   key=[keys[int(n)] for n in at])  # fmt: skip
        if full:
            self.full.append(row)
            start, end = np.array(full).T
            line = np.full(len(full), y - high / 2)
            sheet.past(fig, f"{row} full {self.name}", start, end, line, 2.5, moments, self.at, ink="wait")

    def _draw_road(self, sheet: Sheet, fig, top: float, moments: np.ndarray) -> None:
        """The stations, and each lane's block between the two of its stage."""
        stops, y = [LEFT + part * WIDE for part in STATIONS.values()], top + ROAD / 2
        used = sorted({stop for s in self.one.spans for stop in ROUTES.get(s.task.stage, ())})
        here, called = [stops[n] for n in used], [list(STATIONS)[n] for n in used]
        sheet.boxes(fig, f"road {self.name}", [LEFT + WIDE / 2], [y + 6], [WIDE * 0.9], 2, ink="line")
        down = [y + 6] * len(here)
        sheet.boxes(fig, f"stations {self.name}", here, down, 118, 22, ink="faint", line="line", round=5)
        sheet.words(fig, here, [y - 13] * len(here), called, "soft", align="center", size=12)
        lanes = list(dict.fromkeys(s.task.lane for s in self.one.spans))
        chips = max(int(lane[-1]) if lane[-1].isdigit() else 0 for lane in lanes)
        place = np.full((FRAMES, 2 * len(lanes)), np.nan, np.float32)
        names = ["", *dict.fromkeys(short_name(s) for s in self.one.spans)]
        label, matter = np.zeros((2, FRAMES, 2 * len(lanes)), np.int32)
        key = np.full(place.shape, -1, np.int32)
        turns = dict.fromkeys(lanes, 0)
        for n, s in enumerate(self.one.spans):
            lane, route = s.task.lane, ROUTES.get(s.task.stage)
            dot = 2 * lanes.index(lane) + turns[lane] % 2
            turns[lane] += 1
            now = np.flatnonzero((moments >= s.start) & (moments <= s.end))
            if route is None or not len(now):
                continue
            part = (moments[now] - s.start) / (s.end - s.start)
            aside = 40 * (int(lane[-1]) - chips / 2) if chips and lane[-1].isdigit() else 9 * (dot // 2 % 3 - 1)
            place[now, dot] = stops[route[0]] + part * (stops[route[1]] - stops[route[0]]) + aside
            label[now, dot], matter[now, dot], key[now, dot] = names.index(short_name(s)), matter_of(s), self.key(n)
        level = np.full(2 * len(lanes), y + 6)
        source = sheet.boxes(fig, f"blocks {self.name}", place, level, 38, 18, fill=("matter", TINTS), key=key, round=3,
                             matter=matter.astype(np.uint8), moves=("x",))  # fmt: skip
        track = next(t for t in sheet.tracks if t.source is source and t.column == "x")
        words = sheet.numbers(fig, f"names {self.name}", [0.0] * place.shape[1], level, label, names=names, size=11,
                              align="center")  # fmt: skip
        sheet.follow(words, "x", track.frames)

    def _slow(self, span: Span) -> str:
        slow = self.slower if span.task.stage in PRODUCTS else 0
        return f", a kernel {slow:.1f} times slower per flop than the other" if slow else ""

    def _tip(self, span: Span) -> str:
        took = f"{1e3 * span.start:.1f} to {1e3 * span.end:.1f} ms, {1e3 * (span.end - span.start):.1f} long"
        return f"{span.task.name}: {took}, {span.task.bytes / 1e6:.1f} MB{self._slow(span)}"

    def say(self, time: float) -> str:
        if time >= self.one.seconds - 1e-12:
            return f"**{self.name}**: done"
        running = sorted((s for s in self.one.spans if s.start <= time + 1e-12 < s.end), key=lambda s: s.task.lane)
        product = next((s for s in running if s.task.stage in PRODUCTS), None)  # said once, and the caption stays short
        said = [f"{s.task.lane}: {s.task.name}{self._slow(s) if s is product else ''}" for s in running]
        more = f" and {len(said) - 4} more" if len(said) > 4 else ""
        return f"**{self.name}**: {'; '.join(said[:4]) or 'idle'}{more}"

    def text(self) -> Sequence[str]:
        stages = ", ".join(self.one.stages())
        return [f"{self.name}: {len(self.one.spans)} tasks; stages {stages}", *(f"  {row}" for row in self.rows)]
