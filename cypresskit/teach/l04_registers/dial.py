"""The dial of lesson 04: a reader changes a kernel's registers, the memory's latency and the clocks
of a clause switch, and sees a SIMD engine's wavefronts, its two units and its speed.

All settings of a grid were simulated beforehand: ``dial.json`` is the timing model's own output,
written by ``python -m tools.stored_figures``. A kernel with more registers is the same kernel with
fewer wavefronts. Left out: how a launch begins and ends; every setting shows a window of the steady
state.
"""

import base64
import json
import zlib
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw.chart import Chart, Scale
from cypresskit.draw.player import Player
from cypresskit.draw.scripts import read_packaged
from cypresskit.draw.sheet import Sheet, by_frame
from cypresskit.draw.wavefronts import ACTIVITIES, UnitPositions, UnitTrack, draw_units

GPRS = 25  # of the kernel as it is
REGISTERS = (16, 18, 20, 22, 25, 28, 31, 34, 37, 43, 51, 64)
SHOWN = (16, 20, 25, 31, 37, 43, 51, 64)  # of these below the chart
LATENCIES = (160, 240, 320, 500, 700, 1000)
SWITCHES = (0, 20, 40)
LONG = 1500  # clocks that are shown
MOST = HD5870.register_pool // REGISTERS[0]
BARS = 3  # kinds of what rows show: nothing is stored in the steady state
# Of the rows' stage, in pixels.
WIDTH, HEIGHT = 810, 372
LEFT, RIGHT, TOP, ROW = 44, 744, 40, 15
CHART_WIDTH, CHART_HEIGHT = 420, 312  # of the chart, and of its axes
PEAK = HD5870.peak_gflops("single")


class Point(NamedTuple):
    """A setting of the dials: for each of the ``ACTIVITIES``, its bars in the window (row,
    from, to); the tracks of ALU and texture unit (from, to, number of wavefronts); Gflop/s.
    """

    bars: list[np.ndarray]
    alu: np.ndarray
    texture: np.ndarray
    gflops: float


def settings() -> Iterator[tuple[int, int, int]]:
    """Yield every setting in the grid's order: (clocks of a clause switch, latency, registers)."""
    return product(SWITCHES, LATENCIES, REGISTERS)


@cache
def grid() -> list[Point]:
    """Return the recorded settings, decoded from ``dial.json``."""
    stored = json.loads(read_packaged("teach/l04_registers/dial.json"))
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(stored["parts"])), np.uint16)
    rows = numbers.astype(float).reshape(-1, 3)
    parts = iter(np.split(rows, np.cumsum(stored["rows"])[:-1]))
    return [
        Point([next(parts) for _ in range(BARS)], next(parts), next(parts), gflops)
        for gflops in stored["gflops"]
    ]


def dial() -> Player:
    """Return a picture with three dials, made of the recorded grid."""
    points = grid()
    choices = list(settings())
    sheet = Sheet("The dial: registers, latency, and what they make of a SIMD engine")
    label = "Rows of wavefronts in 1500 clocks, ALU and texture unit below them"
    sheet.stage(label, WIDTH, HEIGHT)
    _draw_rows(sheet, points, choices)
    _draw_speed(sheet, points)

    captions = [_say(points, n, registers) for n, (*_, registers) in enumerate(choices)]
    legend = sheet.legend(
        ("computes (half height: one alone)", "alu", "box"),
        ("in the texture unit", "texture", "box"),
        ("data in flight", "soft", "solid"),
        ("no wavefront computes", "wait", "box"),
        ("gap in a row: it waits for a unit", "line", "frame"),
    )
    note = sheet.note(
        "Increase the registers: where is it 1.3 times slower? How much latency can ten wavefronts"
        " hide?"
    )
    rooms = [f"{count} (room for {HD5870.register_pool // count})" for count in REGISTERS]
    dials = [
        ("registers per work-item", rooms),
        ("clocks until data arrive from memory", list(map(str, LATENCIES))),
        ("clocks from one clause to the next", list(map(str, SWITCHES))),
    ]
    still_frame = choices.index((SWITCHES[-1], HD5870.dram_clocks, GPRS))
    return sheet.player(captions, below=[note, legend], dials=dials, still_frame=int(still_frame))


