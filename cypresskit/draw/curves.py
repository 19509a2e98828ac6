"""Curves of an experiment: a number that moves as one thing changes, over what the reader guessed.

What is drawn is given, measured or simulated by the caller. Published figures and play heads are in ``performance``.
"""

from collections.abc import Mapping

import numpy as np
from bokeh.models import BasicTickFormatter, FixedTicker

from cypresskit.draw.player import Player
from cypresskit.draw.predict import Prediction
from cypresskit.draw.sheet import Sheet


def curves(
    series: Mapping[str, Mapping[float, float]],
    x: str,
    y: str,
    *,
    guess: Prediction | None = None,
    log: str = "",
    title: str = "",
) -> Player:
    """A still picture: for each name in ``series`` a curve from x to y, with the axes named ``x`` and ``y``; ``log``
    says which of them are logarithmic ("x", "y", "xy"). A guessed curve is drawn below, a guessed x upright. Raises
    ``ValueError`` without a point."""
    places = sorted({place for curve in series.values() for place in curve})
    if not places:
        raise ValueError("there is nothing to draw: each curve is a dict from x to y")
    guessed = guess.value if guess else None
    shown = dict(series) | ({"your guess": guessed} if isinstance(guessed, dict) else {})
    heights = [height for curve in shown.values() for height in curve.values()]
    sheet = Sheet(title or f"{y} against {x}")
    low = min(h for h in heights if h > 0) / 2 if "y" in log else 0
    top = max(heights) * (2 if "y" in log else 1.12)
    wide = (places[0] * 0.8, places[-1] * 1.25) if "x" in log else (min(0, places[0]), places[-1] * 1.05)
    scales = {f"{axis}_axis_type": "log" for axis in log}
    fig = sheet.chart(sheet.title, x, y, height=300, x_range=wide, y_range=(low, top), **scales)
    fig.xaxis.ticker = FixedTicker(ticks=places)
    fig.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    items, lines = [], [sheet.title]
    for number, (name, curve) in enumerate(shown.items()):
        at = sorted(curve)
        values = [curve[place] for place in at]
        mine = name == "your guess"
        words = [f"{name}: {_short(value)} at {place:g}" for place, value in zip(at, values)]
        alpha = 0.5 if mine else 1.0
        items.append((name, sheet.curve(fig, name, at, values, number, words, hollow=mine, alpha=alpha)))
        if not mine:
            lines.append(f"{name}: " + ", ".join(f"{p:g}: {_short(v)}" for p, v in zip(at, values)))
    caption = ""
    if isinstance(guessed, int | float):
        sheet.head(fig, np.array([guessed]), low, top, "guess")
        caption = f"Dashed: your guess, {guessed:g}."
    sheet.series(fig, items, "below", 2)
    return sheet.player([fig], [caption], "\n".join(lines))


def _short(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
