"""The wavefronts of one SIMD engine over time, and below them its two units: at full speed, at
half, or idle.

Drawn from timing reports. Each row is a wavefront slot of SIMD engine 0: thick where a unit works
for it, thin while its data are on their way. Fewer registers, more slots: when one wavefront waits,
another computes. Left out: the other engines, and that a clause takes a few clocks to get going,
which count as computing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf
from numbers import Real
from typing import NamedTuple

import numpy as np

from cypresskit.compiler import compile
from cypresskit.devices import Terms
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis, nonempty
from cypresskit.il.errors import shortened
from cypresskit.kernels.own import Source
from cypresskit.timing import Report, simulate
from cypresskit.timing.board import Board
from cypresskit.timing.report import ChipReport, Event

FRAMES = 150
#: Of the rows, in pixels, and the height of one.
LEFT, RIGHT, ROW = 44, 1170, 16
WIDTH = RIGHT + 82  # of the stage: beside the rows stand counters
HEAD = 84  # the room above and below a report's rows
KEYS = 100_000  # between the keys of one report's wavefronts and the next's

Window = tuple[float, float]  # from a clock to a clock


class Kind(NamedTuple):
    """What a row shows: a kind of clause, from one of its events to another, in words, its color,
    and how high.
    """

    clause: str
    begin: str
    end: str
    words: str
    color: str
    height: int


ROWS = (
    Kind("ALU", "start", "end", "computes", "alu", 11),
    Kind("TEX", "start", "served", "is in the {unit}", "texture", 11),
    Kind("TEX", "served", "end", "waits for its data", "soft", 2),
    Kind("WRITE", "start", "end", "stores", "c", 11),
)
DOING = {"ALU": "computes", "TEX": "fetches", "WRITE": "stores"}


class Computing(NamedTuple):
    """A part of the ALU's strip, by how many wavefronts compute: in words, its color and height,
    and how far from the right end of the rows its share so far stands.
    """

    state: str
    color: str
    height: int
    from_right: int


TERMS = Terms()
STATES = "nobody", "one computes", "two compute", "three compute", "four compute"
FROM_RIGHT = 0, 104, 250, 390, 540


def at_once(device: Board) -> int:
    """How many wavefronts have to compute at once for the full speed of an engine: four at most."""
    return min(device.alu_latency_clocks // device.bundle_clocks, len(STATES) - 1)


def computing(most: int) -> list[Computing]:
    """The parts of a strip on which up to ``most`` compute at once."""
    return [
        Computing(STATES[n], "alu" if n else "wait", 16 * n // most or 16, FROM_RIGHT[n])
        for n in range(most + 1)
    ]


class UnitStrip(NamedTuple):
    """When ``working`` wavefronts are at work in a unit: what its boxes are called, its words, and
    where and how it is drawn.
    """

    name: str
    words: str
    unit: str
    working: int
    y: float
    height: float
    color: str


class UnitHeights(NamedTuple):
    """The y of a title, which the shares so far stand beside, and of the upper of two strips."""

    title: float
    strip: float


@dataclass(frozen=True)
class _Layout:
    """Where a report's parts stand on the stage, in pixels: from ``top`` on a title, ``most`` rows
    of which it has ``slots``, and the strips of both units.
    """

    top: float
    slots: int
    most: int

    @property
    def title(self) -> float:
        return self.top + 12

    @property
    def rows(self) -> np.ndarray:
        """The y of each slot."""
        return self.top + 30 + ROW * np.arange(self.slots)

    @property
    def strip(self) -> float:
        """The y of the ALU's strip."""
        return self.top + 38 + ROW * self.most

    @property
    def head(self) -> tuple[float, float]:
        """The y and height of the play head, from the rows to the lower strip."""
        first, last = self.top + 22, self.strip + 28
        return (first + last) / 2, last - first


