"""The roofline of the HD 5870 in single precision, over flops per byte, and kernels under it.

A b x b block in registers needs 1/b words of four bytes per flop (Nakasato, equation 1), so it
works at b/4 flops for each byte fetched. Left out: other precisions.
"""

from collections.abc import Iterable
from operator import itemgetter
from statistics import harmonic_mean

from cypresskit.devices import CHIP_ALONE, HD5870
from cypresskit.draw.chart import GAP, Axes, Chart, Kind, Scale
from cypresskit.kernels import KERNELS
from cypresskit.published import kernel as published
from cypresskit.teach.l02_why_blocks.checks import memory_bandwidths
from cypresskit.timing import Report

PUBLISHED = "sgemm_tn", "sgemm_64x64_lds", "sgemm_64x64"
WORD = 4  # bytes
ACROSS = Scale("flops for each byte fetched: b/4", 0.1, 8, True, (0.125, 0.25, 0.5, 1, 2, 4, 8))
UP = Scale("Gflop/s", 50, 3200, True, (100, 300, 1000, 3000))


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
    finding = "; ".join(
        f"{kernel} does {drawn[kernel][1]:,.0f} Gflop/s, {shares[kernel]}"
        for kernel in dict.fromkeys((best, slowest))
    )
    largest = max(drawn, key=drawn.__getitem__)
    if dots and largest != best:
        finding = (
            f"{largest} falls to {dots[largest][1]:,.0f} Gflop/s: there is room for"
            f" {active[largest]} wavefronts only. {best} has {active[best]}, and does"
            f" {dots[best][1]:,.0f}"
        )
    how: Kind = "modeled" if dots else "measured"
    told = {
        kernel: f"{kernel}, {how}: {at:.3g} flops per byte, {speed:,.0f} Gflop/s"
        for kernel, (at, speed) in drawn.items()
    }

    def paint(width: float) -> Axes:
        axes = Axes(width, ACROSS, UP, has_grid=False, height=400)
        for memory, rate in sorted(rates.items(), key=itemgetter(1)):
            x = max(ACROSS.low, UP.low / rate), min(peak / rate, ACROSS.high)
            y = rate * x[0], rate * x[1]
            is_roof = memory == "texture units"  # nothing is above it
            color, thick = ("ink", 3) if is_roof else ("soft", 1.5)
            bend = [*x, ACROSS.high], [*y, min(peak, rate * ACROSS.high)]
            axes.line(f"roof {memory}", *bend, color, "published", stroke_width=thick)
            axes.along(x, y, f"{memory}: {rate:,.0f} GB/s", color)
        ends = axes.x(ACROSS.high), axes.y(peak) - 11
        axes.write(*ends, f"arithmetic: {peak:,.0f}", "ink", "end")
        for number, (kernel, (at, speed)) in enumerate(rings.items()):
            axes.ring(kernel, at, speed, "c", how, told[kernel])
            left, up = axes.x(at) - 24, axes.y(rings[PUBLISHED[0]][1]) - GAP * (3 - number)
            leader = f"M{left + 2:.1f} {up:.1f}L{axes.x(at) - 5:.1f} {axes.y(speed) - 3:.1f}"
            axes.add("path", "c", d=leader)
            axes.write(left, up, f"{speed:,.0f} {kernel}", "c", "end", class_="bold")
        for kernel, (at, speed) in dots.items():
            axes.dot(kernel, at, speed, "c", how, told[kernel], f"{kernel}: {speed:,.0f}")
        return axes

    roofs = [
        f"{memory}: {rate:,.0f} GB/s, {peak:,.0f} Gflop/s from {peak / rate:.3g} flops per byte"
        for memory, rate in rates.items()
    ]
    which = f"{name}, {how}, {CHIP_ALONE.name}" if dots else f"Three kernels, {how}"
    about = f"{which}, HD 5870, single precision. Roofs: published rates."
    return Chart(finding, paint, about=about, lines=[*roofs, *told.values()])
