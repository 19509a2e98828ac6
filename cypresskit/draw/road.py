"""The road: what each lesson's idea is worth, from the kernel that everybody writes first to the
record.

Above the climb, a rung for each idea that the record needs; below the side roads, each with its
starting point, from their lesson on; both under one roof, the chip's peak, on a logarithmic scale:
equal heights are equal factors. Every figure is the timing model's own output, kept in
``road.json`` (``python -m tools.stored_figures`` renews it).
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cypresskit.devices import HD5870
from cypresskit.draw.player import Player
from cypresskit.draw.scripts import packaged
from cypresskit.draw.sheet import Sheet

#: Of the stage, in pixels: its width and height, those of the climb's line, and the room at its
#: left.
WIDTH, HEIGHT, LINE, LEFT = 1040, 466, 221, 40
RIGHT = 8  # the room at its right
HEAD = 12  # the y of a line's heading, and how far below it the roof and the bars' foot are
ROOF, FOOT = 39, 139
CLIMB, SIDE = (92, 150), (78, 92)  # the least and the most width of a rung of both kinds
CLIMB_LETTERS, SIDE_LETTERS = 14, 12  # in a line of the names that they hold
GAP = 14  # between two bars
# How far below the foot the lines of names are, and how far apart.
NUMBER, NAMES, APART = 12, 27, 13
REFERENCE = 2048  # the course's N: a rung of another one says so
LEAST = 10  # Gflop/s at the foot of the bars
SCALE = (30, 100, 300, 1000)  # lines to read heights by, in Gflop/s
PEAK = HD5870.peak_gflops("single")  # the roof
# Of a ceiling; what isn't on the chip is in the ink of words.
INKS = {"ALU": "alu", "texture": "texture", "LDS": "wait"}


class RoadLaunch(NamedTuple):
    """What is timed for a bar: a kernel or a function of ``host``, its N, and a compiler style."""

    kernel: str
    n: int = REFERENCE
    style: str = ""


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
    def name(self) -> str:
        return self.phrase.replace("-\n", "-").replace("\n", " ")

    @property
    def under(self) -> list[str]:
        """The lines below its number: its name, what runs there, and its N if that isn't the
        course's.
        """
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


def road(lesson: int | None = None) -> Player:
    """A picture of the road with the rungs of ``lesson`` (0 to 13) lit: earlier ones with their
    figures, later ones of the climb by name alone. Without a lesson it plays through all of them.
    Raises ``ValueError`` for other lessons.
    """
    if lesson not in (None, *range(14)):
        raise ValueError(
            f"the road leads from lesson 0 to lesson 13; there is no lesson {lesson!r}"
        )
    lessons = np.unique([rung.lesson for rung in RUNGS])
    if lesson is not None:
        lessons = np.minimum([lesson], lessons.max())
    climb = [rung for rung in RUNGS if rung.climb]  # which comes first
    is_on_the_climb = lessons.max() < min(rung.lesson for rung in RUNGS if not rung.climb)
    rungs = climb if is_on_the_climb else RUNGS
    rung_lessons = np.array([rung.lesson for rung in rungs])
    seen = rung_lessons <= lessons[:, np.newaxis]  # (frames, rungs)
    lit = rung_lessons == lessons[:, np.newaxis]

    sheet = Sheet("The road: what each idea is worth")
    layout = _RoadLayout.of(rungs)
    label = "Rungs of a ladder: Gflop/s of each step, its ceiling, and what it is compared with"
    sheet.stage(label, WIDTH, LINE if is_on_the_climb else HEIGHT)
    _draw_heads(sheet, layout)
    _draw_bars(sheet, _Bars(rungs, layout, seen), lit)
    _draw_names(sheet, rungs, layout, seen)

    sheet.about |= {n: _about(rung, seen[:, n]) for n, rung in enumerate(rungs)}
    captions = [
        "\n".join(_say(rung) for rung in RUNGS if rung.lesson == lesson) for lesson in lessons
    ]
    known = [rung for rung, is_seen in zip(rungs, seen[-1]) if is_seen]
    lines = [_say(rung).replace("**", "") for rung in known]
    legend = sheet.legend(
        ("gained", "c", "box"),
        ("had before", "c", "pale"),
        ("lost", "wait", "pale"),
        ("this lesson", "ink", "ring"),
        ("sets out from", "soft", "frame"),
        ("ceiling: texture", "texture", "solid"),
        ("arithmetic", "alu", "solid"),
        ("bus, memory, chips", "ink", "solid"),
    )
    return sheet.player(captions, lines, step="Lesson", below=[legend])


@dataclass(frozen=True)
class _RoadLayout:
    """Where the rungs stand on the stage: of each its middle ``x``, its ``room`` and its ``foot``,
    in pixels.
    """

    x: np.ndarray
    room: np.ndarray
    foot: np.ndarray

    @classmethod
    def of(cls, rungs: Sequence[Rung]) -> "_RoadLayout":
        x, room, foot = np.zeros((3, len(rungs)))
        for line, limits in enumerate((CLIMB, SIDE)):
            number = [n for n, rung in enumerate(rungs) if rung.climb == (line == 0)]
            width = np.clip((WIDTH - LEFT - RIGHT) / max(len(number), 1), *limits)
            room[number] = width
            x[number] = LEFT + width * (np.arange(len(number)) + 0.5)
            foot[number] = LINE * line + FOOT
        return cls(x, room, foot)

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
    heads = [
        f"The climb: Gflop/s at N = {REFERENCE}, on a logarithmic scale",
        "Side roads, from where each sets out",
    ]
    lines = np.unique(layout.foot) - FOOT
    sheet.words(4, lines + HEAD, heads[: len(lines)], bold=True, size=14)
    roof = f"the roof: the chip's peak, {PEAK:.0f} Gflop/s"
    sheet.words(layout.end, HEAD, roof, "soft", align="right", size=12)
    sheet.boxes("roof", layout.x, layout.roof, layout.room, 2, ink="ink")
    for gflops in SCALE:
        y = layout.foot - _pixels(gflops)
        sheet.boxes(f"scale {gflops}", layout.x, y, layout.room, 1, ink="line", alpha=0.6)
        sheet.words(LEFT - 5, np.unique(y), str(gflops), "soft", align="right", size=12)


def _pixels(gflops):
    """The height of a bar."""
    return (FOOT - ROOF) * np.log(np.maximum(gflops, LEAST) / LEAST) / np.log(PEAK / LEAST)


def _say(rung: Rung) -> str:
    """A rung's sentence: the kernel that runs, its N and its speed, and what it gains or costs."""
    launch = rung.launch
    figure = FIGURES[rung.launch]
    head = f"**Lesson {rung.lesson:02}: {rung.name}** ({launch.kernel}, N = {launch.n})"
    allows = f"Its busiest part, {figure.unit}, would allow {figure.ceiling:.0f}"
    return f"{head}: {figure.gflops:.0f} Gflop/s{_than(rung)}. {allows}."


