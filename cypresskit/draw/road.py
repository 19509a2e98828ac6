"""The road: what each lesson's idea is worth, from the kernel that everybody writes first to the
record.

Above the climb, a rung for each idea that the record needs; below the side roads, each with its
starting point; both under one roof, the chip's peak. A reader's own bars stand beside the rungs
that they belong to. Every figure is the timing model's own output, kept in ``road.json``
(``python -m tools.stored_figures`` renews it).
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import NamedTuple

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.scripts import packaged
from cypresskit.draw.sheet import Sheet
from cypresskit.kernels.own import Source, resolve
from cypresskit.timing.report import Report
from cypresskit.timing.simulate import simulate

#: Of the stage, in pixels: its width and height, those of the climb's line, and the room at its
#: left.
WIDTH, HEIGHT, LINE, LEFT = 1040, 440, 208, 40
RIGHT = 8  # the room at its right
HEAD = 12  # the y of a line's heading, and how far below it the roof and the bars' foot are
ROOF, FOOT = 26, 126
CLIMB, SIDE = (92, 150), (78, 92)  # the least and the most width of a rung of both kinds
OWN = 46  # the width that a bar of the reader's own takes
CLIMB_LETTERS, SIDE_LETTERS, OWN_LETTERS = 14, 12, 8  # in a line of the names that they hold
GAP = 14  # between two bars
# How far below the foot the lines of names are, and how far apart.
NUMBER, NAMES, APART = 12, 27, 13
REFERENCE = 2048  # the course's N: a rung of another one says so
SCALE = (1000, 2000)  # lines to read heights by, in Gflop/s
PEAK = HD5870.peak_gflops("single")  # the roof
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
    beside: RoadLaunch | None = None  #: of a reader's own, the launch of the rung it belongs to

    @property
    def own(self) -> bool:
        """Whether it is a reader's own bar, which belongs to no lesson."""
        return self.launch.own is not None

    @property
    def name(self) -> str:
        return self.phrase.replace("-\n", "-").replace("\n", " ")

    @property
    def under(self) -> list[str]:
        """The lines below its number: its name, what runs there, and its N if that isn't the
        course's. Of a reader's own, its name, and its N if that isn't its neighbour's.
        """
        if self.own:
            is_like_the_books = self.beside is not None and self.launch.n == self.beside.n
            is_short = len(self.phrase) <= OWN_LETTERS
            words = self.phrase if is_short else self.phrase.replace("_", " _")
            lines = wrap(words, OWN_LETTERS)[:4]
            return [*lines, *([] if is_like_the_books else self.size)]
        names = [self.name] if self.climb else self.phrase.split("\n")
        letters = CLIMB_LETTERS if self.climb else SIDE_LETTERS
        return [*names, *_broken(self.launch.kernel, letters), *self.size]

    @property
    def size(self) -> list[str]:
        return [] if self.launch.n == REFERENCE else [f"N = {self.launch.n}"]


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
THROUGH_LDS = RoadLaunch("sgemm_64x64_lds")
#: Up to how many elements of C the blocks of a rung have.
BLOCKS = ((1, NAIVE), (16, BLOCK_4), (64, BLOCK_8))
ROUND_TRIP = RoadLaunch("round_trip")
BLOCKED = RoadLaunch("blocked_time", 7168)
RUNGS = (
    Rung(0, "no block", NAIVE, None, True),
    Rung(1, "4 x 4 block", BLOCK_4, NAIVE, True),
    Rung(2, "8 x 8 block", BLOCK_8, BLOCK_4, True),
    Rung(12, "two steps\na turn", SINGLE, BLOCK_8, True),
    Rung(12, "a larger N", LARGER, SINGLE, True),
    Rung(3, "bundles\npacked\nbetter", RoadLaunch("sgemm_tn", style="best"), SINGLE),
    Rung(4, "registers:\n25, not 37", SINGLE, RoadLaunch("sgemm_tn_37")),
    Rung(5, "square\nquads", SINGLE, RoadLaunch("sgemm_tn_compute")),
    Rung(5, "NN,\nnot TN", NN, SINGLE),
    Rung(6, "double", DOUBLE, SINGLE),
    Rung(6, "double-\ndouble", RoadLaunch("ddgemm_tn_fma"), DOUBLE),
    Rung(7, "NN by\nthe LDS", THROUGH_LDS, NN),
    Rung(8, "helpers", RoadLaunch("sgemm_nn_reduce4", 256), RoadLaunch("sgemm_tn", 256)),
    Rung(9, "double,\nwith the\nbus", ROUND_TRIP, DOUBLE),
    Rung(10, "in\nblocks", BLOCKED, ROUND_TRIP),
    Rung(11, "two\nchips,\npipeline", RoadLaunch("five_stage", 16384), BLOCKED),
)
FIGURES: dict[RoadLaunch, Figure] = {
    RoadLaunch(*launch): Figure(*figure)
    for launch, figure in json.loads(packaged("draw/road.json"))
}
Figures = Mapping[RoadLaunch, Figure]


