"""Tasks of the host as pictures show them: a colour for what each moves or does, its name as far as
there is room, and a bar in time.
"""

from collections.abc import Sequence

import numpy as np

from cypresskit.draw import theme
from cypresskit.draw.sheet import Bars, Sheet, TimeAxis
from cypresskit.host import Span, Task

FRAMES = 240  # moments
MATTERS = (
    "A",
    "B",
    "C",
    "the product",
    "the product, slower per flop",
)  # what a task moves, or does
TINTS = [
    theme.faded(colour, 0.65) for colour in ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#8f8a7c")
]
PRODUCTS = ("mult", "mult1", "cpu")


def matter_of(span: Span, slower: bool = False) -> int:
    """The index in ``MATTERS`` of what a task moves (A, B, C) or does."""
    if span.task.stage in PRODUCTS:
        return 4 if slower else 3
    return {"A": 0, "B": 1}.get(span.task.matrix, 2)


def task_fill(spans: Sequence[Span], slower: bool = False) -> tuple:
    """The ``fill`` of tasks' boxes: by what each moves or does."""
    return TINTS, [matter_of(span, slower) for span in spans]


def spelled(task: Task) -> str:
    """What the numbers in the name of a pipeline's unit are, in brackets; nothing for others."""
    if task.matrix not in ("C", "AB") or len(task.place) < 3:
        return ""
    names = ("chip", "unit", "part", "sub-block")
    return f" ({', '.join(f'{name} {n}' for name, n in zip(names, task.place))})"


def label_of(task: Task) -> str:
    """What a task works on, in few letters: ``A[0]``, ``AB[1.0.0.3]``; a prime for each sum after
    the first.
    """
    return task.label or task.name


def draw_tasks(
    sheet: Sheet,
    name: str,
    spans: Sequence[Span],
    rows: tuple,
    axis: TimeAxis,
    *,
    future: str = "",
    **style,
) -> None:
    """Draw a bar for each task, with its name if there is room. ``rows`` are the bars' y and their
    height, ``axis`` is in seconds; the rest is as for ``Sheet.progress_bars``.
    """
    y, height = rows
    start = np.array([span.start for span in spans])
    end = np.array([span.end for span in spans])
    sheet.progress_bars(name, Bars(start, end, y, height), axis, future=future, **style)
    left, right, middle = (axis.to_x(seconds) for seconds in (start, end, (start + end) / 2))
    names = [_name_in(span, room) for span, room in zip(spans, right - left - 8)]
    name_ends = middle + theme.LETTER / 2 * np.array([len(text) for text in names]) + 3
    come = axis.to_x(axis.moments)[:, np.newaxis] >= (name_ends if future else -np.inf)
    shown = np.where(come, np.arange(1, len(spans) + 1), 0)
    sheet.numbers(f"labels {name}", middle, y, shown, names=["", *names], size=12, align="center")


def _name_in(span: Span, room: float) -> str:
    """The longest of a task's names that fits into a bar."""
    for text in (span.task.name, label_of(span.task)):
        if theme.LETTER * len(text) < room:
            return text
    return ""
