"""The chip with its parts lit by use: SIMD engines with ALUs, texture units, LDS and L1, the L2 slices, the channels.

From timing reports, a frame for each: sizes of a matrix, kernels, or boards. A report knows the average over all parts
of a kind, so all engines (slices, channels) of a frame show the same. L1 and L2 show hits; all else clocks at work.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.timing import Report, simulate

UNITS = ("ALU", "texture", "LDS", "L1 hits")
ACROSS = 10  # engines in a row
SIZES = (128, 256, 512, 1024, 2048)


def chip(reports: Sequence[Report] | str = "sgemm_tn", sizes: Sequence[int] = SIZES) -> Player:
    """A player of the chip's use, a frame for each report.

    ``reports`` come from ``simulate``, all for boards with equally many parts; a kernel's name is simulated for
    ``sizes``. Raises ``ValueError`` if there are none, or if the boards differ.
    """
    made = [simulate(reports, n) for n in sizes] if isinstance(reports, str) else list(reports)
    if len({(r.device.simd_engines, r.device.memory_channels, r.device.l2_slices) for r in made}) != 1:
        raise ValueError("the chip is drawn for one or more reports, all of boards with the same parts")
    device = made[0].device
    sheet = Sheet(f"The chip at work: {', '.join(dict.fromkeys(r.kernel for r in made))}")
    engines, slices, channels = device.simd_engines, device.l2_slices, device.memory_channels
    rows = -(-engines // ACROSS)
    low = rows * 6.6
    fig = sheet.plot(
        f"{engines} SIMD engines, {slices} L2 slices, {channels} memory channels",
        (-4.6, 3.4 * ACROSS + 0.2),
        (low + 5.4, -1.6),
    )
    x, y, words, shares = [], [], [], []
    for engine in range(engines):
        for u, unit in enumerate(UNITS):
            x.append(3.4 * (engine % ACROSS) + 1.6)
            y.append(6.6 * (engine // ACROSS) + 1.5 + 1.1 * u)
            words.append(f"SIMD engine {engine}, {unit}")
            shares.append([r.hits["L1"] if u == 3 else r.busy[unit] for r in made])
    for row, (name, count) in enumerate((("L2 slice", slices), ("L2 hits", slices), ("memory channel", channels))):
        for part in range(count):
            x.append(3.4 * ACROSS * (part + 0.5) / count)
            y.append(low + 1.0 + 1.7 * row)
            words.append(f"{name} {part}")
            shares.append([(r.busy["L2"], r.hits["L2"], r.busy["DRAM"])[row] for r in made])
    small = engines * len(UNITS)
    lit = np.array(shares).T
    sheet.levels(fig, "engines", x[:small], y[:small], lit[:, :small], w=3.1, h=1.0, words=words[:small], fit=0.75)
    wide = 3.4 * ACROSS / max(slices, channels) - 0.3
    sheet.levels(fig, "memory", x[small:], y[small:], lit[:, small:], w=wide, h=1.3, words=words[small:], fit=0.75)
    boxes = [(3.4 * (e % ACROSS) + 1.6, 6.6 * (e // ACROSS) + 2.75) for e in range(engines)]
    bx, by = zip(*boxes)
    sheet.inks(fig.rect(bx, by, 3.3, 5.7, fill_color=None, line_width=1), line_color="line")
    sheet.words(
        fig, bx, [v - 2.3 for v in by], [str(e) for e in range(engines)], "soft", align="center", size=10, fit=0.7
    )
    sheet.words(fig, [0], [-0.8], ["SIMD engines"], bold=True)
    names = [(6.6 * row + 1.5 + 1.1 * u, unit) for row in range(rows) for u, unit in enumerate(UNITS)]
    names += [(low + 1.0 + 1.7 * row, name) for row, name in enumerate(("L2", "L2 hits", "DRAM"))]
    down, unit_names = zip(*names)
    sheet.words(fig, [-0.3] * len(names), down, unit_names, "soft", align="right", size=11, fit=0.75)
    captions = [_caption(r) for r in made]
    text = "\n".join([sheet.title, *(str(r) for r in made)])
    note = sheet.note(
        "Numbers are per cent: of the launch's clocks in which a unit worked, or of lines that L1 and L2 had. Engines,"
        " slices and channels show their average."
    )
    return sheet.player([fig], captions, text, below=[note], step="Report")


def _caption(r: Report) -> str:
    size = f" {' x '.join(map(str, r.size))}" if r.size else ""
    return (
        f"<b>{r.kernel}{size}</b> on the {r.device.name}: {r.gflops:.0f} Gflop/s, {r.percent:.0f} % of peak, bound by "
        f"{r.bound}. {r.wavefronts} wavefronts, {r.active} to an engine at a time."
    )
