"""What a chart shows, read from its SVG alone: data, by the numbers beside its axes."""

import re
from itertools import pairwise
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
import pytest

from cypresskit.draw.chart import KINDS, NARROW, WIDE
from cypresskit.draw.line_chart import GUESS

LETTER = 6.7  # pixels: the width of most letters at 12 px
BOLD = 7 / 6  # bold text has 14 px
KIND = re.compile("|".join(KINDS))
SVG = "{http://www.w3.org/2000/svg}"
WIDTHS = pytest.mark.parametrize("width", [WIDE, NARROW])


class Label(NamedTuple):
    """A text, and the box that it takes: left, top, right, bottom."""

    text: str
    kind: str
    box: tuple[float, float, float, float]

    def away(self, mark):
        """How far it is from a mark."""
        left, top, right, bottom = self.box
        return np.hypot(
            max(left - mark.x, mark.x - right, 0), max(top - mark.y, mark.y - bottom, 0)
        )

    def meets(self, other):
        a, b = self.box, other.box
        return a[0] < b[2] - 0.2 and b[0] < a[2] - 0.2 and a[1] < b[3] - 0.2 and b[1] < a[3] - 0.2


class Point(NamedTuple):
    """A point: its pixels, and what pointing at it tells."""

    x: float
    y: float
    words: str
    wide: float = 0.0


class Charted:
    """A chart at one width.

    Attributes
    ----------
    width, height
        Pixels.
    labels
        All texts that are seen without pointing.
    marks
        Points by the name of their datum: dots, rings, and the points of curves.
    lines
        Pixels of lines, by name.
    kinds
        Of which kind the numbers of a mark or line are, by name.
    """

    def __init__(self, chart, width=0, log=""):
        self.log = log  # axes that may have but two ticks
        root = ElementTree.fromstring(chart if isinstance(chart, str) else chart.to_svg(width))
        self.width, self.height = map(float, root.attrib["viewBox"].split()[2:])
        self.labels: list[Label] = []
        self.marks: dict[str, list[Point]] = {}
        self.lines: dict[str, np.ndarray] = {}
        self.kinds: dict[str, str] = {}
        self._ticks: dict[str, list[tuple[float, float]]] = {"x": [], "y": []}
        self._fits: dict[str, tuple[np.ndarray, bool]] = {}
        for element in root:
            kind, name = element.tag.removeprefix(SVG), element.attrib.get("data-name", "")
            if name:
                self.kinds[name] = element.attrib.get("data-kind", "")
            if kind == "text":
                self._read_text(element)
            elif kind == "path" and name:
                self.lines[name] = np.array(_corners(element.attrib["d"]))
            elif kind == "g":
                groups = [element] if element.attrib.get("class") == "point" else element
                self.marks[name] = [_mark(group) for group in groups if len(group)]

    def _read_text(self, element):
        about, text = element.attrib, element.text or ""
        place = float(about["x"]), float(about["y"]) - 4
        if turned := re.match(r"translate\((\S+) (\S+)\)", about.get("transform", "")):
            return self._read_turned(text, about, *map(float, turned.groups()))
        wide = LETTER * len(text) * (BOLD if "bold" in about.get("class", "") else 1)
        left = place[0] - wide * {"middle": 0.5, "end": 1}.get(about.get("text-anchor", ""), 0)
        box = left, place[1] - 7, left + wide, place[1] + 7
        self.labels.append(Label(text, about.get("class", ""), box))
        if axis := about.get("data-axis"):
            self._ticks[axis].append((float(text.replace(",", "")), place[axis == "y"]))
        return None

    def _read_turned(self, text, about, x, y):
        """A text along a line: a box for each of its letters."""
        turn = np.radians(float(re.findall(r"rotate\((\S+)\)", about["transform"])[0]))
        for n, letter in enumerate(text):
            a, b = n * LETTER, -10
            left = x + a * np.cos(turn) - b * np.sin(turn)
            down = y + a * np.sin(turn) + b * np.cos(turn)
            box = left, down - 5, left + LETTER, down + 5
            self.labels.append(Label(letter, "along", box))

    def value(self, axis, pixels):
        """The value at some pixels, by the ticks of an axis."""
        if axis not in self._fits:
            self._fits[axis] = self._fit(axis)
        fit, is_straight = self._fits[axis]
        found = np.polyval(fit, pixels)
        return found if is_straight else np.exp(found)

    def _fit(self, axis):
        """The line through the ticks, and whether it is one of values, not of their logarithms."""
        values, places = map(np.array, zip(*self._ticks[axis]))
        straight = np.polyfit(places, values, 1)
        off = np.abs(np.polyval(straight, places) - values).max()
        if axis not in self.log and off < np.ptp(values) / 400:
            return straight, True
        bent = np.polyfit(places, np.log(values), 1)
        assert np.allclose(np.polyval(bent, places), np.log(values), atol=0.01), "even steps"
        return bent, False

    def step(self, axis, pixels):
        """By how much a value changes over a third of a pixel: coordinates are rounded."""
        return float(abs(self.value(axis, pixels + 0.16) - self.value(axis, pixels - 0.16)))

    def assert_shown(self, name, x, y):
        """Fail unless a mark of this name is where a datum is."""
        off = []
        for mark in self.marks[name]:
            right, up = self.value("x", mark.x) - x, self.value("y", mark.y) - y
            if abs(right) <= self.step("x", mark.x) and abs(up) <= self.step("y", mark.y):
                return
            off.append((float(right), float(up)))
        raise AssertionError(f"{name} isn't at {x}, {y}, but off by {off[:3]}")

    def overlaps(self):
        """The pairs of texts that overlap."""
        return [
            (one.text, other.text)
            for n, one in enumerate(self.labels)
            for other in self.labels[n + 1 :]
            if one.meets(other) and not one.kind == other.kind == "along"
        ]

    def away(self, text, name):
        """How far a label is from a line or dot, in pixels."""
        (box,) = (label.box for label in self.labels if label.text == text)
        points = _points(np.array([(mark.x, mark.y) for mark in self.marks[name]]))
        return float(np.hypot(*(points - np.clip(points, box[:2], box[2:])).T).min())

    def texts_on_lines(self):
        """The pairs of a text and a line that goes through it. A band and the axes are no lines."""
        found = []
        for name, corners in self.lines.items():
            x, y = _points(corners).T
            for text, _, (left, top, right, bottom) in self.labels:
                is_inside = (left < x) & (x < right) & (top + 2 < y) & (y < bottom - 2)
                if is_inside.any() and not name.startswith(("band", "limit")):
                    found.append((text, name))
        return found


