"""Several launches on one clock: how many engines have work, and what the memory channels do or
wait for.

From timing reports: how many engines have a wavefront, and for each interval the share of the
channels' time spent sending data, and the share spent opening rows, when nothing is sent. Left out:
the individual channels.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.timing import Report, simulate

FRAMES, LEFT, WIDE, HIGH = 120, 268, 828, 62  # the strips' left edge, width and height
# Of an engine: without a wavefront, with one, and after the end one that had some.
ENGINES = ["rgba(128,128,128,0.22)", "#009e73", "rgba(0,158,115,0.45)"]
HAD_WORK = 2
EACH, TOP = 92, 22  # from one launch to the next, and the first one's heading


def channels(reports: Sequence[Report] = ()) -> Player:
    """A player of launches, one below the other, on a clock that ends with the longest. By default
    four products of a matrix with a vector, N = 2048. Raises ``ValueError`` for none, ``TypeError``
    for what is no report.
    """
    reports = reports or [
        simulate(f"sgemv_{kind}", 2048) for kind in ("n", "t_reduce4", "n_reduce2", "n_reduce4")
    ]
    runs = nonempty(reports, "pass reports of simulate", Report)
    sheet = Sheet("The memory channels: " + ", ".join(r.kernel for r in runs))
    end = max(r.use.clocks[-1] for r in runs if r.use)
    clocks = np.linspace(0, end, FRAMES)
    sheet.stage(
        "Engines with a wavefront, and the channels' time, for each launch",
        1112,
        EACH * len(runs) + 32,
    )
    for n, report in enumerate(runs):
        _draw(sheet, report, TOP + EACH * n, clocks)
    foot = EACH * len(runs) + 10
    ticks = np.arange(0, end, 10 ** np.floor(np.log10(end)) / 2)
    sheet.words(
        LEFT + ticks / end * WIDE,
        foot,
        [f"{t / 1000:,.0f}" for t in ticks],
        "soft",
        align="center",
        size=11,
    )
    sheet.words(LEFT - 30, foot, "thousand clocks:", "soft", align="right", size=11)
    done = [[r.kernel for r in runs if r.use and now >= r.use.clocks[-1]] for now in clocks]
    captions = [
        f"Clock {now:,.0f}. Done: {', '.join(names) or 'none'}." for now, names in zip(clocks, done)
    ]
    if len(runs) > 1:
        captions[-1] += _winner(runs)
    legend = sheet.legend(
        ("engine with a wavefront", "c", "box"),
        ("that had one, at the end", "c", "pale"),
        ("channels send", "texture", "box"),
        ("channels wait for a row to open", "wait", "box"),
    )
    lines = (f"{r.kernel}: {r.wavefronts} wavefronts" for r in runs)
    return sheet.player(captions, lines, step="Moment", below=[legend], guess=_question(runs))


def _winner(runs: Sequence[Report]) -> str:
    """The launch that was done first, and by how much."""
    first, *_, last = sorted(runs, key=lambda report: report.clocks)
    times = last.clocks / first.clocks
    return f" **{first.kernel}** was first: {times:.2f} times as fast as {last.kernel}."


def _awake(report: Report) -> int:
    return len(np.unique(report.use.wavefronts[:, 0])) if report.use else 0


def _question(runs: Sequence[Report]) -> Guess | None:
    """How much faster is the last launch than the one before it, which has fewer wavefronts? None
    for one launch.
    """
    if len(runs) < 2:
        return None
    before, last = runs[-2:]
    ways = {"no faster": 1.0, "a quarter faster": 1.25, "twice as fast": 2.0}
    ratio = before.clocks / last.clocks
    right = min(ways, key=lambda way: abs(ways[way] - ratio))
    few, many = (
        f"{r.kernel} has {r.wavefronts} wavefronts on {_awake(r)} engines" for r in (before, last)
    )
    question = f"{few}, {many}. How much faster is it?"
    truth = f"{last.clocks:,.0f} clocks instead of {before.clocks:,.0f}, {ratio:.2f} times as fast."
    return Guess(question, list(ways), truth, right)


def _draw(sheet: Sheet, report: Report, top: float, clocks: np.ndarray) -> None:
    use = report.use
    name = report.kernel
    end = clocks[-1]
    assert use is not None
    sheet.words(12, top, name, bold=True, size=14)
    sheet.words(12, top + 20, f"wavefronts: {report.wavefronts}", "soft", size=12)
    engine, start, stop = use.wavefronts.T
    runs = (start < clocks[:, np.newaxis]) & (stop > clocks[:, np.newaxis])
    count = report.device.simd_engines
    busy = np.stack([np.bincount(engine[now].astype(int), minlength=count) > 0 for now in runs])
    over = (clocks >= use.clocks[-1])[:, np.newaxis]
    had_work = over & np.isin(np.arange(count), engine)
    state = np.where(had_work, HAD_WORK, busy)
    x = 150 + np.arange(count) % 7 * 14
    y = top + 2 + np.arange(count) // 7 * 14
    words = [f"SIMD engine {n}" for n in range(count)]
    sheet.boxes(
        f"engines {name}",
        x,
        y,
        11,
        11,
        fill=(ENGINES, state),
        words=words,
    )
    foot = top + HIGH + 4
    begin = use.clocks[:-1]
    sheet.boxes(f"room {name}", LEFT + WIDE / 2, foot - HIGH / 2, WIDE, HIGH, ink="faint")
    x = LEFT + (begin + use.clocks[1:]) / 2 / end * WIDE
    wide = np.diff(use.clocks) / end * WIDE
    past = begin < clocks[:, np.newaxis]
    under = np.zeros(len(begin))
    for unit, ink, doing in (
        ("DRAM", "texture", "sending"),
        ("DRAM rows", "wait", "waiting for rows to open"),
    ):
        tall = HIGH * use.shares[unit].mean(axis=1)
        words = [f"{doing} for {100 * t / HIGH:.0f} % of the channels' time" for t in tall]
        sheet.boxes(
            f"{unit} {name}",
            x,
            foot - under - tall / 2,
            wide,
            np.where(past, tall, np.nan),
            ink=ink,
            words=words,
        )
        under = under + tall
    sheet.play_head(
        f"head {name}",
        LEFT + np.minimum(clocks, use.clocks[-1]) / end * WIDE,
        foot - HIGH / 2,
        HIGH,
    )
    done = (clocks >= use.clocks[-1]).astype(int)
    sends, waits = (round(100 * report.busy[unit]) for unit in ("DRAM", "DRAM rows"))
    doing = (
        f"done at clock {use.clocks[-1]:,.0f}: channels sent for {sends} % of it, waited for rows"
        f" for {waits} %"
    )
    sheet.numbers(
        f"finish {name}", LEFT, top - 10, done, names=["", doing], ink="c", bold=True, size=12
    )
