"""One law for every picture, without a browser: at its first, middle and last frame all marks lie
inside it, and no two texts overlap. What is looked at are the stills, as they are drawn.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple
from xml.etree import ElementTree

import pytest
from pages import IN_LESSONS, VIEWS

from cypresskit.draw.player import Player
from tools import gallery

LETTER = 0.47  # the width of a letter, in sizes of letters: less than that of most
BEFORE = {"start": 0, "middle": 0.5, "end": 1}  # the part of a text that stands before its point
MARGIN = 2.0  # pixels by which edges and estimates may be off
PATH = re.compile(r"M([-\d.]+) ([-\d.]+)h([-\d.]+)v([-\d.]+)")
PLAYERS = {name: make for name, (_, make) in gallery.VIEWS.items() if name not in VIEWS}
PLAYERS |= VIEWS | {f"{name} in its lesson": make for name, make in IN_LESSONS.items()}
PLAYERS = {name: make for name, make in PLAYERS.items() if name != "lds_pitch"}


class Box(NamedTuple):
    """A box in pixels of a still, and the text that stands there."""

    left: float
    top: float
    right: float
    foot: float
    text: str = ""

    def common(self, other: "Box") -> tuple[float, float]:
        """How wide and high what two boxes share is."""
        across = min(self.right, other.right) - max(self.left, other.left)
        return across, min(self.foot, other.foot) - max(self.top, other.top)


def read(still: str) -> tuple[Box, list[Box], list[Box]]:
    """A still's own box, and those of its texts, below title and caption, and of its marks."""
    root = ElementTree.fromstring(still)
    whole = Box(0, 0, *(float(root.attrib[side]) for side in ("width", "height")))
    texts, marks = [], []
    for part in root.iter():
        kind = part.tag.rpartition("}")[2]
        if kind == "text" and float(part.attrib["y"]) > 40 and "transform" not in part.attrib:
            x, y, size = (float(part.attrib[name]) for name in ("x", "y", "font-size"))
            text = (part.text or "").strip("\N{ZERO WIDTH SPACE} ")
            long = LETTER * size * len(text)
            left = x - BEFORE[part.attrib.get("text-anchor", "start")] * long
            texts.append(Box(left, y - 0.76 * size, left + long, y + 0.04 * size, text))
        elif kind == "path":
            for found in PATH.findall(part.attrib["d"]):
                x, y, wide, high = map(float, found)
                (left, right), (top, foot) = sorted((x, x + wide)), sorted((y, y + high))
                marks.append(Box(left, top, right, foot))
    return whole, texts, marks


@cache
def player(name: str) -> Player | None:
    shown = PLAYERS[name]()
    return shown if isinstance(shown, Player) else None


def stills(name: str) -> Iterator[tuple[Box, list[Box], list[Box]]]:
    """What the first, middle and last still of a player have."""
    if shown := player(name):
        last = len(shown.captions) - 1
        for shown.still_frame in sorted({0, last // 2, last}):
            yield read(shown.still())


@pytest.mark.few(5)
@pytest.mark.parametrize("name", PLAYERS)
def test_marks_lie_inside_their_picture_and_no_texts_overlap(name):
    for whole, texts, marks in stills(name):
        for box in texts + marks:
            assert box.left > -MARGIN and box.right < whole.right + 3 * MARGIN, box
            assert box.top > -MARGIN and box.foot < whole.foot + MARGIN, box
        for n, one in enumerate(texts):
            for other in texts[n + 1 :]:
                is_same = one.text == other.text  # a mark that stands twice
                assert is_same or min(one.common(other)) < MARGIN, (one, other)
