"""The wavefronts of one SIMD engine over time, and below them its two units.

Drawn from timing reports. Each row is a wavefront slot of SIMD engine 0: thick where a unit works
for its wavefront, thin while data is in flight. The fewer registers a kernel uses, the more slots
there are; while one wavefront waits, another one computes. The other engines aren't drawn. The few
clocks in which a clause starts up count as computing.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from cypresskit.draw.display import require_nonempty
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import HEADING, Bars, Rows, Sheet, TimeAxis
from cypresskit.kernels.own import Source
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Event

FRAMES = 150
LEFT, RIGHT, ROW = 76, 1300, 16  # pixels: ends of the rows, and the height of one
WIDTH = RIGHT + 106  # pixels of the stage: counters are on the right of the rows
BESIDE = 33, 45  # pixels that names and shares of units take on a phone
HEAD = 100  # pixels above and below a report's rows
KEYS_PER_REPORT = 100_000  # wavefront w of report r has the key KEYS_PER_REPORT * r + w

Window = tuple[float, float]  # first and last clock


class Activity(NamedTuple):
    """An activity that a row shows."""

    clause_kind: str  #: the kind of its clauses
    begin: str  #: the field of ``Event`` with its first clock
    end: str  #: the field with its last clock
    words: str
    color: str
    height: int

    def span(self, event: Event) -> Window:
        """Return the clocks from which and to which it lasts."""
        return getattr(event, self.begin), getattr(event, self.end)


ACTIVITIES = (
    Activity("ALU", "start", "end", "computes", "alu", 11),
    Activity("TEX", "start", "served", "is in the texture unit", "texture", 11),
    Activity("TEX", "served", "end", "waits for data", "soft", 2),
    Activity("WRITE", "start", "end", "stores", "c", 11),
)
UNITS = "ALU", "TEX"
SHARES = [f"{part} %" for part in range(101)]

#: How many wavefronts compute (two of them at the engine's full speed), and where in the line above
#: the rows its share is printed.
ALU_STATES = {
    "idle": (RIGHT, "right"),
    "one computes": (0.42 * LEFT + 0.58 * RIGHT, "center"),
    "two compute": (LEFT, "left"),
}
FULL_SPEED = 2  # wavefronts


@dataclass(frozen=True)
class _Layout:
    """Positions of a report's parts on the stage, in pixels: title, rows, two tracks."""

    top: float
    slots: int  #: rows of this report
    most: int  #: rows of the report with the most slots

    @property
    def title(self) -> float:
        return self.top + 12

    @property
    def shares(self) -> float:
        return self.top + 29

    @property
    def rows(self) -> np.ndarray:
        """The y of each slot."""
        return self.top + 46 + ROW * np.arange(self.slots)

    @property
    def track(self) -> float:
        """The y of the ALU's track."""
        return self.top + 54 + ROW * self.most

    @property
    def head(self) -> tuple[float, float]:
        """The y and height of the play head, from the rows to the lower track."""
        first, last = self.top + 38, self.track + 28
        return (first + last) / 2, last - first


