"""What lies on the card while matrices larger than it are multiplied: strips, blocks of C, and the buffers they are in.

From a timeline of ``host.blocked_time`` or ``gemm_out_of_core``: what each task writes into a buffer of the card, and
who reads it. Left out: the pinned buffers of the host, and where in the memory a buffer lies.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np

from cypresskit.devices import HD5870, Device
from cypresskit.draw.pipelines import FRAMES, TINTS, matter_of, short_name
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet
from cypresskit.host import Timeline

LEFT, TOP, WHOLE, DEEP = 122, 118, 188, 90  # of the matrices: C's corner and side, and how much of A and B is drawn
LIST, ROW, LONG, LANES = 420, 28, 420, 332  # the buffers' left edge, height and most width; where the lanes begin
WIDE, NAMES = 1100, 84  # the stage, and the room of the lanes' names
AWAY, ARRIVES, THERE, USED = range(4)
ALPHAS = (0.0, 0.35, 0.6, 1.0)  # of a strip or block that is not on the card, on its way, there, in use
INKS = {"A": "0,114,178", "B": "230,159,0", "C": "0,158,115"}


def card_memory(timeline: Timeline, device: Device = HD5870) -> Player:
    """A player over the time of a blocked product on one chip. Raises ``ValueError`` for a timeline whose tasks write
    no buffer of the card."""
    held = list(_held(timeline))
    if not held:
        raise ValueError("no task of this timeline writes a buffer of the card: host.blocked_time makes one that does")
    moments = np.linspace(0, timeline.seconds, FRAMES)
    sheet = Sheet("On the card: strips of A and B, and blocks of C")
    fig = sheet.stage("The matrices with what lies on the card, its buffers, and the tasks", WIDE + 12, 402)
    level = {one.content: np.zeros(FRAMES, np.uint8) for one in held}
    for one in held:
        level[one.content] = np.maximum(level[one.content], one.level(moments))
    _draw_matrices(sheet, fig, timeline, level, moments)
    total = _draw_buffers(sheet, fig, timeline, held, moments)
    sheet.words(fig, [LIST], [14], [f"Buffers on the card: {total / 1e6:.0f} MB of {device.memory_bytes / 1e6:.0f}"],
                bold=True, size=14)  # fmt: skip
    _draw_lanes(sheet, fig, timeline, moments)
    captions = []
    for n, moment in enumerate(moments):
        there = [name for name, of in level.items() if of[n] >= THERE]
        now = [s.task.name for s in timeline.spans if s.start <= moment < s.end]
        captions.append(f"At {1e3 * moment:.1f} ms. On the card: {', '.join(there) or 'nothing yet'}. "
                        f"Running: {', '.join(now) or 'nothing'}.")  # fmt: skip
    matrices = ((name, name.lower(), "box") for name in "ABC")
    states = ("pale: on its way, or waits", "c", "pale"), ("framed: done, and back with the host", "ink", "ring")
    key = sheet.key(*matrices, *states)
    return sheet.player([fig], captions, sheet.title, step="Moment", below=[key])


@dataclass(frozen=True)
class Held:
    """What a buffer of the card holds: from when it is written, when it is there, until when; and when it is used."""

    buffer: str
    content: str
    come: float
    there: float
    gone: float
    uses: tuple[tuple[float, float], ...]

    def level(self, moments: np.ndarray) -> np.ndarray:
        """Of each moment whether it is away, on its way, there, or in use."""
        found = np.where((moments >= self.come) & (moments < self.gone), ARRIVES + (moments >= self.there), AWAY)
        for start, end in self.uses:
            found[(moments >= start) & (moments < end)] = USED
        return found.astype(np.uint8)


def _held(timeline: Timeline) -> Iterator[Held]:
    """All that lies on the card at some time. A prime, for a sum so far, makes no other content."""
    for buffer in dict.fromkeys(name for span in timeline.spans for name in span.task.writes if name[:4] == "card"):
        spans = [s for s in timeline.spans if buffer in s.task.writes and buffer not in s.task.reads]
        for span, late in zip_longest(spans, spans[1:]):
            content, gone = span.task.writes[buffer].rstrip("'"), late.start if late else timeline.seconds
            if not re.fullmatch(r"[ABC]\[\d+,\d+\]", content):
                raise ValueError(f"{span.task.name} writes {content}: only products in blocks on one chip can be drawn")
            users = [s for s in timeline.spans if buffer in s.task.reads and span.start <= s.start < gone]
            gone = max((s.end for s in users if s.task.stage == "store1"), default=gone)  # then a block has left
            uses = tuple((s.start, s.end) for s in [span, *users] if s.task.stage == "mult")
            yield Held(buffer, content, span.start, span.end, gone, uses)


def _place(name: str) -> tuple[int, int]:
    row, column = re.findall(r"\d+", name)[:2]
    return int(row), int(column)


def _draw_matrices(sheet: Sheet, fig, timeline: Timeline, states: dict[str, np.ndarray], moments: np.ndarray) -> None:
    """A to the left of C, B above it, as in the product; and the path that the chip takes through C."""
    places = {name: _place(name) for name in states}
    rows = 1 + max(p[0] for name, p in places.items() if name[0] in "AC")
    columns = 1 + max(p[1] for name, p in places.items() if name[0] in "BC")
    chunks = 1 + max(p[1] for name, p in places.items() if name[0] == "A")
    wide, high = WHOLE / columns, WHOLE / rows
    shapes = {"A": (LEFT - 20 - DEEP, TOP, DEEP / chunks, high), "C": (LEFT, TOP, wide, high),
              "B": (LEFT, TOP - 10 - DEEP, wide, (DEEP - 10) / chunks)}  # fmt: skip
    back = {s.task.name.split(" ")[1].rstrip("'"): s.end for s in timeline.spans if s.task.stage == "store2"}
    for kind, (x0, y0, w, h) in shapes.items():
        mine = [name for name in states if name[0] == kind]
        row, column = np.array([places[name] for name in mine]).T
        state = np.stack([states[name] for name in mine], axis=1)
        at = x0 + (column + 0.5) * w, y0 + (row + 0.5) * h, w - 2, h - 2
        sheet.boxes(fig, f"room {kind}", *at[:2], np.full(len(mine), w - 2), h - 2, ink="faint", line="line")
        tints = [f"rgba({INKS[kind]},{alpha})" for alpha in ALPHAS]
        done = np.stack([moments >= back.get(name, np.inf) for name in mine], axis=1)
        source = sheet.boxes(fig, f"matrix {kind}", *at, fill=("state", tints), state=state, words=mine,
                             done=3 * done.astype(np.uint8))  # fmt: skip
        sheet.ring(fig, source, w - 5, h - 5, "done", "ink")
        sheet.words(fig, [x0 - 2], [y0 - 9], [kind], kind.lower(), bold=True, size=14)
    mults = [s for s in timeline.spans if s.task.stage == "mult"]
    path = np.array([_place(s.task.name) for s in mults], float) + 0.5
    x, y = LEFT + path[:, 1] * wide, TOP + path[:, 0] * high
    come = np.array([[s.start <= moment for s in mults[1:]] for moment in moments])
    before, after = ([np.where(come, axis[part], np.nan) for axis in (x, y)] for part in (slice(-1), slice(1, None)))
    sheet.arrows(fig, "path", before[0], before[1], after[0], after[1], size=6)


def _draw_buffers(sheet: Sheet, fig, timeline: Timeline, held: Sequence[Held], moments: np.ndarray) -> float:
    """A row for each buffer: how large it is, what it holds, and whether that is used; their size in bytes."""
    buffers = sorted({one.buffer for one in held})
    size = np.array(
        [max(s.task.bytes for s in timeline.spans if b in {**s.task.reads, **s.task.writes}) for b in buffers]
    )
    names = ["empty", *dict.fromkeys(one.content for one in held)]
    label, state = np.zeros((2, len(moments), len(buffers)), np.int32)
    for one in held:
        n, level = buffers.index(one.buffer), one.level(moments)
        on = level > AWAY
        label[on, n], state[on, n] = names.index(one.content), 3 * "ABC".index(one.content[0]) + level[on]
    y, wide = 46 + ROW * np.arange(len(buffers)), LONG * size / size.max()
    words = [f"{buffer}, {part / 1e6:.1f} MB" for buffer, part in zip(buffers, size)]
    sheet.words(fig, [LIST] * len(y), y, buffers, size=13)
    tints = ["rgba(128,128,128,0.10)", *(f"rgba({INKS[kind]},{alpha})" for kind in "ABC" for alpha in ALPHAS[1:])]
    place = LIST + 100 + wide / 2, y, wide, ROW - 6
    state = state.astype(np.uint8)
    sheet.boxes(fig, "buffers", *place, fill=("state", tints), line="line", words=words, state=state)
    sheet.numbers(fig, "contents", LIST + 100 + wide / 2, y, label, names=names, align="center", size=13)
    sheet.words(fig, LIST + 108 + wide, y, [f"{part / 1e6:.0f} MB" for part in size], "soft", size=12)
    return float(size.sum())


def _draw_lanes(sheet: Sheet, fig, timeline: Timeline, moments: np.ndarray) -> None:
    """Who is at work: the tasks of the thread, the DMA engine and the chip, as in ``timeline``."""
    lanes = list(dict.fromkeys(s.task.lane for s in timeline.spans))
    y = {lane: LANES + 24.0 * n for n, lane in enumerate(lanes)}
    scale = (WIDE - NAMES) / timeline.seconds
    start, end = (np.array([getattr(s, side) for s in timeline.spans]) for side in ("start", "end"))
    down = np.array([y[s.task.lane] for s in timeline.spans])
    sheet.words(fig, [NAMES - 8] * len(y), list(y.values()), lanes, align="right", size=12)
    sheet.past(fig, "tasks", start, end, down, 19, moments, lambda t: NAMES + t * scale, fill=("matter", TINTS),
               matter=np.array([matter_of(s) for s in timeline.spans], np.uint8),
               words=[s.task.name for s in timeline.spans])  # fmt: skip
    said = [short_name(s) for s in timeline.spans]
    fits = [n for n, text in enumerate(said) if (end[n] - start[n]) * scale > 7 * len(text)]
    middle = NAMES + (start + end)[fits] / 2 * scale
    sheet.words(fig, middle, down[fits], [said[n] for n in fits], size=11, align="center")
    sheet.rule(fig, "head", NAMES + moments * scale, LANES + 24, 72)
