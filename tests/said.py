"""What a picture says: every text of a player at a frame, and the numbers in it.

A *skeleton* is a text whose numbers are replaced by ``#`` and whose names (of kernels and boards)
by ``@``. A view's rules say for each skeleton which numbers its source has in these places, so that
a number for which there is no rule is a fault, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

from bokeh.models import HoverTool, Text

from cypresskit.devices import DEVICES
from cypresskit.draw.player import Player
from cypresskit.kernels import KERNELS

NUMBER = re.compile(
    r"(?<![\w.])[-\N{MINUS SIGN}]?(?:\d{1,3}(?:,\d{3})+|\d+|(?=\.\d))(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)"
)
NAMES = sorted({*KERNELS, *(board.name for board in DEVICES.values())}, key=len, reverse=True)
NAME = re.compile(rf"(?<!\w)({'|'.join(map(re.escape, NAMES))})(?!\w)")


@cache
def parts(text: str, names: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """The skeleton of a text, and its numbers as they are written."""
    text = re.sub(r"[*`\N{ZERO WIDTH SPACE}]", "", text)
    for name in sorted(names, key=len, reverse=True):
        text = text.replace(name, "@")
    text = NAME.sub("@", text)
    return NUMBER.sub("#", text), NUMBER.findall(text)


class Said(NamedTuple):
    """A text at a frame, and where: "caption", "about", "guess" or the name of a source; there of
    which cell, or of which key.
    """

    text: str
    frame: int
    where: str
    index: int = 0


#: From a text and its numbers to the true ones, or to whether the text as a whole is true.
Rule = Callable[[Said, Sequence[float]], Sequence[float] | bool]


def said(player: Player, frame: int) -> Iterator[Said]:
    """Every text of a player at a frame: its caption, what clicks and pointing tell, and all words
    that are drawn.
    """
    yield Said(player.captions[frame], frame, "caption")
    for key, words in player.about.items():
        told = words if isinstance(words, str) else [w for begin, w in words if begin <= frame][-1:]
        for text in [told] if isinstance(told, str) else told:
            yield Said(text, frame, "about", key)
    for figure in player.figures:
        tips = {r: t.tooltips for t in figure.select(HoverTool) for r in t.renderers}
        for renderer in figure.renderers:
            data = shown(player, renderer.data_source, frame)
            name = renderer.data_source.name
            if isinstance(renderer.glyph, Text) and isinstance(renderer.glyph.text, str):
                for n, text in enumerate(data[renderer.glyph.text]):
                    yield Said(str(text), frame, name, n)
            if renderer in tips:
                for n in range(len(data[next(iter(data))])):
                    yield Said(filled(tips[renderer], data, n), frame, f"tip {name}", n)


def filled(tip: str, data: dict, n: int) -> str:
    """A tooltip with the values of a cell."""
    for name in re.findall(r"@(\w+)", tip):
        tip = tip.replace(f"@{name}", str(data[name][n]), 1)
    return tip


def shown(player: Player, source, frame: int) -> dict:
    """A source's columns at a frame."""
    data = dict(source.data)
    for track in player.tracks:
        if track.source is source:
            data[track.column] = track.frames[frame]
            if track.text:
                data[track.text] = [track.text_of(value) for value in track.frames[frame].tolist()]
    return data


def moments(player: Player) -> list[int]:
    """The first, the middle and the last frame of each scene."""
    first, found = 0, []
    for _, count in player.scenes:
        found += [first, first + count // 2, first + count - 1]
        first += count
    return sorted(set(found))


def value(written: str) -> float:
    return float(written.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def agrees(written: str, true: float) -> bool:
    """Whether a number is the true one, rounded to the digits that are written."""
    digits, _, power = written.partition("e")
    decimals = len(digits.partition(".")[2])
    step = 10.0 ** (int(power or 0) - decimals)
    return abs(value(written) - true) <= 0.5001 * step + 1e-9 * abs(true)


def fits(numbers: Sequence[str], true: Sequence[float]) -> bool:
    return len(true) == len(numbers) and all(map(agrees, numbers, true))


def unheld(
    player: Player, rules: dict[str, Rule], names: Iterable[str] = (), frames: Sequence[int] = ()
) -> list[str]:
    """What the picture says that its source doesn't: a line for each text whose numbers differ, and
    for each that no rule is about.
    """
    faults = []
    for frame in frames or moments(player):
        for one in said(player, frame):
            skeleton, numbers = parts(one.text, tuple(names))
            if not numbers:
                continue
            rule = next(
                (r for pattern, r in rules.items() if re.fullmatch(pattern, skeleton)), None
            )
            if rule is None:
                faults.append(f"no rule for {one.where!r}: {skeleton!r}")
                continue
            try:
                true = rule(one, [value(n) for n in numbers])
            except (AssertionError, LookupError) as failed:
                true = False
                faults.append(f"{one.where} {one.index} at {frame}: {failed}")
            held = true if isinstance(true, bool) else fits(numbers, true)
            if not held:
                faults.append(f"{one.where} {one.index} at {frame}: {one.text!r}, true: {true}")
    return list(dict.fromkeys(faults))


def assert_held(player: Player, rules: dict[str, Rule], **how) -> None:
    """Fail if the picture says anything that its source doesn't."""
    faults = unheld(player, rules, **how)
    assert not faults, "\n".join([f"{len(faults)} of {player.title}:", *faults[:12]])