def _corners(path):
    """The points of an SVG's path of straight lines."""
    corners = []
    for kind, numbers in re.findall(r"([MLHV])([-\d. ]+)", path):
        x, y = corners[-1] if corners else (0.0, 0.0)
        given = [float(number) for number in numbers.split()]
        corners.append(
            (given[0], y) if kind == "H" else (x, given[0]) if kind == "V" else (*given,)
        )
    return corners


def _points(corners):
    """Points along a line, a pixel apart or less."""
    parts = [
        one + (other - one) * np.linspace(0, 1, 2 + int(np.hypot(*(other - one))))[:, np.newaxis]
        for one, other in pairwise(corners)
    ]
    return np.concatenate(parts) if parts else corners


def _mark(group):
    shapes = (part.attrib for part in group if part.tag in (f"{SVG}circle", f"{SVG}rect"))
    shape = next(shapes, {})
    place = [float(shape.get(f"c{axis}", shape.get(axis, "nan"))) for axis in "xy"]
    return Point(*place, group.attrib["data-words"], float(shape.get("width", 0)))


def assert_kinds_told(drawn, sentences):
    """Each datum has a kind; pointing at it tells it first; each kind is in the picture."""
    kinds = {name: kind for name, kind in drawn.kinds.items() if name != GUESS}
    assert kinds and set(kinds.values()) <= set(KINDS), kinds
    for name, marks in drawn.marks.items():
        for mark in marks if name != GUESS else ():
            assert KIND.findall(mark.words)[:1] == [kinds[name]], mark
    shown = " ".join([sentences, *(label.text for label in drawn.labels)])
    assert set(kinds.values()) <= set(KIND.findall(shown)), shown
