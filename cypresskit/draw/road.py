"""The road: what each lesson's idea is worth, from the kernel that everybody writes first to the
record.

On the left the climb, a rung for each idea that the record needs; on the right the side roads, each
with its starting point. Every figure is the timing model's own output, kept in ``road.json``
(``python -m tools.stored_figures`` renews it).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from textwrap import wrap
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

#: Of the stage, in pixels: its height, and the top and foot of the bars.
HEIGHT, TOP, FOOT = 296, 48, 196
LEFT, APART = 8, 40  # the room before the climb, and before the side roads
CLIMB, SIDE = 96, 72  # the width of a rung of the climb, and of a side road's
CLIMB_LETTERS, SIDE_LETTERS = 14, 10  # of a kernel's name that it holds
GAP = 14  # between two bars
NAMES, KERNELS = FOOT + 25, FOOT + 68  # the first lines of a rung's name, and of what runs there
REFERENCE = 2048  # the course's N: a rung of another one says so
# Of a ceiling; what isn't on the chip is in the ink of words.
INKS = {"ALU": "alu", "texture": "texture", "LDS": "wait"}


class RoadLaunch(NamedTuple):
    """What is timed for a bar: a kernel or a function of ``host``, its N, and a compiler style. Of
    a reader's own bar, its number.
    """

    kernel: str
    n: int = REFERENCE
    style: str = ""
    own: int | None = None


class Figure(NamedTuple):
    """What a launch reaches, what its busiest unit would allow without a pause, both in Gflop/s,
    and that unit.
    """

    gflops: float
    ceiling: float
    unit: str


class Rung(NamedTuple):
    """A step of the road: the lesson that explains it, its name in lines, its launch, the launch
    that it is compared with, and whether it belongs to the climb.
    """

    lesson: int
    phrase: str
    launch: RoadLaunch
    before: RoadLaunch | None = None
    climb: bool = False

    @property
    def own(self) -> bool:
        """Whether it is a reader's own bar, which belongs to no lesson."""
        return self.launch.own is not None

    @property
    def name(self) -> str:
        return self.phrase.replace("-\n", "-").replace("\n", " ")

    @property
    def number(self) -> str:
        """What stands below its bar in bold: its lesson's number."""
        return "yours" if self.own else f"{self.lesson:02}"

    @property
    def width(self) -> int:
        return CLIMB if self.climb else SIDE

    @property
    def under(self) -> list[str]:
        """Lines below its bar: what runs there, and its N if that isn't the course's."""
        size = [] if self.launch.n == REFERENCE else [f"N = {self.launch.n}"]
        if self.own:
            return size
        return _broken(self.launch.kernel, CLIMB_LETTERS if self.climb else SIDE_LETTERS) + size


def _broken(name: str, letters: int) -> list[str]:
    """A kernel's name in lines of so many letters, broken before its underscores."""
    lines = [""]
    for part in re.findall("_?[^_]+", name):
        if len(lines[-1] + part) > letters:
            lines.append("")
        lines[-1] += part
    return lines


NAIVE = RoadLaunch("sgemm_naive")
BLOCK_4, BLOCK_8 = RoadLaunch("block_4x4"), RoadLaunch("block_8x8")
SINGLE, DOUBLE = RoadLaunch("sgemm_tn"), RoadLaunch("dgemm_tn")
NN = RoadLaunch("sgemm_nn")
LARGER = RoadLaunch("sgemm_tn", 4352)
ROUND_TRIP = RoadLaunch("round_trip")
BLOCKED = RoadLaunch("blocked_time", 7168)
RUNGS = (
    Rung(0, "no block", NAIVE, None, True),
    Rung(1, "4 x 4 block", BLOCK_4, NAIVE, True),
    Rung(2, "8 x 8 block", BLOCK_8, BLOCK_4, True),
    Rung(12, "two steps\na turn", SINGLE, BLOCK_8, True),
    Rung(12, "a larger N", LARGER, SINGLE, True),
    Rung(3, "bundles\npacked\nbetter", RoadLaunch("sgemm_tn", style="best"), SINGLE),
    Rung(4, "25 regis-\nters,\nnot 37", SINGLE, RoadLaunch("sgemm_tn_37")),
    Rung(5, "square\nquads", SINGLE, RoadLaunch("sgemm_tn_compute")),
    Rung(5, "NN,\nnot TN", NN, SINGLE),
    Rung(6, "double", DOUBLE, SINGLE),
    Rung(6, "double-\ndouble", RoadLaunch("ddgemm_tn_fma"), DOUBLE),
    Rung(7, "NN by\nthe LDS", RoadLaunch("sgemm_64x64_lds"), NN),
    Rung(8, "helpers", RoadLaunch("sgemm_nn_reduce4", 256), RoadLaunch("sgemm_tn", 256)),
    Rung(9, "double,\nwith the\nbus", ROUND_TRIP, DOUBLE),
    Rung(10, "in\nblocks", BLOCKED, ROUND_TRIP),
    Rung(11, "two\nchips,\npipeline", RoadLaunch("five_stage", 16384), BLOCKED),
)
FIGURES: dict[RoadLaunch, Figure] = {
    RoadLaunch(*launch): Figure(*figure)
    for launch, figure in json.loads(theme.packaged("road.json"))
}
Figures = Mapping[RoadLaunch, Figure]


