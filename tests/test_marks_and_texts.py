"""One law for every picture, without a browser: at its first, middle and last frame all marks lie
inside their figure, and no two texts overlap.
"""

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
from bokeh.core.property.vectorization import Field, Value
from bokeh.models import LogScale, Plot, Rect, Scatter, Segment, Text
from pages import IN_LESSONS, VIEWS

from cypresskit.draw import still, theme
from cypresskit.draw.player import Player
from tools import gallery

LETTER = 0.47  # the width of a letter, in sizes of letters: less than that of most
#: The part of a text that stands before its point, and of a letter's height above it.
BEFORE = {"left": 0, "center": 0.5, "right": 1}
ABOVE = {"middle": 0.4, "top": 0, "bottom": 0.8}
MARGIN = 2.0  # pixels by which edges and estimates may be off


def players() -> dict:
    """What makes each picture that plays: those of the site, of the tests and of the lessons."""
    made = {name: make for name, (_, make) in gallery.VIEWS.items()}
    made |= VIEWS | {f"{name} in its lesson": make for name, make in IN_LESSONS.items()}
    return {name: make for name, make in made.items() if name not in ("lds_pitch", "bundle_game")}


PLAYERS = players()


@cache
def player(name: str) -> Player | None:
    shown = PLAYERS[name]()
    return shown if isinstance(shown, Player) else None


class Boxes(NamedTuple):
    """Boxes in pixels of a figure, from the upper left: their ends, and what each is."""

    left: np.ndarray
    top: np.ndarray
    right: np.ndarray
    foot: np.ndarray
    names: list[str]


