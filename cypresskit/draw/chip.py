"""The chip with its parts lit by use: SIMD engines with ALUs, texture units, LDS and L1, the L2 slices, the channels.

From timing reports. One report is shown over time, each part by itself, in the intervals of ``Report.use``. Several
(sizes of a matrix, kernels, boards) have a frame each, with a kind's average in all its parts. L1 and L2 show hits as
well; all else is clocks at work. Left out: what a launch does after the simulated time, if only a share is simulated.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, beside
from cypresskit.timing import Report, simulate
from cypresskit.timing.report import Use

UNITS = ("ALU", "texture", "LDS", "L1 hits")
MEMORY = ("L2", "L2 hits", "DRAM")
GROUP, ACROSS = 10, 5  # engines in a group, and in a row of it
LEFT, RIGHT = -4.6, 3.4 * ACROSS + 0.2  # edges of a part of the picture
SIZES = (128, 256, 512, 1024, 2048)
Shares = dict[str, np.ndarray]  # what each part of a kind was busy for, or had, in a frame


def chip(reports: Report | Sequence[Report] | str = "sgemm_tn", sizes: Sequence[int] = SIZES) -> Player:
    """A player of the chip's use: a report over time, or several with a frame each.

    ``reports`` come from ``simulate``, all for boards with equally many parts; a kernel's name is simulated for
    ``sizes``. Raises ``ValueError`` if there are none, or if the boards differ.
    """
    if isinstance(reports, str):
        reports = [simulate(reports, n) for n in sizes]
    made = [reports] if isinstance(reports, Report) else list(reports)
    if len({(r.device.simd_engines, r.device.memory_channels, r.device.l2_slices) for r in made}) != 1:
        raise ValueError("the chip is drawn for one or more reports, all of boards with the same parts")
    sheet = Sheet(f"The chip at work: {', '.join(dict.fromkeys(r.kernel for r in made))}")
    use = made[0].use if len(made) == 1 else None
    frames, captions = zip(*(_over_time(made[0], use) if use else map(_average, made)))
    shares = {name: np.array([frame[name] for frame in frames]) for name in (*UNITS, *MEMORY)}
    text = [sheet.title, *map(str, made)]
    if use:
        text += [caption.split("<br>")[0] for caption in captions[:: max(1, len(captions) // 8)]]
        about = f" An interval is {use.clocks[1]:.0f} clocks long; work counts from where it begins."
    else:
        about = " Engines, slices and channels show their average over the launch."
    note = sheet.note(
        "Numbers are per cent: of the clocks in which a unit worked, or of lines that L1 and L2 had." + about
    )
    picture = _draw(sheet, made[0], shares)
    return sheet.player(picture, captions, "\n".join(text), below=[note], step="Interval" if use else "Report")


def _average(r: Report) -> tuple[Shares, str]:
    """A report's averages in each part, and words."""
    counts = dict.fromkeys(UNITS, r.device.simd_engines) | dict.fromkeys(MEMORY, r.device.l2_slices)
    counts["DRAM"] = r.device.memory_channels
    whole = r.busy | {f"{level} hits": share for level, share in r.hits.items()}
    return {name: np.full(count, whole[name]) for name, count in counts.items()}, _said(r)


def _over_time(r: Report, use: Use) -> Iterator[tuple[Shares, str]]:
    """The parts' shares in each interval, and words."""
    part = "" if r.simulated == 1 else f" ({r.simulated:.0%} of the launch)"
    for n, (start, end) in enumerate(pairwise(use.clocks)):
        shares = {name: share[n] for name, share in use.shares.items()}
        means = ", ".join(f"{name} {100 * shares[name].mean():.0f} %" for name in (*UNITS[:3], "L2", "DRAM"))
        idle = int((shares["ALU"] == 0).sum())
        words = f"Clocks {start:.0f} to {end:.0f} of {use.clocks[-1]:.0f}{part}. On average: {means}; "
        yield shares, f"{words}{idle or 'no'} engine{'s' * (idle != 1)} without work.<br>{_said(r)}"


def _said(r: Report) -> str:
    size = f" {' x '.join(map(str, r.size))}" if r.size else ""
    return (
        f"<b>{r.kernel}{size}</b> on the {r.device.name}: {r.gflops:.0f} Gflop/s, {r.percent:.0f} % of peak, bound by "
        f"{r.bound}. {r.wavefronts} wavefronts, {r.active} to an engine at a time."
    )


def _draw(sheet: Sheet, report: Report, shares: Shares) -> list:
    """Engines in groups of ten, side by side where there is room, and what they share below."""
    engines = report.device.simd_engines
    groups = [np.arange(first, min(first + GROUP, engines)) for first in range(0, engines, GROUP)]
    return [beside(*(_draw_engines(sheet, group, shares) for group in groups)), _draw_memory(sheet, shares)]


def _draw_engines(sheet: Sheet, group: np.ndarray, shares: Shares):
    first, last, rows = group[0], group[-1], -(-len(group) // ACROSS)
    fig = sheet.plot(f"SIMD engines {first} to {last}", (LEFT, RIGHT), (6.6 * rows - 0.6, -1.6))
    across, down = 3.4 * ((group - first) % ACROSS) + 1.6, 6.6 * ((group - first) // ACROSS)
    for u, unit in enumerate(UNITS):
        words = [f"SIMD engine {engine}, {unit}" for engine in group]
        place = across, down + 1.5 + 1.1 * u
        sheet.levels(fig, f"{unit} {first}", *place, shares[unit][:, group], w=3.1, h=1.0, words=words, fit=0.75)
    sheet.inks(fig.rect(across, down + 2.75, 3.3, 5.7, fill_color=None, line_width=1), line_color="line")
    sheet.words(fig, across, down + 0.45, list(map(str, group)), "soft", align="center", size=10, fit=0.7)
    sheet.words(fig, [0], [-0.8], [f"SIMD engines {first} to {last}"], bold=True)
    heights = np.add.outer(6.6 * np.arange(rows), 1.5 + 1.1 * np.arange(len(UNITS))).ravel()
    sheet.words(fig, np.full(len(heights), -0.3), heights, UNITS * rows, "soft", align="right", size=11, fit=0.75)
    return fig


def _draw_memory(sheet: Sheet, shares: Shares):
    slices, channels = shares["L2"].shape[1], shares["DRAM"].shape[1]
    fig = sheet.plot(f"{slices} L2 slices and {channels} memory channels", (LEFT, RIGHT), (5.1, 0), high=120)
    for row, (name, part) in enumerate(zip(MEMORY, ("L2 slice", "hits of L2 slice", "memory channel"))):
        count = shares[name].shape[1]
        wide = 3.4 * ACROSS / count
        place = wide * (np.arange(count) + 0.5), np.full(count, 0.85 + 1.7 * row)
        words = [f"{part} {n}" for n in range(count)]
        sheet.levels(fig, name, *place, shares[name], w=0.9 * wide, h=1.3, words=words, fit=0.75)
        sheet.words(fig, [-0.3], place[1][:1], [name], "soft", align="right", size=11, fit=0.75)
    return fig
