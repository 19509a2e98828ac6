"""Rooflines of Cypress and Fermi: what bandwidth allows at a given number of flops per byte, and where kernels stand.

A b x b block in registers needs 1/b words per flop (Nakasato, equation 1), so with words of S bytes it works at b/S
flops per byte fetched; the slider moves b. Kernels of the catalogue stand where their block puts them, at their
published Gflop/s; reports from ``simulate`` where the bytes that they really moved do. Left out: what Fermi's caches
deliver.
"""

from collections.abc import Sequence

import numpy as np
from bokeh.models import BasicTickFormatter, Column, FixedTicker

from cypresskit import published
from cypresskit.devices import C2050, HD5870, Board
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, beside
from cypresskit.kernels import KERNELS
from cypresskit.timing import Report

BLOCKS = range(1, 17)
BYTES = {"single": 4, "double": 8}
SPAN = (0.1, 32.0)  # flops per byte


def roofline(reports: Sequence[Report] = ()) -> Player:
    """A player with a frame for each block size b, single precision beside double; ``reports`` are added as points."""
    sheet = Sheet("Roofline: the HD 5870 against the Tesla C2050")
    l2 = HD5870.l2_slices * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz
    roofs: list[tuple[str, Board, float]] = [
        ("HD 5870, texture cache", HD5870, HD5870.texture_gb_s),
        ("HD 5870, L2", HD5870, l2),
    ]
    roofs += [("HD 5870, DRAM", HD5870, HD5870.memory_gb_s), ("C2050, DRAM", C2050, C2050.memory_gb_s)]
    columns, lines = [_draw_block(sheet)], [sheet.title]
    values = {}
    for precision, size in BYTES.items():
        fig = sheet.chart(
            f"Roofline, {precision} precision", "flops per byte", "Gflop/s", height=350, x_axis_type="log",
            y_axis_type="log", x_range=SPAN, y_range=(15, 4500), name=precision,
        )  # fmt: skip
        for axis, ticks in (
            (fig.xaxis, (0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32)),
            (fig.yaxis, (20, 50, 100, 200, 500, 1000, 2000)),
        ):
            axis.ticker = FixedTicker(ticks=list(ticks))
            axis.formatter = BasicTickFormatter(use_scientific=False)
        items = []
        for number, (name, board, rate) in enumerate(roofs):
            peak = board.peak_gflops(precision)
            x = np.array([SPAN[0], min(max(peak / rate, SPAN[0]), SPAN[1]), SPAN[1]])
            items.append((f"{name} {rate:.0f} GB/s", sheet.line(fig, x, np.minimum(peak, x * rate), number)))
            lines.append(
                f"{precision}, {name}: {rate:.1f} GB/s, flat from {peak / rate:.2f} flops per byte at {peak:.0f}"
                f" Gflop/s"
            )
        intensity = np.array(BLOCKS) / size
        values[precision] = [
            [min(board.peak_gflops(precision), i * rate) for _, board, rate in roofs] for i in intensity
        ]
        for number in range(len(roofs)):
            heights = np.array(values[precision])[:, number : number + 1]
            source = sheet.source(
                f"b {precision} {roofs[number][0]}", ("x", "y"), x=intensity[:, np.newaxis], y=heights
            )
            sheet.points(fig, "x", "y", number, size=11, source=source)
        line = sheet.source(f"upright {precision}", x=intensity[:, np.newaxis], y0=[15], y1=[4500])
        sheet.inks(fig.segment("x", "y0", "x", "y1", source=line, line_dash="dotted", line_width=1.5), line_color="ink")
        points, names = _points(sheet, fig, precision, size, reports)
        lines += points
        sheet.series(fig, items, "below", 1)
        heading = sheet.note(f"**{precision.capitalize()} precision**")
        columns.append(Column(heading, fig, sheet.note(names), sizing_mode="stretch_width"))
    captions = [
        f"Block {b} x {b}. "
        + "\n".join(
            f"**{p}**: {b / BYTES[p]:.3g} flops per byte; HD 5870 at most {v[0]:.0f} Gflop/s from the texture"
            f" cache, {v[1]:.0f} "
            f"from L2, {v[2]:.0f} from DRAM; C2050 {v[3]:.0f} from DRAM."
            for p in BYTES
            for v in [values[p][k]]
        )
        for k, b in enumerate(BLOCKS)
    ]
    stars = " Stars: simulated, at the bytes that their quads really fetched." * bool(reports)
    note = sheet.note(
        f"Crosses: published kernels at the flops per byte of their blocks.{stars} Below a roof there is something to"
        " win without a larger block; on it, only with one."
    )
    return sheet.player([beside(*columns, room=250)], captions, "\n".join(lines), step="Block", below=[note], lasts=8)


