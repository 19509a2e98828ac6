"""Lesson 14's chart: by how much kernels are faster than published by a clock that gets one
mechanism after another.
"""

from collections.abc import Mapping
from itertools import pairwise

from cypresskit.draw.chart import (
    COLORS,
    EDGE,
    GAP,
    WIDE,
    Canvas,
    Chart,
    Scale,
    element,
    number_text,
)
from cypresskit.published import kernel as published
from cypresskit.teach.l14_build_the_clock.checks import printed

ROW = 64  # pixels from row to row
NAMES = 80  # pixels for the kernels' names, which on a phone are above their rows
SCALE = Scale("% faster than published", -5, 45, ticks=(0, 10, 20, 30, 40))
LABELED = 1  # percent that a mechanism costs at least, if its name is written


def growing(stages: Mapping[str, Mapping[str, float]]) -> Chart:
    """Draw by how many percent speeds are above the published ones, which are upright bars at 0.

    Parameters
    ----------
    stages
        For each mechanism, in the order in which it is added, the Gflop/s of each kernel.
    """
    first, *added = stages
    shares = {
        kernel: [100 * speeds[kernel] / printed(kernel) - 100 for speeds in stages.values()]
        for kernel in stages[first]
    }
    ratios = [kernel for kernel in shares if "gflops_max" not in published(kernel)]
    begin, *_, end = zip(*shares.values())
    finding = (
        f"{first.capitalize()} make a kernel up to {max(begin):.0f} % faster than published; all"
        f" mechanisms leave at most {max(end):.0f} %"
    )
    lines = [
        f"{kernel}: {', '.join(f'{share:+.0f}' for share in row)} % of {printed(kernel):,.0f}"
        for kernel, row in shares.items()
    ]

    def paint(width: float) -> Canvas:
        foot, names = ROW * len(shares), 0 if width < WIDE else NAMES
        canvas = Canvas(width, foot + 3 * GAP)

        def x(share: float) -> float:
            return float(names + EDGE + (width - names - 3 * EDGE) * SCALE.share(share))

        for y in range(40, foot, ROW):  # a kernel's name is between two rows
            top = y - 22 if width == WIDE else y
            canvas.add("path", "line", d=f"M{x(0):.1f} {top}v{y + 24 - top}")
            canvas.avoid([(x(0), down) for down in range(top, y + 24, 6)])
        for tick in SCALE.numbers():
            canvas.write(x(tick), foot + 12, number_text(tick), "soft", "middle", data_axis="x")
        canvas.write(width - EDGE, foot + 12 + GAP, SCALE.title, "soft", "end")

        for row, (kernel, (first, *_, last)) in enumerate(shares.items()):
            y = ROW * row + 40
            canvas.write(0, y if names else y - 30, kernel)
            for color, mechanism, ends in zip(COLORS, added, pairwise(shares[kernel])):
                line = f"M{x(ends[0]):.1f} {y}L{x(ends[1]):.1f} {y}"
                name = f"{kernel} {mechanism}"
                canvas.add("path", color, name=name, kind="modeled", d=line, stroke_width=5)
                if ends[0] - ends[1] > LABELED:
                    middle = x(sum(ends) / 2)
                    places = [("middle", 0.0, 16.0), ("start", 0.0, 16.0), ("end", 0.0, 16.0)]
                    canvas.write_free(middle, y, places, mechanism, color)
            kind = "published" if kernel in ratios else "measured"
            words = f"{kernel}, {kind}: {number_text(printed(kernel))} Gflop/s"
            bar = element("rect", "", "ink", x=x(0) - 1, y=y - 8, width=2, height=16)
            canvas.group(f"{kernel} published", [(words, bar)], kind)
            for name, share, color in ("first", first, "soft"), ("last", last, "ink"):
                words = f"{kernel}, modeled: {share:+.1f} %"
                look = {"fill": color, "r": 4.5}
                canvas.mark(f"{kernel} {name}", words, x(share), y, color, "modeled", **look)
                if name == "last" or first - last > 1:
                    key = "bold" * (share in (max(begin), max(end)))
                    canvas.write(x(share) - 4, y - 16, f"{share:+.0f} %", color, class_=key)
        return canvas

    told = "".join(f"; {kernel}'s from a published ratio" for kernel in ratios)
    about = (
        f"Your clock's speeds, modeled, beside the measured ones (upright bars{told}). Dots"
        f" on the right: {first}; on the left: all mechanisms; between them: what each costs."
    )
    return Chart(finding, paint, about=about, lines=lines)
