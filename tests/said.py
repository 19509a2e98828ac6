"""What a picture says: every text of a player at a frame, and whether its numbers are true.

A picture is drawn of *things*: events, tasks, steps, lines. Each is known here as a tuple of its
numbers, made of what the picture was given and never of what it drew. A text is true if one thing
has all of its numbers, in this order and rounded as they are written; of a thing that is a
frozenset, in any order. Names of kernels and boards aren't numbers.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import NamedTuple
from xml.etree import ElementTree

import numpy as np
from bokeh.models import HoverTool, Text

from cypresskit.devices import DEVICES
from cypresskit.draw.chart import NARROW, WIDE, Chart
from cypresskit.draw.player import Player
from cypresskit.kernels import KERNELS

NUMBER = re.compile(
    r"(?<![\w.])[-\N{MINUS SIGN}]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)"
)
NAMES = sorted({*KERNELS, *(board.name for board in DEVICES.values())}, key=len, reverse=True)
NAME = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, NAMES))})(?!\w)")

Thing = Collection[float]


class Said(NamedTuple):
    """A text at a frame, and where: "caption", "about" or the name of a source; there of which
    cell, or of which key. ``data`` are the source's columns at that frame.
    """

    text: str
    frame: int = 0
    where: str = ""
    index: int = 0
    data: Mapping = {}


#: From a text to the things that it may be about, besides those of the whole picture.
Now = Callable[[Said], Iterable[Thing]]


@cache
def plain(text: str) -> str:
    """A text without marks and names."""
    return NAME.sub("@", re.sub(r"[*`\N{ZERO WIDTH SPACE}]", "", text))


def numbers_of(text: str) -> list[str]:
    """The numbers of a text, as they are written."""
    return NUMBER.findall(plain(text))


def value(written: str) -> float:
    return float(written.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def values_of(text: str) -> list[float]:
    return [value(written) for written in numbers_of(text)]


# -- all texts of a player


def said_by_chart(chart: Chart) -> Iterator[Said]:
    """Every text of a chart: its sentences, what is drawn, and what pointing tells; but for the
    numbers beside its axes (``charted``).
    """
    yield from (Said(text, 0, "words") for text in repr(chart).splitlines())
    for width in (WIDE, NARROW):
        for element in ElementTree.fromstring(chart.to_svg(width)).iter():
            if element.tag.endswith("}text") and "data-axis" not in element.attrib:
                yield Said(element.text or "", 0, "drawn")
            for each in element.attrib.get("aria-label", "").split("; "):
                yield Said(each, 0, "told")


def said(player: Player | Chart, frame: int) -> Iterator[Said]:
    """Every text of a player at a frame: its caption, what clicks and pointing tell, and all words
    that are drawn.
    """
    if isinstance(player, Chart):
        yield from said_by_chart(player)
        return
    yield Said(player.captions[frame], frame, "caption")
    for key, words in player.about.items():
        told = words if isinstance(words, str) else [w for begin, w in words if begin <= frame][-1]
        yield Said(told, frame, "about", key)
    for figure in player.figures:
        tips = {r: t.tooltips for t in figure.select(HoverTool) for r in t.renderers}
        for renderer in figure.renderers:
            data = shown(player, renderer.data_source, frame)
            name = renderer.data_source.name
            texts: list[str] = []
            if isinstance(renderer.glyph, Text) and isinstance(renderer.glyph.text, str):
                texts = [str(text) for text in data[renderer.glyph.text]]
            elif renderer in tips:
                count = len(data[next(iter(data))])
                texts = [filled(tips[renderer], data, n) for n in range(count)]
            yield from (Said(text, frame, name, n, data) for n, text in enumerate(texts))


def filled(tip: str, data: dict, n: int) -> str:
    """A tooltip with the values of a cell."""
    return re.sub(r"@(\w+)", lambda name: str(data[name[1]][n]), tip)


def shown(player: Player, source, frame: int) -> dict:
    """A source's columns at a frame."""
    data = dict(source.data)
    for track in player.tracks:
        if track.source is source:
            data[track.column] = track.frames[frame]
            if track.text:
                data[track.text] = [track.text_of(value) for value in track.frames[frame].tolist()]
    return data