def wavefronts(
    *reports: ChipReport | Source, n: int = 1024, window: tuple[float, float] = (2000, 6000)
) -> Player:
    """A player of one SIMD engine over the ``window`` (clocks) of one or more reports, one above
    the other.

    ``reports`` come from ``simulate``; kernels are simulated with size ``n``. By default
    "sgemm_tn" (25 registers) above "sgemm_tn_37". Raises ``ValueError`` for a report without
    timeline, or an empty window.
    """
    _check_window(window)
    given = [
        simulate(report, n) if isinstance(report, Source) else report
        for report in reports or ("sgemm_tn", "sgemm_tn_37")
    ]
    drawn = nonempty(given, "pass reports of simulate, or names of kernels", ChipReport)
    for report in drawn:
        if not report.timeline:
            raise ValueError(f"{report.kernel}: the report has no timeline to draw")

    device = drawn[0].device
    names = " and ".join(r.kernel for r in drawn)
    terms = device.terms
    sheet = Sheet(f"{terms.wavefront.capitalize()}s of a {terms.engine}: {names}")
    clocks = np.linspace(*window, FRAMES + 1)
    most = max(report.active for report in drawn)
    height = HEAD + ROW * most
    label = "; ".join(
        f"{r.kernel}: {r.active} rows, and below them the {terms.alu} and the {terms.fetch_unit}"
        for r in drawn
    )
    sheet.stage(label, WIDTH, len(drawn) * height)
    for number, report in enumerate(drawn):
        layout = _Layout(number * height, report.active, most)
        _draw_report(sheet, report, number, layout, clocks)

    lines = [f"clocks {window[0]:.0f} to {window[1]:.0f}"]
    lines += [
        f"{r.kernel}: {r.registers} registers, room for {r.active} {terms.wavefront}s"
        for r in drawn
    ]
    heights = "half height: one alone, at half speed"
    if at_once(device) != 2:
        heights = f"full height: {at_once(device)} at once, at full speed"
    legend = sheet.legend(
        (f"computes ({heights})", "alu", "box"),
        ("stores", "c", "box"),
        (f"in the {terms.fetch_unit}", "texture", "box"),
        ("data on their way", "soft", "solid"),
        ("nobody computes", "wait", "box"),
        ("to come", "faint", "box"),
    )
    return sheet.player(_captions(drawn, clocks), lines, below=[legend], step="Clock")


def _captions(reports: Sequence[ChipReport], clocks: np.ndarray) -> list[str]:
    """What the wavefronts of each report do at each of the ``clocks``; in the end, how far they
    got.
    """
    states = [[f"**{r.kernel}**: {state}." for state in _states(r, clocks)] for r in reports]
    captions = [f"Clock {clock:.0f}. {' '.join(now)}" for clock, *now in zip(clocks, *states)]
    first, last = clocks[0], clocks[-1]
    done = []
    for report in reports:
        ended = turns(report)
        count = np.count_nonzero((ended > first) & (ended <= last))
        done += [f"**{report.kernel}** has done {count}"] if len(ended) else []
    if done:
        captions[-1] = f"Clock {last:.0f}. Of the turns of their loops, {', '.join(done)}."
    return captions


def steps(spans: Sequence[Window], window: Window, most: int) -> np.ndarray:
    """The number of ``spans`` under way, at most ``most``, as rows (from, to, number) within the
    window.
    """
    starts, ends = np.sort(np.reshape(spans, (-1, 2)), axis=0).T
    clocks = np.unique(np.clip([*window, *starts, *ends], *window))
    begun = np.searchsorted(starts, clocks, "right")
    ended = np.searchsorted(ends, clocks, "right")
    counts = np.minimum(begun - ended, most)
    begins = np.flatnonzero(np.diff(counts[:-1], prepend=-1))
    return np.column_stack([clocks[begins], clocks[[*begins[1:], -1]], counts[begins]])


def turns(report: ChipReport) -> np.ndarray:
    """The clocks at which wavefronts of SIMD engine 0 ended the longest ALU clause of their
    kernel's loop, once a turn. None for a program that is no GEMM kernel, or one that waits for the
    LDS in that clause.
    """
    if not isinstance(report, Report) or report.launched is None:
        return np.zeros(0)
    loop = compile(report.launched.program, report.device).main_loop
    longest = max(len(clause.bundles) for clause in loop)
    in_a_turn = sum(len(clause.bundles) == longest for clause in loop)
    clocks = report.device.clause_overhead_clocks + report.device.alu_latency_clocks * longest
    ends = [
        event.end
        for event in report.timeline
        if event.kind == "ALU" and abs(event.end - event.start - clocks) < 0.5
    ]
    return np.sort(ends)[::in_a_turn]


