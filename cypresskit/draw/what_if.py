"""Where the chip's peak went: from its Gflop/s down to what a kernel reaches, limit by limit.

Drawn from ``ck.what_if``. Each step is a chip that lacks the limits below it; how much faster
the kernel would be without a limit alone stands beside it. Left out: how two limits hide each
other, but for the order of the steps.
"""

import numpy as np

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source
from cypresskit.timing import Prices, Report, WhatIf, simulate
from cypresskit.timing.limits import what_if as steps_down

WIDE, TOP, ROW = 1120, 46, 38  # of the stage; where the rows begin, and how high one is
NAME = 262  # right edge of the names
BARS = (276, 560)  # left edge and width
ALONE = 960  # right edges of the columns
LESSON = 1090


def what_if(given: WhatIf | Prices | Report | Source = "sgemm_tn", n: int = 2048) -> Player:
    """A player of the steps from the chip's peak down to what a launch reaches.

    ``given`` are these steps (``ck.what_if``), prices of ``ck.price``, a report, or a kernel,
    which is simulated with size ``n``. Raises ``ValueError`` for a program whose flops aren't
    known.
    """
    all_steps = _steps_of(given, n)
    report = all_steps.report
    if not report.flops:
        raise ValueError(f"{report.kernel}: nobody said how many flops it does: simulate(flops=)")
    steps = [step for step in all_steps if step.reached is not None]
    others = [step for step in all_steps if step.reached is None]
    sheet = Sheet(f"Where the peak went: {report.kernel}")
    high = TOP + ROW * (len(steps) + 1 + len(others)) + 8
    sheet.stage("Gflop/s from the chip's peak down to what the kernel reaches", WIDE, high)
    reached = np.array([report.peak_gflops, *(step.reached for step in steps)])
    _draw_steps(sheet, [step.name for step in steps], reached)
    y = TOP + ROW * (np.arange(len(all_steps)) + 1.5)
    sheet.words(ALONE, 18, "alone, faster by", bold=True, align="right", size=14)
    sheet.words(LESSON, 18, "lesson", bold=True, align="right", size=14)
    gains = ["" if step.gain is None else f"{100 * step.gain:.1f} %" for step in all_steps]
    sheet.words(ALONE, y, gains, align="right", size=14)
    sheet.words(LESSON, y, [step.lesson for step in all_steps], "soft", align="right", size=14)
    below = TOP + ROW * (np.arange(len(others)) + len(steps) + 1.5)
    names = [f"with {step.name}" for step in others]
    sheet.words(NAME, below, names, "soft", align="right", size=14)
    speeds = [f"{step.gflops:,.0f} Gflop/s" for step in others]
    sheet.words(BARS[0], below, speeds, "soft", size=14)
    note = sheet.note(
        "Each bar is a chip that has the limits above it and not those below. A step up is noise,"
        " or two limits that get in each other's way."
    )
    captions = _captions(report, steps, reached)
    lines = str(all_steps).splitlines()[1:]
    return sheet.player(captions, lines, below=[note], step="Limit", first_frame=len(steps))


def _steps_of(given: WhatIf | Prices | Report | Source, n: int) -> WhatIf:
    """The steps that are given, or those of prices, of a report or of a kernel at size ``n``."""
    if isinstance(given, WhatIf):
        return given
    if isinstance(given, Prices):
        given = given.report
    report = given if isinstance(given, Report) else simulate(given, n, progress=False)
    return steps_down(report)


def _captions(report: Report, steps, reached: np.ndarray) -> list[str]:
    head = f"**{report.kernel}** on the {report.device.name}"
    captions = [f"{head}: its peak is {report.peak_gflops:,.0f} Gflop/s."]
    for step, before, after in zip(steps, reached, reached[1:]):
        captions.append(f"{head}: with **{step.name}** {before:,.0f} become {after:,.0f} Gflop/s.")
    worst = int(np.argmax(reached[:-1] - reached[1:]))
    lost = reached[worst] - reached[worst + 1]
    captions[-1] += f" The largest step is {steps[worst].name}: {lost:,.0f}."
    return captions


def _draw_steps(sheet: Sheet, names: list[str], reached: np.ndarray) -> None:
    """A bar for the peak and for each step, with what is lost at it; one more in each frame."""
    left, wide = BARS
    count = len(reached)
    y = TOP + ROW * (np.arange(count) + 0.5)
    sheet.words(left, 18, "Gflop/s", bold=True, size=14)
    sheet.words(NAME, y, ["peak", *names], align="right", size=14)
    shown = np.arange(count) <= np.arange(count)[:, np.newaxis]  # (frames, rows)
    scale = wide / reached.max()
    before = np.concatenate((reached[:1], reached[:-1]))
    kept = np.where(shown, reached * scale, 0.01)
    lost = np.where(shown, np.maximum(before - reached, 0) * scale, 0.01)
    sheet.boxes("reached", left + kept / 2, y, kept, ROW - 12, ink="alu", moves=("x", "w"))
    sheet.boxes("lost", left + kept + lost / 2, y, lost, ROW - 12, ink="faint", moves=("x", "w"))
    texts = ["", *(f"{speed:,.0f}" for speed in reached)]
    which = np.where(shown, 1 + np.arange(count), 0)
    x = left + before * scale + 8
    sheet.numbers("speeds", x, y, which, names=texts, bold=True, size=14)
