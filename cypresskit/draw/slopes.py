"""Then and now: what each idea gained on one machine and on another, as a line from left to right.

The factors are the caller's, measured or simulated; both sides have one logarithmic axis. A line
that climbs gains more than it did. Left out: what the factors are worth together.
"""

from collections.abc import Mapping

import numpy as np
from bokeh.models import Scatter, Segment

from cypresskit.draw.player import Player
from cypresskit.draw.sheet import Sheet, nonempty

WIDE, HIGH, TOP = 1100, 440, 46  # the stage, and where the axis begins
THEN, NOW = 440, 800  # where the two sides are
APART = 19  # pixels at least from one label to the next
COUNTS = 1.1  # a gain below it is none

Pair = tuple[float | None, float | None]


def slopes(
    factors: Mapping[str, Pair], then: str = "then", now: str = "now", *, title: str = ""
) -> Player:
    """A player that draws a line for each idea, from what it gained ``then`` to what it gains
    ``now``.

    Parameters
    ----------
    factors
        Of each idea, how many times as fast it made a program on either side: numbers above 0, or
        None where it didn't exist.
    then, now
        What the sides are called.
    title
        What the picture is called.

    Raises
    ------
    ValueError
        Without ideas, for one with neither factor, and for a factor that isn't above 0.

    Examples
    --------
        ck.draw.slopes({"register block": (27.2, 6.3)}, "HD 5870", "H200")
    """
    wanted = "each idea has two factors above 0, or None for one of them"
    ideas = nonempty(factors.items() if isinstance(factors, Mapping) else factors, wanted, tuple)
    values = np.array([[np.nan if part is None else part for part in pair] for _, pair in ideas])
    if np.isnan(values).all(axis=1).any() or (values <= 0).any() or np.isinf(values).any():
        raise ValueError(f"{wanted}, not {dict(ideas)!r}")
    names = [name for name, _ in ideas]
    sheet = Sheet(title or f"{then} and {now}")
    sheet.stage("What each idea gains on either side", WIDE, HIGH)
    y = _heights(values)
    _draw_sides(sheet, (then, now))
    _draw_lines(sheet, names, values, y)
    _draw_labels(sheet, names, values, y)
    captions = [f"What each idea gained on the {then}. And now?"]
    captions += [_say(name, pair) for name, pair in zip(names, values)]
    captions[-1] += f"\n{_summary(values)}"
    lines = [f"{name}: {_pair(pair)}" for name, pair in zip(names, values)]
    return sheet.player(captions, lines, step="Idea", seconds=10)


def _heights(values: np.ndarray) -> np.ndarray:
    """The y of each factor, on a logarithmic axis that has all of them; shape (ideas, 2)."""
    logs = np.log(values)
    low = min(0.0, np.nanmin(logs))
    high = max(np.nanmax(logs), np.log(COUNTS))
    return TOP + 24 + (HIGH - TOP - 48) * (high - logs) / (high - low)


def _draw_sides(sheet: Sheet, sides: tuple[str, str]) -> None:
    for x, name, align in zip((THEN, NOW), sides, ("right", "left")):
        sheet.boxes(f"side {name}", x, (TOP + HIGH) / 2, 1, HIGH - TOP, ink="soft")
        sheet.words(x, 22, name, align=align, bold=True, size=18)


def _inks(values: np.ndarray) -> list[str]:
    """A colour for each idea: one for those that still gain, one for those that don't, one for what
    is new.
    """
    return [
        "wrote" if np.isnan(then) else "read" if now >= COUNTS else "soft" for then, now in values
    ]


def _draw_lines(sheet: Sheet, names: list[str], values: np.ndarray, y: np.ndarray) -> None:
    """A line from side to side for each idea; in each frame one more."""
    for number, (name, ink) in enumerate(zip(names, _inks(values))):
        come = np.arange(len(names) + 1) > number
        has_then, has_now = ~np.isnan(values[number])
        if has_then and has_now:
            x1 = np.where(come, NOW, THEN)[:, np.newaxis].astype(np.float32)
            y1 = np.where(come, y[number, 1], y[number, 0])[:, np.newaxis].astype(np.float32)
            line = sheet.source(
                f"line {name}", moves=("x1", "y1"), x0=[THEN], y0=[y[number, 0]], x1=x1, y1=y1
            )
            drawn = sheet.glyph(Segment, "x0", "y0", "x1", "y1", source=line, line_width=3)
            sheet.inks(drawn, line_color=ink)
        for side, x in enumerate((THEN, NOW)):
            if np.isnan(values[number, side]):
                continue
            shown = come if side else come | True
            place = np.where(shown, x, np.nan)[:, np.newaxis].astype(np.float32)
            end = sheet.source(f"end {side} {name}", x=place, y=[y[number, side]])
            dot = sheet.glyph(Scatter, "x", "y", source=end, size=11)
            sheet.inks(dot, fill_color=ink, line_color=ink)


def _draw_labels(sheet: Sheet, names: list[str], values: np.ndarray, y: np.ndarray) -> None:
    """What each end is, beside it; those on the right come with their lines."""
    looks = (("then", THEN - 14, "right"), ("now", NOW + 14, "left"))
    inks = np.array(_inks(values))
    for side, (label, x, align) in enumerate(looks):
        has = np.flatnonzero(~np.isnan(values[:, side]))
        places = _spread(y[has, side])
        for ink in dict.fromkeys(inks[has]):
            own = np.flatnonzero(inks[has] == ink)
            rows = has[own]
            factors = [_times(values[row, side]) for row in rows]
            texts = [
                f"{names[row]}   {factor}" if align == "right" else f"{factor}   {names[row]}"
                for row, factor in zip(rows, factors)
            ]
            come = np.arange(len(names) + 1)[:, np.newaxis] > rows
            shown = np.where(come | (side == 0), np.arange(1, len(rows) + 1), 0)
            source = sheet.numbers(
                f"{label} {ink}", x, 0, shown, names=["", *texts], ink=ink, align=align, size=14
            )
            source.data["y"] = places[own]


def _spread(wanted: np.ndarray) -> np.ndarray:
    """Places near the wanted ones that are ``APART`` from each other, in the same order."""
    order = np.argsort(wanted)
    places = wanted[order].astype(float)
    for _ in range(500):
        close = APART - np.diff(places)
        if (close <= 1e-6).all():
            break
        push = np.maximum(close, 0) / 2
        places[:-1] -= push
        places[1:] += push
        places = np.clip(places, TOP + 8, HIGH - 8)
    spread = np.empty_like(places)
    spread[order] = places
    return spread


def _times(factor: float) -> str:
    return f"{factor:.0f} x" if factor >= 100 else f"{factor:.1f} x"


def _pair(pair: np.ndarray) -> str:
    then, now = ("-" if np.isnan(factor) else _times(factor) for factor in pair)
    return f"then {then}, now {now}"


def _say(name: str, pair: np.ndarray) -> str:
    then, now = pair
    if np.isnan(now):
        return f"**{name}**: {_times(then)} then; not measured now."
    if np.isnan(then):
        return f"**{name}** is new: {_times(now)}."
    change = "more than then" if now > COUNTS * then else "less than then"
    if abs(np.log(now / then)) < np.log(COUNTS):
        change = "as much as then"
    if now < COUNTS:
        change = "nothing any more"
    return f"**{name}**: {_times(then)} then, {_times(now)} now: {change}."


def _summary(values: np.ndarray) -> str:
    both = ~np.isnan(values).any(axis=1)
    left = int((values[both, 1] >= COUNTS).sum())
    return f"**{left} of {both.sum()} effects are still there.**"