class Frame:
    """A figure at a frame of its player, in its own pixels."""

    def __init__(self, shown: Player, figure: Plot, number: int) -> None:
        self.figure = figure
        self.columns: dict[str, dict] = {}
        for track in shown.tracks:
            values = track.frames[number]
            columns = self.columns.setdefault(track.source.id, {})
            columns[track.column] = values
            if track.text:
                columns[track.text] = [track.text_of(value) for value in values.tolist()]
        self.fitted = {glyph.id: (part, most) for _, glyph, part, most in shown._inks.fitted}
        self.unit = 1.0
        x, y = figure.x_range, figure.y_range
        if figure.below:  # a chart, with axes
            self.width = figure.width - figure.min_border_left - figure.min_border_right
            self.height = figure.height - figure.min_border_top - figure.min_border_bottom
        else:
            wide, high = abs(x.end - x.start), abs(y.end - y.start)
            is_stage = "min-width" in figure.styles  # whose unit is a pixel
            self.unit = 1 if is_stage else min(still.WIDTH / wide, theme.HIGH / high)
            self.width, self.height = self.unit * wide, self.unit * high

    def place(self, values, side: str) -> np.ndarray:
        """Numbers of an axis in pixels."""
        ends, scale = (
            (self.figure.x_range, self.figure.x_scale)
            if side == "x"
            else (self.figure.y_range, self.figure.y_scale)
        )
        ticks = np.array([ends.start, ends.end, *np.atleast_1d(values)], float)
        if isinstance(scale, LogScale):
            ticks = np.log10(ticks)
        part = (ticks[2:] - ticks[0]) / (ticks[1] - ticks[0])
        return part * self.width if side == "x" else part * self.height

    def column(self, renderer, name: str):
        """A glyph's property for each of its points, or one for all."""
        spec = getattr(renderer.glyph, name)
        data = dict(renderer.data_source.data) | self.columns.get(renderer.data_source.id, {})
        field = spec.field if isinstance(spec, Field) else spec
        if isinstance(field, str) and field in data:
            return np.asarray(data[field])
        return spec.value if isinstance(spec, Value) else spec

    def marks(self) -> Iterator[Boxes]:
        """The boxes, points and lines that are drawn, by source."""
        for renderer in self.figure.renderers:
            name = renderer.data_source.name or type(renderer.glyph).__name__
            if isinstance(renderer.glyph, Rect):
                x, y, w, h = (
                    np.asarray(self.column(renderer, side), float)
                    for side in ("x", "y", "width", "height")
                )
                x, y, w, h = np.broadcast_arrays(x, y, w, h)
                ends = (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
            elif isinstance(renderer.glyph, Scatter):
                x, y = (np.asarray(self.column(renderer, side), float) for side in "xy")
                ends = (x, y, x, y)
            elif isinstance(renderer.glyph, Segment):
                ends = tuple(
                    np.asarray(self.column(renderer, side), float)
                    for side in ("x0", "y0", "x1", "y1")
                )
            else:
                continue
            left, top, right, foot = np.broadcast_arrays(
                *(self.place(end, side) for end, side in zip(ends, "xyxy"))
            )
            yield Boxes(
                np.minimum(left, right),
                np.minimum(top, foot),
                np.maximum(left, right),
                np.maximum(top, foot),
                [name] * left.size,
            )

    def texts(self) -> Boxes:
        """The texts that are drawn."""
        found: list[tuple[float, float, float, float, str]] = []
        for renderer in self.figure.renderers:
            glyph = renderer.glyph
            if not isinstance(glyph, Text):
                continue
            texts = np.atleast_1d(self.column(renderer, "text"))
            x = self.place(self.column(renderer, "x"), "x")
            y = self.place(self.column(renderer, "y"), "y")
            align = np.atleast_1d(self.column(renderer, "text_align"))
            size = float(str(self.column(renderer, "text_font_size")).removesuffix("px"))
            if glyph.id in self.fitted:
                part, most = self.fitted[glyph.id]
                size = min(most, part * self.unit)
            beside = float(self.column(renderer, "x_offset"))
            below = float(self.column(renderer, "y_offset"))
            base = str(self.column(renderer, "text_baseline"))
            count = max(len(texts), len(x), len(y))
            for n in range(count):
                text = str(texts[n % len(texts)]).strip("\N{ZERO WIDTH SPACE} ")
                across = x[n % len(x)] + beside
                down = y[n % len(y)] + below
                if not text or not np.isfinite([across, down]).all():
                    continue
                long = LETTER * size * len(text)
                left = across - BEFORE[str(align[n % len(align)])] * long
                top = down - ABOVE.get(base, 0.8) * size
                found.append((left, top, left + long, top + 0.8 * size, text))
        columns = list(zip(*found)) or [()] * 5
        left, top, right, foot = (np.array(column, float) for column in columns[:4])
        return Boxes(left, top, right, foot, list(columns[4]))


def outside(frame: Frame, boxes: Boxes, margin: float) -> list[str]:
    """What of some boxes isn't inside the figure."""
    is_out = (
        (boxes.left < -margin)
        | (boxes.top < -margin)
        | (boxes.right > frame.width + margin)
        | (boxes.foot > frame.height + margin)
    )
    return sorted({boxes.names[n] for n in np.flatnonzero(is_out)})


def overlapping(texts: Boxes) -> list[tuple[str, str]]:
    """Pairs of texts that stand in each other's way."""
    pairs = []
    for n in range(len(texts.names)):
        later = slice(n + 1, None)
        across = np.minimum(texts.right[n], texts.right[later]) - np.maximum(
            texts.left[n], texts.left[later]
        )
        down = np.minimum(texts.foot[n], texts.foot[later]) - np.maximum(
            texts.top[n], texts.top[later]
        )
        for m in np.flatnonzero((across > MARGIN) & (down > MARGIN)):
            pair = texts.names[n], texts.names[n + 1 + m]
            if pair[0] != pair[1]:  # a mark that stands twice
                pairs.append(pair)
    return pairs


@pytest.mark.parametrize("name", PLAYERS)
def test_marks_lie_inside_their_figure_and_no_texts_overlap(name):
    shown = player(name)
    if shown is None:
        return
    last = len(shown.captions) - 1
    for number in sorted({0, last // 2, last}):
        for figure in shown.figures:
            frame = Frame(shown, figure, number)
            for marks in frame.marks():
                assert not outside(frame, marks, MARGIN), f"frame {number}"
            texts = frame.texts()
            assert not outside(frame, texts, 3 * MARGIN), f"frame {number}"
            assert not overlapping(texts), f"frame {number}"
