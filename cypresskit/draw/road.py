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

HIGH, TOP, FOOT = 296, 48, 196  # the stage's height; the bars' top and foot
LEFT, APART = 8, 40  # the room before the climb, and before the side roads
OWN = "own_"  # the launches of the reader's bars
REFERENCE = 2048  # the course's N: a rung of another one says so
COLUMN = {True: 96, False: 72}  # the room of a rung of the climb, and of a side road's
LETTERS = {True: 14, False: 10}  # of a kernel's name that it holds
# Of a ceiling; what isn't on the chip is in the ink of words.
INKS = {"ALU": "alu", "texture": "texture", "LDS": "wait"}


class Rung(NamedTuple):
    """A step of the road: the lesson that explains it, its name in lines, what is timed (a kernel
    or a function of ``host``, its N, a compiler style), the launch that it is compared with, and
    whether it belongs to the climb. A bar of the reader's ``own`` belongs to no lesson.
    """

    lesson: int
    phrase: str
    launch: str
    before: str = ""
    climb: bool = False
    own: bool = False

    @property
    def name(self) -> str:
        return self.phrase.replace("-\n", "-").replace("\n", " ")

    @property
    def number(self) -> str:
        """What stands below its bar in bold: its lesson's number."""
        return "yours" if self.own else f"{self.lesson:02}"

    @property
    def under(self) -> list[str]:
        """Lines below its bar: what runs there, and its N if that isn't the course's."""
        kernel, n, *_ = self.launch.split()
        if self.own:
            return [f"N = {n}"] * (int(n) != REFERENCE)
        lines = [""]
        for part in re.findall("_?[^_]+", kernel):
            if len(lines[-1] + part) > LETTERS[self.climb]:
                lines.append("")
            lines[-1] += part
        return lines + [f"N = {n}"] * (int(n) != REFERENCE)


