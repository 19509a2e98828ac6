"""The roofline of the HD 5870 in single precision, over flops per byte, and kernels under it.

A b x b block in registers needs 1/b words of four bytes per flop (Nakasato, equation 1), so it
works at b/4 flops for each byte fetched. Left out: other precisions.
"""

from collections.abc import Iterable, Sequence
from operator import itemgetter
from statistics import harmonic_mean

import numpy as np

from cypresskit.devices import CHIP_ALONE, HD5870
from cypresskit.draw.chart import NEAR, Axes, Chart, Kind, Place, Scale
from cypresskit.draw.theme import LETTER
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.teach.l02_why_blocks.checks import memory_bandwidths
from cypresskit.timing import Report

PUBLISHED = "sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"
WORD = 4  # bytes
#: Places of a kernel's label, the best first; the fifth fits between two slanted roofs.
AROUND: list[Place] = [*NEAR[:4], ("middle", -11.0, 15.0), *NEAR[4:]]
AWAY = 12  # pixels from a line to the middle of its name
ACROSS = "flops for each byte fetched: b/4"


def roofline(reports: Iterable[Report] = (), name: str = "") -> Chart:
    """Draw the roof of each memory, named along its line, and below it the kernels of ``reports``
    as dots, or else published ones as rings.

    A block of other sides is drawn at their harmonic mean, as it needs as many words per flop.
    """
    peak, rates = HD5870.single_gflops, memory_bandwidths()
    dots, active = {}, {}
    for r in reports:
        if r.gemm_kernel:
            block = " x ".join(map(str, r.gemm_kernel.block))
            dots[block] = harmonic_mean(r.gemm_kernel.block) / WORD, r.gflops
            active[block] = r.active_wavefronts
    rings = {
        kernel: (KERNELS[kernel].block[0] / WORD, published(kernel)["gflops_max"])
        for kernel in (() if dots else PUBLISHED)
    }
    drawn = {**rings, **dots}
    best, slowest = (pick(drawn, key=lambda kernel: drawn[kernel][1]) for pick in (max, min))
    shares = {
        kernel: f"{100 * speed / min(peak, HD5870.texture_gb_s * at):.0f} % of its roof"
        for kernel, (at, speed) in drawn.items()
    }
    finding = f"{best} does {drawn[best][1]:,.0f} Gflop/s, {shares[best]}"
    if slowest != best:
        finding += f"; {slowest} {drawn[slowest][1]:,.0f}, {shares[slowest].split(' of')[0]}"
    largest = max(drawn, key=drawn.__getitem__)
    if dots and largest != best:
        finding = (
            f"{largest} falls to {dots[largest][1]:,.0f} Gflop/s: there is room for"
            f" {active[largest]} wavefronts only. {best} has {active[best]}, and does"
            f" {dots[best][1]:,.0f}"
        )
    least, most = (pick(at for at, _ in drawn.values()) for pick in (min, max))
    end = max(4.0, 2 * most)
    ticks = [2.0**n for n in range(-9, 9)] + [3] * (least > 1)
    across = Scale(ACROSS, 0.8 * least, end, True, ticks)
    low = min(300, min(speed for _, speed in drawn.values()) / 2)
    up = Scale("Gflop/s", low, 3200, True, (10, 30, 100, 300, 1000, 2000))
    how: Kind = "modeled" if dots else "measured"
    told = {
        kernel: f"{kernel}, {how}: {at:.3g} flops per byte, {speed:,.0f} Gflop/s, {shares[kernel]}"
        for kernel, (at, speed) in drawn.items()
    }
    for kernel, count in active.items():
        told[kernel] += f", {count} wavefronts"

    def paint(width: float) -> Axes:
        axes = Axes(width, across, up, height=400)
        names = []
        for memory, rate in sorted(rates.items(), key=itemgetter(1)):
            x = max(across.low, low / rate), min(peak / rate, end)
            y = rate * x[0], rate * x[1]
            is_roof = memory == "texture units"  # nothing is above it
            color, thick = ("ink", 3) if is_roof else ("soft", 1)
            bend = [*x, end], [*y, min(peak, rate * end)]
            axes.line(f"roof {memory}", *bend, color, "published", stroke_width=thick)
            names.append((x, y, f"{memory}: {rate:,.0f} GB/s", color))
        _name_line(axes, *names.pop())
        ends = axes.x(end), axes.y(peak) - 11
        axes.write(*ends, f"arithmetic: {peak:,.0f}", "ink", "end")
        for kernel, (at, speed) in drawn.items():
            roof = min(peak, HD5870.texture_gb_s * at)
            axes.line(f"gap {kernel}", (at, at), (speed, roof), "c", how)
            axes.dot(kernel, at, speed, "c", how, told[kernel], is_ring=not dots)
        for kernel, (at, speed) in drawn.items():
            text = f"{kernel}: {speed:,.0f}" if dots else f"{speed:,.0f} {kernel}"
            if not dots and not axes.is_narrow:
                text += f", {shares[kernel]}"
            places = AROUND if dots else NEAR[1:2]
            where = axes.x(at), axes.y(speed)
            left, top, right, foot = axes.write_free(*where, places, text, "c", class_="bold")
            axes.avoid([(x, (top + foot) / 2) for x in np.arange(left, right, 6)])
        for named in names:
            _name_line(axes, *named)
        return axes

    roofs = [
        f"{memory}: {rate:,.0f} GB/s, {peak:,.0f} Gflop/s from {peak / rate:.3g} flops per byte"
        for memory, rate in rates.items()
    ]
    which = f"{name.capitalize()}, {how}, {CHIP_ALONE.name}" if dots else f"Three kernels, {how}"
    about = (
        f"{which}, HD 5870, single precision. Roofs: published rates; thin: the gap to the roof."
    )
    return Chart(finding, paint, about=about, lines=[*roofs, *told.values()])


def _name_line(axes: Axes, x: Sequence[float], y: Sequence[float], text: str, color: str) -> None:
    """Write the name of a line from one point to another along it, as near to its beginning as no
    other line is in it.
    """
    (left, right), (low, high) = axes.x(x), axes.y(y)
    turn = np.arctan2(high - low, right - left)
    way = np.array([np.cos(turn), np.sin(turn)])
    letters = way[::-1] * (AWAY, -AWAY) + np.outer(LETTER * np.arange(len(text)), way)

    def count_crossings(start: np.ndarray) -> int:
        return sum(axes.crossings((*(at - 7), *(at + 7))) for at in letters + start)

    start = min(((left, low) + way * away for away in range(14, 200, 6)), key=count_crossings)
    axes.avoid(letters + start)
    place = "translate({:.1f} {:.1f}) rotate({:.1f})".format(*start, np.degrees(turn))
    axes.add("text", "", color, inside=text, x=0, y=4 - AWAY, transform=place)
