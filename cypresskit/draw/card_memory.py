"""The card's memory during a product larger than it: strips, blocks of C, and the buffers that hold
them.

From a timeline of ``host.blocked_time`` or ``gemm_out_of_core``: what each task writes into a
buffer on the card, and which tasks read it. Left out: the host's pinned buffers, and where in the
memory a buffer lies.
"""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.pipelines import FRAMES, draw_tasks, task_fill
from cypresskit.draw.pipelines import TINTS as OF_TASKS
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, TimeAxis, nonempty
from cypresskit.host import Task, Timeline

LEFT, TOP, WHOLE, DEEP = (
    122,
    118,
    188,
    90,
)  # of the matrices: C's corner and side, and how much of A and B is drawn
LIST, ROW, LONG, QUEUES = (
    420,
    28,
    420,
    332,
)  # the buffers' left edge, height and most width; where the queues begin
WIDE, NAMES = 1100, 84  # the stage, and the room of the queues' names
AWAY, ARRIVES, THERE, USED = range(4)
PRODUCT = OF_TASKS[3]
# Of a strip or block that is not on the card, on its way, there, in use.
TINTS = {
    kind: [theme.faded(theme.SERIES[n], alpha) for alpha in (0, 0.15, 0.35, 0.75)]
    for kind, n in zip("ABC", (0, 4, 2))
}


class Piece(NamedTuple):
    """A strip of A or B or a block of C: the matrix, and its row and column among the parts."""

    matrix: str
    row: int
    column: int

    @property
    def name(self) -> str:
        return f"{self.matrix}[{self.row},{self.column}]"


# A buffer, what it holds at some time, and at each moment how.
Held = Sequence[tuple[str, Piece, np.ndarray]]


