"""The road: what each lesson's idea is worth, from the kernel that everybody writes first to the
record.

On the left the climb, a rung for each idea that the record needs; on the right the side roads, each
with its starting point. Every figure is the timing model's own output, kept in ``road.json``
(``python -m tools.stored_figures`` renews it).
"""

import json
import re
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet

WIDE, HIGH, TOP, FOOT = 1250, 296, 48, 196  # the stage; the bars' top and foot
LEFT, APART = 8, 40  # the room before the climb, and before the side roads
REFERENCE = 2048  # the course's N: a rung of another one says so
COLUMN = {True: 96, False: 72}  # the room of a rung of the climb, and of a side road's
# Of a ceiling; what isn't on the chip is in the ink of words.
INKS = {"ALU": "alu", "texture": "texture", "LDS": "wait"}


class Rung(NamedTuple):
    """A step of the road: the lesson that explains it, its name in lines, what is timed (a kernel
    or a function of ``host``, its N, a compiler style), the launch that it is compared with, and
    whether it belongs to the climb.
    """

    lesson: int
    phrase: str
    launch: str
    before: str = ""
    climb: bool = False

    @property
    def name(self) -> str:
        return self.phrase.replace("-\n", "-").replace("\n", " ")

    @property
    def under(self) -> list[str]:
        """Lines below its bar: what runs there, and its N if that isn't the course's."""
        kernel, n, *_ = self.launch.split()
        lines = [kernel] if len(kernel) <= 12 else re.split(r"(?<=[a-z0-9])(?=_[a-z0-9]+$)", kernel)
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


def road(lesson: int | None = None) -> Player:
    """A picture of the road with the rungs of ``lesson`` (0 to 13) lit: earlier ones with their
    figures, later ones by name alone. Without a lesson it plays through all of them. Raises
    ``ValueError`` for other lessons.
    """
    if lesson not in (None, *range(14)):
        raise ValueError(
            f"the road leads from lesson 0 to lesson 13; there is no lesson {lesson!r}"
        )
    rung_lessons = np.array([rung.lesson for rung in RUNGS])
    lessons = (
        np.unique(rung_lessons) if lesson is None else np.minimum([lesson], rung_lessons.max())
    )
    sheet = Sheet("The road: what each idea is worth")
    wide, side = np.array([(COLUMN[rung.climb], not rung.climb) for rung in RUNGS]).T
    x = LEFT + np.cumsum(wide) - wide / 2 + APART * side
    seen, lit = rung_lessons <= lessons[:, np.newaxis], rung_lessons == lessons[:, np.newaxis]
    sheet.stage(
        "Rungs of a ladder: Gflop/s of each step, its ceiling, and what it is compared with",
        WIDE,
        HIGH,
    )
    _draw_bars(sheet, x, wide - 14, seen, lit)
    sheet.words(
        x, FOOT + 11, [f"{rung.lesson:02}" for rung in RUNGS], align="center", bold=True, size=12
    )
    for k, lines in enumerate(
        zip_longest(*(rung.phrase.split("\n") for rung in RUNGS), fillvalue="")
    ):
        sheet.words(x, FOOT + 25 + 14 * k, lines, "soft", align="center", size=12)
    for k, lines in enumerate(zip_longest(*(rung.under for rung in RUNGS), fillvalue="")):
        sheet.words(x, FOOT + 68 + 12 * k, lines, "soft", align="center", size=10)
    heads = {
        LEFT: f"The climb: Gflop/s at N = {REFERENCE}",
        x[side > 0][0] - COLUMN[False] / 2: "Side roads, from where each sets out",
    }
    sheet.words(list(heads), 12, list(heads.values()), bold=True, size=14)
    captions = [
        "\n".join(_say(rung) for rung in RUNGS if rung.lesson == lesson) for lesson in lessons
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
    )
    for n, rung in enumerate(RUNGS):
        later = f"**Lesson {rung.lesson:02}: {rung.name}.** Its figures come with the lesson."
        sheet.about[n] = [
            (0, later),
            *((int(frame), _say(rung)) for frame in np.flatnonzero(seen[:, n])[:1]),
        ]
    figures = (_say(rung).replace("**", "") for n, rung in enumerate(RUNGS) if seen[-1, n])
    return sheet.player(captions, figures, step="Lesson", below=[key])


def _say(rung: Rung) -> str:
    """A rung's sentence: the kernel that runs, its N and its speed, and what it gains or costs."""
    gflops, ceiling, unit = FIGURES[rung.launch]
    kernel, n, *_ = rung.launch.split()
    than = ""
    if rung.before:
        other, size, *_ = rung.before.split()
        old = FIGURES[rung.before][0]
        faster = gflops > old
        by = max(gflops / old, old / gflops)
        times = f"{by:.3g} times {'as fast as' if faster else 'slower than'}"
        there = f" at N = {size}" * (size != n)
        than = f", {times} {other}{there}, which does {old:.0f}"
    allows = f"Its busiest part, {unit}, would allow {ceiling:.0f}"
    head = f"**Lesson {rung.lesson:02}: {rung.name}** ({kernel}, N = {n})"
    return f"{head}: {gflops:.0f} Gflop/s{than}. {allows}."


def _draw_bars(sheet: Sheet, x, wide, seen: np.ndarray, lit: np.ndarray) -> None:
    """Draw the rungs ``seen`` as bars with starting point and ceiling; the others at the foot, by
    name.
    """
    speed, ceiling = (np.array([FIGURES[rung.launch][n] for rung in RUNGS]) for n in (0, 1))
    before = np.array([FIGURES[rung.before][0] if rung.before else 0 for rung in RUNGS])
    tall, old, bound = (
        np.maximum((FOOT - TOP) * part / ceiling.max(), 1.5) for part in (speed, before, ceiling)
    )
    nowhere = np.where(seen, 0, np.nan)
    texts = [_say(rung).replace("**", "") for rung in RUNGS]
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
        key=np.arange(len(RUNGS)),
    )
    gain, loss = np.maximum(tall - old, 0.01), np.maximum(old - tall, 0.01)
    sheet.boxes("gains", x, FOOT - tall + gain / 2 + nowhere, wide, gain, ink="c")
    sheet.boxes("losses", x, FOOT - tall - loss / 2 + nowhere, wide, loss, ink="wait", alpha=0.35)
    outline = sheet.source("before", x=x, w=wide, y=FOOT - old / 2 + nowhere, h=old)
    sheet.ring(outline, "w", "h", 1.5, "soft", line_dash="dashed")
    inks = np.array([INKS.get(FIGURES[rung.launch][2], "ink") for rung in RUNGS])
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
        seen * np.arange(1, len(RUNGS) + 1),
    )
    sheet.numbers(
        "figures", x, FOOT - top - 10, number, names=names, bold=True, align="center", size=13
    )
