"""A chart on which a reader draws the curve that they expect, by mouse or keyboard.

The widget's value is the list of heights, 0 where nothing was drawn. ``guess_chart.js`` is its
script. ``line_chart`` later draws the result over the guess.
"""

from collections.abc import Sequence

from cypresskit.draw.scripts import join_modules, read_packaged


def guess_chart(name: str, places: Sequence[float], top: float):
    """Return a widget with a point for each of the ``places``, from 0 to ``top``.

    ``name`` is the chart's name for screen readers.
    """
    import anywidget  # here, since it takes its time and only notebooks have it
    from traitlets import Float, List, Unicode

    class GuessChart(anywidget.AnyWidget):
        _esm = join_modules("draw/shell.js", "draw/guess_chart.js")
        _css = read_packaged("draw/look.css")
        name = Unicode().tag(sync=True)
        places = List(Float()).tag(sync=True)
        top = Float().tag(sync=True)
        value = List(Float()).tag(sync=True)

    heights = [0.0] * len(places)
    return GuessChart(name=name, places=list(places), top=top, value=heights)