def _draw_block(sheet: Sheet):
    """A block of C, the rows of A and the columns of B that it needs, and how often each of their numbers is used."""
    fig = sheet.stage("C with a block, and the rows of A and columns of B that it needs", 330, 350)
    size = np.array(BLOCKS, float)[:, np.newaxis] * 10
    left, top, whole, deep = 110, 120, 200, 80
    middle = left + whole / 2, top + whole / 2
    parts = {"A": (left - 20 - deep / 2, middle[1], deep, whole), "C": (*middle, whole, whole),
             "B": (middle[0], top - 20 - deep / 2, whole, deep)}  # fmt: skip
    for (name, (x, y, w, h)), ink in zip(parts.items(), "acb"):
        sheet.boxes(fig, f"matrix {name}", [x], [y], [w], h, ink="faint", line="line")
        sheet.words(fig, [x + w / 2 - 14], [y + h / 2 - 12], [name], bold=True, size=15)
        wide, high = (np.full_like(size, deep) if name == along else size for along in "AB")
        corner = x - w / 2 + (20 if name != "A" else 0), y - h / 2 + (20 if name != "B" else 0)
        place = corner[0] + wide / 2, corner[1] + high / 2, wide, high
        sheet.boxes(fig, f"part {name}", *place, ink=ink, alpha=0.75, moves=("x", "y", "w", "h"))
    names = [f"{b} x {b}: each number of A and B is used {b} time{'s' * (b > 1)}" for b in BLOCKS]
    which = np.arange(len(BLOCKS))[:, np.newaxis]
    sheet.numbers(fig, "uses", [4], [338], which, names=names, size=13)
    return fig


def _points(sheet: Sheet, fig, precision: str, size: int, reports: Sequence[Report]) -> tuple[list[str], str]:
    """Published kernels as crosses with numbers, reports as stars with letters; lines of text, and what these
    mean."""
    lines, said = [], []
    rows = [
        r
        for r in published.kernels().values()
        if r["precision"] == precision and "gflops_max" in r and r["id"] in KERNELS
    ]
    marked = []
    for n, row in enumerate(sorted(rows, key=lambda r: -r["gflops_max"])):
        (height, width), y = KERNELS[row["id"]].block, row["gflops_max"]
        x = 2 * height * width / ((height + width) * size)
        sheet.inks(fig.scatter([x], [y], marker="x", size=10, line_width=2), line_color="ink")
        marked.append((x, y, str(n + 1)))
        said.append(f"{n + 1} {row['id']} {y}")
        lines.append(f"{precision}, {row['id']}: {x:.3g} flops per byte, published {y} Gflop/s")
    drawn = [r for r in reports if r.bytes["L1"] and KERNELS[r.kernel].precision == precision]
    for letter, report in zip("abcdefgh", drawn):
        x = report.flops / report.bytes["L1"]
        drawing = fig.scatter([x], [report.gflops], marker="star", size=15, line_width=1.5, fill_color=None)
        sheet.inks(drawing, line_color="ink")
        marked.append((x, report.gflops, letter))
        said.append(f"{letter} {report.kernel} {report.gflops:.0f}, simulated")
        lines.append(f"{precision}, {report.kernel} simulated: {x:.3g} flops per byte, {report.gflops:.0f} Gflop/s")
    # Labels stand to the right, each at least its height below the one before it; 100 pixels are a power of ten.
    last, down = 0.0, 0.0
    for x, y, label in sorted(marked, key=lambda point: (round(point[0], 2), -point[1])):
        here = -100 * np.log10(y)
        last, down = x, max(here, down + 13) if x < 1.1 * last else here
        sheet.words(fig, [x], [y], [label], size=12, x_offset=11, y_offset=down - here)
    return lines, "; ".join(said)