def _than(rung: Rung) -> str:
    """What a rung gains or costs; nothing if it is compared with nothing."""
    if rung.before is None:
        return ""
    now, old = FIGURES[rung.launch].gflops, FIGURES[rung.before].gflops
    factor = max(now / old, old / now)
    times = f"{factor:.3g} times {'as fast as' if now > old else 'slower than'}"
    if factor < 1.005:
        times = "as fast as"
    size = "" if rung.before.n == rung.launch.n else f" at N = {rung.before.n}"
    return f", {times} {rung.before.kernel}{size}, which does {old:.0f}"


def _about(rung: Rung, seen: np.ndarray) -> list[tuple[int, str]]:
    """What a click on a rung says: its figures from the frame of its lesson on."""
    words = [(0, f"**Lesson {rung.lesson:02}: {rung.name}.** Its figures come with the lesson.")]
    if seen.any():
        words.append((int(seen.argmax()), _say(rung)))
    return words


def _draw_names(sheet: Sheet, rungs: Sequence[Rung], layout: _RoadLayout, seen: np.ndarray) -> None:
    """Draw what stands below the bars: lessons, names, and what runs there. Those of a side road
    come with its lesson.
    """
    lines = [
        (n, NUMBER if line < 0 else NAMES + APART * line, text)
        for n, rung in enumerate(rungs)
        for line, text in enumerate([f"{rung.lesson:02}", *rung.under], -1)
    ]
    climbs = np.array([rung.climb for rung in rungs])
    for is_number, ink in ((True, "ink"), (False, "soft")):
        chosen = [line for line in lines if (line[1] == NUMBER) == is_number]
        rung, below, texts = (list(column) for column in zip(*chosen))
        which = np.where(seen | climbs, 1, 0)[:, rung] * np.arange(1, len(texts) + 1)
        name = "lessons" if is_number else "names"
        look: dict = {"bold": is_number, "align": "center", "size": 12, "ink": ink}
        y = layout.foot[rung] + below
        sheet.numbers(name, layout.x[rung], y, which, names=["", *texts], **look)


