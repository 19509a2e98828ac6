"""What a picture says: every text of a player at a frame, and the numbers in it.

A *skeleton* is a text whose numbers are replaced by ``#`` and whose names (of kernels and boards)
by ``@``. A view's rules say for each skeleton which numbers its source has in these places, so that
a number for which there is no rule is a fault, too.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from bokeh.models import HoverTool, Legend, Plot, Text

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
    """A text at a frame, and where: "caption", "about" or the name of a source; there of which
    cell, or of which key. ``data`` are the source's columns at that frame.
    """

    text: str
    frame: int
    where: str
    index: int = 0
    data: Mapping = {}

    def cell(self, column: str):
        """What the text's own cell has in a column."""
        return self.data[column][self.index]


#: From a text and its numbers to the true ones, or to whether the text as a whole is true.
Rule = Callable[[Said, Sequence[float]], Sequence[float] | bool]


def apparatus(figure: Plot, frame: int) -> Iterator[Said]:
    """What a chart's axes and legend say; a tick with the number that it stands at."""
    for where, part in [("axis x", part) for part in figure.below] + [
        ("axis y", part) for part in figure.left
    ]:
        if isinstance(part, Legend):
            for n, item in enumerate(part.items):
                yield Said(item.label.value, frame, "legend", n)
            continue
        yield Said(part.axis_label, frame, where)
        for n, tick in enumerate(part.ticker.ticks):
            label = part.major_label_overrides[tick]
            yield Said(label, frame, f"tick of {where}", n, {"tick": part.ticker.ticks})


def tick(say: Said, shown: Sequence[float]) -> bool:
    """The rule for a chart's ticks: each says where it stands, to six digits."""
    return "tick" in say.data and near(shown[0], say.cell("tick"), 1e-5)


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
        yield from apparatus(figure, frame)
        tips = {r: t.tooltips for t in figure.select(HoverTool) for r in t.renderers}
        for renderer in figure.renderers:
            data = shown(player, renderer.data_source, frame)
            name = renderer.data_source.name
            if isinstance(renderer.glyph, Text) and isinstance(renderer.glyph.text, str):
                for n, text in enumerate(data[renderer.glyph.text]):
                    yield Said(str(text), frame, name, n, data)
            if renderer in tips:
                for n in range(len(data[next(iter(data))])):
                    yield Said(filled(tips[renderer], data, n), frame, f"tip {name}", n, data)


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


def fault(text: Said, rules: dict[str, Rule], names: tuple[str, ...] = ()) -> str:
    """What is wrong with a text by the rules; empty if it is true, or has no number."""
    skeleton, numbers = parts(text.text, names)
    if not numbers:
        return ""
    rule = next((r for pattern, r in rules.items() if re.fullmatch(pattern, skeleton)), None)
    if rule is None:
        return f"no rule for {text.where!r}: {skeleton!r}"
    place = f"{text.where} {text.index} at {text.frame}"
    try:
        true = rule(text, [value(n) for n in numbers])
    # What can't be looked up isn't the source's.
    except (AssertionError, AttributeError, LookupError, StopIteration, ValueError) as failed:
        return f"{place}: {text.text!r}, {failed!r}"
    held = bool(true) if isinstance(true, bool | np.bool) else fits(numbers, true)
    return "" if held else f"{place}: {text.text!r}, true: {true}"


def on_scale(places: Sequence[float], values: Sequence[float], log: bool = False) -> Callable:
    """An axis through known ``values`` at ``places``: a function from a place to the number that
    has to stand there.
    """
    known = np.log(values) if log else np.asarray(values, float)
    slope, start = np.polyfit(places, known, 1)
    assert np.allclose(np.polyval((slope, start), places), known, atol=1e-3 * np.ptp(known))

    def read(place: float) -> float:
        number = start + slope * place
        return float(np.exp(number) if log else number)

    return read


def near(shown: float, true: float, part: float = 0.01) -> bool:
    """Whether a tick's number is what its place says, within the width of a pixel or so."""
    return abs(shown - true) <= part * abs(true) + 1e-9


def unheld(
    player: Player, rules: dict[str, Rule], names: Iterable[str] = (), frames: Sequence[int] = ()
) -> list[str]:
    """What the picture says that its source doesn't: a line for each text whose numbers differ, and
    for each that no rule is about.
    """
    texts = (text for frame in frames or moments(player) for text in said(player, frame))
    faults = (fault(text, rules, tuple(names)) for text in texts)
    return list(dict.fromkeys(filter(None, faults)))


def altered(text: str, names: tuple[str, ...] = ()) -> Iterator[str]:
    """A text with each of its numbers in turn ten times as large; 0 becomes 10."""
    found = re.sub(r"[*`\N{ZERO WIDTH SPACE}]", "", text)
    hidden = found
    for name in sorted(names, key=len, reverse=True):
        hidden = hidden.replace(name, "\0" * len(name))
    hidden = NAME.sub(lambda match: "\0" * len(match[0]), hidden)
    for match in NUMBER.finditer(hidden):
        digits, _, power = match[0].partition("e")
        decimals = len(digits.partition(".")[2])
        larger = f"{10 * value(match[0]):.{decimals}f}" if value(match[0]) else "10"
        if power:
            larger = f"{digits}e{int(power) + 1}"
        yield found[: match.start()] + larger + found[match.end() :]


def unnoticed(
    player: Player, rules: dict[str, Rule], names: Iterable[str] = (), frames: Sequence[int] = ()
) -> list[str]:
    """The lies that the rules let pass: of each kind of text in each place, a few whose numbers are
    made ten times as large, one by one.
    """
    seen: dict[tuple, list[Said]] = {}
    names = tuple(names)
    for frame in frames or moments(player):
        for text in said(player, frame):
            skeleton, numbers = parts(text.text, names)
            if numbers:
                seen.setdefault((text.where, skeleton), []).append(text)
    lies = []
    for texts in seen.values():
        for text in {0: texts[0], 1: texts[len(texts) // 2], 2: texts[-1]}.values():
            lies += [
                f"{text.where} {text.index} at {text.frame}: {lie!r} passes"
                for lie in altered(text.text, names)
                if not fault(text._replace(text=lie), rules, names)
            ]
    return list(dict.fromkeys(lies))


def assert_held(player: Player, rules: dict[str, Rule], **how) -> None:
    """Fail if the picture says anything that its source doesn't, or if it could: a number that is
    ten times too large has to break a rule.
    """
    faults = unheld(player, rules, **how)
    assert not faults, "\n".join([f"{len(faults)} of {player.title}:", *faults[:12]])
    lies = unnoticed(player, rules, **how)
    assert not lies, "\n".join([f"{len(lies)} lies pass in {player.title}:", *lies[:12]])


def assert_true(texts: Iterable[Said], rules: dict[str, Rule]) -> None:
    """Fail if any of these texts isn't true, or if a number ten times too large passed."""
    faults, lies = [], []
    for text in texts:
        faults.append(fault(text, rules))
        lies += [lie for lie in altered(text.text) if not fault(text._replace(text=lie), rules)]
    faults = [words for words in faults if words]
    assert not faults, "\n".join([f"{len(faults)}:", *faults[:12]])
    assert not lies, "\n".join([f"{len(lies)} lies pass:", *lies[:12]])
