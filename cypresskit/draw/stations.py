"""The road from the program's memory to the chip and back: its stations, and the blocks of each
queue on their way between two of them.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from cypresskit.draw.sheet import Sheet
from cypresskit.draw.task_bars import label_of, task_fill
from cypresskit.host import Span, Timeline

# Each station's name, and which part of the road lies before it.
STATIONS = {"program's memory": 0.07, "pinned memory": 0.37, "card's memory": 0.65, "chip": 0.88}
# Where a stage takes its block from, and to.
ROUTES = {
    "load1": (0, 1),
    "load2": (1, 2),
    "send": (0, 2),
    "mult": (3, 3),
    "mult1": (3, 3),
    "store1": (2, 1),
    "store2": (1, 0),
    "store": (1, 0),
    "fetch": (2, 0),
    "cpu": (0, 0),
}


class Road:
    """The road at height ``y`` between two ``ends`` of x, for the tasks of a timeline."""

    def __init__(self, run: Timeline, ends: tuple[float, float], y: float) -> None:
        left, right = ends
        self.run = run
        self.ends = ends
        self.y = y
        self.stops = [left + part * (right - left) for part in STATIONS.values()]
        tasks = [span.task for span in run.spans]
        self.chip = {task.queue: -1 if task.chip is None else task.chip for task in tasks}
        self.queues = list(self.chip)
        self.last_chip = max(self.chip.values())

    def draw_stations(self, sheet: Sheet, name: str) -> None:
        """Draw the road and those of its stations at which a task stops."""
        used = sorted({n for span in self.run.spans for n in ROUTES.get(span.task.stage, ())})
        x = [self.stops[n] for n in used]
        names = [list(STATIONS)[n] for n in used]
        left, right = self.ends
        middle = (left + right) / 2
        sheet.boxes(f"road {name}", middle, self.y, 0.9 * (right - left), 2, ink="line")
        sheet.boxes(f"stations {name}", x, self.y, 118, 40, ink="faint", line="line", round=5)
        sheet.words(x, self.y - 28, names, "soft", align="center", size=12)

    def draw_blocks(
        self, sheet: Sheet, name: str, moments: np.ndarray, keys: Sequence[int], slower: bool
    ) -> None:
        """Draw each queue's block where it is at some ``moments``; ``keys`` choose the tasks."""
        # A queue's blocks take turns in two boxes, so that none goes back to where it began.
        shape = len(moments), 2 * len(self.queues)
        place = np.full(shape, np.nan, np.float32)
        label, matter, key = np.zeros((3, *shape), int)
        key -= 1
        spans = self.run.spans
        names = ["", *dict.fromkeys(label_of(span.task) for span in spans)]
        tints, matters = task_fill(spans, slower)
        turns = Counter[str]()
        for span, span_matter, chosen in zip(spans, matters, keys):
            queue = span.task.queue
            box = 2 * self.queues.index(queue) + turns[queue] % 2
            turns[queue] += 1
            if span.task.stage not in ROUTES:
                continue
            now = self._frames_of(span, moments)
            place[now, box] = self._way(span, moments[now]) + self._aside(queue)
            label[now, box] = names.index(label_of(span.task))
            matter[now, box] = span_matter
            key[now, box] = chosen

        width = max(38, 8 + 7 * max(map(len, names)))  # of a block, with its name
        y = np.repeat([self._lane(queue) for queue in self.queues], 2)
        look: dict = {"round": 3, "moves": ("x",)}
        sheet.boxes(f"under {name}", place, y, width, 17, ink="faint", **look)
        sheet.boxes(f"blocks {name}", place, y, width, 17, fill=(tints, matter), key=key, **look)
        words = sheet.numbers(f"names {name}", 0, y, label, names=names, size=12, align="center")
        sheet.track(words, "x", place, moves=True)

    def _has_lane(self, queue: str) -> bool:
        """Whether a queue works for one of several chips."""
        return self.last_chip > 0 <= self.chip[queue]

    def _lane(self, queue: str) -> float:
        """The y of a queue's blocks: those of two chips are one above the other."""
        if not self._has_lane(queue):
            return self.y
        return self.y + 18 * (self.chip[queue] - self.last_chip / 2)

    def _aside(self, queue: str) -> float:
        """How far a queue's blocks are from the road's middle, so that those of one lane are all
        seen.
        """
        return 0 if self._has_lane(queue) else 9 * (self.queues.index(queue) % 3 - 1)

    def _way(self, span: Span, moments: np.ndarray) -> np.ndarray:
        """The x of a task's block at some moments, on its way from stop to stop."""
        start, end = (self.stops[stop] for stop in ROUTES[span.task.stage])
        part = np.minimum((moments - span.start) / (span.end - span.start), 1)
        return start + part * (end - start)

    def _frames_of(self, span: Span, moments: np.ndarray) -> np.ndarray:
        """The frames in which a task's block is on the road; a run's last one stays."""
        stays = span.end >= self.run.seconds
        now = (moments >= span.start) & ((moments <= span.end) | stays)
        return np.flatnonzero(now)
