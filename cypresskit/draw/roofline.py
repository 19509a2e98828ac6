"""Rooflines of Cypress and Fermi: what bandwidth allows at a given number of flops per byte, and
where kernels stand.

A b x b block in registers needs 1/b words per flop (Nakasato, equation 1), so with words of S bytes
it works at b/S flops per byte fetched; the slider moves b, and so does a drag in a chart. Kernels
of the catalogue stand where their block puts them, at their published Gflop/s; reports from
``simulate`` where the bytes that they really fetched do. Left out: what Fermi's caches deliver, and
reports on kernels that fetch from no texture.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from bokeh.models import Line, Scatter, Segment

from cypresskit import published
from cypresskit.devices import C2050, HD5870, Board
from cypresskit.draw import theme
from cypresskit.draw.chart import Chart, Scale
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.kernels import KERNELS
from cypresskit.timing import Report

BLOCKS = range(1, 17)
BYTES = {"single": 4, "double": 8}
SPAN, HEIGHT = (
    (0.1, 20.0),
    (15, 3000),
)  # flops per byte, Gflop/s; room for half of the last tick's number
TICKS = (0.1, 0.25, 0.5, 1, 2, 4, 8, 16), (20, 50, 100, 200, 500, 1000, 2000)
LEFT, WIDE, TOP, HIGH = 400, 830, 26, 280  # where the charts begin, and the room for both
L2 = HD5870.l2_slices * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz
ROOFS: tuple[tuple[str, Board, float, str], ...] = (  # whose, GB/s, and how the line is drawn
    ("HD 5870, texture cache", HD5870, HD5870.texture_gb_s, "solid"),
    ("HD 5870, L2", HD5870, L2, "dashed"),
    ("HD 5870, DRAM", HD5870, HD5870.memory_gb_s, "dotted"),
    ("C2050, DRAM", C2050, C2050.memory_gb_s, "solid"),
)


def roofline(reports: Sequence[Report] | Mapping[int, Report] = ()) -> Player:
    """A player of the rooflines, single precision beside double, with a frame for each block size
    b. ``reports`` of ``simulate`` are added as points; if they are of one kernel by its block size,
    each appears when b gets there, and the picture first asks which is the fastest.
    """
    sheet = Sheet("Roofline: the HD 5870 against the Tesla C2050")
    if reports != ():
        nonempty(
            reports.values() if isinstance(reports, Mapping) else reports,
            "pass reports of simulate",
            Report,
        )
    paces, given = (dict(reports), []) if isinstance(reports, Mapping) else ({}, list(reports))
    sheet.stage(
        "A block of C with what it needs, and what the roofs allow", LEFT + WIDE + 10, 356, most=1
    )
    _draw_block(sheet)
    lines, notes, uprights, allowed = [], [], [], {}
    shown = {_precision(r) for r in paces.values()} or set(BYTES)
    for place, precision in enumerate(p for p in BYTES if p in shown):
        size, room = BYTES[precision], (WIDE + 56) / len(shown)
        where = LEFT + place * room, TOP, room - 56, HIGH
        up = Scale(f"Gflop/s, {precision} precision", *HEIGHT, True, TICKS[1])
        drawn = Chart(sheet, where, Scale("flops per byte", *SPAN, True, TICKS[0]), up)
        intensity = np.array(BLOCKS, float)[:, np.newaxis] / size
        uprights.append(drawn.x(intensity))
        for number, (name, board, rate, dash) in enumerate(ROOFS):
            peak = board.peak_gflops(precision)
            x = np.array(
                [max(SPAN[0], HEIGHT[0] / rate), min(max(peak / rate, SPAN[0]), SPAN[1]), SPAN[1]]
            )
            drawn.line(
                x, np.minimum(peak, x * rate), number, 2 if number < 3 else 1, line_dash=dash
            )
            allowed[precision, number] = np.minimum(peak, intensity * rate)
            at = drawn.x(intensity), drawn.y(allowed[precision, number])
            source = sheet.source(f"b {precision} {name}", ("x", "y"), x=at[0], y=at[1])
            sheet.ring(source, 12, 12, 2, theme.LINES[number], border_radius=6)
            corner = f"flat from {peak / rate:.2f} flops per byte at {peak:.0f} Gflop/s"
            lines.append(f"{precision}, {name}: {rate:.1f} GB/s, {corner}")
        points = [] if paces else _points(drawn, precision, size, given)
        lines += [f"{precision}, {words}" for words, _ in points]
        numbered = ", ".join(f"**{n}** {name}" for n, (_, name) in enumerate(points, 1))
        notes += [f"{precision.capitalize()} precision: {numbered}."] * bool(points)
        mine = {b: r for b, r in paces.items() if _precision(r) == precision}
        if mine:
            come = np.array(list(mine)) <= np.array(BLOCKS)[:, np.newaxis]
            y = np.where(come, drawn.y([r.gflops for r in mine.values()]), np.nan)
            speeds = sheet.source(f"paces {precision}", x=drawn.x(np.array(list(mine)) / size), y=y)
            sheet.inks(sheet.glyph(Line, "x", "y", source=speeds, line_width=1.5), line_color="ink")
            diamond = sheet.glyph(Scatter, "x", "y", source=speeds, marker="diamond", size=15)
            sheet.inks(diamond, line_color="ink", fill_color="b")
    sheet.play_head("head", np.hstack(uprights), TOP + HIGH / 2, HIGH)
    captions = [
        _say(b, {p: allowed[p, 0][k, 0] for p in BYTES if p in shown}, paces)
        for k, b in enumerate(BLOCKS)
    ]
    key = sheet.key(
        *(
            (f"{name} {rate:.0f} GB/s", theme.LINES[n], dash)
            for n, (name, _, rate, dash) in enumerate(ROOFS)
        )
    )
    diamonds = "Diamonds: simulated. " * bool(reports)
    crosses = "" if paces else "Crosses: published kernels at the flops per byte of their blocks. "
    below = "Below a roof there is something to gain without a larger block. Drag a vertical line."
    note = sheet.note(f"{' '.join(notes)}\n{crosses}{diamonds}{below}".strip())
    guess = None
    if paces:
        best = max(paces, key=lambda b: paces[b].gflops)
        truth = f"{paces[best].gflops:.0f} Gflop/s."
        guess = Guess(
            "Which block is the fastest?", [f"{b} x {b}" for b in paces], truth, f"{best} x {best}"
        )
    return sheet.player(captions, lines, step="Block", below=[key, note], guess=guess, seconds=8)


def _precision(report: Report) -> str:
    return "single" if report.peak_gflops == report.device.peak_gflops("single") else "double"


def _say(b: int, allowed: dict[str, float], paces: Mapping[int, Report]) -> str:
    said = [
        f"**{p}**: {b / BYTES[p]:.3g} flops per byte; the HD 5870 reaches {gflops:.0f} Gflop/s at"
        " most, limited by"
        f" {'the texture cache' if gflops < HD5870.peak_gflops(p) else 'its arithmetic'}."
        for p, gflops in allowed.items()
    ]
    if pace := paces.get(b):
        said.append(
            f"**Simulated**: {pace.gflops:.0f} Gflop/s; {pace.registers} registers, room for"
            f" {pace.active} wavefronts an engine."
        )
    elif paces:
        said.append(
            "**Simulated**: not with this block."
        )  # a line, so that the charts stay where they are
    return f"Block {b} x {b}. " + "\n".join(said)


def _draw_block(sheet: Sheet) -> None:
    """Draw a block of C, the rows of A and columns of B that it needs, and how often each of their
    numbers is used.
    """
    size = np.array(BLOCKS, float)[:, np.newaxis] * 10
    left, top, whole, deep = 110, 120, 200, 80
    middle = left + whole / 2, top + whole / 2
    parts = {
        "A": (left - 20 - deep / 2, middle[1], deep, whole),
        "C": (*middle, whole, whole),
        "B": (middle[0], top - 20 - deep / 2, whole, deep),
    }
    for (name, (x, y, w, h)), ink in zip(parts.items(), "acb"):
        sheet.boxes(f"matrix {name}", x, y, w, h, ink="faint", line="line")
        sheet.words(x + w / 2 - 14, y + h / 2 - 12, name, bold=True, size=15)
        wide, high = (np.full_like(size, deep) if name == along else size for along in "AB")
        corner = x - w / 2 + 20 * (name != "A"), y - h / 2 + 20 * (name != "B")
        place = corner[0] + wide / 2, corner[1] + high / 2, wide, high
        sheet.boxes(f"part {name}", *place, ink=ink, alpha=0.75, moves=("x", "y", "w", "h"))
    names = [f"{b} x {b}: each number of A and B is used {b} time{'s' * (b > 1)}" for b in BLOCKS]
    sheet.numbers("uses", 4, 338, np.arange(len(BLOCKS)), names=names, size=13)


def _points(
    drawn: Chart, precision: str, size: int, reports: Sequence[Report]
) -> list[tuple[str, str]]:
    """Draw published kernels as crosses, reports as diamonds, numbered. Returns text, name and
    speed of each.
    """
    known = [
        row
        for row in published.kernels().values()
        if row["precision"] == precision and "gflops_max" in row
    ]
    points = []
    for row in sorted(
        (row for row in known if row["id"] in KERNELS), key=lambda row: -row["gflops_max"]
    ):
        height, width = KERNELS[row["id"]].block
        points.append(
            (
                2 * height * width / ((height + width) * size),
                row["gflops_max"],
                row["id"],
                "published",
            )
        )
    points += [
        (r.flops / r.bytes["L1"], r.gflops, r.kernel, "simulated")
        for r in reports
        if r.bytes["L1"] and _precision(r) == precision
    ]
    # Numbers stand to the right, each a height below the one before it, and led to.
    sheet, last, down = drawn.sheet, 0.0, 0.0
    for n, (x, y, _, what) in sorted(
        enumerate(points, 1), key=lambda point: (round(point[1][0], 2), -point[1][1])
    ):
        across, here = float(drawn.x(x)), float(drawn.y(y))
        last, down = x, max(here, down + 16) if x < 1.1 * last else here
        look: dict = (
            {"marker": "x", "size": 10}
            if what == "published"
            else {"marker": "diamond", "size": 15}
        )
        sheet.inks(
            sheet.glyph(Scatter, [across], [here], line_width=2, fill_color=None, **look),
            line_color="ink",
        )
        sheet.inks(
            sheet.glyph(Segment, [across], [here], [across + 16], [down], line_width=1),
            line_color="soft",
        )
        sheet.words(across + 19, down, str(n), size=12, bold=True)
    return [
        (f"{name}: {x:.3g} flops per byte, {what} {y:.4g} Gflop/s", f"{name} {y:.0f}")
        for x, y, name, what in points
    ]