def pauses(report: ChipReport) -> Iterator[tuple[int, float, float, float]]:
    """(wavefront, end of a clause, clock from which it could go on, start of its next clause). A
    wavefront pauses for a clause switch; then it waits until the unit that it needs is free.
    """
    ended: dict[int, float] = {}
    for event in sorted(report.timeline, key=lambda event: event.start):
        if event.wavefront in ended:
            end = ended[event.wavefront]
            ready = min(end + report.device.clause_switch_clocks, event.start)
            yield event.wavefront, end, ready, event.start
        ended[event.wavefront] = event.end


def _states(report: ChipReport, clocks: np.ndarray) -> list[str]:
    """What the wavefronts of the engine do at each of the ``clocks``."""

    def under_way(spans: Iterable[Window]) -> np.ndarray:
        start, end = np.reshape(list(spans), (-1, 2)).T[:, :, np.newaxis]
        return ((start <= clocks) & (clocks < end)).sum(axis=0)

    events = report.timeline
    between = list(pauses(report))
    computing = under_way((e.start, e.end) for e in events if e.kind == "ALU")
    fetching = under_way((e.start, e.end) for e in events if e.kind == "TEX")
    waiting = under_way((ready, start) for _, _, ready, start in between)
    switching = under_way((end, ready) for _, end, ready, _ in between)
    return [
        f"{a} compute, {b} wait for data, {c} for their turn, {d} between clauses"
        for a, b, c, d in zip(computing, fetching, waiting, switching)
    ]


def clock_axis(clocks: np.ndarray, window: Window) -> TimeAxis:
    """The rows as an axis of time."""
    first, last = window
    return TimeAxis(clocks, lambda clock: LEFT + (clock - first) * (RIGHT - LEFT) / (last - first))


def _draw_report(
    sheet: Sheet, report: ChipReport, number: int, layout: _Layout, clocks: np.ndarray
) -> None:
    """Draw the rows and strips of a report, the ``number``-th on the stage."""
    name = f"{report.kernel} {number}" if number else report.kernel
    axis = clock_axis(clocks, (float(clocks[0]), float(clocks[-1])))
    terms = report.device.terms
    of_all = f"{report.registers} of {report.device.register_pool} registers"
    title = f"{report.kernel}: {of_all}, room for {report.active} {terms.wavefront}s"
    sheet.words(LEFT, layout.title, title, bold=True, size=14)
    slots = [str(slot) for slot in range(layout.slots)]
    sheet.words(LEFT - 8, layout.rows, slots, "soft", align="right", size=12)

    for kind in ROWS:
        _draw_kind(sheet, report, kind, (name, KEYS * number), layout.rows, axis)
    _draw_totals(sheet, report, name, UnitHeights(layout.title, layout.strip), axis)
    sheet.play_head(f"head {name}", axis.to_x(clocks), *layout.head)

    stories = _stories(report, (float(clocks[0]), float(clocks[-1])))
    sheet.about |= {KEYS * number + wavefront: words for wavefront, words in stories.items()}


def _draw_kind(
    sheet: Sheet,
    report: ChipReport,
    kind: Kind,
    named: tuple[str, int],
    y: np.ndarray,
    axis: TimeAxis,
) -> None:
    """Draw what the wavefronts do of one kind, in rows at ``y``. ``named`` is the report's name and
    its first key.
    """
    name, first_key = named
    window = float(axis.moments[0]), float(axis.moments[-1])

    def span(event: Event) -> Window:
        return getattr(event, kind.begin), getattr(event, kind.end)

    events = [
        event
        for event in report.timeline
        if event.kind == kind.clause and span(event)[1] > window[0] and span(event)[0] < window[1]
    ]
    if not events:
        return
    start, end = np.array([span(event) for event in events]).T
    slot = np.array([event.slot for event in events], int)
    bars = Bars(np.clip(start, *window), np.clip(end, *window), y[slot], kind.height)
    terms = report.device.terms
    doing = kind.words.format(unit=terms.fetch_unit)
    words = [
        f"{terms.wavefront} {event.wavefront} {doing}: clocks {begin:.0f} to {finish:.0f}"
        for event, begin, finish in zip(events, start, end)
    ]
    sheet.progress_bars(
        f"{doing} {name}",
        bars,
        axis,
        future="faint",
        color=kind.color,
        words=words,
        key=[first_key + event.wavefront for event in events],
    )


