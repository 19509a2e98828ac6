"""A product that comes over the bus and goes back, for growing N: where its time goes, and where parts change places.

From ``host.round_trip``, tasks on the event model: each N's run is drawn over the whole width, so that a bar is a share
of its time. Left out: overlap, which ``timeline`` shows.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.host import balance, round_trip

SIZES = (150, 300, 600, 900, 1200, 1600, 2000, 2400, 3000, 3600, 4800, 6400, 9600)
LEFT, WIDE, ROW = 150, 900, 34  # pixels: the rows' left edge and width, and a row's height
ROWS = {"PCIe to card": "bus, to the card", "chip 0": "chip", "PCIe to host": "bus, to the host"}
TASKS = {"send A": "a", "send B": "b", "send C": "c", "kernel": "alu", "fetch C": "c"}


def bus(bandwidth: float = 3e9, rate: float = 450e9, sizes: Sequence[int] = SIZES, precision: str = "double") -> Player:
    """A player with a frame for each of ``sizes``; ``bandwidth`` in byte/s, ``rate`` of the kernel in flop/s. Raises
    ``ValueError`` without sizes, for sizes below 1 and rates of 0 or less."""
    runs = [round_trip(n, bandwidth, rate, precision) for n in nonempty(sizes, "pass at least one size")]
    even = balance(bandwidth, rate, precision)
    sheet = Sheet(f"The bus and the chip: {bandwidth / 1e9:g} GB/s and {rate / 1e9:g} Gflop/s")
    fig = sheet.stage("Shares of the time: matrices to the card, the kernel, C to the host", LEFT + WIDE + 62, 4 * ROW)
    y = {row: 18.0 + ROW * n for n, row in enumerate(ROWS)}
    down = list(y.values())
    sheet.boxes(fig, "rows", LEFT + WIDE / 2, down, WIDE, ROW - 8, ink="faint", alpha=0.5)
    sheet.words(fig, LEFT - 8, down, list(ROWS.values()), align="right", size=13)
    for n, (name, ink) in enumerate(TASKS.items()):
        spans = [run.spans[n] for run in runs]
        row = [y[next(iter(spans[0].task.uses))]]
        start, end = (np.array([[getattr(s, side) / s_run.seconds] for s, s_run in zip(spans, runs)])
                      for side in ("start", "end"))  # fmt: skip
        x, w = LEFT + (start + end) / 2 * WIDE, (end - start) * WIDE - 1
        sheet.boxes(fig, name, x, row, w, ROW - 12, ink=ink, alpha=0.7, words=[name], moves=("x", "w"))
        at = sheet.source(f"name {name}", ("x",), x=x, y=row, text=[name.split()[-1]])
        sheet.words(fig, "x", "y", "text", source=at, align="center", size=12)
    ways = np.array([[run.busy[row] for row in ROWS] for run in runs])
    tenths, names = np.round(1000 * ways).astype(int), [f"{n / 10:.1f} %" for n in range(1001)]
    sheet.numbers(fig, "shares", LEFT + WIDE + 60, down, tenths, names=names, align="right", size=13)
    shares = np.stack([ways[:, 0] + ways[:, 2], ways[:, 1]], axis=1)
    captions = [
        f"N = {n}: {1e3 * run.seconds:.1f} ms, of which the bus takes {moves:.0f} % and the chip {computes:.0f} %. "
        f"{run.gflops:.0f} Gflop/s with transfers, of {rate / 1e9:.0f}."
        for n, run, (moves, computes) in zip(sizes, runs, 100 * shares)
    ]
    choices = sorted({round(even / 4), round(even / 2), round(even), round(2 * even)})
    truth = f"N = {even:.0f}, where bus and chip take equally long, is N_balance."
    guess = Guess("from which N does the chip take longer than the bus?", list(map(str, choices)), truth, f"{even:.0f}")
    key = sheet.key(("A", "a", "dim"), ("B", "b", "dim"), ("C", "c", "dim"), ("the kernel", "alu", "dim"))
    chart = _draw_shares(sheet, sizes, shares, even)
    return sheet.player([fig, chart], captions, sheet.title, step="N", below=[key], guess=guess, lasts=8)


def _draw_shares(sheet: Sheet, sizes: Sequence[int], shares: np.ndarray, even: float):
    """Both shares against N, up to the frame's; and where they meet, once they have."""
    x, seen, items = np.array(sizes, float), np.tri(len(sizes), dtype=bool), []
    chart = sheet.chart("Shares of the time against N", "N", "share of the time, %", height=260, x_axis_type="log",
                        x_range=(0.9 * min(sizes), 1.1 * max(sizes)), y_range=(0, 100))  # fmt: skip
    chart.xaxis.ticker = list(sizes)
    for n, name in enumerate(("bus, both ways", "chip")):
        source = sheet.source(f"curve {name}", x=x, y=np.where(seen, 100 * shares[:, n], np.nan))
        items.append((name, [sheet.line(chart, "x", "y", n, source=source)]))
        sheet.points(chart, "x", "y", n, source=source)
    met = sheet.source("balance", x=[even], y=np.where(x >= even, 50.0, np.nan)[:, np.newaxis], text=["N_balance"])
    sheet.points(chart, "x", "y", 0, source=met, size=22, hollow=True)
    sheet.words(chart, "x", "y", "text", source=met, y_offset=-24, align="center", bold=True, size=13)
    sheet.head(chart, x, 0, 100)
    sheet.series(chart, items, "right", 1)
    return chart
