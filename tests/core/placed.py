"""What is seen of a player at a frame, and where, read from its figures alone."""

import re
from typing import NamedTuple

import numpy as np
from bokeh.models import HoverTool, Text

from cypresskit.draw.sheet import PLACES


class Mark(NamedTuple):
    """A box: center and size; a text; or an arrow: start, and end in place of its size."""

    x: float
    y: float
    w: float
    h: float
    words: str  #: that are written there, or that pointing tells
    data: dict  #: its values in the source's columns; "": its number there, "color": of its area

    @property
    def numbers(self):
        return [int(n) for n in re.findall(r"\d+", self.words)]

    def has(self, x, y):
        return abs(self.x - x) <= self.w / 2 and abs(self.y - y) <= self.h / 2


def fill_tip(tip, data, n):
    """A tooltip with the values of a cell."""
    return re.sub(r"@(\w+)", lambda name: str(data[name[1]][n]), tip)


def read_columns(player, source, frame):
    """A source's columns at a frame."""
    data = dict(source.data)
    for track in player.tracks:
        if track.source is source:
            data[track.column] = track.frames[frame]
            if track.text:
                data[track.text] = [track.text_of(value) for value in track.frames[frame].tolist()]
    return data


class Seen(dict[str, list[Mark]]):
    """The marks of a figure at a frame, by the names of their sources; "" has all texts."""

    def __init__(self, player, frame, figure=0):
        super().__init__({"": []})
        self.caption = player.captions[frame]
        fig = player.figures[figure]
        colors = {entry[:2]: entry[2] for entry in map(tuple, player.figures[0].tags[0]["colors"])}
        tips = {r: tool.tooltips for tool in fig.select(HoverTool) for r in tool.renderers}
        for drawn in fig.renderers:
            data, is_text = (
                read_columns(player, drawn.data_source, frame),
                isinstance(drawn.glyph, Text),
            )
            sides = [getattr(drawn.glyph, side) for side in PLACES[type(drawn.glyph)]]
            sides = [getattr(side, "value", side) for side in sides]  # of pixels
            fill = getattr(drawn.glyph, "fill_color", None)
            palette = getattr(getattr(fill, "transform", None), "palette", None)
            color = colors.get((drawn.glyph, "fill_color"), "")
            if palette:
                palette = colors.get((fill.transform, "palette"), palette)
            marks = []
            for n, values in enumerate(zip(*data.values())):
                row = dict(zip(data, values)) | {"": n, "color": color}
                if palette and "shade" in row:
                    row["color"] = palette[row["shade"]]
                x, y, *size = (row.get(side, side) for side in sides)
                tip = str(size.pop()) if is_text else fill_tip(tips.get(drawn, ""), data, n)
                w, h = size or (0, 0)
                if not np.isnan(x + y + w + h):
                    marks.append(Mark(x, y, w, h, tip.strip("\N{ZERO WIDTH SPACE}"), row))
            if is_text:
                self[""] += marks
            else:
                self.setdefault(drawn.data_source.name, marks)

    def at(self, name, x, y):
        """The only mark of a source at a point."""
        (mark,) = (mark for mark in self[name] if mark.has(x, y))
        return mark

    def labels(self, pattern):
        """The texts that are as a pattern says, and what its group is."""
        found = [(re.fullmatch(pattern, text.words), text) for text in self[""]]
        return [(match[1], text) for match, text in found if match]
