"""Pictures of kernels, launches and host programs.

Each function returns a picture that a notebook shows and that can be saved as a web page.
Pictures that only one lesson uses are in ``cypresskit.teach``. The modules here import Bokeh, so
each is imported when its name is first used.

There are two surfaces. What moves is drawn on a ``Sheet`` (sheet.py): boxes, arrows and texts on
stages of Bokeh, whose columns follow the frames, and a ``Player`` plays them. What stands still is
drawn on a ``Canvas`` (chart.py): an SVG, at two widths, in which no two texts overlap; ``Axes`` has
scales besides.

A place is a function of a datum: ``Grid.center`` of a row and a column, ``TimeAxis.to_x`` of a
moment, ``Ruler.x`` of a decimal place, ``Scale.share`` of a value. A view computes what it shows in
a model (a replay, a scene, a layout), and its drawing code passes data to such functions, with at
most an offset of its own. What each mark is stands beside it, in its hover text or in the caption:
a test reads the picture by them (``tests/core/test_places.py``). What is to come is pale.
"""

from typing import TYPE_CHECKING

from cypresskit.lazy import import_later

#: The module of each name.
VIEWS = {
    "Prediction": "predict",
    "bundles": "bundles",
    "chip": "chip",
    "climb": "climb_picture",
    "compilers": "compilers",
    "explore": "explore",
    "interactive": "interactive",
    "line_chart": "line_chart",
    "load": "load",
    "predict": "predict",
    "published": "published_charts",
    "register_block": "register_block",
    "texture_fetch": "texture_fetch",
    "timeline": "pipelines",
    "wavefronts": "wavefronts",
}

__all__ = list(VIEWS)

import_later(__name__, VIEWS)

# The same for type checkers and editors.
if TYPE_CHECKING:
    from cypresskit.draw.bundles import bundles as bundles
    from cypresskit.draw.chip import chip as chip
    from cypresskit.draw.climb_picture import climb as climb
    from cypresskit.draw.compilers import compilers as compilers
    from cypresskit.draw.explore import explore as explore
    from cypresskit.draw.interactive import interactive as interactive
    from cypresskit.draw.line_chart import line_chart as line_chart
    from cypresskit.draw.load import load as load
    from cypresskit.draw.pipelines import timeline as timeline
    from cypresskit.draw.predict import Prediction as Prediction
    from cypresskit.draw.predict import predict as predict
    from cypresskit.draw.published_charts import published as published
    from cypresskit.draw.register_block import register_block as register_block
    from cypresskit.draw.texture_fetch import texture_fetch as texture_fetch
    from cypresskit.draw.wavefronts import wavefronts as wavefronts