def _say(points: list[Point], n: int, registers: int) -> str:
    usual = points[n - REGISTERS.index(registers) + REGISTERS.index(GPRS)].gflops
    speed = points[n].gflops
    slower = (
        f"{usual / speed:.2f} times slower than"
        if usual > speed
        else f"{speed / usual:.2f} times as fast as"
    )
    than = "" if usual == speed else f", {slower} with {GPRS} registers at this latency"
    room = HD5870.register_pool // registers
    return f"**{registers} registers**: room for {room} wavefronts; {speed:.0f} Gflop/s{than}."


def _draw_rows(sheet: Sheet, points: list[Point], choices: list[tuple[int, int, int]]) -> None:
    """Draw the wavefronts' rows, the tracks of both units, and the shares of the ALU's time."""
    pixels = (RIGHT - LEFT) / LONG  # of a clock

    def draw_bars(name: str, start, end, y, height: float, color: str) -> None:
        x = LEFT + (start + end) / 2 * pixels
        width = np.fmax((end - start) * pixels - 0.7, 0.001)
        sheet.boxes(name, x, y, np.nan_to_num(width, nan=0.001), height, color=color)

    sheet.text(LEFT, 16, f"{LONG} clocks of a SIMD engine", bold=True, size=14)
    room = np.array([HD5870.register_pool // registers for *_, registers in choices])
    row = np.arange(MOST)
    names = ["", *map(str, row)]
    name = np.where(row < room[:, np.newaxis], row + 1, 0)
    y = TOP + ROW * (row + 0.5)
    sheet.numbers("rows", LEFT - 8, y, name, names=names, color="soft", align="right", size=12)

    for n, activity in enumerate(ACTIVITIES[:BARS]):
        row, start, end = by_frame([point.bars[n] for point in points], 3)
        y = TOP + ROW * (row + 0.5)
        draw_bars(
            f"{activity.clause_kind} {activity.begin}",
            start,
            end,
            y,
            activity.height,
            activity.color,
        )

    def draw_track(track: UnitTrack) -> np.ndarray:
        counts = [getattr(point, track.unit) for point in points]
        start, end, _ = by_frame([count[count[:, 2] == track.n_working] for count in counts], 3)
        draw_bars(track.name, start, end, track.y, track.height, track.color)
        return 100 * np.nansum(end - start, axis=1) / LONG

    heights = UnitPositions(title=16, track=TOP + ROW * MOST + 14)
    draw_units(sheet, "dial", heights, (LEFT, RIGHT), draw_track)


def _draw_speed(sheet: Sheet, points: list[Point]) -> None:
    """Draw Gflop/s over registers at the chosen latency, with a dot at the current setting."""
    across = Scale("registers per work-item", REGISTERS[0] - 2, REGISTERS[-1] + 2, ticks=SHOWN)
    up = Scale("Gflop/s in the steady state", 0, PEAK, ticks=range(0, int(PEAK) + 1, 680))
    label = "The speed for each number of registers, at the chosen latency"
    chart = Chart(sheet, across, up, label=label, width=CHART_WIDTH, height=CHART_HEIGHT)
    speeds = np.array([point.gflops for point in points])
    by_registers = speeds.reshape(-1, len(REGISTERS))
    curves = np.repeat(by_registers, len(REGISTERS), axis=0)
    chart.curve("speed", REGISTERS, curves, 0, [f"{count} registers" for count in REGISTERS])
    registers = np.resize(REGISTERS, (len(points), 1))
    chart.dots("dot", registers, speeds[:, np.newaxis], color="wrote", fill="wrote", size=18)
