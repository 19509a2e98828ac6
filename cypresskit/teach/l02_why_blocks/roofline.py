"""The roofline of the HD 5870 in single precision, over flops per byte, and kernels under it.

A b x b block in registers needs 1/b words of four bytes per flop (Nakasato, equation 1), so it
works at b/4 flops for each byte fetched. Left out: other precisions.
"""

from collections.abc import Iterable
from math import floor, log2
from operator import itemgetter
from statistics import harmonic_mean

from cypresskit.devices import CHIP_ALONE, HD5870
from cypresskit.draw.chart import Axes, Chart, Kind, Scale
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.teach.l02_why_blocks.checks import memory_bandwidths
from cypresskit.timing import Report

PUBLISHED = "sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"
WORD = 4  # bytes
ACROSS = "flops for each byte fetched: b/4"
LARGEST = 8  # of these


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
    least = min(at for at, _ in drawn.values())
    across = Scale(
        ACROSS, 2.0 ** floor(log2(least) - 1), LARGEST, True, [2.0**n for n in range(-9, 4)]
    )
    low = min(300, min(speed for _, speed in drawn.values()) / 1.5)
    up = Scale("Gflop/s", low, 3200, True, (10, 30, 100, 200, 500, 1000, 2000))
    how: Kind = "modeled" if dots else "measured"
    told = {
        kernel: f"{kernel}, {how}: {at:.3g} flops per byte, {speed:,.0f} Gflop/s"
        for kernel, (at, speed) in drawn.items()
    }

    def paint(width: float) -> Axes:
        axes = Axes(width, across, up, has_grid=False, height=400)
        for memory, rate in sorted(rates.items(), key=itemgetter(1)):
            x = max(across.low, low / rate), min(peak / rate, LARGEST)
            y = rate * x[0], rate * x[1]
            is_roof = memory == "texture units"  # nothing is above it
            color, thick = ("ink", 3) if is_roof else ("soft", 1)
            bend = [*x, LARGEST], [*y, min(peak, rate * LARGEST)]
            axes.line(f"roof {memory}", *bend, color, "published", stroke_width=thick)
            axes.along(x, y, f"{memory}: {rate:,.0f} GB/s", color)
        ends = axes.x(LARGEST), axes.y(peak) - 11
        axes.write(*ends, f"arithmetic: {peak:,.0f}", "ink", "end")
        for kernel, (at, speed) in drawn.items():
            roof = min(peak, HD5870.texture_gb_s * at)
            axes.line(f"gap {kernel}", (at, at), (speed, roof), "c", how)
            if dots:
                axes.dot(kernel, at, speed, "c", how, told[kernel], f"{kernel}: {speed:,.0f}")
                continue
            axes.dot(kernel, at, speed, "c", how, told[kernel], is_ring=True)
            text = f"{speed:,.0f}" + f" {kernel}" * (not axes.is_narrow)
            axes.write(axes.x(at) + 11, axes.y(speed), text, "c", class_="bold")
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