#: What may stand for bars of the reader's own.
Own = Report | Source


def road(
    lesson: int | None = None, *, mine: Own | Iterable[Own] | Mapping[str, Own] = ()
) -> Player:
    """A picture of the road with the rungs of ``lesson`` (0 to 13) lit: earlier ones with their
    figures, later ones by name alone. Without a lesson it plays through all of them.

    ``mine`` are bars of your own: reports of ``simulate``, or kernels, which are simulated at N =
    2048; one or several, or by the name that stands below each. Each stands beside the rung with
    its block, and is compared with the last before it on the climb, or with ``sgemm_naive``. Raises
    ``ValueError`` for other lessons, and ``TypeError`` for what is no kernel, and for a report
    without flops.

        ck.draw.road(1, mine={"Ada": "my_kernel.il"})
    """
    if lesson not in (None, *range(14)):
        raise ValueError(
            f"the road leads from lesson 0 to lesson 13; there is no lesson {lesson!r}"
        )
    own, timed = _own_rungs(mine)
    figures = FIGURES | timed
    rungs = _in_order(own)
    lessons = np.unique([rung.lesson for rung in RUNGS])
    if lesson is not None:
        lessons = np.minimum([lesson], lessons.max())
    rung_lessons = np.array([rung.lesson for rung in rungs])
    seen = rung_lessons <= lessons[:, np.newaxis]  # (frames, rungs)
    lit = rung_lessons == lessons[:, np.newaxis]

    sheet = Sheet("The road: what each idea is worth")
    layout = _RoadLayout.of(rungs)
    label = "Rungs of a ladder: Gflop/s of each step, its ceiling, and what it is compared with"
    sheet.stage(label, layout.width, HEIGHT)
    _draw_heads(sheet, layout)
    _draw_bars(sheet, _Bars(rungs, figures, layout, seen), lit)
    _draw_names(sheet, rungs, layout)

    sheet.about |= {n: _about(rung, figures, seen[:, n]) for n, rung in enumerate(rungs)}
    captions = [
        "\n".join(_say(rung, figures) for rung in _spoken(rungs, own, lesson)) for lesson in lessons
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


def _spoken(rungs: Sequence[Rung], own: Sequence[Rung], lesson: int) -> list[Rung]:
    """The rungs that a lesson's caption is about: its own with the reader's beside them, or else
    the reader's last.
    """
    books = [rung.launch for rung in RUNGS if rung.lesson == lesson]
    mine = [rung for rung in own if rung.beside in books] or list(own[-1:])
    return [rung for rung in rungs if rung.lesson == lesson or rung in mine]


def _in_order(own: Sequence[Rung]) -> list[Rung]:
    """The road's rungs, each with those of the reader's that belong to it behind it."""
    rungs = []
    for book in RUNGS:
        rungs.append(book)
        is_first = book is next(rung for rung in RUNGS if rung.launch == book.launch)
        rungs += [mine for mine in own if is_first and mine.beside == book.launch]
    return rungs


@dataclass(frozen=True)
class _RoadLayout:
    """Where the rungs stand on the stage: of each its middle ``x``, its ``room`` and its ``foot``,
    in pixels.
    """

    width: float
    x: np.ndarray
    room: np.ndarray
    foot: np.ndarray

    @classmethod
    def of(cls, rungs: Sequence[Rung]) -> "_RoadLayout":
        x, room, foot = np.zeros((3, len(rungs)))
        for line, limits in enumerate((CLIMB, SIDE)):
            number = [n for n, rung in enumerate(rungs) if rung.climb == (line == 0)]
            own = np.array([rungs[n].own for n in number])
            width = (WIDTH - LEFT - RIGHT - OWN * own.sum()) / np.count_nonzero(~own)
            rooms = np.where(own, OWN, np.clip(width, *limits))
            room[number] = rooms
            x[number] = LEFT + np.cumsum(rooms) - rooms / 2
            foot[number] = LINE * line + FOOT
        return cls(max(WIDTH, RIGHT + float((x + room / 2).max())), x, room, foot)

    @property
    def end(self) -> float:
        """The right end of the climb."""
        return float((self.x + self.room / 2)[self.foot == FOOT].max())

    @property
    def roof(self) -> np.ndarray:
        """The y of the peak over each rung."""
        return self.foot - FOOT + ROOF


def _draw_heads(sheet: Sheet, layout: _RoadLayout) -> None:
    """Draw the headings of both lines, and the roof over them."""
    heads = [f"The climb: Gflop/s at N = {REFERENCE}", "Side roads, from where each sets out"]
    sheet.words([4, 4], [HEAD, LINE + HEAD], heads, bold=True, size=14)
    roof = f"the roof: the chip's peak, {PEAK:.0f} Gflop/s"
    sheet.words(layout.end, HEAD, roof, "soft", align="right", size=12)
    sheet.boxes("roof", layout.x, layout.roof, layout.room, 2, ink="ink")
    for gflops in SCALE:
        y = layout.foot - gflops / PEAK * (FOOT - ROOF)
        sheet.boxes(f"scale {gflops}", layout.x, y, layout.room, 1, ink="line", alpha=0.6)
        sheet.words(LEFT - 5, np.unique(y), str(gflops), "soft", align="right", size=12)


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
        phrase = name or report.kernel
        size = report.size[1] if report.size else REFERENCE
        launch = RoadLaunch(report.kernel, size, own=number)
        climbed = [rung.launch for rung in rungs if rung.climb]
        before = climbed[-1] if climbed else NAIVE
        book = _book_rung(report, size)
        rungs.append(Rung(-1, phrase, launch, before, book.climb, book.launch))
        figures[launch] = _figure(report)
    return rungs, figures


def _book_rung(report: Report, size: int) -> Rung:
    """The rung that a reader's report belongs to: that of doubles or of the LDS, or that of the
    climb with a block as large, as many steps of k in a turn, and such an N. A report of no GEMM
    kernel belongs to the first that is as fast.
    """
    climb = [rung for rung in RUNGS if rung.climb]
    kernel = report.launched
    launch = next((r.launch for r in climb if FIGURES[r.launch].gflops >= report.gflops), LARGER)
    if kernel is not None and kernel.precision != "single":
        launch = DOUBLE
    elif kernel is not None and kernel.program.lds_bytes:
        launch = THROUGH_LDS
    elif kernel is not None:
        rows, columns = kernel.block
        launch = next((of_block for most, of_block in BLOCKS if rows * columns <= most), SINGLE)
        if launch == BLOCK_8 and kernel.k_step > 1:
            launch = SINGLE
        if launch == SINGLE and size > REFERENCE:
            launch = LARGER
    return next(rung for rung in RUNGS if rung.launch == launch)


def _figure(report: Report) -> Figure:
    """What a report says of its launch."""
    busy = {unit: share for unit, share in report.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    return Figure(report.gflops, report.gflops / (report.running * busy[unit]), unit)


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


def _draw_names(sheet: Sheet, rungs: Sequence[Rung], layout: _RoadLayout) -> None:
    """Draw what stands below the bars: lessons, names, and what runs there; or the reader's
    names.
    """
    look: dict = {"align": "center", "size": 12}
    books = np.array([not rung.own for rung in rungs])
    numbers = [f"{rung.lesson:02}" for rung in rungs if not rung.own]
    sheet.words(layout.x[books], layout.foot[books] + NUMBER, numbers, bold=True, **look)
    for is_own, ink in ((False, "soft"), (True, "ink")):
        lines = [
            (x, foot + (NUMBER if is_own else NAMES) + APART * n, line)
            for x, foot, rung in zip(layout.x, layout.foot, rungs)
            if rung.own == is_own
            for n, line in enumerate(rung.under)
        ]
        if lines:
            x, y, texts = (list(column) for column in zip(*lines))
            sheet.words(x, y, texts, ink, **look)


class _Bars:
    """The bars' geometry: of each rung its centre ``x``, ``foot`` and ``width``, and the heights of
    what it reaches, of what it sets out from and of its ceiling. ``nowhere`` is 0 in the frames
    (frames, rungs) in which a rung is seen, else NaN.
    """

    def __init__(
        self,
        rungs: Sequence[Rung],
        figures: Figures,
        layout: _RoadLayout,
        seen: np.ndarray,
    ) -> None:
        self.rungs, self.figures = rungs, figures
        self.x, self.foot, self.seen = layout.x, layout.foot, seen
        self.room = layout.room
        self.width = layout.room - GAP
        self.nowhere = np.where(seen, 0, np.nan)
        self.speed = np.array([figures[rung.launch].gflops for rung in rungs])
        ceiling = np.array([figures[rung.launch].ceiling for rung in rungs])
        before = np.array([figures[rung.before].gflops if rung.before else 0 for rung in rungs])
        pixels = (FOOT - ROOF) / PEAK
        self.height = np.maximum(pixels * self.speed, 1.5)
        self.before = np.maximum(pixels * before, 1.5)
        self.ceiling = np.maximum(pixels * ceiling, 1.5)

    @property
    def middle(self) -> np.ndarray:
        """The y of the bars' centres, of shape (frames, rungs)."""
        return self.foot - self.height / 2 + self.nowhere


def _draw_bars(sheet: Sheet, bars: _Bars, lit: np.ndarray) -> None:
    """Draw the rungs that are seen as bars with starting point and ceiling, and a frame around
    those that are ``lit`` (frames, rungs).
    """
    x, width = bars.x, bars.width
    texts = [_say(rung, bars.figures).replace("**", "") for rung in bars.rungs]
    look: dict = {"ink": "c", "alpha": 0.4, "words": texts, "key": np.arange(len(x))}
    sheet.boxes("rungs", x, bars.middle, width, bars.height, **look)
    _draw_changes(sheet, bars)

    own = np.array([rung.own for rung in bars.rungs])
    if own.any():
        sheet.boxes("own bars", x[own], bars.middle[:, own], width[own], bars.height[own], ink="b")
    before = bars.foot - bars.before / 2 + np.where(own, np.nan, bars.nowhere)
    outline = sheet.source("before", x=x, w=width, y=before, h=bars.before)
    sheet.ring(outline, "w", "h", 1.5, "soft", line_dash="dashed")
    _draw_ceilings(sheet, bars)

    high = np.where(bars.foot > LINE, HEIGHT - LINE, LINE) - FOOT
    middle = bars.foot + high / 2
    ring = sheet.source("lit rung", x=x, y=middle, w=bars.room - 4, h=high - 6, on=3 * lit)
    sheet.ring(ring, "w", "h", "on", "ink")
    _draw_figures(sheet, bars)


def _draw_changes(sheet: Sheet, bars: _Bars) -> None:
    """Draw what each rung gains or loses against what it sets out from."""
    gain = np.maximum(bars.height - bars.before, 0.01)
    loss = np.maximum(bars.before - bars.height, 0.01)
    own = np.array([rung.own for rung in bars.rungs])
    top = bars.foot - bars.height + np.where(own, np.nan, bars.nowhere)
    sheet.boxes("gains", bars.x, top + gain / 2, bars.width, gain, ink="c")
    sheet.boxes("losses", bars.x, top - loss / 2, bars.width, loss, ink="wait", alpha=0.35)


def _draw_ceilings(sheet: Sheet, bars: _Bars) -> None:
    """Draw what each rung's busiest unit would allow, in the ink of that unit."""
    units = [bars.figures[rung.launch].unit for rung in bars.rungs]
    inks = np.array([INKS.get(unit, "ink") for unit in units])
    for ink in dict.fromkeys(inks.tolist()):
        same = inks == ink
        y = (bars.foot - bars.ceiling + bars.nowhere)[:, same]
        sheet.boxes(f"ceilings {ink}", bars.x[same], y, bars.width[same] + 8, 2, ink=ink)


def _draw_figures(sheet: Sheet, bars: _Bars) -> None:
    """Write each rung's Gflop/s above its bar, but not across its ceiling."""
    is_close = (bars.ceiling > bars.height - 2) & (bars.ceiling < bars.height + 20)
    top = np.where(is_close, bars.ceiling, bars.height)
    names = ["", *(f"{gflops:.0f}" for gflops in bars.speed)]
    which = bars.seen * np.arange(1, len(bars.rungs) + 1)
    look: dict = {"bold": True, "align": "center", "size": 12}
    sheet.numbers("figures", bars.x, bars.foot - top - 10, which, names=names, **look)
