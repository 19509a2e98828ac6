"""The card's memory during a product larger than it: strips, blocks of C, and the buffers that hold
them.

From a timeline of ``host.blocked_time`` or ``gemm_out_of_core``: what each task writes into a
buffer on the card, and which tasks read it. Left out: the host's pinned buffers, and where in the
memory a buffer lies.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, TimeAxis, nonempty
from cypresskit.draw.task_bars import FRAMES, draw_tasks, task_fill
from cypresskit.draw.task_bars import TINTS as OF_TASKS
from cypresskit.host import Task, Timeline
from cypresskit.tables import plural

WIDTH, HEIGHT = 1112, 416  # of the stage, in pixels
# The matrices: C's corner and side, how much of A and B is drawn, and the gaps to C.
LEFT, TOP, SIDE, DEPTH, GAP_A, GAP_B = 122, 118, 188, 90, 20, 10
# The buffers: their left edge, their names' width, the first row's y, a row, and the largest one.
BUFFERS, BUFFER_NAMES, BUFFERS_TOP, ROW, LONGEST_BUFFER = 420, 100, 46, 28, 420
# The queues: the first row's y, a row, the left edge behind their names, and the right edge.
QUEUES, QUEUE_ROW, QUEUES_LEFT, QUEUES_RIGHT = 332, 24.0, 84, 1100
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
    label = "The matrices with what lies on the card, its buffers, and the tasks"
    sheet.stage(label, WIDTH, HEIGHT)
    states = {part: np.zeros(FRAMES, np.uint8) for _, part, _ in held}
    for _, part, state in held:
        states[part] = np.maximum(states[part], state)
    _draw_matrices(sheet, timeline, states, moments)
    total = _draw_buffers(sheet, timeline, held)
    heading = f"Buffers on the card: {total / 1e6:.0f} MB of {timeline.card_bytes / 1e6:.0f}"
    sheet.words(BUFFERS, 14, heading, bold=True, size=14)
    _draw_queues(sheet, timeline, moments)

    captions = [_say(timeline, states, n, moment) for n, moment in enumerate(moments)]
    captions[-1] = captions[-1].replace(" Running: nothing.", f"\n{_summary(timeline)}")
    used = ((f"{name} in use", tints[USED], "box") for name, tints in TINTS.items())
    legend = sheet.legend(
        *used,
        ("paler: there, waits", TINTS["C"][THERE], "box"),
        ("palest: on its way", TINTS["C"][ARRIVES], "box"),
        ("done, and back with the host", "ink", "ring"),
        ("the product", PRODUCT, "box"),
    )
    return sheet.player(captions, step="Moment", below=[legend], still_frame=3 * FRAMES // 4)


def _say(timeline: Timeline, states: dict[Piece, np.ndarray], frame: int, moment: float) -> str:
    """A frame's caption."""
    on_card = [part.name for part, state in states.items() if state[frame] >= THERE]
    running = [span.task.name for span in timeline.spans if span.start <= moment < span.end]
    return (
        f"At {1e3 * moment:.1f} ms. On the card: {', '.join(on_card) or 'nothing'}."
        f" Running: {', '.join(running) or 'nothing'}."
    )


def _summary(timeline: Timeline) -> str:
    """What the whole product came to, and how few strips its path through C needed."""
    products = [span for span in timeline.spans if span.task.stage == "mult"]
    computing = sum(span.end - span.start for span in products)
    blocks = len({span.task.place for span in products})
    strips = sum(
        span.task.stage == "load2" and span.task.matrix in ("A", "B") for span in timeline.spans
    )
    return (
        f"**Done**: {blocks} {plural('block', blocks)} of C at {timeline.gflops:.1f} Gflop/s; the"
        f" chip worked {100 * computing / timeline.seconds:.1f} % of the time. {strips} strips of A"
        f" and B came to the card; two for each of {len(products)}"
        f" {plural('product', len(products))} would be {2 * len(products)}."
    )


def _draw_queues(sheet: Sheet, timeline: Timeline, moments: np.ndarray) -> None:
    """Draw the tasks over time, a row for each queue, and the play head."""
    queues = list(dict.fromkeys(span.task.queue for span in timeline.spans))
    y = {queue: QUEUES + QUEUE_ROW * n for n, queue in enumerate(queues)}
    scale = (QUEUES_RIGHT - QUEUES_LEFT) / timeline.seconds
    axis = TimeAxis(moments, lambda seconds: QUEUES_LEFT + seconds * scale)
    bands = [(middle - QUEUE_ROW / 2, middle + QUEUE_ROW / 2) for middle in y.values()]
    foot = bands[-1][1] + 10
    ends = QUEUES_LEFT, QUEUES_RIGHT
    sheet.ticks(ends, 1e3 * timeline.seconds, bands, foot)
    names = [*queues, "ms"]
    sheet.words(QUEUES_LEFT - 8, [*y.values(), foot], names, align="right", size=12)
    rows = [y[span.task.queue] for span in timeline.spans]
    look: dict = {
        "fill": task_fill(timeline.spans),
        "words": [span.task.name for span in timeline.spans],
    }
    draw_tasks(sheet, "tasks", timeline.spans, (rows, 19), axis, **look)
    head = np.tile((QUEUES_LEFT + moments * scale)[:, np.newaxis], len(y))
    sheet.play_head("head", head, np.array(list(y.values())), QUEUE_ROW)


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
    for buffer in written:
        if buffer not in timeline.on_card:
            continue
        fills = [
            span
            for span in timeline.spans
            if buffer in span.task.writes and buffer not in span.task.reads
        ]
        for fill, next_fill in zip_longest(fills, fills[1:]):
            emptied = next_fill.start if next_fill else np.inf
            users = [
                span
                for span in timeline.spans
                if buffer in span.task.reads and fill.start <= span.start < emptied
            ]
            leaves = [span.end for span in users if span.task.stage == "store1"]
            emptied = max(leaves, default=emptied)
            state = np.where(moments >= fill.end, THERE, ARRIVES)
            state[(moments < fill.start) | (moments >= emptied)] = AWAY
            for span in (fill, *users):
                if span.task.stage == "mult":
                    state[(moments >= span.start) & (moments < span.end)] = USED
            yield buffer, _piece(fill.task), state.astype(np.uint8)


