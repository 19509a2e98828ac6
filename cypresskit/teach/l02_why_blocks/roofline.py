"""Rooflines of Cypress and Fermi: what bandwidth allows at a given number of flops per byte, and
where kernels stand.

A b x b block in registers needs 1/b words per flop (Nakasato, equation 1), so with words of S bytes
it works at b/S flops per byte fetched; the slider moves b, and so does a drag in a chart. Kernels
of the catalogue stand where their block puts them, at their published Gflop/s; reports from
``simulate`` where the bytes that they really fetched do. Left out: what Fermi's caches deliver, and
reports on kernels that fetch from no texture.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from bokeh.models import Line, Scatter, Segment

from cypresskit import published
from cypresskit.devices import C2050, HD5870, Board
from cypresskit.draw import theme
from cypresskit.draw.chart import WIDTH, Chart, Scale
from cypresskit.draw.player import Guess, Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.kernels import KERNELS
from cypresskit.tables import plural
from cypresskit.timing import Report

BLOCKS = range(1, 17)
BYTES = {"single": 4, "double": 8}
INTENSITY = Scale("flops per byte", 0.1, 20.0, True, (0.1, 0.25, 0.5, 1, 2, 4, 8, 16))
SPEEDS = 15, 3000  # Gflop/s
SPEED_TICKS = 20, 50, 100, 200, 500, 1000, 2000
BLOCK_WIDTH, HEIGHT = 340, 356  # of the block's picture, in pixels
CHART_WIDTH = 356  # of one of two: on a phone the three figures stand one below the other
AXES = 290  # their height
LINE = 16  # the height of a point's number


class Roof(NamedTuple):
    """What a board's memory allows: its name, the board, GB/s, and how its line is drawn."""

    name: str
    board: Board
    rate: float
    dash: str


ROOFS = (
    Roof("HD 5870, texture cache", HD5870, HD5870.texture_gb_s, "solid"),
    Roof(
        "HD 5870, L2",
        HD5870,
        HD5870.l2_slices * HD5870.l2_slice_bytes_clock * HD5870.clock_ghz,
        "dashed",
    ),
    Roof("HD 5870, DRAM", HD5870, HD5870.memory_gb_s, "dotted"),
    Roof("C2050, DRAM", C2050, C2050.memory_gb_s, "solid"),
)


class _Point(NamedTuple):
    """A kernel in a chart: where it stands, its name, and whether it was published or simulated."""

    intensity: float
    gflops: float
    name: str
    origin: str

    def text(self) -> str:
        speed = f"{self.origin} {self.gflops:.4g} Gflop/s"
        return f"{self.name}: {self.intensity:.3g} flops per byte, {speed}"


def roofline(reports: Sequence[Report] | Mapping[int, Report] = ()) -> Player:
    """A player of the rooflines, single precision beside double, with a frame for each block size
    b. ``reports`` of ``simulate`` are added as points; if they are of one kernel by its block size,
    each appears when b gets there, and the picture first asks which is the fastest.
    """
    paces = dict(reports) if isinstance(reports, Mapping) else {}
    given = [] if isinstance(reports, Mapping) or reports == () else _reports(reports)
    if isinstance(reports, Mapping):
        _reports(reports.values())
    sheet = Sheet("Roofline: the HD 5870 against the Tesla C2050")
    _draw_block(sheet)

    shown = {_precision(report) for report in paces.values()} or set(BYTES)
    width = CHART_WIDTH if len(shown) > 1 else WIDTH - BLOCK_WIDTH
    lines: list[str] = []
    notes: list[str] = []
    for precision in (precision for precision in BYTES if precision in shown):
        chart = _draw_roofs(sheet, precision, width)
        lines += _corners(precision)
        points = [] if paces else [*_published(precision), *_simulated(precision, given)]
        _draw_points(chart, points)
        lines += [f"{precision}, {point.text()}" for point in points]
        if points:
            numbered = [f"**{n}** {p.name} {p.gflops:.0f}" for n, p in enumerate(points, 1)]
            notes.append(f"{precision.capitalize()} precision: {', '.join(numbered)}.")
        mine = {b: report for b, report in paces.items() if _precision(report) == precision}
        if mine:
            _draw_paces(chart, precision, mine)

    captions = [_say(b, [p for p in BYTES if p in shown], paces) for b in BLOCKS]
    legend = sheet.legend(
        *(
            (f"{roof.name} {roof.rate:.0f} GB/s", theme.LINES[n], roof.dash)
            for n, roof in enumerate(ROOFS)
        )
    )
    remarks = []
    if not paces:
        remarks.append("Crosses: published kernels at the flops per byte of their blocks.")
    if reports:
        remarks.append("Diamonds: simulated.")
    remarks.append("Below a roof there is something to gain without a larger block.")
    remarks.append("Drag a vertical line.")
    note = sheet.note(f"{' '.join(notes)}\n{' '.join(remarks)}".strip())
    return sheet.player(
        captions, lines, step="Block", below=[legend, note], guess=_guess(paces), seconds=8
    )