#: What may stand for bars of the reader's own.
Own = Report | Source


def road(
    lesson: int | None = None, *, mine: Own | Iterable[Own] | Mapping[str, Own] = ()
) -> Player:
    """A picture of the road with the rungs of ``lesson`` (0 to 13) lit: earlier ones with their
    figures, later ones by name alone. Without a lesson it plays through all of them.

    ``mine`` are bars of your own behind the climb: reports of ``simulate``, or kernels, which are
    simulated at N = 2048; one or several, or by the name that stands below each. Each is compared
    with the one before it, the first with ``sgemm_naive``. Raises ``ValueError`` for other lessons,
    and ``TypeError`` for what is no kernel, and for a report without flops.

        ck.draw.road(1, mine={"Ada": "my_kernel.il"})
    """
    if lesson not in (None, *range(14)):
        raise ValueError(
            f"the road leads from lesson 0 to lesson 13; there is no lesson {lesson!r}"
        )
    own, timed = _own_rungs(mine)
    figures = FIGURES | timed
    climb = sum(rung.climb for rung in RUNGS)
    rungs = (*RUNGS[:climb], *own, *RUNGS[climb:])
    lessons = np.unique([rung.lesson for rung in RUNGS])
    if lesson is not None:
        lessons = np.minimum([lesson], lessons.max())
    rung_lessons = np.array([rung.lesson for rung in rungs])
    seen = rung_lessons <= lessons[:, np.newaxis]  # (frames, rungs)
    lit = rung_lessons == lessons[:, np.newaxis]

    sheet = Sheet("The road: what each idea is worth")
    widths = np.array([rung.width for rung in rungs])
    is_side = np.array([not rung.climb for rung in rungs])
    x = LEFT + np.cumsum(widths) - widths / 2 + APART * is_side
    label = "Rungs of a ladder: Gflop/s of each step, its ceiling, and what it is compared with"
    sheet.stage(label, LEFT + widths.sum() + APART + 2, HEIGHT)
    _draw_bars(sheet, _Bars(rungs, figures, x, widths - GAP, seen), lit)
    _draw_names(sheet, rungs, x)
    side = x[is_side][0] - SIDE / 2
    heads = [f"The climb: Gflop/s at N = {REFERENCE}", "Side roads, from where each sets out"]
    sheet.words([LEFT, side], 12, heads, bold=True, size=14)

    sheet.about |= {n: _about(rung, figures, seen[:, n]) for n, rung in enumerate(rungs)}
    captions = [
        "\n".join(_say(rung, figures) for rung in rungs if rung.own or rung.lesson == lesson)
        for lesson in lessons
    ]
    known = [rung for rung, is_seen in zip(rungs, seen[-1]) if is_seen]
    lines = [_say(rung, figures).replace("**", "") for rung in known]
    legend = sheet.legend(
        ("gained", "c", "box"),
        ("had before", "c", "pale"),
        ("lost", "wait", "pale"),
        ("this lesson", "ink", "ring"),
        ("sets out from", "soft", "frame"),
        ("ceiling: texture", "texture", "solid"),
        ("arithmetic", "alu", "solid"),
        ("bus, memory, chips", "ink", "solid"),
        *([("yours", "b", "box")] if own else []),
    )
    return sheet.player(captions, lines, step="Lesson", below=[legend])