class _Grid(NamedTuple):
    """A matrix in parts: its upper left corner, and the size of a part."""

    left: float
    top: float
    width: float
    height: float

    def box(self, row: np.ndarray, column: np.ndarray) -> tuple:
        """The boxes of some parts: x, y, width and height."""
        x = self.left + (column + 0.5) * self.width
        y = self.top + (row + 0.5) * self.height
        return x, y, self.width - 2, self.height - 2


def _grids(parts: Iterable[Piece]) -> dict[str, _Grid]:
    """A to the left of C, B above it, as in the product."""
    rows = 1 + max(part.row for part in parts if part.matrix == "C")
    columns = 1 + max(part.column for part in parts if part.matrix == "C")
    chunks = 1 + max(part.column for part in parts if part.matrix == "A")
    width, height = SIDE / columns, SIDE / rows
    return {
        "A": _Grid(LEFT - GAP_A - DEPTH, TOP, DEPTH / chunks, height),
        "C": _Grid(LEFT, TOP, width, height),
        "B": _Grid(LEFT, TOP - GAP_B - DEPTH, width, (DEPTH - 10) / chunks),
    }


def _draw_matrices(
    sheet: Sheet, timeline: Timeline, states: dict[Piece, np.ndarray], moments: np.ndarray
) -> None:
    """Draw the parts of each matrix by their states, and the path that the chip takes through C."""
    back = {_piece(s.task): s.end for s in timeline.spans if s.task.stage == "store2"}
    grids = _grids(states)
    for matrix, grid in grids.items():
        parts = [part for part in states if part.matrix == matrix]
        row, column = np.array([(part.row, part.column) for part in parts]).T
        box = grid.box(row, column)
        sheet.boxes(f"room {matrix}", *box, ink="faint", line="line")
        state = np.stack([states[part] for part in parts], axis=1)
        done = 3 * np.stack([moments >= back.get(part, np.inf) for part in parts], axis=1)
        look: dict = {
            "fill": (TINTS[matrix], state),
            "words": [part.name for part in parts],
            "columns": {"done": done},
        }
        source = sheet.boxes(f"matrix {matrix}", *box, **look)
        sheet.ring(source, grid.width - 5, grid.height - 5, "done", "ink")
        sheet.words(grid.left - 2, grid.top - 9, matrix, matrix.lower(), bold=True, size=14)
    _draw_path(sheet, timeline, grids["C"], moments)


def _draw_path(sheet: Sheet, timeline: Timeline, grid: _Grid, moments: np.ndarray) -> None:
    """Draw arrows from each block of C to the next, once that has begun."""
    products = [span for span in timeline.spans if span.task.stage == "mult"]
    row, column = np.array([span.task.place for span in products]).T
    x, y, _, _ = grid.box(row, column)
    begins = np.array([span.start for span in products[1:]])
    is_begun = begins <= moments[:, np.newaxis]
    start = np.where(is_begun, x[:-1], np.nan), np.where(is_begun, y[:-1], np.nan)
    end = np.where(is_begun, x[1:], np.nan), np.where(is_begun, y[1:], np.nan)
    sheet.arrows("path", start, end, size=6)


def _draw_buffers(sheet: Sheet, timeline: Timeline, held: Held) -> float:
    """A row for each buffer: its size, its content, and whether that is in use. Returns the size of
    all, in bytes.
    """
    buffers = sorted({buffer for buffer, _, _ in held})
    sizes = np.array([_size(timeline, buffer) for buffer in buffers])
    names = ["empty", *dict.fromkeys(part.name for _, part, _ in held)]
    label, tint = np.zeros((2, FRAMES, len(buffers)), int)
    for buffer, part, state in held:
        is_held = state > AWAY
        n = buffers.index(buffer)
        label[is_held, n] = names.index(part.name)
        tint[is_held, n] = 3 * "ABC".index(part.matrix) + state[is_held]
    tints = ["rgba(128,128,128,0.10)"]
    tints += [tint for palette in TINTS.values() for tint in palette[1:]]

    y = BUFFERS_TOP + ROW * np.arange(len(buffers))
    width = LONGEST_BUFFER * sizes / sizes.max()
    left = BUFFERS + BUFFER_NAMES
    megabytes = [f"{size / 1e6:.0f} MB" for size in sizes]
    sheet.words(BUFFERS, y, buffers, size=12)
    sheet.words(left + width + 8, y, megabytes, "soft", size=12)
    words = [f"{buffer}, {size}" for buffer, size in zip(buffers, megabytes)]
    look: dict = {"fill": (tints, tint), "line": "line", "words": words}
    x = left + width / 2
    sheet.boxes("buffers", x, y, width, ROW - 6, **look)
    sheet.numbers("contents", x, y, label, names=names, align="center", size=12)
    return float(sizes.sum())


def _size(timeline: Timeline, buffer: str) -> float:
    """The most bytes that a task moves to or from a buffer."""
    tasks = (span.task for span in timeline.spans)
    return max(task.bytes for task in tasks if buffer in {**task.reads, **task.writes})
