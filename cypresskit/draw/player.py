"""The player: a picture over many frames that plays in the browser, without Python.

A ``Player`` holds Bokeh figures whose sources show one frame, and *tracks*: how a column of a
source changes from frame to frame. Only changes are stored, so a thousand frames of a hundred cells
take a few kilobytes. ``tracks.js`` expands them in the browser, ``player.js`` plays.

A notebook shows a player that is a cell's value. Until its script runs, its text is in its place.
``ck.draw.load()`` has to be called once in a notebook, before the first player. Frames aren't
computed on demand: ``interactive`` builds a new picture in Python instead.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from string import Template

import bokeh
import numpy as np
from bokeh.core.serialization import Serializer
from bokeh.model import Model
from bokeh.models import ColumnDataSource, Plot

from cypresskit.draw import theme
from cypresskit.draw.display import Displayable, embed, text_form
from cypresskit.draw.scripts import read_packaged

SPEEDS = {"slowest": 0.125, "slow": 0.4, "normal": 1.0, "fast": 2.5, "fastest": 6.0}
About = str | Sequence[tuple[int, str]]  # a text, or texts with the frames where they begin
SECONDS = 12.0  # duration at normal speed, if that is 1 to 30 frames per second


def format_short(value: float) -> str:
    """Return a number in about five characters, as players write it into a cell."""
    size = abs(value)
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    if float(value).is_integer() and size < 1e5:
        return str(int(value))
    if size >= 1e5 or size < 1e-3:
        digits, exponent = f"{value:.0e}".split("e")
        return f"{digits}e{int(exponent)}"
    places = 3 - sum(size >= limit for limit in (1, 10, 100))
    text = str(Decimal(float(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))
    return text.replace("0.", ".", 1) if size < 1 else text


@dataclass(frozen=True, eq=False)
class Track:
    """How ``source.data[column]`` changes over the frames."""

    source: ColumnDataSource
    column: str
    frames: np.ndarray  #: (frames, cells) of float32, float64, int32, uint8 or uint16
    text: str = ""  #: a second column, which gets the numbers as text
    prefix: str = ""  #: if given, whole numbers are written after it, and negative ones are blank
    names: Sequence[str] = ()  #: if given, each number is replaced by a name, a negative by ""
    moves: bool = False  #: whether values glide between frames, except from or to NaN

    def __post_init__(self) -> None:
        """Put the first frame into the source."""
        self.source.data[self.column] = self.frames[0].copy()
        if self.text:
            self.source.data[self.text] = [""] * self.frames.shape[1]

    def changes(self) -> dict[str, np.ndarray]:
        """Return the values that change from frame to frame, in order."""
        bits = np.ascontiguousarray(self.frames).view(f"u{self.frames.dtype.itemsize}")
        at, cell = np.nonzero(bits[1:] != bits[:-1])
        small = np.uint16 if max(self.frames.shape) < 1 << 16 else np.int32
        return {
            "frame": (at + 1).astype(small),
            "cell": cell.astype(small),
            "value": self.frames[1:][at, cell],
        }

    def text_of(self, value: float) -> str:
        """Return a number as the player writes it."""
        if self.names:
            return self.names[int(value)] if value >= 0 else ""
        if not self.prefix:
            return format_short(value)
        return f"{self.prefix}{value:,}" if value >= 0 else ""

    def as_dict(self) -> dict:
        """Return the track for ``tracks.js``. Every value that occurs comes with its text."""
        values = np.unique(self.frames).tolist() if self.text else []
        return {
            "source": self.source,
            "column": self.column,
            "changes": self.changes(),
            "text": self.text,
            "texts": [(value, self.text_of(value)) for value in values],
            "moves": self.moves,
        }


class Parts:
    """The parts of a picture that a view fills in for its player."""

    def __init__(self, title: str) -> None:
        self.title = theme.make_readable(title)
        #: Model, property, and its theme color or, for a palette, a list of them.
        self.colors: list[tuple[Model, str, str | list[str]]] = []
        #: Texts that scale with their figure: figure, renderer, size in units of x and of y, 0 for
        #: none, and largest size in pixels (``addFits`` in player.js).
        self.fitted: list[tuple[Plot, Model, float, float, float]] = []
        #: Figures that are as wide as a phone: figure, where its rows begin and end, pixels that
        #: their names and shares take, and its height in pixels (``addSqueezes``).
        self.squeezed: list[tuple[Plot, float, float, float, float, float]] = []
        self.tracks: list[Track] = []
        self.figures: list[Plot] = []
        #: Clicks in a ``figure`` select cells of a ``source`` by its column ``key`` (negative for
        #: none). ``w`` and ``h`` are the cells' sizes, numbers or columns. The column ``lit``
        #: becomes ``on`` for selected cells and 0 for others; ``marks`` are then visible.
        self.picks: list[dict] = []
        self.about: dict[int, About] = {}  #: the text for each key that can be selected
        self.scene_of_key: dict[int, int] = {}  #: the scene's number for keys that lead to one
        self.labels: dict[str, str] = {}  #: the figures' names for screen readers, by id


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a picture is laid out and played."""

    #: Figures and texts beside the picture, or below it on a narrow page.
    side: Sequence[Plot | str] = ()
    #: A kernel's lines, and the current ones of each frame, counted from 1. Shown above ``side``.
    #: A click on a line goes to the next frame in which it is current.
    listing: tuple[Sequence[str], Sequence[Sequence[int]]] = ((), ())
    line_colors: Mapping[int, str] = field(default_factory=dict)  #: of some lines, as CSS
    below: Sequence[str] = ()  #: texts below the picture
    step: str = "Step"  #: what the slider counts
    #: Several recordings in one picture: name and number of frames of each, in order.
    scenes: Sequence[tuple[str, int]] = ()
    #: The frame at which each scene opens: a telling one, or the first in which something happens.
    opens: int = 0
    seconds: float = SECONDS  #: duration at normal speed


