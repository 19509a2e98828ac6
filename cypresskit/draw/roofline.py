"""Rooflines of Cypress and Fermi: what bandwidth allows at a given number of flops per byte, and where kernels stand.

A b x b block in registers needs 1/b words per flop (Nakasato, equation 1), so with words of S bytes it works at b/S
flops per byte fetched; the slider moves b, and so does a drag in a chart. Kernels of the catalogue stand where their
block puts them, at their published Gflop/s; reports from ``simulate`` where the bytes that they really moved do. Left
out: what Fermi's caches deliver.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from bokeh.models import BasicTickFormatter, Column, FixedTicker

from cypresskit import published
from cypresskit.devices import C2050, HD5870, Board
from cypresskit.draw.player import Guess, Player, beside
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.kernels import KERNELS
from cypresskit.timing import Report

BLOCKS = range(1, 17)
BYTES = {"single": 4, "double": 8}
SPAN, HEIGHT = (0.1, 40.0), (15, 4500)  # flops per byte, Gflop/s; room for half of the last tick's number
L2 = HD5870.l2_slices * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz
ROOFS: tuple[tuple[str, Board, float, str, str], ...] = (  # whose, GB/s, and how the line is drawn
    ("HD 5870, texture cache", HD5870, HD5870.texture_gb_s, "read", "solid"),
    ("HD 5870, L2", HD5870, L2, "wrote", "dashed"),
    ("HD 5870, DRAM", HD5870, HD5870.memory_gb_s, "green", "dotted"),
    ("C2050, DRAM", C2050, C2050.memory_gb_s, "purple", "solid"),
)


def roofline(reports: Sequence[Report] | Mapping[int, Report] = ()) -> Player:
    """A player with a frame for each block size b, single precision beside double; ``reports`` are added as points.
    Those of one kernel by its block size b appear when b gets there, and the picture asks first which is the
    fastest."""
    sheet = Sheet("Roofline: the HD 5870 against the Tesla C2050")
    if reports != ():
        nonempty(reports.values() if isinstance(reports, Mapping) else reports, "pass reports of simulate", Report)
    paces, given = (dict(reports), []) if isinstance(reports, Mapping) else ({}, list(reports))
    columns, lines = [_draw_block(sheet)], [sheet.title]
    allowed = {}
    shown = {_precision(r) for r in paces.values()} or set(BYTES)
    for precision, size in ((p, size) for p, size in BYTES.items() if p in shown):
        fig = _chart(sheet, precision)
        intensity = np.array(BLOCKS, float)[:, np.newaxis] / size
        sheet.head(fig, intensity[:, 0], *HEIGHT, f"upright {precision}")
        for number, (name, board, rate, ink, dash) in enumerate(ROOFS):
            peak = board.peak_gflops(precision)
            x = np.array([SPAN[0], min(max(peak / rate, SPAN[0]), SPAN[1]), SPAN[1]])
            line = fig.line(x, np.minimum(peak, x * rate), line_width=2 if number < 3 else 1, line_dash=dash)
            sheet.inks(line, line_color=ink)
            y = allowed[precision, number] = np.minimum(peak, intensity * rate)
            source = sheet.source(f"b {precision} {name}", ("x", "y"), x=intensity, y=y)
            sheet.inks(fig.scatter("x", "y", source=source, size=11, line_width=2, fill_color=None), line_color=ink)
            corner = f"flat from {peak / rate:.2f} flops per byte at {peak:.0f} Gflop/s"
            lines.append(f"{precision}, {name}: {rate:.1f} GB/s, {corner}")
        points = [] if paces else _points(sheet, fig, precision, size, given)
        lines += [f"{precision}, {words}" for words, _ in points]
        below = [sheet.note(", ".join(f"**{n}** {name}" for n, (_, name) in enumerate(points, 1)))] * bool(points)
        title = sheet.note(f"**{precision.capitalize()} precision**")
        columns.append(Column(title, fig, *below, sizing_mode="stretch_width"))
        mine = {b: r for b, r in paces.items() if _precision(r) == precision}
        if mine:
            x, y = np.array(list(mine)) / size, np.array([r.gflops for r in mine.values()])
            come = np.where(np.array(list(mine)) <= np.array(BLOCKS)[:, np.newaxis], y, np.nan)
            stars = sheet.source(f"paces {precision}", x=x, y=come)
            sheet.inks(fig.line("x", "y", source=stars, line_width=1.5), line_color="ink")
            sheet.inks(fig.scatter("x", "y", source=stars, marker="star", size=15), line_color="ink", fill_color="b")
    captions = [_say(b, {p: allowed[p, 0][k, 0] for p in BYTES if p in shown}, paces) for k, b in enumerate(BLOCKS)]
    key = sheet.key(*((f"{name} {rate:.0f} GB/s", ink, dash) for name, _, rate, ink, dash in ROOFS))
    stars = "Stars: simulated. " * bool(reports)
    crosses = "" if paces else "Crosses: published kernels at the flops per byte of their blocks. "
    note = sheet.note(
        f"{crosses}{stars}Below a roof there is something to gain without a larger block. Drag in a chart."
    )
    guess = None
    if paces:
        best = max(paces, key=lambda b: paces[b].gflops)
        truth = f"{best} x {best} is the fastest, at {paces[best].gflops:.0f} Gflop/s."
        guess = Guess("which block is the fastest?", [f"{b} x {b}" for b in paces], truth, f"{best} x {best}")
    return sheet.player([beside(*columns, room=250)], captions, "\n".join(lines), step="Block", below=[key, note],
                        guess=guess, lasts=8)  # fmt: skip


def _precision(report: Report) -> str:
    return "single" if report.peak_gflops == report.device.peak_gflops("single") else "double"


def _say(b: int, allowed: dict[str, float], paces: Mapping[int, Report]) -> str:
    said = [
        f"**{p}**: {b / BYTES[p]:.3g} flops per byte; the HD 5870 reaches {gflops:.0f} Gflop/s at most, held by "
        f"{'the texture cache' if gflops < HD5870.peak_gflops(p) else 'its arithmetic'}."
        for p, gflops in allowed.items()
    ]
    if pace := paces.get(b):
        said.append(f"**Simulated**: {pace.gflops:.0f} Gflop/s; {pace.registers} registers, room for {pace.active}"
                    f" wavefronts an engine.")  # fmt: skip
    elif paces:
        said.append("**Simulated**: not with this block.")  # a line, so that the charts stay where they are
    return f"Block {b} x {b}. " + "\n".join(said)


def _chart(sheet: Sheet, precision: str):
    fig = sheet.chart(f"Roofline, {precision} precision", "flops per byte", "Gflop/s", height=300, x_axis_type="log",
                      y_axis_type="log", x_range=SPAN, y_range=HEIGHT, name=precision)  # fmt: skip
    for axis, ticks in ((fig.xaxis, (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)),
                        (fig.yaxis, (20, 50, 100, 200, 500, 1000, 2000))):  # fmt: skip
        axis.ticker = FixedTicker(ticks=list(ticks))
        axis.formatter = BasicTickFormatter(use_scientific=False)
    return fig


def _draw_block(sheet: Sheet):
    """A block of C, the rows of A and the columns of B that it needs, and how often each of their numbers is used."""
    fig = sheet.stage("C with a block, and the rows of A and columns of B that it needs", 330, 350, most=1)
    size = np.array(BLOCKS, float)[:, np.newaxis] * 10
    left, top, whole, deep = 110, 120, 200, 80
    middle = left + whole / 2, top + whole / 2
    parts = {"A": (left - 20 - deep / 2, middle[1], deep, whole), "C": (*middle, whole, whole),
             "B": (middle[0], top - 20 - deep / 2, whole, deep)}  # fmt: skip
    for (name, (x, y, w, h)), ink in zip(parts.items(), "acb"):
        sheet.boxes(fig, f"matrix {name}", x, y, w, h, ink="faint", line="line")
        sheet.words(fig, x + w / 2 - 14, y + h / 2 - 12, name, bold=True, size=15)
        wide, high = (np.full_like(size, deep) if name == along else size for along in "AB")
        corner = x - w / 2 + 20 * (name != "A"), y - h / 2 + 20 * (name != "B")
        place = corner[0] + wide / 2, corner[1] + high / 2, wide, high
        sheet.boxes(fig, f"part {name}", *place, ink=ink, alpha=0.75, moves=("x", "y", "w", "h"))
    names = [f"{b} x {b}: each number of A and B is used {b} time{'s' * (b > 1)}" for b in BLOCKS]
    sheet.numbers(fig, "uses", 4, 338, np.arange(len(BLOCKS)), names=names, size=13)
    return fig


def _points(sheet: Sheet, fig, precision: str, size: int, reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Published kernels as crosses, reports as stars, numbered; of each a line of text, and its name and speed."""
    known = [row for row in published.kernels().values() if row["precision"] == precision and "gflops_max" in row]
    points = []
    for row in sorted((row for row in known if row["id"] in KERNELS), key=lambda row: -row["gflops_max"]):
        height, width = KERNELS[row["id"]].block
        points.append((2 * height * width / ((height + width) * size), row["gflops_max"], row["id"], "published"))
    points += [(r.flops / r.bytes["L1"], r.gflops, r.kernel, "simulated") for r in reports
               if r.bytes["L1"] and _precision(r) == precision]  # fmt: skip
    # Numbers stand to the right, each a height below the one before it, and led to; 110 pixels are a power of ten.
    last, down = 0.0, 0.0
    for n, (x, y, _, what) in sorted(enumerate(points, 1), key=lambda point: (round(point[1][0], 2), -point[1][1])):
        here = -110 * np.log10(y)
        last, down = x, max(here, down + 16) if x < 1.1 * last else here
        look = {"marker": "x", "size": 10} if what == "published" else {"marker": "star", "size": 15}
        sheet.inks(fig.scatter([x], [y], line_width=2, fill_color=None, **look), line_color="ink")
        label = 1.25 * x, 10 ** (-down / 110)
        sheet.inks(fig.segment(x, y, *label, line_width=1), line_color="soft")
        sheet.words(fig, *label, str(n), size=12, bold=True, x_offset=3)
    return [
        (f"{name}: {x:.3g} flops per byte, {what} {y:.4g} Gflop/s", f"{name} {y:.0f}") for x, y, name, what in points
    ]
