"""Line charts of an experiment, drawn over the reader's guess.

The values are the caller's: measured, simulated or published. A line may be a single point.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from cypresskit.draw.chart import (
    COLORS,
    KINDS,
    Axes,
    Chart,
    Kind,
    Scale,
    choose_ticks,
    number_text,
)
from cypresskit.draw.display import require_nonempty
from cypresskit.draw.predict import Prediction

Curve = Mapping[float, float]
GUESS = "your guess"


def line_chart(
    series: Mapping[str, Curve],
    x: str,
    y: str,
    *,
    kind: Kind | Mapping[str, Kind],
    about: str,
    guess: Prediction | None = None,
    log: str = "",
    title: str = "",
    notes: Mapping[tuple[str, float], str] | None = None,
) -> Chart:
    """Draw a line from x to y for each name in ``series`` that has points. Its name is at its end,
    or at its start if all ends meet.

    If there is a guess, it is shown first; a button draws the results over it, from the left to the
    right. Lines beyond the fourth are gray, and beside noted ones those without a note.

    Parameters
    ----------
    series
        For each name, a dict from x to y.
    x, y
        The units of the axes.
    kind
        What kind of numbers these are, by name if not all are of one: "measured" (on hardware),
        "modeled" (by the timing model or the compiler), "counted" (by the device or by
        arithmetic), or "published" (printed in a source).
    about
        What is drawn and under which conditions, as sentences: kernel, size, precision, chip.
    guess
        A prediction (``ck.draw.predict``) of a curve.
    log
        The logarithmic axes: "x", "y" or "xy".
    title
        What the chart shows, as a sentence. By default "y against x".
    notes
        By name and x: words that follow a point's number, which is written beside it; "" for none.
        The numbers that the title states are among these.

    Raises
    ------
    ValueError
        If there are no points, for another kind, or if a logarithmic axis has an x of 0 or less,
        or no y above 0.

    Examples
    --------
    >>> ck.draw.line_chart({"sgemm_tn": {256: 92, 1024: 1650}}, "N", "Gflop/s", kind="modeled",
    ...                    about="N x N x N, single precision, HD 5870.")
    """
    found = (place for curve in series.values() for place in curve)
    places = sorted({*require_nonempty(found, "each curve is a dict from x to y")})
    own = (guess.value if guess else None) or {}
    series = {name: curve for name, curve in series.items() if curve}
    drawn = series | ({GUESS: own} if own else {})
    heights = [height for curve in drawn.values() for height in curve.values()]
    if ("x" in log and places[0] <= 0) or ("y" in log and max(heights) <= 0):
        raise ValueError("a logarithmic axis shows only numbers above 0")
    kinds = kind if isinstance(kind, Mapping) else dict.fromkeys(series, kind)
    for name in series:
        if kinds.get(name) not in KINDS:
            raise ValueError(f"the kind of {name!r} is {kinds.get(name)!r}, not one of {KINDS}")
    is_named = len(set(map(kinds.get, series))) > 1
    y_title = y if is_named else f"{y}, {kinds[next(iter(series))]}"
    labels = {
        name: f"{name}, {kinds[name]}" if is_named and name in series else name for name in drawn
    }
    notes = notes or {}
    ends = {curve[max(curve)] for curve in series.values()}
    do_ends_meet = len(series) > 1 and np.ptp([*ends]) < 0.01 * np.ptp(heights)
    across = scale_across(x, places, "x" in log, [place for _, place in notes])
    up = scale_up(y_title, heights, "y" in log)
    quoted = {name: {x: words for (of, x), words in notes.items() if of == name} for name in drawn}
    colors = dict(zip([name for name in series if quoted[name] or not notes], COLORS))

    def paint(width: float) -> Axes:
        axes = Axes(width, across, up, list(labels.values())[len(series) * do_ends_meet :])
        for name, curve in drawn.items():
            xs = sorted(curve)
            is_given = name in series
            axes.curve(
                name,
                xs,
                [curve[place] for place in xs],
                colors.get(name, "soft"),
                name,
                kinds[name] if is_given else "",
                end=labels[name],
                quoted=quoted[name],
                is_named_at_start=do_ends_meet and is_given,
                is_result=bool(own) and is_given,
            )
        return axes

    rows = [
        f"{name}, {kinds[name]}: "
        + ", ".join(f"{at:g}: {number_text(curve[at])}" for at in sorted(curve))
        for name, curve in series.items()
    ]
    return Chart(
        title or f"{y} against {x}",
        paint,
        about=f"{about} Dashed is what you drew." if own else about,
        lines=[
            *rows,
            *(f"{name} at {place:g}: {words}" for (name, place), words in notes.items() if words),
        ],
        guess=bool(own),
    )


def scale_across(
    title: str, places: Sequence[float], log: bool = False, first_ticks: Sequence[float] = ()
) -> Scale:
    """Return the axis of x, from before the first place to the last. Some ticks come first."""
    first, last = places[0], places[-1]
    if log:
        some = [last, *first_ticks, *places[:: -(-len(places) // 8)]]
        return Scale(title, 0.9 * first, 1.03 * last, True, some)
    wide = (last - first) or 1
    low = max(min(0, first), first - 0.07 * wide)
    ticks = places if len(places) < 8 else choose_ticks(low, last, 7)
    return Scale(title, low, first + 1.01 * wide, ticks=ticks)


def scale_up(title: str, heights: Sequence[float], log: bool = False) -> Scale:
    """Return the axis of y, from a tick to a tick. A linear axis includes 0 if the lowest number
    is below the middle.
    """
    if log:
        low, top = min(height for height in heights if height > 0) / 1.5, 1.5 * max(heights)
        powers = [10.0**power for power in range(-9, 13)]
        for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 2.5, 3, 4, 5, 6, 7, 8, 9)):
            scale = Scale(title, low, top, True, [s * power for power in powers for s in steps])
            if len(scale.numbers()) >= 3:
                break
        return scale
    most = max(0, *heights)
    least = min(heights) if most / 2.2 < min(heights) < most else min(0, *heights)
    most = 1 if least == most else most
    ticks = choose_ticks(least, most, 5.01)
    step = ticks[1] - ticks[0]
    low = ticks[0] - step * (least < ticks[0])
    high = ticks[-1] + step * (most > ticks[-1] + 0.25 * step)
    return Scale(title, low, max(high, most), ticks=sorted({low, *ticks, high}))
