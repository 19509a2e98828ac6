"""The wavefronts of one SIMD engine over time, and below them its two units: at full speed, at
half, or idle.

Drawn from timing reports. Each row is a wavefront slot of SIMD engine 0: thick where a unit works
for it, thin while its data are on their way. Fewer registers, more slots: when one wavefront waits,
another computes. Left out: the other engines, and that a clause takes a few clocks to get going,
which count as computing.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from string import ascii_uppercase

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import is_whole
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis, nonempty
from cypresskit.kernels.own import Source
from cypresskit.timing import Report, simulate

FRAMES = 150
LEFT, WIDE, ROW = 44, 1126, 16  # of the rows, in pixels
RIGHT = LEFT + WIDE + 8  # of the counters
LONGEST, TURNS = (
    100,
    5,
)  # clocks of the toy's arithmetic or waiting, and how often a single wavefront does both
HEAD = 84  # the room above and below a report's rows
# What a row shows: the kind of clause, from when to when, in words, its ink, and how high.
ROWS = (
    ("ALU", "start", "end", "computes", "alu", 11),
    ("TEX", "start", "served", "is in the texture unit", "texture", 11),
    ("TEX", "served", "end", "waits for its data", "soft", 2),
    ("WRITE", "start", "end", "stores", "c", 11),
)
DOING = {"ALU": "computes", "TEX": "fetches", "WRITE": "stores"}
# Of the ALU's strip: how many compute, its ink and height, and where its share so far stands.
COMPUTING = (
    ("nobody", "wait", 16, 0),
    ("one computes", "alu", 8, 104),
    ("two compute", "alu", 16, 250),
)


def wavefronts(
    *reports: Report | Source, n: int = 1024, window: tuple[float, float] = (2000, 6000)
) -> Player:
    """A player of one SIMD engine over the ``window`` (clocks) of one or more reports, one above
    the other.

    ``reports`` come from ``simulate``; kernels are simulated with size ``n``. By default
    "sgemm_tn" (25 registers) above "sgemm_tn_37". Raises ``ValueError`` for a report without
    timeline, or an empty window.
    """
    given = [
        simulate(r, n) if isinstance(r, Source) else r
        for r in reports or ("sgemm_tn", "sgemm_tn_37")
    ]
    made = nonempty(given, "pass reports of simulate, or names of kernels", Report)
    if not window[0] < window[1]:
        raise ValueError(f"window={window}: from a clock to a later one, as in (2000, 6000)")
    for report in made:
        if not report.timeline:
            raise ValueError(f"{report.kernel}: the report has no timeline to draw")
    sheet = Sheet("Wavefronts of a SIMD engine: " + " and ".join(report.kernel for report in made))
    clocks, most = np.linspace(*window, FRAMES + 1), max(report.active for report in made)
    label = "; ".join(
        f"{r.kernel}: {r.active} rows, and below them the ALU and the texture unit" for r in made
    )
    high = HEAD + ROW * most
    sheet.stage(label, RIGHT + 74, len(made) * high)
    for number, report in enumerate(made):
        _draw(sheet, report, number, number * high, most, clocks)
    states = [[f"**{r.kernel}**: {state}." for state in _states(r, clocks)] for r in made]
    captions = [f"Clock {clock:.0f}. {' '.join(each)}" for clock, *each in zip(clocks, *states)]
    done = [
        f"**{r.kernel}** has done {sum((turns(r) > window[0]) & (turns(r) <= window[1]))}"
        for r in made
    ]
    captions[-1] = f"Clock {window[1]:.0f}. Of the turns of their loops, " + ", ".join(done) + "."
    lines = [f"clocks {window[0]:.0f} to {window[1]:.0f}"]
    lines += [f"{r.kernel}: {r.registers} registers, room for {r.active} wavefronts" for r in made]
    key = sheet.key(
        ("computes (half height: one alone, at half speed)", "alu", "box"),
        ("stores", "c", "box"),
        ("in the texture unit", "texture", "box"),
        ("data on their way", "soft", "solid"),
        ("nobody computes", "wait", "box"),
        ("to come", "faint", "box"),
    )
    return sheet.player(captions, lines, below=[key], step="Clock")


def steps(
    spans: Sequence[tuple[float, float]], window: tuple[float, float], most: int
) -> np.ndarray:
    """The number of ``spans`` under way, at most ``most``, as rows (from, to, number) within the
    window.
    """
    starts, ends = np.sort(np.reshape(spans, (-1, 2)), axis=0).T
    clocks = np.unique(np.clip([*window, *starts, *ends], *window))
    counts = np.minimum(
        np.searchsorted(starts, clocks, "right") - np.searchsorted(ends, clocks, "right"), most
    )
    begins = np.flatnonzero(np.diff(counts[:-1], prepend=-1))
    return np.column_stack([clocks[begins], clocks[[*begins[1:], -1]], counts[begins]])


def turns(report: Report) -> np.ndarray:
    """The clocks at which wavefronts of SIMD engine 0 ended the longest ALU clause of their
    kernel's loop, once a turn. None for a program that is no GEMM kernel, or one that waits for the
    LDS in that clause.
    """
    if report.launched is None:
        return np.zeros(0)
    loop = compile(report.launched.program, report.device).main_loop
    longest = max(len(clause.bundles) for clause in loop)
    clocks = report.device.clause_clocks + report.device.result_clocks * longest
    over = [
        e.end for e in report.timeline if e.kind == "ALU" and abs(e.end - e.start - clocks) < 0.5
    ]
    return np.sort(over)[:: sum(len(clause.bundles) == longest for clause in loop)]


def pauses(report: Report) -> Iterator[tuple[int, float, float, float]]:
    """(wavefront, end of a clause, clock from which it could go on, start of its next clause). A
    wavefront pauses for a clause switch; then it waits until the unit that it needs is free.
    """
    ended: dict[int, float] = {}
    for event in sorted(report.timeline, key=lambda event: event.start):
        if event.wavefront in ended:
            end = ended[event.wavefront]
            ready = min(end + report.device.switch_clocks, event.start)
            yield event.wavefront, end, ready, event.start
        ended[event.wavefront] = event.end


def _states(report: Report, clocks: np.ndarray) -> list[str]:
    """What the wavefronts of the engine do at each of the ``clocks``."""

    def under_way(spans: Iterable[tuple[float, float]]) -> np.ndarray:
        start, end = np.reshape(list(spans), (-1, 2)).T[:, :, np.newaxis]
        return ((start <= clocks) & (clocks < end)).sum(axis=0)

    events, between = report.timeline, list(pauses(report))
    computing = under_way((e.start, e.end) for e in events if e.kind == "ALU")
    fetching = under_way((e.start, e.end) for e in events if e.kind == "TEX")
    waiting = under_way((ready, start) for _, _, ready, start in between)
    switching = under_way((end, ready) for _, end, ready, _ in between)
    return [
        f"{a} compute, {b} wait for data, {c} for their turn, {d} between clauses"
        for a, b, c, d in zip(computing, fetching, waiting, switching)
    ]


def _draw(
    sheet: Sheet, report: Report, number: int, top: float, most: int, clocks: np.ndarray
) -> None:
    window, slots = (float(clocks[0]), float(clocks[-1])), report.active
    name = f"{report.kernel} {number}" if number else report.kernel

    def to_x(clock):
        return LEFT + (clock - window[0]) * WIDE / (window[1] - window[0])

    axis = TimeAxis(clocks, to_x)
    title = f"{report.kernel}: {report.registers} registers, room for {slots} wavefronts"
    sheet.words(LEFT, top + 12, title, bold=True, size=15)
    y, strip = top + 30 + ROW * np.arange(slots), top + 38 + ROW * most
    sheet.words(LEFT - 8, y, list(map(str, range(slots))), "soft", align="right", size=12)
    if slots < most:
        gone, middle = ROW * (most - slots), top + 22 + ROW * (slots + most) / 2
        sheet.boxes(f"no room {name}", LEFT + WIDE / 2, middle, WIDE, gone - 4, line="line")
        why = (
            f"no room: {slots} x {report.registers} of the {report.device.register_pool} registers"
            " are taken"
        )
        sheet.words(LEFT + WIDE / 2, middle, why, "soft", align="center", size=13)
    here = [e for e in report.timeline if e.end > window[0] and e.start < window[1]]
    for kind, begin, finish, words, ink, high in ROWS:
        events = [
            e
            for e in here
            if e.kind == kind and getattr(e, finish) > window[0] and getattr(e, begin) < window[1]
        ]
        if events:
            start, end, slot = (
                np.array([getattr(e, key) for e in events]) for key in (begin, finish, "slot")
            )
            said = [
                f"wavefront {e.wavefront} {words}: clocks {a:.0f} to {b:.0f}"
                for e, a, b in zip(events, start, end)
            ]
            keys = [100_000 * number + e.wavefront for e in events]
            inside = np.clip(start, *window), np.clip(end, *window)
            bars = Bars(*inside, y[slot.astype(int)], high)
            sheet.progress_bars(
                f"{words} {name}", bars, axis, future="faint", ink=ink, words=said, key=keys
            )
    _draw_totals(sheet, report, name, (top + 12, strip), axis)
    sheet.play_head(
        f"head {name}", to_x(clocks), (top + 22 + strip + 28) / 2, strip + 28 - top - 22
    )
    stories = _stories(report, window)
    sheet.about |= {100_000 * number + wavefront: words for wavefront, words in stories.items()}


def draw_units(
    sheet: Sheet, name: str, heights: tuple[float, float], ends: tuple[float, float], draw
) -> None:
    """Draw the strips of both units between the ``ends``, and their shares of the time: at the
    first of ``heights``, and beside the strips, whose upper one is at the second. ``draw(what,
    words, unit, working, y, high, ink)`` draws when so many wavefronts are at work in a unit, and
    returns how much of the time that is in each frame, in per cent.
    """
    (title, strip), (left, right) = heights, ends
    percent, shares = [f"{part} %" for part in range(101)], []
    sheet.words(left - 8, [strip, strip + 20], ["ALU", "TEX"], align="right", bold=True, size=12)
    for n, (state, ink, high, x) in enumerate(COMPUTING):
        shares.append(draw(f"computing {n}", state, "alu", n, strip + (16 - high) / 2, high, ink))
        whole, names = np.round(shares[n]).astype(int), [f"{state} {part}" for part in percent]
        sheet.numbers(
            f"share {n} {name}",
            right - x,
            title,
            whole,
            names=names,
            bold=n == 0,
            ink=ink,
            align="right",
            size=14,
        )
    serving = draw("texture", "the texture unit works", "texture", 1, strip + 20, 12, "texture")
    for unit, y, busy, ink in (
        ("ALU", strip, shares[2] + shares[1] / 2, "alu"),
        ("TEX", strip + 20, serving, "soft"),
    ):
        whole = np.round(busy).astype(int)
        sheet.numbers(
            f"{unit} {name}", right + 8, y, whole, names=percent, ink=ink, bold=True, size=15
        )


def _draw_totals(
    sheet: Sheet, report: Report, name: str, heights: tuple[float, float], axis: TimeAxis
) -> None:
    """Draw what both units of a report have done so far, and the turns of its loop."""
    clocks = axis.moments
    title, window = heights[0], (float(clocks[0]), float(clocks[-1]))
    computes = [(e.start, e.end) for e in report.timeline if e.kind == "ALU"]
    serves = [(e.start, e.served) for e in report.timeline if e.kind == "TEX"]
    strips = {"alu": steps(computes, window, 2), "texture": steps(serves, window, 1)}

    def draw(
        what: str, words: str, unit: str, working: int, y: float, high: float, ink: str
    ) -> np.ndarray:
        start, end, _ = strips[unit][strips[unit][:, 2] == working].T
        said = [f"{words}: clocks {a:.0f} to {b:.0f}" for a, b in zip(start, end)]
        bars = Bars(start, end, y, high)
        sheet.progress_bars(f"{what} {name}", bars, axis, future="faint", ink=ink, words=said)
        so_far = np.clip(clocks[:, np.newaxis] - start, 0, end - start).sum(axis=1)
        return 100 * so_far / np.maximum(clocks - window[0], 1e-9)

    draw_units(sheet, name, heights, (LEFT, LEFT + WIDE), draw)
    if len(ended := turns(report)):
        so_far = ((ended[:, np.newaxis] > window[0]) & (ended[:, np.newaxis] <= clocks)).sum(axis=0)
        sheet.words(RIGHT, title + np.array([0, 16]), ["turns of", "the loop"], "soft", size=12)
        sheet.numbers(f"turns {name}", RIGHT, title + 42, so_far, bold=True, size=26)


def _stories(report: Report, window: tuple[float, float]) -> dict[int, str]:
    """A sentence for each wavefront: what it spends the clocks of the window on."""
    spent: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))

    def spend(wavefront: int, doing: str, start: float, end: float) -> None:
        clocks = min(end, window[1]) - max(start, window[0])
        if clocks > 0:
            spent[wavefront][doing] += clocks

    for event in report.timeline:
        spend(event.wavefront, DOING[event.kind], event.start, event.end)
    for wavefront, end, ready, start in pauses(report):
        spend(wavefront, "is between clauses", end, ready)
        spend(wavefront, "waits for its turn", ready, start)
    clocks = f"{window[1] - window[0]:.0f} clocks"
    return {
        wavefront: f"**Wavefront {wavefront}** of {report.kernel} in these {clocks}: "
        + ", ".join(f"{doing} for {did:.0f}" for doing, did in each.items())
        + "."
        for wavefront, each in spent.items()
    }


def waiting(compute: int = 2, wait: int = 6) -> Player:
    """A player for lesson 04: an engine that computes for one wavefront at a time. Each computes
    for ``compute`` clocks and then waits for ``wait``; it plays as long as ``TURNS`` of both take a
    single wavefront.

    There is a scene for each number of wavefronts up to as many as keep the engine busy, but 6 at
    least. Raises ``ValueError`` for clocks that are no whole numbers from 1 to ``LONGEST``, and
    where it takes over 26 wavefronts.
    """
    most = (
        max(6, -(-(compute + wait) // compute))
        if is_whole(compute, LONGEST) and is_whole(wait, LONGEST)
        else 0
    )
    if not 0 < most <= len(ascii_uppercase):
        limits = (
            f"whole numbers from 1 to {LONGEST}, for which {len(ascii_uppercase)} wavefronts are"
            " enough"
        )
        raise ValueError(f"compute {compute!r} and wait {wait!r} have to be {limits}")
    sheet = Sheet(f"Waiting: {compute} clocks of arithmetic, then {wait} of waiting")
    label = "A row for each wavefront, and below them whether anybody computes"
    tall = min(30.0, max(15.0, 300 / most))  # a row; thirteen of them still fit a screen
    sheet.stage(label, LEFT + WIDE + 16, 60 + tall * most)
    bars: dict[str, list] = {
        "texture": [],
        "alu": [],
        "wait": [],
    }  # by ink: row, from, to, in which scene
    captions, now, end = [], [], TURNS * (compute + wait)
    scale, said = WIDE / end, ["", "1 wavefront", *(f"{n} wavefronts" for n in range(2, most + 1))]
    for count in range(1, most + 1):
        run = [
            (lane, start, min(start + compute, end))
            for lane, start in _engine(count, compute, wait, end)
        ]
        busy = {clock for _, start, done in run for clock in range(start, done)}
        bars["texture"] += [(lane, done, min(done + wait, end), count) for lane, _, done in run]
        bars["alu"] += [
            (row, start, done, count) for lane, start, done in run for row in (lane, most)
        ]
        bars["wait"] += [
            (most, clock, clock + 1, count) for clock in range(end) if clock not in busy
        ]
        for clock in range(end + 1):
            passed = "no time has passed"
            if clock:
                share = 100 * sum(past < clock for past in busy) / clock
                passed = f"the engine has computed for {share:.0f} % of the time"
            captions.append(f"Clock {clock}. {said[count]}: {passed}.")
            now.append((count, clock))

    def to_x(clock):
        return LEFT + clock * scale

    scene, clock = np.array(now).T[:, :, np.newaxis]
    for (ink, spans), high in zip(bars.items(), (4, tall / 1.5, tall / 1.5)):
        row, start, stop, shown = np.array(spans).T.reshape(4, -1)
        axis = TimeAxis(np.where(scene == shown, clock, np.nan), to_x)
        place = Bars(start, stop, 30 + tall * row, high)
        sheet.progress_bars(f"toy {ink}", place, axis, future="faint", ink=ink)
    y = 30 + tall * np.arange(most + 1)
    value = np.where(scene > np.arange(most), np.arange(1, most + 1), 0)
    style: dict = {"align": "right", "size": 13}
    sheet.numbers("rows", LEFT - 8, y[:-1], value, names=["", *ascii_uppercase[:most]], **style)
    sheet.words(LEFT - 8, y[-1], "ALU", bold=True, **style)
    sheet.play_head("head", to_x(clock[:, 0]), float(y.mean()), y[-1])
    scenes = [
        (f"{n} wavefront" if n == 1 else str(n), int((scene == n).sum()))
        for n in range(1, most + 1)
    ]
    key = sheet.key(
        ("computes", "alu", "box"), ("waits", "texture", "box"), ("nobody computes", "wait", "box")
    )
    return sheet.player(captions, below=[key], step="Clock", scenes=scenes, seconds=8)


def _engine(wavefronts: int, compute: int, wait: int, end: int) -> list[tuple[int, int]]:
    """(wavefront, clock at which it begins to compute), one after the other, before clock
    ``end``.
    """
    ready, clock, begun = [0] * wavefronts, 0, []
    while clock < end:
        w = min(range(wavefronts), key=ready.__getitem__)
        begun.append((w, clock))
        ready[w] = clock + compute + wait
        clock = max(clock + compute, min(ready))
    return begun