def moments(player: Player | Chart) -> list[int]:
    """The first, the middle and the last frame of each scene."""
    if isinstance(player, Chart):
        return [0]
    first, found = 0, []
    for _, count in player.scenes:
        found += [first, first + count // 2, first + count - 1]
        first += count
    return sorted(set(found))


# -- the law


class Shown(NamedTuple):
    """A number of a text, and how far the true one may be off: half of the last written digit."""

    value: float
    half: float

    def agrees(self, true: float) -> bool:
        return abs(self.value - true) <= self.half + 1e-9 * abs(true)


def read(text: str) -> tuple[Shown, ...]:
    """The numbers of a text, in order."""
    found = []
    for written in numbers_of(text):
        digits, _, power = written.partition("e")
        step = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
        found.append(Shown(value(written), 0.5001 * step))
    return tuple(found)


def has(thing: Thing, numbers: Sequence[Shown]) -> bool:
    """Whether a thing has these numbers, in its own order if it has one."""
    rest = thing if isinstance(thing, frozenset) else iter(thing)
    return all(any(number.agrees(true) for true in rest) for number in numbers)


class Facts:
    """Things, found by the numbers that they have."""

    def __init__(self, things: Iterable[Thing]) -> None:
        self.things = [thing for thing in things if len(thing)]
        self.having: dict[int, list[Thing]] = defaultdict(list)
        for thing in self.things:
            for near in {round(number) for number in thing if np.isfinite(number)}:
                self.having[near].append(thing)

    def hold(self, numbers: Sequence[Shown]) -> bool:
        def candidates(number: Shown) -> Collection[Thing]:
            near = round(number.value)
            few = [thing for n in (near - 1, near, near + 1) for thing in self.having[n]]
            return few if number.half < 1 else self.things

        return any(has(thing, numbers) for thing in min(map(candidates, numbers), key=len))


def lies(text: str) -> Iterator[str]:
    """A text with each of its numbers in turn a million times as large; 0 becomes a million."""
    text = plain(text)
    for match in NUMBER.finditer(text):
        digits, power, of_ten = match[0].partition("e")
        decimals = len(digits.partition(".")[2])
        larger = f"{1e6 * value(digits) or 1e6:.{decimals}f}"
        yield text[: match.start()] + larger + power + of_ten + text[match.end() :]


def assert_true(texts: Iterable[Said], things: Iterable[Thing], now: Now = lambda _: ()) -> None:
    """Fail if a text has a number that nothing has; or if a number a million times too large
    passed, in a few of each kind of text.
    """
    facts, known = Facts(things), dict[tuple[Shown, ...], bool]()
    kinds: dict[tuple, list[Said]] = defaultdict(list)

    def is_true(say: Said) -> bool:
        if (numbers := read(say.text)) not in known:
            known[numbers] = not numbers or facts.hold(numbers)
        with suppress(LookupError):  # what can't be looked up is nothing's
            return known[numbers] or any(has(thing, numbers) for thing in now(say))
        return False

    faults = []
    for say in texts:
        if numbers_of(say.text):
            kinds[say.where.partition(" ")[0], NUMBER.sub("#", plain(say.text))].append(say)
            if not is_true(say):
                faults.append(f"{say.where} {say.index} at {say.frame}: {say.text!r}")
    assert not faults, "\n".join([f"{len(faults)} untrue:", *faults[:12]])
    passed = [
        f"{say.where} {say.index} at {say.frame}: {lie!r}"
        for kind in kinds.values()
        for say in {id(kind[n]): kind[n] for n in (0, len(kind) // 2, -1)}.values()
        for lie in lies(say.text)
        if is_true(say._replace(text=lie))
    ]
    assert not passed, "\n".join([f"{len(passed)} lies pass:", *passed[:12]])


def assert_held(player: Player | Chart, things: Iterable[Thing], now: Now, frames=()) -> None:
    """Fail if a picture says, at some frames, what the things that it was given don't."""
    texts = (say for frame in frames or moments(player) for say in said(player, frame))
    assert_true(texts, things, now)