class Player(Displayable):
    """A picture that plays.

    Parameters
    ----------
    parts
        Figures, tracks and texts.
    picture
        The figures, one below the other.
    captions
        A text for each frame, with marks as in ``theme.html``. With one frame there are no
        controls.
    text
        The text form.
    settings
        The layout, and how it plays.
    """

    def __init__(
        self,
        parts: Parts,
        picture: Sequence[Plot],
        captions: Sequence[str],
        text: str,
        settings: Settings,
    ) -> None:
        self.title = parts.title
        self.tracks = parts.tracks
        self.figures = parts.figures
        self.about = parts.about
        self._text = theme.make_readable(text)
        self.captions = [theme.make_readable(caption) for caption in captions]
        self.scenes = list(settings.scenes) or [("", len(captions))]
        keys = self._keyboard_help()
        self.html = self._html(picture, settings, keys)
        # Bokeh ignores tags; player.js reads this one. Its fields are those of ``display.FIELDS``.
        placed = [part for part in (*picture, *settings.side) if not isinstance(part, str)]
        self.figures[0].tags = [
            {
                "captions": [theme.html(caption) for caption in self.captions],
                "label": f"{self.title}. {keys}".strip(),
                "labels": [parts.labels[fig.id] for fig in placed],
                "sceneOfKey": list(parts.scene_of_key.items()),
                "picks": parts.picks,
                **self._recording(parts, settings),
            }
        ]

    def _html(self, picture: Sequence[Plot], settings: Settings, keys: str) -> str:
        """Return the player's elements, with places for its figures."""
        beside = [_placed(part) for part in settings.side]
        if settings.listing[0]:
            beside.insert(0, '<div data-part="listing" class="code"></div>')
        shown = {
            "moving": keys,
            "several": len(self.scenes) > 1,
            "clicks": self.about,
            "keyed": keys,
        }
        frames = max(frames for _, frames in self.scenes)
        shapes = sum(fig.aspect_ratio for fig in picture)
        return HTML.substitute(
            {name: "" if is_shown else "hidden" for name, is_shown in shown.items()},
            css=theme.minify(read_packaged("draw/player.css")),
            scenes=_buttons(name for name, _ in self.scenes),
            speeds=_speeds(frames / settings.seconds),
            step=theme.escape_html(settings.step),
            # What is beside the picture takes the width that it leaves.
            most=f"max(360px, {theme.ROOM} * {shapes:.3f} + 20px)",
            picture="".join(map(_placed, picture)),
            side=f"{SIDE}{''.join(beside)}</div>" if beside else "",
            below="".join(map(_placed, settings.below)),
            hint=keys and f"{keys}. In a notebook, click the picture first.",
        )

    def _recording(self, parts: Parts, settings: Settings) -> dict:
        """Return the script's data on frames, on what can be selected in them, and on the
        settings.
        """
        firsts = np.cumsum([0, *(frames for _, frames in self.scenes)])
        lines, current = settings.listing
        return {
            "about": [[int(key), _words(words)] for key, words in self.about.items()],
            "figures": self.figures,
            "fitted": [list(text) for text in parts.fitted],
            "squeezed": [list(figure) for figure in parts.squeezed],
            "colors": [list(color) for color in parts.colors],
            "scenes": [[int(first), frames] for first, (_, frames) in zip(firsts, self.scenes)],
            "tracks": [track.as_dict() for track in self.tracks],
            "listing": {
                "lines": [theme.escape_html(line.replace("    ", "  ")) for line in lines],
                "current": current,
                "colors": list(settings.line_colors.items()),
            },
            "opens": settings.opens,
            "step": theme.make_readable(settings.step),
        }

    def _keyboard_help(self) -> str:
        """Return the help on the keys of a moving picture; "" for one that stands still."""
        if len(self) == 1:
            return ""
        keys = "Keys: Space plays and pauses, Left and Right step, Home and End jump"
        return f"{keys}, Up and Down select, Escape deselects" if self.about else keys

    def __len__(self) -> int:
        return len(self.captions)

    def __repr__(self) -> str:
        return self._text

    def to_html(self) -> str:
        # What a `Document` would be saved as, which looks at all its models for each root
        roots = Serializer(deferred=False).encode(list(self.figures))
        document = {"version": bokeh.__version__, "title": self.title, "roots": roots}
        data = json.dumps({"document": document, "html": self.html})
        return embed("player", data, text_form(repr(self)))


