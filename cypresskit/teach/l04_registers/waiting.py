"""A toy engine that computes for one wavefront at a time, while the others wait: how many keep it
busy.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_uppercase

import numpy as np

from cypresskit.devices import is_whole
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis
from cypresskit.draw.wavefronts import LEFT, RIGHT, clock_axis
from cypresskit.tables import quantity

LONGEST = 100  # clocks of arithmetic or waiting
TURNS = 5  # how often a single wavefront does both


@dataclass
class _Span:
    """Some clocks in a row of the toy, in the scene with so many wavefronts."""

    row: int
    start: int
    end: int
    scene: int


def waiting(compute: int = 2, wait: int = 6) -> Player:
    """A player for lesson 04: an engine that computes for one wavefront at a time. Each computes
    for ``compute`` clocks and then waits for ``wait``; it plays as long as ``TURNS`` of both take a
    single wavefront.

    There is a scene for each number of wavefronts up to as many as keep the engine busy, but 6 at
    least. Raises ``ValueError`` for clocks that are no whole numbers from 1 to ``LONGEST``, and
    where it takes over 26 wavefronts.
    """
    most = _most_wavefronts(compute, wait)
    end = TURNS * (compute + wait)
    sheet = Sheet(f"Waiting: {compute} clocks of arithmetic, then {wait} of waiting")
    row_height = min(30.0, max(15.0, 300 / most))  # thirteen of them still fit a screen
    label = "A row for each wavefront, and below them whether anybody computes"
    sheet.stage(label, RIGHT + 16, 60 + row_height * most)

    bars: dict[str, list[_Span]] = {"texture": [], "alu": [], "wait": []}  # by ink
    captions: list[str] = []
    moments: list[tuple[int, int]] = []
    for count in range(1, most + 1):
        runs = _engine(count, compute, wait, end)
        busy = {clock for _, start, done in runs for clock in range(start, done)}
        for lane, start, done in runs:
            bars["texture"].append(_Span(lane, done, min(done + wait, end), count))
            bars["alu"].append(_Span(lane, start, done, count))
            bars["alu"].append(_Span(most, start, done, count))
        computed = [(start, done) for _, start, done in runs]
        for (_, before), (after, _) in pairwise([*computed, (end, end)]):
            if after > before:
                bars["wait"].append(_Span(most, before, after, count))
        captions += _toy_captions(count, busy, end)
        moments += [(count, clock) for clock in range(end + 1)]

    scene, now = np.array(moments).T[:, :, np.newaxis]
    to_x = clock_axis(now, (0, end)).to_x
    heights = {"texture": 4.0, "alu": row_height / 1.5, "wait": row_height / 1.5}
    for ink, spans in bars.items():
        columns = [(span.row, span.start, span.end, span.scene) for span in spans]
        row, begin, finish, in_scene = np.array(columns).reshape(-1, 4).T
        axis = TimeAxis(np.where(scene == in_scene, now, np.nan), to_x)
        toy_bars = Bars(begin, finish, 30 + row_height * row, heights[ink])
        sheet.progress_bars(f"toy {ink}", toy_bars, axis, future="faint", ink=ink)

    y = 30 + row_height * np.arange(most + 1)
    letter = np.where(scene > np.arange(most), np.arange(1, most + 1), 0)
    style: dict = {"align": "right", "size": 12}
    sheet.numbers("rows", LEFT - 8, y[:-1], letter, names=["", *ascii_uppercase[:most]], **style)
    sheet.words(LEFT - 8, y[-1], "ALU", bold=True, **style)
    sheet.play_head("head", to_x(now[:, 0]), float(y.mean()), y[-1])

    names = ["1 wavefront", *map(str, range(2, most + 1))]
    legend = sheet.legend(
        ("computes", "alu", "box"), ("waits", "texture", "box"), ("nobody computes", "wait", "box")
    )
    scenes = [(name, end + 1) for name in names]
    return sheet.player(captions, below=[legend], step="Clock", scenes=scenes, seconds=8)


def _most_wavefronts(compute: int, wait: int) -> int:
    """How many wavefronts the toy shows: those that keep its engine busy, but 6 at least. Raises
    ``ValueError`` for clocks that it can't show.
    """
    most = 0
    if is_whole(compute, LONGEST) and is_whole(wait, LONGEST):
        most = max(6, -(-(compute + wait) // compute))
    if not 0 < most <= len(ascii_uppercase):
        raise ValueError(
            f"compute {compute!r} and wait {wait!r} have to be whole numbers from 1 to {LONGEST},"
            f" for which {len(ascii_uppercase)} wavefronts are enough"
        )
    return most


def _toy_captions(wavefronts: int, busy: set[int], end: int) -> Iterator[str]:
    """What the toy's engine has done up to each clock."""
    who = quantity(wavefronts, "wavefront")
    yield f"Clock 0. {who}: no time has passed."
    for clock in range(1, end + 1):
        share = 100 * sum(past < clock for past in busy) / clock
        yield f"Clock {clock}. {who}: the engine has computed for {share:.0f} % of the time."


def _engine(wavefronts: int, compute: int, wait: int, end: int) -> list[tuple[int, int, int]]:
    """(wavefront, clocks at which it begins and ends to compute), one after the other, before clock
    ``end``.
    """
    ready = [0] * wavefronts
    clock = 0
    runs = []
    while clock < end:
        wavefront = min(range(wavefronts), key=ready.__getitem__)
        runs.append((wavefront, clock, min(clock + compute, end)))
        ready[wavefront] = clock + compute + wait
        clock = max(clock + compute, min(ready))
    return runs