RUNGS = (
    Rung(0, "no block", "sgemm_naive 2048", "", True),
    Rung(1, "4 x 4 block", "block_4x4 2048", "sgemm_naive 2048", True),
    Rung(2, "8 x 8 block", "block_8x8 2048", "block_4x4 2048", True),
    Rung(12, "two steps\na turn", "sgemm_tn 2048", "block_8x8 2048", True),
    Rung(12, "a larger N", "sgemm_tn 4352", "sgemm_tn 2048", True),
    Rung(3, "bundles\npacked\nbetter", "sgemm_tn 2048 best", "sgemm_tn 2048"),
    Rung(4, "25 regis-\nters,\nnot 37", "sgemm_tn 2048", "sgemm_tn_37 2048"),
    Rung(5, "square\nquads", "sgemm_tn 2048", "sgemm_tn_compute 2048"),
    Rung(5, "NN,\nnot TN", "sgemm_nn 2048", "sgemm_tn 2048"),
    Rung(6, "double", "dgemm_tn 2048", "sgemm_tn 2048"),
    Rung(6, "double-\ndouble", "ddgemm_tn_fma 2048", "dgemm_tn 2048"),
    Rung(7, "NN by\nthe LDS", "sgemm_64x64_lds 2048", "sgemm_nn 2048"),
    Rung(8, "helpers", "sgemm_nn_reduce4 256", "sgemm_tn 256"),
    Rung(9, "double,\nwith the\nbus", "round_trip 2048", "dgemm_tn 2048"),
    Rung(10, "in\nblocks", "blocked_time 7168", "round_trip 2048"),
    Rung(11, "two\nchips,\npipeline", "five_stage 16384", "blocked_time 7168"),
)
# Of each launch its Gflop/s, what its busiest unit would do without a pause, and that unit's name.
FIGURES: dict[str, list] = json.loads(theme.packaged("road.json"))


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
    known = FIGURES | timed
    climb = sum(rung.climb for rung in RUNGS)
    rungs = (*RUNGS[:climb], *own, *RUNGS[climb:])
    rung_lessons = np.array([rung.lesson for rung in rungs])
    lessons = np.unique([rung.lesson for rung in RUNGS])
    if lesson is not None:
        lessons = np.minimum([lesson], lessons.max())
    sheet = Sheet("The road: what each idea is worth")
    wide, side = np.array([(COLUMN[rung.climb], not rung.climb) for rung in rungs]).T
    x = LEFT + np.cumsum(wide) - wide / 2 + APART * side
    seen, lit = rung_lessons <= lessons[:, np.newaxis], rung_lessons == lessons[:, np.newaxis]
    sheet.stage(
        "Rungs of a ladder: Gflop/s of each step, its ceiling, and what it is compared with",
        LEFT + wide.sum() + APART + 2,
        HIGH,
    )
    _draw_bars(sheet, x, wide - 14, seen, lit, rungs, known)
    sheet.words(x, FOOT + 11, [rung.number for rung in rungs], align="center", bold=True, size=12)
    for k, lines in enumerate(
        zip_longest(*(rung.phrase.split("\n") for rung in rungs), fillvalue="")
    ):
        sheet.words(x, FOOT + 25 + 14 * k, lines, "soft", align="center", size=12)
    for k, lines in enumerate(zip_longest(*(rung.under for rung in rungs), fillvalue="")):
        sheet.words(x, FOOT + 68 + 12 * k, lines, "soft", align="center", size=11)
    heads = {
        LEFT: f"The climb: Gflop/s at N = {REFERENCE}",
        x[side > 0][0] - COLUMN[False] / 2: "Side roads, from where each sets out",
    }
    sheet.words(list(heads), 12, list(heads.values()), bold=True, size=14)
    captions = [
        "\n".join(_say(rung, known) for rung in rungs if rung.own or rung.lesson == lesson)
        for lesson in lessons
    ]
    key = sheet.key(
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
    for n, rung in enumerate(rungs):
        later = f"**Lesson {rung.lesson:02}: {rung.name}.** Its figures come with the lesson."
        sheet.about[n] = [
            *([] if rung.own else [(0, later)]),
            *((int(frame), _say(rung, known)) for frame in np.flatnonzero(seen[:, n])[:1]),
        ]
    figures = (_say(rung, known).replace("**", "") for n, rung in enumerate(rungs) if seen[-1, n])
    return sheet.player(captions, figures, step="Lesson", below=[key])


def _own_rungs(mine: Own | Iterable[Own] | Mapping[str, Own]) -> tuple[list[Rung], dict]:
    """The reader's bars, and the figures of their launches."""
    if isinstance(mine, Own):
        mine = [mine]
    named = mine.items() if isinstance(mine, Mapping) else ((None, each) for each in mine)
    rungs: list[Rung] = []
    figures: dict[str, tuple[float, float, str]] = {}
    for name, given in named:
        report = given if isinstance(given, Report) else simulate(resolve(given, "mine"), REFERENCE)
        if not report.flops:
            raise TypeError(
                f"mine is to be a kernel, or its report: {report.kernel}'s has no flops, so no"
                " Gflop/s for a bar. ck.kernel(...) makes a kernel of a program that multiplies."
            )
        phrase = "\n".join(wrap(name or report.kernel, 12)[:3])
        size = report.size[1] if report.size else REFERENCE
        launch = f"{OWN}{len(rungs)} {size}"
        before = rungs[-1].launch if rungs else RUNGS[0].launch
        rungs.append(Rung(-1, phrase, launch, before, climb=True, own=True))
        figures[launch] = _figures(report)
    return rungs, figures


def _figures(report: Report) -> tuple[float, float, str]:
    """A report's Gflop/s, what its busiest unit would do without a pause, and that unit's name."""
    running = report.clocks / (1e9 * report.device.clock_ghz) / report.seconds
    busy = {unit: share for unit, share in report.busy.items() if unit != "DRAM rows"}
    unit = max(busy, key=busy.__getitem__)
    return report.gflops, report.gflops / (running * busy[unit]), unit


def _say(rung: Rung, known: Mapping[str, Sequence]) -> str:
    """A rung's sentence: the kernel that runs, its N and its speed, and what it gains or costs."""
    gflops, ceiling, unit = known[rung.launch]
    kernel, n, *_ = rung.launch.split()
    kernel = rung.name if rung.own else kernel
    than = ""
    if rung.before:
        other, size, *_ = rung.before.split()
        other = "your last" if other.startswith(OWN) else other
        old = known[rung.before][0]
        faster = gflops > old
        by = max(gflops / old, old / gflops)
        times = f"{by:.3g} times {'as fast as' if faster else 'slower than'}"
        if by < 1.005:
            times = "as fast as"
        there = f" at N = {size}" * (size != n)
        than = f", {times} {other}{there}, which does {old:.0f}"
    allows = f"Its busiest part, {unit}, would allow {ceiling:.0f}"
    head = f"**Lesson {rung.lesson:02}: {rung.name}** ({kernel}, N = {n})"
    if rung.own:
        head = f"**Yours: {rung.name}** (N = {n})"
    return f"{head}: {gflops:.0f} Gflop/s{than}. {allows}."


def _draw_bars(sheet: Sheet, x, wide, seen: np.ndarray, lit: np.ndarray, rungs, known) -> None:
    """Draw the rungs ``seen`` as bars with starting point and ceiling; the others at the foot, by
    name.
    """
    speed, ceiling = (np.array([known[rung.launch][n] for rung in rungs]) for n in (0, 1))
    before = np.array([known[rung.before][0] if rung.before else 0 for rung in rungs])
    tall, old, bound = (
        np.maximum((FOOT - TOP) * part / ceiling.max(), 1.5) for part in (speed, before, ceiling)
    )
    nowhere = np.where(seen, 0, np.nan)
    texts = [_say(rung, known).replace("**", "") for rung in rungs]
    sheet.boxes("to come", x, FOOT - 8 + np.where(seen, np.nan, 0), wide, 16, line="line")
    sheet.boxes(
        "rungs",
        x,
        FOOT - tall / 2 + nowhere,
        wide,
        tall,
        ink="c",
        alpha=0.4,
        words=texts,
        key=np.arange(len(rungs)),
    )
    gain, loss = np.maximum(tall - old, 0.01), np.maximum(old - tall, 0.01)
    sheet.boxes("gains", x, FOOT - tall + gain / 2 + nowhere, wide, gain, ink="c")
    sheet.boxes("losses", x, FOOT - tall - loss / 2 + nowhere, wide, loss, ink="wait", alpha=0.35)
    own = np.array([rung.own for rung in rungs])
    if own.any():
        mine = (FOOT - tall / 2 + nowhere)[:, own]
        sheet.boxes("own bars", x[own], mine, wide[own], tall[own], ink="b")
    outline = sheet.source("before", x=x, w=wide, y=FOOT - old / 2 + nowhere, h=old)
    sheet.ring(outline, "w", "h", 1.5, "soft", line_dash="dashed")
    inks = np.array([INKS.get(known[rung.launch][2], "ink") for rung in rungs])
    for ink in dict.fromkeys(inks.tolist()):
        same = inks == ink
        sheet.boxes(
            f"ceilings {ink}",
            x[same],
            (FOOT - bound + nowhere)[:, same],
            wide[same] + 8,
            2,
            ink=ink,
        )
    ring = sheet.source("lit rung", x=x, y=[(FOOT + HIGH) / 2] * len(x), w=wide + 12, on=3 * lit)
    sheet.ring(ring, "w", HIGH - FOOT - 4, "on", "ink")
    top = np.where((bound > tall - 2) & (bound < tall + 20), bound, tall)  # not across its ceiling
    names, number = (
        ["", *(f"{gflops:.0f}" for gflops in speed)],
        seen * np.arange(1, len(rungs) + 1),
    )
    sheet.numbers(
        "figures", x, FOOT - top - 10, number, names=names, bold=True, align="center", size=13
    )