def _reports(given) -> list[Report]:
    """Reports as a list, at least one."""
    return nonempty(given, "pass reports of simulate", Report)


def _guess(paces: Mapping[int, Report]) -> Guess | None:
    """The question for the fastest block, if there are several."""
    if not paces:
        return None
    best = max(paces, key=lambda b: paces[b].gflops)
    return Guess(
        "Which block is the fastest?",
        [f"{b} x {b}" for b in paces],
        f"{paces[best].gflops:.0f} Gflop/s.",
        f"{best} x {best}",
    )


def _allowed(roof: Roof, precision: str, intensity: np.ndarray) -> np.ndarray:
    """The Gflop/s that a roof allows at so many flops per byte."""
    return np.minimum(roof.board.peak_gflops(precision), intensity * roof.rate)


def _corners(precision: str) -> Iterator[str]:
    """The roofs as text."""
    for roof in ROOFS:
        peak = roof.board.peak_gflops(precision)
        corner = f"flat from {peak / roof.rate:.2f} flops per byte at {peak:.0f} Gflop/s"
        yield f"{precision}, {roof.name}: {roof.rate:.1f} GB/s, {corner}"


def _draw_roofs(sheet: Sheet, precision: str, width: float) -> Chart:
    """Draw a chart with the roofs, a ring on each for the block, and the upright that moves it."""
    up = Scale(f"Gflop/s, {precision} precision", *SPEEDS, True, SPEED_TICKS)
    label = f"What the roofs allow in {precision} precision"
    chart = Chart(sheet, INTENSITY, up, label=label, width=width, height=AXES)
    intensity = np.array(BLOCKS, float)[:, np.newaxis] / BYTES[precision]
    for number, roof in enumerate(ROOFS):
        peak = roof.board.peak_gflops(precision)
        foot = max(INTENSITY.low, up.low / roof.rate)
        corner = min(max(peak / roof.rate, INTENSITY.low), INTENSITY.high)
        x = np.array([foot, corner, INTENSITY.high])
        thickness = 1 if roof.board is C2050 else 2
        chart.line(x, _allowed(roof, precision, x), number, thickness, line_dash=roof.dash)
        allowed = _allowed(roof, precision, intensity)
        ink = theme.LINES[number]
        chart.dots(f"b {precision} {roof.name}", intensity, allowed, ink=ink, size=12, line_width=2)
    chart.head(intensity[:, 0], f"head {precision}")
    return chart


def _draw_paces(chart: Chart, precision: str, paces: Mapping[int, Report]) -> None:
    """Draw a kernel's speeds by its block, each from the frame of its block on."""
    blocks = np.array(list(paces), float)
    speeds = [report.gflops for report in paces.values()]
    y = np.where(blocks <= np.array(BLOCKS)[:, np.newaxis], speeds, np.nan)
    sheet = chart.sheet
    source = sheet.source(f"paces {precision}", x=blocks / BYTES[precision], y=y)
    line = sheet.glyph(Line, "x", "y", source=source, line_width=1.5)
    sheet.inks(line, line_color="ink")
    diamonds = sheet.glyph(Scatter, "x", "y", source=source, marker="diamond", size=15)
    sheet.inks(diamonds, line_color="ink", fill_color="b")


def _precision(report: Report) -> str:
    return "single" if report.peak_gflops == report.device.peak_gflops("single") else "double"


