"""Entries of a contest under their ceilings, and the rounds of wavefronts that fill the engines: why one is ahead.

From timing reports of several kernels at several N. What a unit would allow if it never paused is a ceiling; what lacks
below the lowest one was spent on waiting, and on the launch. To the right, how many wavefronts run over the launch: a
last round that is nearly empty is a tail. Left out: why they wait.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty
from cypresskit.timing import Report

LEFT, WIDE, ROUNDS, HIGH = 12, 560, 630, 360  # of the ladders and of the rounds, in pixels
BINS = 80  # moments of a launch
UNITS = {"ALU": "alu", "texture": "texture"}  # their inks


def contest(reports: Sequence[Report]) -> Player:
    """A player with a frame for each N; ``reports`` come from ``simulate``, one for each kernel and N. Raises
    ``ValueError`` unless every kernel has all sizes and says what its parts did."""
    reports = nonempty(reports, "pass reports of simulate, every kernel at the same sizes", Report)
    rows = {kernel: {r.size[0]: r for r in reports if r.kernel == kernel and r.size and r.use} for kernel in
            dict.fromkeys(r.kernel for r in reports)}  # fmt: skip
    sizes = sorted({r.size[0] for r in reports if r.size})
    if not sizes or any(sorted(row) != sizes for row in rows.values()):
        raise ValueError("a contest is drawn from reports of simulate: every kernel at the same sizes")
    peak = max(r.peak_gflops for r in reports)
    sheet = Sheet("Under the ceilings: " + ", ".join(rows))
    high = min(150.0, HIGH / len(rows))
    label = "Each kernel's speed under its ceilings, and its wavefronts over time"
    fig = sheet.stage(label, 1112, 30 + high * len(rows))
    sheet.words(fig, [LEFT, ROUNDS], 10, [f"Gflop/s, to the peak of {peak:.0f}",
                "wavefronts running, over the launch; the line is all that fit"], "soft", size=13)  # fmt: skip
    for n, (kernel, row) in enumerate(rows.items()):
        _draw(sheet, fig, kernel, [row[size] for size in sizes], 30 + n * high, high - 12, peak)
    captions = [f"N = {size}. " + "\n".join(_say(kernel, row[size]) for kernel, row in rows.items()) for size in sizes]
    lost = (("lost to waiting", "wait", "pale"), ("lost to the launch", "soft", "pale"))
    allowed = (
        (f"the {words} allows, without the launch", UNITS[words.split()[0]], "box") for words in ("ALU", "texture unit")
    )
    key = sheet.key(("speed", "c", "box"), *lost, *allowed)
    return sheet.player([fig], captions, sheet.title, step="N", below=[key], lasts=8)


def rounds(report: Report) -> float:
    """How often the wavefronts of a launch fill the engines; 2.1 is two full rounds and a tenth of one."""
    return report.wavefronts / (report.active * report.device.simd_engines)


def allows(report: Report, unit: str, launch: bool) -> float:
    """Gflop/s if a unit never paused, with the time of the launch or without; the peak at most."""
    seconds = report.busy[unit] * report.clocks / (report.device.clock_ghz * 1e9)
    return min(report.flops / (seconds + launch * report.device.launch_us * 1e-6) / 1e9, report.peak_gflops)


def _say(kernel: str, r: Report) -> str:
    busy = ", ".join(f"{unit} {100 * r.busy[unit]:.0f} %" for unit in UNITS)
    return (f"**{kernel}**: {r.gflops:.0f} Gflop/s; at work: {busy}; {r.wavefronts} wavefronts, "
            f"{r.active * r.device.simd_engines} fit: {rounds(r):.1f} rounds.")  # fmt: skip


def _draw(sheet: Sheet, fig, kernel: str, reports: Sequence[Report], top: float, high: float, peak: float) -> None:
    """One kernel: its ladder at the left, its rounds at the right."""
    scale, y, bar = WIDE / peak, top + high / 2 + 8, high - 34
    style: dict = {"align": "right", "size": 13}
    sheet.words(fig, LEFT, top + 8, kernel, bold=True, size=14)
    sheet.boxes(fig, f"road {kernel}", LEFT + WIDE / 2, y, WIDE, bar, ink="faint", alpha=0.6)
    lowest = [[min(allows(r, unit, launch) for unit in UNITS) for r in reports] for launch in (True, False)]
    level = scale * np.array([[0.0] * len(reports), [r.gflops for r in reports], *lowest])[..., np.newaxis]
    for n, (name, ink, alpha) in enumerate((("speed", "c", 0.9), ("lost", "wait", 0.35), ("launch", "soft", 0.35))):
        a, b = level[n], level[n + 1]
        x, w = LEFT + (a + b) / 2, np.maximum(b - a, 0.01)
        sheet.boxes(fig, f"{name} {kernel}", x, y, w, bar, ink=ink, alpha=alpha, moves=("x", "w"))
    for unit, ink in UNITS.items():
        x, words = LEFT + scale * np.array([[allows(r, unit, False)] for r in reports]), [f"if the {unit} never paused"]
        sheet.boxes(fig, f"{unit} {kernel}", x, y, 4, bar + 8, ink=ink, words=words, moves=("x",))
    count = np.array([_running(r) / (r.active * r.device.simd_engines) for r in reports])
    foot, tall, each = y + bar / 2, count * bar, 470 / BINS
    bins = ROUNDS + (np.arange(BINS) + 0.5) * each
    sheet.boxes(fig, f"rounds {kernel}", bins, foot - tall / 2, each, tall, ink="c", alpha=0.6, moves=("y", "h"))
    sheet.boxes(fig, f"room {kernel}", ROUNDS + 235, foot - bar, 470, 1.5, ink="ink")
    values = np.array([round(10 * rounds(r)) for r in reports])
    names = [f"{n / 10:.1f} rounds" for n in range(values.max() + 1)]
    sheet.numbers(fig, f"count {kernel}", ROUNDS + 470, top + 8, values, names=names, **style)
    gflops = np.array([round(r.gflops) for r in reports])
    sheet.numbers(fig, f"gflops {kernel}", LEFT + WIDE, top + 8, gflops, prefix="Gflop/s: ", **style)


def _running(report: Report) -> np.ndarray:
    """How many wavefronts run at each of the moments of a launch."""
    assert report.use is not None
    _, start, end = report.use.wavefronts.T
    moments = (np.arange(BINS)[:, np.newaxis] + 0.5) / BINS * report.use.clocks[-1]
    return ((start <= moments) & (moments < end)).sum(axis=1)