def draw_units(
    sheet: Sheet,
    name: str,
    heights: UnitHeights,
    ends: tuple[float, float],
    draw: Callable[[UnitStrip], np.ndarray],
    most: int = 2,
    terms: Terms = TERMS,
) -> None:
    """Draw the strips of both units between the left and the right of ``ends``, and their shares of
    the time so far. Up to ``most`` wavefronts compute at once.

    ``draw`` draws a strip, and returns how much of the time it has taken in each frame, in per
    cent.
    """
    left, right = ends
    alu = heights.strip
    texture = heights.strip + 20
    units = [terms.alu, terms.fetches]
    sheet.words(left - 8, [alu, texture], units, align="right", bold=True, size=12)

    percent = [f"{part} %" for part in range(101)]
    shares = []
    for n, part in enumerate(computing(most)):
        y = alu + (16 - part.height) / 2
        strip = UnitStrip(f"computing {n}", part.state, "alu", n, y, part.height, part.color)
        shares.append(draw(strip))
        sheet.numbers(
            f"share {n} {name}",
            right - part.from_right,
            heights.title,
            np.round(shares[n]).astype(int),
            names=[f"{part.state} {share}" for share in percent],
            bold=n == 0,
            color=part.color,
            align="right",
            size=14,
        )
    words = f"the {terms.fetch_unit} works"
    serving = draw(UnitStrip("texture", words, "texture", 1, texture, 12, "texture"))

    # A wavefront that computes alone has half of the ALU's speed, or less.
    busy = {"ALU": sum(n / most * share for n, share in enumerate(shares)), "TEX": serving}
    for unit, y, color in (("ALU", alu, "alu"), ("TEX", texture, "soft")):
        share = np.round(busy[unit]).astype(int)
        sheet.numbers(
            f"{unit} {name}", right + 8, y, share, names=percent, color=color, bold=True, size=14
        )


def _draw_totals(
    sheet: Sheet, report: ChipReport, name: str, heights: UnitHeights, axis: TimeAxis
) -> None:
    """Draw what both units of a report have done so far, and the turns of its loop."""
    clocks = axis.moments
    window = float(clocks[0]), float(clocks[-1])
    computes = [(e.start, e.end) for e in report.timeline if e.kind == "ALU"]
    serves = [(e.start, e.served) for e in report.timeline if e.kind == "TEX"]
    most = at_once(report.device)
    counts = {"alu": steps(computes, window, most), "texture": steps(serves, window, 1)}

    def draw_strip(strip: UnitStrip) -> np.ndarray:
        count = counts[strip.unit]
        start, end, _ = count[count[:, 2] == strip.working].T
        words = [f"{strip.words}: clocks {a:.0f} to {b:.0f}" for a, b in zip(start, end)]
        bars = Bars(start, end, strip.y, strip.height)
        sheet.progress_bars(
            f"{strip.name} {name}", bars, axis, future="faint", color=strip.color, words=words
        )
        so_far = np.clip(clocks[:, np.newaxis] - start, 0, end - start).sum(axis=1)
        return 100 * so_far / np.maximum(clocks - window[0], 1e-9)

    draw_units(sheet, name, heights, (LEFT, RIGHT), draw_strip, most, report.device.terms)
    ended = turns(report)
    if len(ended):
        is_over = (ended[:, np.newaxis] > window[0]) & (ended[:, np.newaxis] <= clocks)
        x = RIGHT + 8
        lines = heights.title + np.array([0, 16])
        sheet.words(x, lines, ["turns of", "the loop"], "soft", size=12)
        counter = heights.title + 42
        sheet.numbers(f"turns {name}", x, counter, is_over.sum(axis=0), bold=True, size=24)


def _stories(report: ChipReport, window: Window) -> dict[int, str]:
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

    stories = {}
    name = report.device.terms.wavefront.capitalize()
    for wavefront, clocks_of in spent.items():
        parts = [f"{doing} for {clocks:.0f}" for doing, clocks in clocks_of.items()]
        stories[wavefront] = (
            f"**{name} {wavefront}** of {report.kernel} in these"
            f" {window[1] - window[0]:.0f} clocks: {', '.join(parts)}."
        )
    return stories


def _check_window(window: object) -> None:
    """Raise ``ValueError`` for what is no window: two clocks, the later one last."""
    pair = list(window) if isinstance(window, Sequence | np.ndarray) else []
    if len(pair) == 2 and all(isinstance(clock, Real) for clock in pair):
        begin, end = pair
        if 0 <= begin < end < inf:
            return
    raise ValueError(f"window={shortened(window)}: from a clock to a later one, as in (2000, 6000)")
