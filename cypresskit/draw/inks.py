"""Theme colours on a canvas, and texts that fit a cell: what the browser looks up and scales."""

from collections.abc import Sequence

from bokeh.core.property.vectorization import Field
from bokeh.model import Model
from bokeh.models import GlyphRenderer, Plot
from bokeh.transform import linear_cmap

from cypresskit.draw.theme import TOKENS, light


class Inks:
    """The theme colour of each glyph property, and the texts that must fit a cell; filled while a
    picture is built.
    """

    def __init__(self) -> None:
        self.pairs: list[tuple[Model, str, str | list[str]]] = []
        self.fitted: list[tuple[Plot, Model, float, float]] = []

    def __call__(self, drawn, **tokens: str):
        """Give properties a theme colour, as in ``inks(fig.text(...), text_color="ink")``; they
        start with the light one. ``drawn`` has a glyph, or is itself a model, such as a legend.
        """
        model = getattr(drawn, "glyph", drawn)
        for prop, token in tokens.items():
            setattr(model, prop, TOKENS[token][0])
            self.pairs.append((model, prop, token))
        return drawn

    def of(self, column: str, palette: Sequence[str]) -> Field:
        """Colours by a column's whole numbers: those of a palette, or the theme's if it holds tints
        (see ``theme.light``).
        """
        ends = -0.5, len(palette) - 0.5
        if palette[0].split()[0] not in TOKENS:
            return linear_cmap(column, list(palette), *ends)
        mapped = linear_cmap(column, [light(tint) for tint in palette], *ends)
        self.pairs.append((mapped.transform, "palette", list(palette)))
        return mapped

    def fit(self, fig: Plot, renderer: GlyphRenderer, part: float = 0.34, most: float = 13) -> None:
        """Scale a text with its figure: ``part`` of the figure's unit, but at most ``most`` pixels,
        and at least as many as can be read (see ``addFits`` in player.js). At 0.34 a cell holds
        five letters.
        """
        self.fitted.append((fig, renderer.glyph, part, most))