def _own_rungs(
    mine: Own | Iterable[Own] | Mapping[str, Own],
) -> tuple[list[Rung], dict[RoadLaunch, Figure]]:
    """The reader's bars, and the figures of their launches."""
    if isinstance(mine, Own):
        mine = [mine]
    named = mine.items() if isinstance(mine, Mapping) else ((None, given) for given in mine)
    rungs: list[Rung] = []
    figures: dict[RoadLaunch, Figure] = {}
    for number, (name, given) in enumerate(named):
        report = given if isinstance(given, Report) else simulate(resolve(given, "mine"), REFERENCE)
        if not report.flops:
            raise TypeError(
                f"mine is to be a kernel, or its report: {report.kernel}'s has no flops, so no"
                " Gflop/s for a bar. ck.kernel(...) makes a kernel of a program that multiplies."
            )
        phrase = "\n".join(wrap(name or report.kernel, 12)[:3])
        size = report.size[1] if report.size else REFERENCE
        launch = RoadLaunch(report.kernel, size, own=number)
        before = rungs[-1].launch if rungs else NAIVE
        rungs.append(Rung(-1, phrase, launch, before, climb=True))
        figures[launch] = _figure(report)
    return rungs, figures


def _figure(report: Report) -> Figure:
    """What a report says of its launch."""
    running = report.clocks / (1e9 * report.device.clock_ghz) / report.seconds
    busy = {unit: share for unit, share in report.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    return Figure(report.gflops, report.gflops / (running * busy[unit]), unit)


def _say(rung: Rung, figures: Figures) -> str:
    """A rung's sentence: the kernel that runs, its N and its speed, and what it gains or costs."""
    launch = rung.launch
    figure = figures[rung.launch]
    head = f"**Lesson {rung.lesson:02}: {rung.name}** ({launch.kernel}, N = {launch.n})"
    if rung.own:
        head = f"**Yours: {rung.name}** (N = {launch.n})"
    allows = f"Its busiest part, {figure.unit}, would allow {figure.ceiling:.0f}"
    return f"{head}: {figure.gflops:.0f} Gflop/s{_than(rung, figures)}. {allows}."


def _than(rung: Rung, figures: Figures) -> str:
    """What a rung gains or costs; nothing if it is compared with nothing."""
    if rung.before is None:
        return ""
    now, old = figures[rung.launch].gflops, figures[rung.before].gflops
    factor = max(now / old, old / now)
    times = f"{factor:.3g} times {'as fast as' if now > old else 'slower than'}"
    if factor < 1.005:
        times = "as fast as"
    other = rung.before.kernel if rung.before.own is None else "your last"
    size = "" if rung.before.n == rung.launch.n else f" at N = {rung.before.n}"
    return f", {times} {other}{size}, which does {old:.0f}"


def _about(rung: Rung, figures: Figures, seen: np.ndarray) -> list[tuple[int, str]]:
    """What a click on a rung says: its figures from the frame of its lesson on."""
    later = f"**Lesson {rung.lesson:02}: {rung.name}.** Its figures come with the lesson."
    words = [] if rung.own else [(0, later)]
    if seen.any():
        words.append((int(seen.argmax()), _say(rung, figures)))
    return words


def _draw_names(sheet: Sheet, rungs: Sequence[Rung], x: np.ndarray) -> None:
    """Draw what stands below the bars: lessons, names, and what runs there."""
    numbers = [rung.number for rung in rungs]
    sheet.words(x, FOOT + 11, numbers, align="center", bold=True, size=12)
    names = zip_longest(*(rung.phrase.split("\n") for rung in rungs), fillvalue="")
    for k, line in enumerate(names):
        sheet.words(x, NAMES + 14 * k, line, "soft", align="center", size=12)
    kernels = zip_longest(*(rung.under for rung in rungs), fillvalue="")
    for k, line in enumerate(kernels):
        sheet.words(x, KERNELS + 12 * k, line, "soft", align="center", size=11)


class _Bars:
    """The bars' geometry: of each rung its centre ``x`` and ``width``, and the heights of what it
    reaches, of what it sets out from and of its ceiling. ``nowhere`` is 0 in the frames (frames,
    rungs) in which a rung is seen, else NaN.
    """

    def __init__(
        self,
        rungs: Sequence[Rung],
        figures: Figures,
        x: np.ndarray,
        width: np.ndarray,
        seen: np.ndarray,
    ) -> None:
        self.rungs, self.figures = rungs, figures
        self.x, self.width, self.seen = x, width, seen
        self.nowhere = np.where(seen, 0, np.nan)
        self.speed = np.array([figures[rung.launch].gflops for rung in rungs])
        ceiling = np.array([figures[rung.launch].ceiling for rung in rungs])
        before = np.array([figures[rung.before].gflops if rung.before else 0 for rung in rungs])
        pixels = (FOOT - TOP) / ceiling.max()
        self.height = np.maximum(pixels * self.speed, 1.5)
        self.before = np.maximum(pixels * before, 1.5)
        self.ceiling = np.maximum(pixels * ceiling, 1.5)

    @property
    def middle(self) -> np.ndarray:
        """The y of the bars' centres, of shape (frames, rungs)."""
        return FOOT - self.height / 2 + self.nowhere


def _draw_bars(sheet: Sheet, bars: _Bars, lit: np.ndarray) -> None:
    """Draw the rungs that are seen as bars with starting point and ceiling, the others at the foot,
    and a frame around those that are ``lit`` (frames, rungs).
    """
    x, width, seen = bars.x, bars.width, bars.seen
    texts = [_say(rung, bars.figures).replace("**", "") for rung in bars.rungs]
    to_come = FOOT - 8 + np.where(seen, np.nan, 0)
    sheet.boxes("to come", x, to_come, width, 16, line="line")
    look: dict = {"ink": "c", "alpha": 0.4, "words": texts, "key": np.arange(len(x))}
    sheet.boxes("rungs", x, bars.middle, width, bars.height, **look)
    _draw_changes(sheet, bars)

    own = np.array([rung.own for rung in bars.rungs])
    if own.any():
        sheet.boxes("own bars", x[own], bars.middle[:, own], width[own], bars.height[own], ink="b")
    before = FOOT - bars.before / 2 + bars.nowhere
    outline = sheet.source("before", x=x, w=width, y=before, h=bars.before)
    sheet.ring(outline, "w", "h", 1.5, "soft", line_dash="dashed")
    _draw_ceilings(sheet, bars)

    middle = [(FOOT + HEIGHT) / 2] * len(x)
    ring = sheet.source("lit rung", x=x, y=middle, w=width + 12, on=3 * lit)
    sheet.ring(ring, "w", HEIGHT - FOOT - 4, "on", "ink")
    _draw_figures(sheet, bars)


def _draw_changes(sheet: Sheet, bars: _Bars) -> None:
    """Draw what each rung gains or loses against what it sets out from."""
    gain = np.maximum(bars.height - bars.before, 0.01)
    loss = np.maximum(bars.before - bars.height, 0.01)
    top = FOOT - bars.height + bars.nowhere
    sheet.boxes("gains", bars.x, top + gain / 2, bars.width, gain, ink="c")
    sheet.boxes("losses", bars.x, top - loss / 2, bars.width, loss, ink="wait", alpha=0.35)


def _draw_ceilings(sheet: Sheet, bars: _Bars) -> None:
    """Draw what each rung's busiest unit would allow, in the ink of that unit."""
    units = [bars.figures[rung.launch].unit for rung in bars.rungs]
    inks = np.array([INKS.get(unit, "ink") for unit in units])
    for ink in dict.fromkeys(inks.tolist()):
        same = inks == ink
        y = (FOOT - bars.ceiling + bars.nowhere)[:, same]
        sheet.boxes(f"ceilings {ink}", bars.x[same], y, bars.width[same] + 8, 2, ink=ink)


def _draw_figures(sheet: Sheet, bars: _Bars) -> None:
    """Write each rung's Gflop/s above its bar, but not across its ceiling."""
    is_close = (bars.ceiling > bars.height - 2) & (bars.ceiling < bars.height + 20)
    top = np.where(is_close, bars.ceiling, bars.height)
    names = ["", *(f"{gflops:.0f}" for gflops in bars.speed)]
    which = bars.seen * np.arange(1, len(bars.rungs) + 1)
    look: dict = {"bold": True, "align": "center", "size": 13}
    sheet.numbers("figures", bars.x, FOOT - top - 10, which, names=names, **look)
