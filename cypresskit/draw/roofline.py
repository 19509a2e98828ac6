"""Rooflines of Cypress and Fermi: what bandwidth allows at a given number of flops per byte, and where kernels stand.

A b x b block in registers needs 1/b words per flop (Nakasato, equation 1), so with words of S bytes it works at b/S flops
per byte fetched; the slider moves b. Kernels of the catalogue stand where their block puts them, at their published
Gflop/s; reports from ``simulate`` where the bytes that they really moved do. Left out: what Fermi's caches deliver.
"""

import json
from collections.abc import Sequence
from importlib.resources import files

import numpy as np

from cypresskit.devices import C2050, HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, beside
from cypresskit.kernels import KERNELS
from cypresskit.timing.report import Report

BLOCKS = range(1, 17)
BYTES = {"single": 4, "double": 8}
SPAN = (0.05, 8.0)  # flops per byte


def roofline(reports: Sequence[Report] = ()) -> Player:
    """A player with a frame for each block size b, single precision beside double; ``reports`` are added as points."""
    sheet = Sheet("Roofline: the HD 5870 against the Tesla C2050")
    l2 = HD5870.l2_slices * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz
    roofs = [("HD 5870, texture cache", HD5870, HD5870.texture_gb_s), ("HD 5870, L2", HD5870, l2)]
    roofs += [("HD 5870, DRAM", HD5870, HD5870.memory_gb_s), ("C2050, DRAM", C2050, C2050.memory_gb_s)]
    parts, lines = [], [sheet.title]
    values = {}
    for precision, size in BYTES.items():
        fig = sheet.chart(
            f"Roofline, {precision} precision", "flops per byte", "Gflop/s", height=380, x_axis_type="log", y_axis_type="log",
            x_range=SPAN, y_range=(5, 5000), name=precision,
        )  # fmt: skip
        items = []
        for number, (name, board, rate) in enumerate(roofs):
            peak = board.peak_gflops(precision)
            x = np.array([SPAN[0], min(max(peak / rate, SPAN[0]), SPAN[1]), SPAN[1]])
            items.append((f"{name} {rate:.0f} GB/s", sheet.line(fig, x, np.minimum(peak, x * rate), number)))
            lines.append(f"{precision}, {name}: {rate:.1f} GB/s, flat from {peak / rate:.2f} flops per byte at {peak:.0f} Gflop/s")
        intensity = np.array(BLOCKS) / size
        values[precision] = [
            [min(board.peak_gflops(precision), i * rate) for _, board, rate in roofs] for i in intensity
        ]
        for number in range(len(roofs)):
            heights = np.array(values[precision])[:, number : number + 1]
            source = sheet.source(f"b {precision} {roofs[number][0]}", x=intensity[:, np.newaxis], y=heights)
            sheet.points(fig, "x", "y", number, size=11, source=source)
        line = sheet.source(f"upright {precision}", x=intensity[:, np.newaxis], y0=[5], y1=[5000])
        sheet.inks(fig.segment("x", "y0", "x", "y1", source=line, line_dash="dotted", line_width=1.5), line_color="ink")
        lines += _points(sheet, fig, precision, size, reports)
        sheet.series(fig, items, "below", 1)
        parts.append((sheet.note(f"<b>{precision.capitalize()} precision</b>"), fig))
    captions = [
        f"Block {b} x {b}. "
        + "<br>".join(
            f"<b>{p}</b>: {b / BYTES[p]:.3g} flops per byte; HD 5870 at most {v[0]:.0f} Gflop/s from the texture cache, {v[1]:.0f} "
            f"from L2, {v[2]:.0f} from DRAM; C2050 {v[3]:.0f} from DRAM."
            for p in BYTES
            for v in [values[p][k]]
        )
        for k, b in enumerate(BLOCKS)
    ]
    columns = [_column(*part) for part in parts]
    note = sheet.note("Crosses: published kernels at the flops per byte of their blocks. Rings: simulated, at the bytes that their quads"
                      " really fetched. On a roof nothing is left to win but a larger block.")  # fmt: skip
    return sheet.player([beside(*columns, room=340)], captions, "\n".join(lines), start=7, step="Block", below=[note])


def _column(*parts):
    from bokeh.models import Column

    return Column(*parts, sizing_mode="stretch_width")


def _points(sheet: Sheet, fig, precision: str, size: int, reports: Sequence[Report]) -> list[str]:
    """Published kernels as crosses, reports as rings, each with its name."""
    published = json.loads(files("cypresskit.data").joinpath("published.json").read_text())["kernels"]
    lines, names = [], []
    for row in published:
        if row["precision"] != precision or "gflops_max" not in row or row["id"] not in KERNELS:
            continue
        (rows, columns), reached = KERNELS[row["id"]].block, row["gflops_max"]
        names.append((2 * rows * columns / ((rows + columns) * size), reached, row["id"]))
        lines.append(f"{precision}, {row['id']}: {names[-1][0]:.3g} flops per byte, published {reached} Gflop/s")
    if names:
        x, y, text = zip(*names)
        sheet.inks(fig.scatter(x, y, marker="x", size=10, line_width=2), line_color="ink")
        order = sorted(range(len(y)), key=lambda n: -y[n])
        # Names one below the other, from the highest point down, so that they don't lie on each other.
        for place, n in enumerate(order):
            sheet.words(fig, [x[n] * 0.9], [y[order[0]] * 0.8**place * 0.62], [f"{text[n]} {y[n]}"], align="right", size=10)
    for report in reports:
        if report.bytes["L1"] and KERNELS[report.kernel].precision == precision:
            x = report.flops / report.bytes["L1"]
            sheet.points(fig, [x], [report.gflops], 1, hollow=True, size=11)
            lines.append(f"{precision}, {report.kernel} simulated: {x:.3g} flops per byte, {report.gflops:.0f} Gflop/s")
    return lines
