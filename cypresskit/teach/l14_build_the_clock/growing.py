"""Lesson 14's chart: the speeds of kernels by a clock that gets one mechanism after another, in
percent of the published ones.
"""

from collections.abc import Mapping
from itertools import pairwise

from cypresskit.draw.chart import COLORS, EDGE, GAP, WIDE, Canvas, Chart, Scale, number_text
from cypresskit.teach.l14_build_the_clock.checks import printed

LEFT, ROW, NARROW_ROW = 124, 54, 72  # pixels: left end of the scale, from row to row
ABOVE = 17  # pixels from a row to the text above or below it
SCALE = Scale("% of the published speed", 95, 145, ticks=(100, 110, 120, 130, 140))


def growing(stages: Mapping[str, Mapping[str, float]]) -> Chart:
    """Draw speeds in percent of the published ones, which are rings at 100.

    Parameters
    ----------
    stages
        For each mechanism, in the order in which it is added, the Gflop/s of each kernel.
    """
    first, *added = stages
    shares = {
        kernel: [100 * speeds[kernel] / printed(kernel) for speeds in stages.values()]
        for kernel in stages[first]
    }
    begin, *_, end = zip(*shares.values())
    finding = (
        f"{first.capitalize()}: {min(begin):.0f} to {max(begin):.0f} % of what was published. With"
        f" all mechanisms: {min(end):.0f} to {max(end):.0f} %"
    )
    lines = [
        f"{kernel}: {', '.join(f'{share:.0f}' for share in row)} % of {printed(kernel):,.0f}"
        for kernel, row in shares.items()
    ]

    def paint(width: float) -> Canvas:
        row = ROW if width == WIDE else NARROW_ROW
        foot = row * len(shares)
        canvas = Canvas(width, foot + 3 * GAP)
        left = EDGE if canvas.is_narrow else LEFT

        def x(share: float) -> float:
            return float(left + (width - EDGE - 12 - left) * SCALE.share(share))

        for tick in SCALE.numbers():
            canvas.add("path", "line", d=f"M{x(tick):.1f} 0V{foot}", opacity=0.5)
            canvas.write(x(tick), foot + 12, number_text(tick), "soft", "middle", data_axis="x")
        canvas.write(width - EDGE, foot + 12 + GAP, SCALE.title, "soft", "end")
        rows = {kernel: row * (n + 1) - 28 for n, kernel in enumerate(shares)}
        for kernel, y in rows.items():
            _paint_row(canvas, kernel, shares[kernel], y, x)
        for number, mechanism in enumerate(added):
            kernel = max(shares, key=lambda name: shares[name][number] - shares[name][number + 1])
            at = x(shares[kernel][number + 1]) + 4
            canvas.write(at, rows[kernel] + ABOVE, mechanism, COLORS[number])
        return canvas

    about = (
        f"Your clock, in percent of the published speed (ring). Gray dot: {first}. Each line: what"
        " a mechanism costs."
    )
    return Chart(finding, paint, about=about, lines=lines)


def _paint_row(canvas: Canvas, kernel: str, shares, y: float, x) -> None:
    """Draw a kernel's speeds at the height ``y``; ``x`` returns the pixel of a share."""
    if canvas.is_narrow:
        canvas.write(0, y - 2 * ABOVE, kernel)
    else:
        canvas.write(LEFT - 12, y, kernel, anchor="end")
    for number, (before, after) in enumerate(pairwise(shares)):
        line = f"M{x(before):.1f} {y:.1f}L{x(after):.1f} {y:.1f}"
        canvas.add("path", COLORS[number], name=f"{kernel} {number}", d=line, stroke_width=5)
    speed = number_text(printed(kernel))
    look = {"fill": "page", "r": 5.5, "stroke_width": 3}
    canvas.mark(f"{kernel} published", f"published: {speed} Gflop/s", x(100), y, "ink", **look)
    canvas.write(x(100), y + ABOVE, speed, "soft", "middle")
    for name, share, color in (("first", shares[0], "soft"), ("last", shares[-1], "ink")):
        words = f"{kernel}: {share:.1f} % of {speed}"
        canvas.mark(f"{kernel} {name}", words, x(share), y, color, fill=color, r=4.5)
        if name == "last" or shares[0] - shares[-1] > 1:
            canvas.write(x(share), y - ABOVE, f"{share:.0f} %", color, "middle")