def _say(b: int, precisions: Sequence[str], paces: Mapping[int, Report]) -> str:
    """A frame's caption."""
    lines = []
    for precision in precisions:
        intensity = b / BYTES[precision]
        gflops = _allowed(ROOFS[0], precision, np.array(intensity))
        is_fed = gflops >= HD5870.peak_gflops(precision)
        lines.append(
            f"**{precision}**: {intensity:.3g} flops per byte; the HD 5870 reaches {gflops:.0f}"
            f" Gflop/s at most, limited by {'its arithmetic' if is_fed else 'the texture cache'}."
        )
    if pace := paces.get(b):
        lines.append(
            f"**Simulated**: {pace.gflops:.0f} Gflop/s; {pace.registers} registers, room for"
            f" {pace.active} wavefronts an engine."
        )
    elif paces:
        # A line, so that the charts stay where they are.
        lines.append("**Simulated**: not with this block.")
    return f"Block {b} x {b}. " + "\n".join(lines)


def _draw_block(sheet: Sheet) -> None:
    """Draw a block of C, the rows of A and columns of B that it needs, and how often each of their
    numbers is used.
    """
    sheet.stage("A block of C with what it needs of A and B", BLOCK_WIDTH, HEIGHT, most=1)
    left, top, side, depth, gap = 110, 120, 200, 80, 20
    middle = left + side / 2, top + side / 2
    matrices = {
        "A": (left - gap - depth / 2, middle[1], depth, side),
        "C": (*middle, side, side),
        "B": (middle[0], top - gap - depth / 2, side, depth),
    }
    block = np.array(BLOCKS, float)[:, np.newaxis] * 10
    for (name, (x, y, width, height)), ink in zip(matrices.items(), "acb"):
        sheet.boxes(f"matrix {name}", x, y, width, height, ink="faint", line="line")
        sheet.words(x + width / 2 - 14, y + height / 2 - 12, name, bold=True, size=14)
        needed_width = np.full_like(block, depth) if name == "A" else block
        needed_height = np.full_like(block, depth) if name == "B" else block
        first_x = x - width / 2 + (0 if name == "A" else gap)
        first_y = y - height / 2 + (0 if name == "B" else gap)
        sheet.boxes(
            f"part {name}",
            first_x + needed_width / 2,
            first_y + needed_height / 2,
            needed_width,
            needed_height,
            ink=ink,
            alpha=0.75,
            moves=("x", "y", "w", "h"),
        )
    uses = [f"{b} x {b}: each number of A and B is used {b} {plural('time', b)}" for b in BLOCKS]
    sheet.numbers("uses", 4, 338, np.arange(len(BLOCKS)), names=uses, size=12)


def _published(precision: str) -> list[_Point]:
    """The papers' kernels, at the flops per byte of their blocks."""
    known = [
        row
        for row in published.kernels().values()
        if row["precision"] == precision and "gflops_max" in row and row["id"] in KERNELS
    ]
    points = []
    for row in sorted(known, key=lambda row: -row["gflops_max"]):
        height, width = KERNELS[row["id"]].block
        intensity = 2 * height * width / ((height + width) * BYTES[precision])
        points.append(_Point(intensity, row["gflops_max"], row["id"], "published"))
    return points


def _simulated(precision: str, reports: Sequence[Report]) -> list[_Point]:
    """Reports, at the flops for each byte that they really fetched."""
    return [
        _Point(report.flops / report.bytes["L1"], report.gflops, report.kernel, "simulated")
        for report in reports
        if report.bytes["L1"] and _precision(report) == precision
    ]


def _draw_points(chart: Chart, points: Sequence[_Point]) -> None:
    """Draw published kernels as crosses, reports as diamonds. Their numbers stand to the right,
    each a line below the one before it, and led to.
    """
    sheet, across, up = chart.sheet, chart.across, chart.up
    by_place = sorted(
        enumerate(points, 1), key=lambda entry: (round(entry[1].intensity, 2), -entry[1].gflops)
    )
    last_x, level = 0.0, 0.0  # of the number before
    for number, point in by_place:
        x, y = point.intensity, point.gflops
        is_beside = x < 1.1 * last_x
        level = min(y, up.moved(level, -LINE / chart.height)) if is_beside else y
        last_x = x
        marker, size = ("x", 10) if point.origin == "published" else ("diamond", 15)
        mark = sheet.glyph(
            Scatter, [x], [y], line_width=2, fill_color=None, marker=marker, size=size
        )
        sheet.inks(mark, line_color="ink")
        end = across.moved(x, 16 / chart.width)
        leader = sheet.glyph(Segment, [x], [y], [end], [level], line_width=1)
        sheet.inks(leader, line_color="soft")
        beside = across.moved(x, 19 / chart.width)
        sheet.words(beside, level, str(number), size=12, bold=True)
