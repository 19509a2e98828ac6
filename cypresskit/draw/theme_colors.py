"""Record which glyph colors follow the page's theme, and which texts have to fit a cell.

A canvas can't use CSS variables. While a picture is built, glyphs get the light theme's colors, and
``ThemeColors`` lists which property has which theme color. ``player.js`` looks the colors up in the
browser, again whenever the theme changes, and scales the texts.
"""

from collections.abc import Sequence

from bokeh.core.property.vectorization import Field
from bokeh.model import Model
from bokeh.models import GlyphRenderer, Plot
from bokeh.transform import linear_cmap

from cypresskit.draw.theme import TOKENS, light


class ThemeColors:
    """The theme colors and the fitted texts of a picture."""

    def __init__(self) -> None:
        #: Model, property, and its theme color or, for a palette, a list of them.
        self.pairs: list[tuple[Model, str, str | list[str]]] = []
        #: Figure, text glyph, size in the figure's units, and largest size in pixels.
        self.fitted: list[tuple[Plot, Model, float, float]] = []

    def apply(self, drawn, **tokens: str):
        """Give properties a theme color: ``colors.apply(legend, label_text_color="ink")``.

        ``drawn`` is a renderer with a glyph, or a model such as a legend. It is returned.
        """
        model = getattr(drawn, "glyph", drawn)
        for prop, token in tokens.items():
            setattr(model, prop, TOKENS[token][0])
            self.pairs.append((model, prop, token))
        return drawn

    def by_index(self, column: str, palette: Sequence[str]) -> Field:
        """Return the mapping of a column of indices to a palette of colors or theme tints.

        See ``theme.light`` for tints.
        """
        ends = -0.5, len(palette) - 0.5
        if palette[0].split()[0] not in TOKENS:
            return linear_cmap(column, list(palette), *ends)
        mapped = linear_cmap(column, [light(tint) for tint in palette], *ends)
        self.pairs.append((mapped.transform, "palette", list(palette)))
        return mapped

    def fit(self, fig: Plot, renderer: GlyphRenderer, part: float, most: float = 13) -> None:
        """Scale a text with its figure.

        Its size is ``part`` of the figure's unit, at most ``most`` pixels and at least a legible
        size (``addFits`` in player.js). At 0.34, a cell of one unit holds five letters.
        """
        self.fitted.append((fig, renderer.glyph, part, most))