def _words(words: About) -> str | list:
    """Return the text for a key as HTML, or a list of (first frame, HTML)."""
    if isinstance(words, str):
        return theme.html(words)
    return [[frame, theme.html(part)] for frame, part in words]


def _speeds(frames: float) -> str:
    """Return the menu of speeds. Normal speed is ``frames`` per second, but at least 1 and at most
    30.
    """
    rate = min(max(frames, 1.0), 30.0)
    options = [(f"{rate * factor:g}", name) for name, factor in SPEEDS.items()]
    chosen = {"normal": " selected"}
    return "".join(
        f'<option value="{rate}"{chosen.get(name, "")}>{name} speed</option>'
        for rate, name in options
    )


def _buttons(labels: Iterable[str]) -> str:
    return "".join(f"<button>{theme.html(label)}</button>" for label in labels)


def _placed(part: Plot | str) -> str:
    """Return a place for a figure, or a text. Figures side by side have the same height."""
    if isinstance(part, str):
        return f'<div class="text">{part}</div>'
    least = part.styles.get("min-width", "100%")
    share = f"--share: {part.aspect_ratio:.3g}; --least: {least}"
    return f'<div class="figure" role="img" id="{part.id}" style="{share}"></div>'


HTML = Template(read_packaged("draw/player.html"))
SIDE = '<div class="side" role="group" aria-label="Beside the picture">'
