"""Line charts of an experiment, drawn over the reader's guess.

The values are the caller's: measured, simulated or published. A line may be a single point.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cypresskit.draw.chart import Chart, Scale
from cypresskit.draw.player import Player
from cypresskit.draw.predict import Prediction
from cypresskit.draw.sheet import Sheet, require_nonempty

Curve = Mapping[float, float]
GUESS = 5  # the series number whose color, dash and marker every guess has


def line_chart(
    series: Mapping[str, Curve],
    x: str,
    y: str,
    *,
    guess: Prediction | None = None,
    log: str = "",
    title: str = "",
) -> Player:
    """Draw a line from x to y for each name in ``series``.

    If there is a guess, it is shown first, and playing draws the results over it, from the smallest
    x to the largest. Without a guess the picture is static.

    Parameters
    ----------
    series
        For each name, a dict from x to y.
    x, y
        The titles of the axes.
    guess
        A prediction (``ck.draw.predict``) of a curve.
    log
        The logarithmic axes: "x", "y" or "xy".
    title
        By default "y against x".

    Raises
    ------
    ValueError
        If there are no points, or if a logarithmic axis has an x of 0 or less, or no y above 0.

    Examples
    --------
    >>> ck.draw.line_chart({"sgemm_tn": {256: 92, 1024: 1650}}, "N", "Gflop/s")
    """
    wanted = "each curve is a dict from x to y"
    require_nonempty(series.values() if isinstance(series, Mapping) else series, wanted, Mapping)
    places = sorted(
        set(require_nonempty((place for curve in series.values() for place in curve), wanted))
    )
    own = (guess.value if guess else None) or {}
    heights = [height for curve in (*series.values(), own) for height in curve.values()]
    if ("x" in log and places[0] <= 0) or ("y" in log and max(heights) <= 0):
        raise ValueError("a logarithmic axis shows only numbers above 0")

    sheet = Sheet(title or f"{y} against {x}")
    across, up = scale_across(x, places, "x" in log), scale_up(y, heights, "y" in log)
    names = [*series, *(["your guess"] if own else [])]
    chart = Chart(sheet, across, up, label=sheet.title, height=280, legend=names)

    frames = [-np.inf, *places] if own else [places[-1]]
    captions = [_say(series, x, frame) for frame in frames]
    lines = []
    for number, (name, curve) in enumerate(series.items()):
        xs = sorted(curve)
        values = np.array([curve[place] for place in xs], float)
        words = [f"{name}: {value_text(value)} at {place:g}" for place, value in zip(xs, values)]
        so_far = np.where(np.array(xs) <= np.array(frames)[:, np.newaxis], values, np.nan)
        chart.curve(name, xs, so_far, number, words)
        lines.append(f"{name}: " + ", ".join(f"{p:g}: {value_text(v)}" for p, v in zip(xs, values)))

    if own:
        words = [f"your guess: {value_text(height)} at {place:g}" for place, height in own.items()]
        chart.curve("your guess", [*own], [*own.values()], GUESS, words, alpha=0.5)
    return sheet.player(captions, lines, step=x.capitalize(), seconds=6)


def scale_across(title: str, places: Sequence[float], log: bool = False) -> Scale:
    """Return the axis of x, with margins; if linear, no labels almost meet."""
    if log:
        return Scale(title, 0.8 * places[0], 1.25 * places[-1], True, places)
    first = min(0, places[0])
    room = 0.03 * (places[-1] - first) or 1.0
    labels = places[:1]
    for place in places[1:]:
        if place - labels[-1] > room:
            labels = [*labels, place]
    return Scale(title, first - room, places[-1] + room, ticks=labels)


def scale_up(title: str, heights: Sequence[float], log: bool = False) -> Scale:
    """Return the axis of y. A linear axis includes 0."""
    if not log:
        least, most = min(0, *heights), max(0, *heights)
        most = 1 if least == most else most
        return Scale(title, 1.03 * least - 0.03 * most, 1.12 * most - 0.12 * least)
    low = min(height for height in heights if height > 0) / 2
    top = 2 * max(heights)
    steps = (1, 2, 5) if top < 1000 * low else (1,)
    ticks = [step * 10.0**power for power in range(-9, 10) for step in steps]
    return Scale(title, low, top, True, ticks)


def _say(series: Mapping[str, Curve], x: str, at: float) -> str:
    if at == -np.inf:
        return "This is your guess. Press Play to draw the result over it."
    return f"{x} = {at:g}: " + ", ".join(
        f"{name} {value_text(curve[at])}" for name, curve in series.items() if at in curve
    )


def value_text(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