def card_memory(timeline: Timeline) -> Player:
    """A player over the time of a blocked product on one chip. Raises ``ValueError`` for a timeline
    in which no task writes to a buffer on the card.
    """
    nonempty([timeline], "pass a timeline of host.blocked_time", Timeline)
    moments = np.linspace(0, timeline.seconds, FRAMES)
    held = list(_held(timeline, moments))
    if not held:
        raise ValueError(
            "no task of this timeline writes a buffer of the card: host.blocked_time makes one that"
            " does"
        )
    sheet = Sheet("On the card: strips of A and B, and blocks of C")
    sheet.stage(
        "The matrices with what lies on the card, its buffers, and the tasks", WIDE + 12, 402
    )
    level = {part: np.zeros(FRAMES, np.uint8) for _, part, _ in held}
    for _, part, now in held:
        level[part] = np.maximum(level[part], now)
    _draw_matrices(sheet, timeline, level, moments)
    total = _draw_buffers(sheet, timeline, held)
    heading = f"Buffers on the card: {total / 1e6:.0f} MB of {timeline.card_bytes / 1e6:.0f}"
    sheet.words(LIST, 14, heading, bold=True, size=14)
    queues = list(dict.fromkeys(s.task.queue for s in timeline.spans))
    y, scale = (
        {queue: QUEUES + 24.0 * n for n, queue in enumerate(queues)},
        (WIDE - NAMES) / timeline.seconds,
    )
    sheet.words(NAMES - 8, list(y.values()), queues, align="right", size=12)
    tips, down = [s.task.name for s in timeline.spans], [y[s.task.queue] for s in timeline.spans]
    axis = TimeAxis(moments, lambda seconds: NAMES + seconds * scale)
    fill = task_fill(timeline.spans)
    draw_tasks(sheet, "tasks", timeline.spans, (down, 19), axis, fill=fill, words=tips)
    sheet.play_head("head", NAMES + moments * scale, QUEUES + 24, 72)
    captions = []
    for n, moment in enumerate(moments):
        there = [part.name for part, state in level.items() if state[n] >= THERE]
        runs = [s.task.name for s in timeline.spans if s.start <= moment < s.end]
        words = (
            f"On the card: {', '.join(there) or 'nothing'}. Running:"
            f" {', '.join(runs) or 'nothing'}."
        )
        captions.append(f"At {1e3 * moment:.1f} ms. {words}")
    used = ((f"{name} in use", tints[USED], "box") for name, tints in TINTS.items())
    states = (
        ("paler: there, waits", TINTS["C"][THERE], "box"),
        ("palest: on its way", TINTS["C"][ARRIVES], "box"),
        ("done, and back with the host", "ink", "ring"),
        ("the product", PRODUCT, "box"),
    )
    key = sheet.key(*used, *states)
    return sheet.player(captions, step="Moment", below=[key], still_frame=3 * FRAMES // 4)


def _piece(task: Task) -> Piece:
    """The strip or block that a task brings, computes or takes away. Raises ``ValueError`` for a
    task of another kind of product.
    """
    if task.matrix not in ("A", "B", "C") or len(task.place) != 2:
        raise ValueError(
            f"{task.name} is about no strip or block with a row and a column: only products in"
            " blocks on one chip can be drawn, those of host.blocked_time"
        )
    return Piece(task.matrix, *task.place)


def _held(timeline: Timeline, moments: np.ndarray) -> Iterator[tuple[str, Piece, np.ndarray]]:
    """(buffer, what it holds, state at each moment) of all that the card holds; sums of a block
    count as the block.
    """
    written = dict.fromkeys(name for span in timeline.spans for name in span.task.writes)
    for buffer in (name for name in written if name in timeline.on_card):
        spans = [
            s for s in timeline.spans if buffer in s.task.writes and buffer not in s.task.reads
        ]
        for span, late in zip_longest(spans, spans[1:]):
            part, gone = _piece(span.task), late.start if late else np.inf
            users = [
                s for s in timeline.spans if buffer in s.task.reads and span.start <= s.start < gone
            ]
            gone = max(
                (s.end for s in users if s.task.stage == "store1"), default=gone
            )  # then a block has left
            level = np.where(
                (moments >= span.start) & (moments < gone), ARRIVES + (moments >= span.end), AWAY
            )
            for s in (s for s in [span, *users] if s.task.stage == "mult"):
                level[(moments >= s.start) & (moments < s.end)] = USED
            yield buffer, part, level.astype(np.uint8)


def _draw_matrices(
    sheet: Sheet, timeline: Timeline, level: dict[Piece, np.ndarray], moments: np.ndarray
) -> None:
    """A to the left of C, B above it, as in the product; and the path that the chip takes through
    C.
    """
    rows = 1 + max(part.row for part in level if part.matrix == "C")
    columns = 1 + max(part.column for part in level if part.matrix == "C")
    chunks = 1 + max(part.column for part in level if part.matrix == "A")
    wide, high = WHOLE / columns, WHOLE / rows
    shapes = {
        "A": (LEFT - 20 - DEEP, TOP, DEEP / chunks, high),
        "C": (LEFT, TOP, wide, high),
        "B": (LEFT, TOP - 10 - DEEP, wide, (DEEP - 10) / chunks),
    }
    back = {_piece(s.task): s.end for s in timeline.spans if s.task.stage == "store2"}
    for kind, (x0, y0, w, h) in shapes.items():
        parts = [part for part in level if part.matrix == kind]
        row, column = np.array([(part.row, part.column) for part in parts]).T
        box = x0 + (column + 0.5) * w, y0 + (row + 0.5) * h, w - 2, h - 2
        sheet.boxes(f"room {kind}", *box, ink="faint", line="line")
        state = np.stack([level[part] for part in parts], axis=1)
        done = 3 * np.stack([moments >= back.get(part, np.inf) for part in parts], axis=1)
        words = [part.name for part in parts]
        source = sheet.boxes(
            f"matrix {kind}", *box, fill=(TINTS[kind], state), words=words, columns={"done": done}
        )
        sheet.ring(source, w - 5, h - 5, "done", "ink")
        sheet.words(x0 - 2, y0 - 9, kind, kind.lower(), bold=True, size=14)
    mults = [s for s in timeline.spans if s.task.stage == "mult"]
    path = np.array([s.task.place for s in mults], float) + 0.5
    come = np.array([[s.start <= moment for s in mults[1:]] for moment in moments])
    x, y = LEFT + path[:, 1] * wide, TOP + path[:, 0] * high
    start, end = (
        tuple(np.where(come, corner, np.nan) for corner in (x[step], y[step]))
        for step in (slice(None, -1), slice(1, None))
    )
    sheet.arrows("path", start, end, size=6)


def _draw_buffers(sheet: Sheet, timeline: Timeline, held: Held) -> float:
    """A row for each buffer: its size, its content, and whether that is in use. Returns the size of
    all, in bytes.
    """
    buffers = sorted({buffer for buffer, _, _ in held})
    size = np.array(
        [
            max(s.task.bytes for s in timeline.spans if b in {**s.task.reads, **s.task.writes})
            for b in buffers
        ]
    )
    names = ["empty", *dict.fromkeys(part.name for _, part, _ in held)]
    label, state = np.zeros((2, FRAMES, len(buffers)), int)
    for buffer, part, level in held:
        on, n = level > AWAY, buffers.index(buffer)
        label[on, n] = names.index(part.name)
        state[on, n] = 3 * "ABC".index(part.matrix) + level[on]
    y, wide = 46 + ROW * np.arange(len(buffers)), LONG * size / size.max()
    sizes = [f"{part / 1e6:.0f} MB" for part in size]
    sheet.words(LIST, y, buffers, size=13)
    sheet.words(LIST + 108 + wide, y, sizes, "soft", size=12)
    tints = [
        "rgba(128,128,128,0.10)",
        *(tint for palette in TINTS.values() for tint in palette[1:]),
    ]
    x, words = LIST + 100 + wide / 2, [f"{b}, {part}" for b, part in zip(buffers, sizes)]
    sheet.boxes("buffers", x, y, wide, ROW - 6, fill=(tints, state), line="line", words=words)
    sheet.numbers("contents", x, y, label, names=names, align="center", size=13)
    return float(size.sum())