def wavefronts(
    *reports: Report | Source, n: int = 1024, window: tuple[float, float] = (2000, 6000)
) -> Player:
    """Draw the wavefronts of one SIMD engine, for one or more launches, one above the other.

    Parameters
    ----------
    reports
        Reports of ``ck.simulate``, or kernels, which are simulated. By default "sgemm_tn" (25
        registers) and "sgemm_tn_37".
    n
        The size for which kernels are simulated.
    window
        The first and the last clock that are drawn.

    Raises
    ------
    ValueError
        If there are no reports, or the window is empty.

    Examples
    --------
    >>> ck.draw.wavefronts("sgemm_tn", n=512, window=(0, 4000))
    """
    begin, end = window
    if not 0 <= begin < end < inf:
        raise ValueError(f"window={window}: pass two ascending clocks, as in (2000, 6000)")
    given = [
        simulate(report, n) if isinstance(report, Source) else report
        for report in reports or ("sgemm_tn", "sgemm_tn_37")
    ]
    drawn = require_nonempty(given, "pass reports of simulate, or names of kernels", Report)

    names = " and ".join(r.kernel for r in drawn)
    sheet = Sheet(f"How long is the ALU of a SIMD engine idle? {names}")
    clocks = np.linspace(*window, FRAMES + 1)
    most = max(report.active_wavefronts for report in drawn)
    height = HEAD + ROW * most
    label = "; ".join(
        f"{r.kernel}: {r.active_wavefronts} wavefront slots, the ALU and the texture unit"
        for r in drawn
    )
    rows = Rows(LEFT, RIGHT, *BESIDE)
    sheet.stage(label, WIDTH, len(drawn) * height, rows=rows)
    for number, report in enumerate(drawn):
        layout = _Layout(number * height, report.active_wavefronts, most)
        _draw_report(sheet, report, number, layout, clocks)

    stores = any(_in_window(report, ACTIVITIES[-1], window) for report in drawn)
    legend = sheet.legend(
        ("computes (half height: only one wavefront, half speed)", "alu"),
        *[("stores", "c")] * stores,
        ("in the texture unit", "texture"),
        ("data in flight", "soft", "solid"),
        ("ALU idle", "wait"),
        ("not yet", "faint"),
    )
    captions = _write_captions(drawn, clocks)
    # At the first clock all is still gray.
    return sheet.player(captions, "modeled", below=[legend], step="Clock", opens=FRAMES // 4)


def _write_captions(reports: Sequence[Report], clocks: np.ndarray) -> list[str]:
    """Return a caption for each clock: what each report's wavefronts do then. The last one says
    for how long the ALU was idle, and how much of its full speed it reached.
    """
    states = [_describe_clocks(report, clocks) for report in reports]
    captions = [f"Clock {clock:,.0f}. {' '.join(now)}" for clock, *now in zip(clocks, *states)]
    ends = []
    for report in reports:
        count = _alu_overlaps(report, clocks)
        idle, half, full = (_share_so_far(count, n, clocks)[-1] for n in range(FULL_SPEED + 1))
        ends.append(
            f"{idle:.0f} % with {report.kernel} ({half / FULL_SPEED + full:.0f} % of full speed)"
        )
    window = f"From clock {clocks[0]:,.0f} to {clocks[-1]:,.0f}"
    captions[-1] = f"**{window} the ALU was idle for {' and '.join(ends)}.** {captions[-1]}"
    return captions


def count_overlaps(spans: Sequence[Window], window: Window, most: int) -> np.ndarray:
    """Split the window where the number of overlapping ``spans`` changes: rows (from, to, number).

    The number is at most ``most``.
    """
    starts, ends = np.sort(np.reshape(spans, (-1, 2)), axis=0).T
    clocks = np.unique(np.clip([*window, *starts, *ends], *window))
    begun = np.searchsorted(starts, clocks, "right")
    ended = np.searchsorted(ends, clocks, "right")
    counts = np.minimum(begun - ended, most)
    begins = np.flatnonzero(np.diff(counts[:-1], prepend=-1))
    return np.column_stack([clocks[begins], clocks[[*begins[1:], -1]], counts[begins]])


def _describe_clocks(report: Report, clocks: np.ndarray) -> list[str]:
    """Return what the wavefronts of the engine do at each of the ``clocks``, as text."""

    def count(spans: Iterable[Window]) -> np.ndarray:
        start, end = np.reshape(list(spans), (-1, 2)).T[:, :, np.newaxis]
        return ((start <= clocks) & (clocks < end)).sum(axis=0)

    events = report.timeline
    computing = count((e.start, e.end) for e in events if e.kind == "ALU")
    fetching = count((e.start, e.end) for e in events if e.kind == "TEX")
    return [
        f"**{report.kernel}**: {a} compute, {b} wait for data." for a, b in zip(computing, fetching)
    ]


def _alu_overlaps(report: Report, clocks: np.ndarray) -> np.ndarray:
    """Return when how many wavefronts compute, as ``count_overlaps`` does."""
    computes = [(event.start, event.end) for event in report.timeline if event.kind == "ALU"]
    return count_overlaps(computes, (clocks[0], clocks[-1]), FULL_SPEED)


def _share_so_far(count: np.ndarray, n: int, clocks: np.ndarray) -> np.ndarray:
    """Return for which share of the time so far the number was ``n``, in percent."""
    start, end, _ = count[count[:, 2] == n].T
    so_far = np.clip(clocks[:, np.newaxis] - start, 0, end - start).sum(axis=1)
    share: np.ndarray = 100 * so_far / np.maximum(clocks - clocks[0], 1e-9)
    return share


def clock_axis(clocks: np.ndarray) -> TimeAxis:
    """Return the time axis of the rows, from ``LEFT`` to ``RIGHT``."""
    first, last = clocks[0], clocks[-1]
    return TimeAxis(clocks, lambda clock: LEFT + (clock - first) * (RIGHT - LEFT) / (last - first))


def _draw_report(
    sheet: Sheet, report: Report, number: int, layout: _Layout, clocks: np.ndarray
) -> None:
    """Draw the rows and tracks of a report, the ``number``-th on the stage."""
    name = f"{report.kernel} {number}" if number else report.kernel
    axis = clock_axis(clocks)
    title = f"{report.kernel}: {report.registers} registers, {report.active_wavefronts} wavefronts"
    sheet.text(LEFT, layout.title, title, **HEADING)
    sheet.text(LEFT - 8, layout.rows, np.arange(layout.slots), "soft", align="right", x_offset=-4)

    for activity in ACTIVITIES:
        _draw_activity(sheet, report, activity, (name, KEYS_PER_REPORT * number), layout.rows, axis)
    _draw_totals(sheet, report, name, layout, axis)
    sheet.play_head(f"head {name}", axis.to_x(clocks), *layout.head)

    sheet.about |= {
        KEYS_PER_REPORT * number
        + event.wavefront: f"**Wavefront {event.wavefront}** of {report.kernel}."
        for event in report.timeline
        if event.start < axis.window[1] and event.end > axis.window[0]
    }


def _in_window(report: Report, activity: Activity, window: Window) -> list[Event]:
    """Return the events of an activity that a window of clocks has a part of."""
    return [
        event
        for event in report.timeline
        if event.kind == activity.clause_kind
        and activity.span(event)[1] > window[0]
        and activity.span(event)[0] < window[1]
    ]


def _draw_activity(
    sheet: Sheet,
    report: Report,
    activity: Activity,
    named: tuple[str, int],
    y: np.ndarray,
    axis: TimeAxis,
) -> None:
    """Draw one activity in the rows at ``y``. ``named`` is the report's name and its first key."""
    name, first_key = named
    window = axis.window
    events = _in_window(report, activity, window)
    if not events:
        return
    start, end = np.array([activity.span(event) for event in events]).T
    slot = np.array([event.slot for event in events], int)
    bars = Bars(np.clip(start, *window), np.clip(end, *window), y[slot], activity.height)
    words = [
        f"wavefront {event.wavefront} {activity.words}: clocks {begin:,.0f} to {finish:,.0f}"
        for event, begin, finish in zip(events, start, end)
    ]
    sheet.progress_bars(
        f"{activity.words} {name}",
        bars,
        axis,
        future="faint",
        color=activity.color,
        words=words,
        key=[first_key + event.wavefront for event in events],
    )


def _draw_totals(sheet: Sheet, report: Report, name: str, layout: _Layout, axis: TimeAxis) -> None:
    """Draw the tracks of both units, and how busy they have been so far."""
    clocks = axis.moments
    window = axis.window
    alu = layout.track
    texture = alu + 20
    sheet.text(LEFT - 8, [alu, texture], UNITS, align="right", bold=True, x_offset=-4)

    def draw_track(
        count: np.ndarray, words: str, n: int, y: float, height: float, color: str
    ) -> np.ndarray:
        """Draw when ``n`` wavefronts use a unit. Return their share of the time so far, in
        percent.
        """
        start, end, _ = count[count[:, 2] == n].T
        told = [f"{words}: clocks {a:,.0f} to {b:,.0f}" for a, b in zip(start, end)]
        bars = Bars(start, end, y, height)
        sheet.progress_bars(f"{words} {name}", bars, axis, future="faint", color=color, words=told)
        return _share_so_far(count, n, clocks)

    count = _alu_overlaps(report, clocks)
    shares = []
    for n, (state, (x, align)) in enumerate(ALU_STATES.items()):
        high = 16 * n // FULL_SPEED or 16
        color = "alu" if n else "wait"
        shares.append(draw_track(count, state, n, alu + (16 - high) / 2, high, color))
        sheet.numbers(
            f"share {n} {name}",
            x,
            layout.shares,
            np.round(shares[n]).astype(int),
            names=[f"{state.removesuffix(' computes')} {share}" for share in SHARES],
            color=color,
            align=align,
        )
    serves = [(e.start, e.served) for e in report.timeline if e.kind == "TEX"]
    count = count_overlaps(serves, window, 1)
    words = "the texture unit is busy"
    serving = draw_track(count, words, 1, texture, 12, "texture")

    computing = sum(n / FULL_SPEED * share for n, share in enumerate(shares))
    for unit, busy, y, color in zip(UNITS, (computing, serving), (alu, texture), ("alu", "soft")):
        share = np.round(busy).astype(int)
        sheet.numbers(
            f"{unit} {name}",
            RIGHT + 8,
            y,
            share,
            names=SHARES,
            color=color,
            x_offset=4,
            **HEADING,
        )