class _Bars:
    """The bars' geometry: of each rung its centre ``x``, ``foot`` and ``width``, and the heights of
    what it reaches, of what it sets out from and of its ceiling. ``nowhere`` is 0 in the frames
    (frames, rungs) in which a rung is seen, else NaN.
    """

    def __init__(
        self,
        rungs: Sequence[Rung],
        layout: _RoadLayout,
        seen: np.ndarray,
    ) -> None:
        self.rungs = rungs
        self.x, self.foot, self.seen = layout.x, layout.foot, seen
        self.room = layout.room
        self.width = layout.room - GAP
        self.nowhere = np.where(seen, 0, np.nan)
        self.speed = np.array([FIGURES[rung.launch].gflops for rung in rungs])
        ceiling = np.array([FIGURES[rung.launch].ceiling for rung in rungs])
        before = np.array([FIGURES[rung.before].gflops if rung.before else 0 for rung in rungs])
        self.height = np.maximum(_pixels(self.speed), 1.5)
        self.before = np.maximum(_pixels(before), 1.5)
        self.ceiling = np.maximum(_pixels(ceiling), 1.5)

    @property
    def middle(self) -> np.ndarray:
        """The y of the bars' centres, of shape (frames, rungs)."""
        return self.foot - self.height / 2 + self.nowhere


def _draw_bars(sheet: Sheet, bars: _Bars, lit: np.ndarray) -> None:
    """Draw the rungs that are seen as bars with starting point and ceiling, and a frame around
    those that are ``lit`` (frames, rungs).
    """
    x, width = bars.x, bars.width
    texts = [_say(rung).replace("**", "") for rung in bars.rungs]
    look: dict = {"ink": "c", "alpha": 0.4, "words": texts, "key": np.arange(len(x))}
    sheet.boxes("rungs", x, bars.middle, width, bars.height, **look)
    _draw_changes(sheet, bars)

    before = bars.foot - bars.before / 2 + bars.nowhere
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
    top = bars.foot - bars.height + bars.nowhere
    sheet.boxes("gains", bars.x, top + gain / 2, bars.width, gain, ink="c")
    sheet.boxes("losses", bars.x, top - loss / 2, bars.width, loss, ink="wait", alpha=0.35)


def _draw_ceilings(sheet: Sheet, bars: _Bars) -> None:
    """Draw what each rung's busiest unit would allow, in the ink of that unit."""
    units = [FIGURES[rung.launch].unit for rung in bars.rungs]
    inks = np.array([INKS.get(unit, "ink") for unit in units])
    for ink in dict.fromkeys(inks.tolist()):
        same = inks == ink
        y = (bars.foot - bars.ceiling + bars.nowhere)[:, same]
        sheet.boxes(f"ceilings {ink}", bars.x[same], y, bars.width[same] + 8, 2, ink=ink)


def _draw_figures(sheet: Sheet, bars: _Bars) -> None:
    """Write each rung's Gflop/s above its bar, but across neither its ceiling nor the roof."""
    is_close = (bars.ceiling > bars.height - 2) & (bars.ceiling < bars.height + 20)
    top = np.where(is_close, bars.ceiling, bars.height)
    top = np.where(top > FOOT - ROOF - 20, FOOT - ROOF, top)
    names = ["", *(f"{gflops:.0f}" for gflops in bars.speed)]
    which = bars.seen * np.arange(1, len(bars.rungs) + 1)
    look: dict = {"bold": True, "align": "center", "size": 12}
    sheet.numbers("figures", bars.x, bars.foot - top - 10, which, names=names, **look)
