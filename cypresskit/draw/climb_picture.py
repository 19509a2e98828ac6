"""The climb: the speed that each idea of the course gains or loses (``gains``).

Each step is a dot on a logarithmic scale of Gflop/s, on which equal distances are equal factors. A
staircase joins them; the last step is at the top. Below are other ideas, each joined to the kernel
that it starts from. A reader's climb shows the kernels that workbenches have saved
(``editing.own_climb``).
"""

from collections.abc import Sequence
from typing import NamedTuple

from cypresskit.devices import CHIP_ALONE, HD5870
from cypresskit.draw.chart import EDGE, NARROW, NEAR, Canvas, Chart, Scale, number_text
from cypresskit.draw.stored_curves import stored_speeds
from cypresskit.gains import FIGURES, IDEAS, Idea
from cypresskit.published import kernel as published

TOP = 52  # pixels: y of the first row
PEAK = HD5870.peak_gflops("single")
PAPER = published("sgemm_tn")["gflops_max"]
TICKS = 30, 100, 200, 500, 1000, 2000  # Gflop/s
#: The record has its own conditions, so its modeled value isn't the climb's.
MODELED = stored_speeds("sgemm_tn")[published("sgemm_tn")["n_at_max"]]
RECORD = f"record of 2010: {PAPER:,} measured, {MODELED:,.0f} modeled"
NOTE = f"Dots: {CHIP_ALONE.name}. The record as published, with launches and the reading of C."


class Bar(NamedTuple):
    """A row of the picture. Speeds are in Gflop/s, 0 if there is none."""

    name: str
    details: str
    gflops: float
    before: float = 0.0  #: of the kernel that the idea starts from

    @property
    def factor(self) -> str:
        """How many times as fast or slow it is as the kernel that the idea starts from, if it is
        another speed.
        """
        ratio = self.gflops / (self.before or self.gflops)
        if abs(ratio - 1) < 0.005:
            return ""
        return f"{ratio:.3g} x" if ratio > 1 else f"{1 / ratio:.3g} x slower"


def climb() -> "Climb":
    """Draw the course's climb."""
    ideas = [idea for idea in IDEAS if idea.is_step]
    steps = [_bar(idea) for idea in ideas]
    others = [_bar(idea) for idea in IDEAS if not idea.is_step]
    slowest, fastest = steps[0].gflops, steps[-1].gflops
    largest = max(ideas, key=lambda idea: idea.factor)
    finding = (
        f"{len(steps) - 1} ideas: {slowest:,.0f} to {fastest:,.0f} Gflop/s. The largest is"
        f" {largest.name.lower()}: {_bar(largest).factor} ({largest.causes[0]:.1f} x by the block)"
    )
    return Climb(finding, steps, others, "In front: the lesson.")


def _bar(idea: Idea) -> Bar:
    figure = FIGURES[idea.launch]
    details = f"{idea.launch.kernel}, N = {idea.launch.n:,}{_compare(idea)}"
    return Bar(
        f"{idea.lesson:02}  {idea.name}",
        f"{details}; {figure.unit} limit: {figure.ceiling:,.0f}",
        figure.gflops,
        FIGURES[idea.before].gflops if idea.before else 0.0,
    )


def _compare(idea: Idea) -> str:
    """Return the kernel that an idea starts from, if there is one, and the causes of the gain."""
    if idea.before is None:
        return ""
    old = FIGURES[idea.before].gflops
    size = "" if idea.before.n == idea.launch.n else f" at N = {idea.before.n:,}"
    causes = ""
    if idea.halfway:
        first, second = idea.causes
        causes = f" ({first:.1f} times by the block, {second:.1f} by {idea.halfway[1]})"
    return f", from {idea.before.kernel}{size}, {old:,.0f}{causes}"


class Climb(Chart):
    """A picture of a climb: a title (``sentence``), ``bars`` for its steps, and below them bars for
    other ideas (``beside``). A ``note`` is below the picture.
    """

    def __init__(
        self, sentence: str, bars: Sequence[Bar], beside: Sequence[Bar] = (), note: str = ""
    ) -> None:
        self.bars, self.beside = tuple(bars), tuple(beside)
        rows = [*self.bars[::-1], *self.beside]
        about = "Modeled Gflop/s on AMD's Cypress (2009), on a logarithmic scale. Peak: published."
        about += " Right: how many times as fast as before."
        super().__init__(
            sentence,
            self._paint,
            about=about if bars else "",
            lines=[f"{bar.gflops:7,.0f}  {bar.name}: {bar.details}" for bar in rows],
            note=f"{note} {NOTE}".strip() if rows else note,
        )

    def _paint(self, width: float) -> Canvas:
        row = 40 if width == NARROW else 26
        steps = [(bar, TOP + row * n) for n, bar in enumerate(self.bars[::-1])]
        below = TOP + row * len(steps) + (row + 8) * bool(self.beside)
        others = [(bar, below + row * n) for n, bar in enumerate(self.beside)]
        foot = below + row * len(others)
        speeds = [speed for bar in (*self.bars, *self.beside) for speed in bar[2:] if speed]
        scale = Scale("Gflop/s", min([300, *speeds]) / 1.5, PEAK, True, TICKS)
        rows = _Rows(width, foot + 20 if self.bars else 1, scale)
        if not self.bars:
            return rows
        rows.draw_scale(TOP + row * len(steps), foot)
        (start, low), *stairs = [(rows.x(bar.gflops), y) for bar, y in steps[::-1]]
        path = "".join(f"H{x:.1f}V{y:.1f}" for x, y in stairs)
        line = f"M{start:.1f} {low:.1f}{path}"
        rows.add("path", "c", name="stairs", kind="modeled", d=line, stroke_width=2)
        if others:
            head = "Other ideas, and what each starts from"
            rows.write(0, below - row + 1, head, class_="bold")
        for bar, y in steps:
            rows.draw(bar, y, is_step=True, is_key=bar in (self.bars[0], self.bars[-1]))
        for bar, y in others:
            rows.draw(bar, y, is_step=False)
        return rows


class _Rows(Canvas):
    """A drawing of rows between two x, where the scale of Gflop/s begins and ends."""

    def __init__(self, width: float, height: float, scale: Scale) -> None:
        super().__init__(width, height)
        self.scale = scale
        self.left, beside = (8, 80) if self.is_narrow else (150, 100)
        self.right = width - beside

    def x(self, gflops: float) -> float:
        return self.left + (self.right - self.left) * float(self.scale.share(gflops))

    def draw_scale(self, end: float, foot: float) -> None:
        """Draw the ticks, and up to the ``end`` of the steps their limits: the published speed and
        the chip's peak.
        """
        for gflops, color, kind in (PEAK, "soft", "published"), (PAPER, "ink", "measured"):
            x = self.x(gflops)
            line = f"M{x:.1f} {TOP - 22}V{end - 8:.1f}"
            self.avoid([(x, y) for y in range(TOP - 22, int(end), 6)])
            self.add("path", color, name=f"level {gflops:g}", kind=kind, d=line, opacity=0.8)
        for gflops in self.scale.numbers():
            text = number_text(gflops)
            self.write(self.x(gflops), foot + 4, text, "soft", "middle", data_axis="x")
        self.write(self.x(PAPER), TOP - 34, RECORD, "soft", "end")
        self.write(self.x(PEAK), TOP - 34, f"peak {PEAK:,.0f}", "soft")

    def draw(self, bar: Bar, y: float, *, is_step: bool, is_key: bool = False) -> None:
        """Draw a dot with its number, bold for a key one, and unless it is a step, what it starts
        from.
        """
        above = y - 16 * self.is_narrow
        self.write(6, above, bar.name)
        self.write(self.width - EDGE, above, bar.factor, "soft", "end")
        x = self.x(bar.gflops)
        start = self.x(bar.before) if bar.before and not is_step else x
        if start != x:
            self.add("path", "c", d=f"M{start:.1f} {y:.1f}H{x:.1f}", stroke_width=2)
            name = f"start {bar.name}"
            self.add("circle", "c", "page", name, "modeled", cx=start, cy=y, r=4)
        words = f"{bar.gflops:,.0f}, modeled: {bar.details}"
        self.mark(bar.name, words, x, y, "c", "modeled", fill="c", r=5)
        places = NEAR[1:] if start < x else NEAR[2::-1]
        self.write_free(x, y, places, f"{bar.gflops:,.0f}", "ink", class_="bold" * is_key)
