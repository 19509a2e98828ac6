"""The player: a picture over many frames that plays in the browser without Python.

A ``Player`` holds Bokeh figures whose sources show one frame, and *tracks*: how a column of a
source changes from frame to frame, as changes only, so that a thousand frames of a hundred cells
weigh some kilobytes. ``tracks.js`` spreads them out in the browser, ``player.js`` plays; what
``moves`` travels from one frame to the next.

A player is shown in a notebook by being a cell's value; until its script runs (or where none may) a
still stands there. Call ``load()`` once in a notebook before the first player. Left out: frames
computed on demand. What needs a new simulation is built anew, in Python (see ``interactive``).
"""

import gc
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from string import Template

import bokeh
import numpy as np
from bokeh.core.serialization import Serializer
from bokeh.models import ColumnDataSource, Plot

from cypresskit import session
from cypresskit.draw import svg_export, theme
from cypresskit.draw.display import Displayable, embed, scripts, still_image
from cypresskit.draw.scripts import joined, packaged
from cypresskit.draw.theme_colors import ThemeColors

SPEEDS = {"slowest": 0.125, "slow": 0.4, "normal": 1.0, "fast": 2.5, "fastest": 6.0}
About = str | Sequence[tuple[int, str]]
#: How long a picture plays at normal speed, if that is 1 to 30 frames a second.
SECONDS = 12.0


def short(value: float) -> str:
    """A number in about five characters, as the player writes it into a cell."""
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
    """How ``source.data[column]`` changes: ``frames`` has shape (frames, cells), dtype float32,
    float64, int32, uint8 or uint16. ``text`` names a second column, which gets the numbers as text.
    With a ``prefix`` ("k = ") they are whole numbers written after it, blank if negative; ``names``
    replaces each by a name. With ``moves`` a value glides from frame to frame, except from or to
    NaN, where it jumps.
    """

    source: ColumnDataSource
    column: str
    frames: np.ndarray
    text: str = ""
    prefix: str = ""
    names: Sequence[str] = ()
    moves: bool = False

    def __post_init__(self) -> None:
        """Put the first frame into the source."""
        self.source.data[self.column] = self.frames[0].copy()
        if self.text:
            self.source.data[self.text] = [""] * self.frames.shape[1]

    def changes(self) -> dict[str, np.ndarray]:
        """The values that change from frame to frame, for ``tracks.js``, in order."""
        bits = np.ascontiguousarray(self.frames).view(f"u{self.frames.dtype.itemsize}")
        at, cell = np.nonzero(bits[1:] != bits[:-1])
        small = np.uint16 if max(self.frames.shape) < 1 << 16 else np.int32
        return {
            "frame": (at + 1).astype(small),
            "cell": cell.astype(small),
            "value": self.frames[1:][at, cell],
        }

    def text_of(self, value: float) -> str:
        """A number as the player writes it."""
        if self.names:
            return self.names[int(value)]
        if not self.prefix:
            return short(value)
        return f"{self.prefix}{value}" if value >= 0 else ""

    def as_dict(self) -> dict:
        """The track as ``tracks.js`` takes it; every value that occurs comes with its text."""
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
    """The parts of a picture that a view fills in for its player. ``title`` names it. ``about`` has
    the words for each key that can be chosen: a text, or pairs of a frame and the text from it on.
    ``scene_of_key``: the scene's number for keys that choose one. ``picks``: clicks in a ``figure``
    choose cells of a ``source`` by the column ``key`` (whole numbers, negative for none); ``w`` and
    ``h`` are the cells' sizes, numbers or columns, and the column ``lit`` is ``on`` for the chosen
    ones and 0 for others.
    """

    def __init__(self, title: str) -> None:
        self.title = theme.readable(title)
        self.colors = ThemeColors()
        self.tracks: list[Track] = []
        self.figures: list[Plot] = []
        self.picks: list[dict] = []
        self.about: dict[int, About] = {}
        self.scene_of_key: dict[int, int] = {}
        self.labels: dict[str, str] = {}  # what a screen reader calls a figure, by its id


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a picture is laid out and played."""

    #: Figures and texts beside the picture, or below it on a narrow page.
    side: Sequence[Plot | str] = ()
    #: A kernel's lines and for each frame the current one, counted from 1; it stands on top of
    #: ``side``. A click on a line goes to the next frame in which it is current.
    listing: tuple[Sequence[str], Sequence[int]] = ((), ())
    below: Sequence[str] = ()  #: texts below the picture
    step: str = "Step"  #: what the slider moves along
    #: Several recordings in one picture: a name and a number of frames each, one after another in
    #: all tracks.
    scenes: Sequence[tuple[str, int]] = ()
    #: In place of a clock: names and what can be set, the first turning fastest through the frames;
    #: nothing plays.
    dials: Sequence[tuple[str, Sequence[str]]] = ()
    seconds: float = SECONDS  #: how many seconds it plays at normal speed
    #: The frame that a still shows, and the player until it is played: by default the last.
    still_frame: int | None = None


class Player(Displayable):
    """A picture that plays; see the module. Controls and caption stand on top, where a low screen
    shows them; then ``picture``, one figure below the other. ``captions`` has words for each frame
    (see ``theme.html``), ``text`` is the text form. With one frame there is nothing to play, and no
    controls.
    """

    def __init__(
        self,
        parts: Parts,
        picture: Sequence[Plot],
        captions: Sequence[str],
        text: str,
        settings: Settings = Settings(),
    ) -> None:
        self.title = parts.title
        self.tracks = parts.tracks
        self.figures = parts.figures
        self.about = parts.about
        self._text = theme.readable(text)
        self._colors = parts.colors
        if not captions:
            raise ValueError(f"the player {self.title!r} has no captions: give one for each frame")
        for track in self.tracks:
            if len(track.frames) != len(captions):
                name = f"{track.column!r} of {track.source.name!r}"
                counts = f"{len(track.frames)} frames and the player has {len(captions)} captions"
                raise ValueError(f"the track {name} has {counts}: give as many of both")
        self.captions = [theme.readable(caption) for caption in captions]
        self.scenes = list(settings.scenes) or [("", len(captions))]
        last = len(captions) - 1
        self.still_frame = last if settings.still_frame is None else settings.still_frame
        most = max(frames for _, frames in self.scenes)
        is_moving = not settings.dials and (most > 1 or len(self.scenes) > 1)
        keys = self._keyboard_help() if is_moving else ""
        hint = ""
        if keys:
            hint = f"{keys}. In a notebook click the picture first."
        self.html = self._html(picture, settings, is_moving, hint)
        # A tag is for what Bokeh itself doesn't read: the script takes it from here. Its fields are
        # those of ``display.FIELDS``.
        placed = [part for part in (*picture, *settings.side) if not isinstance(part, str)]
        self.figures[0].tags = [
            {
                "captions": [theme.html(caption) for caption in self.captions],
                "label": f"{self.title}. {keys}".strip(),
                "labels": [parts.labels[fig.id] for fig in placed],
                "sceneOfKey": list(parts.scene_of_key.items()),
                "picks": parts.picks,
                **self._recording(),
                **_settings_fields(settings),
            }
        ]

    def _html(self, picture: Sequence[Plot], settings: Settings, is_moving: bool, hint: str) -> str:
        """The player's elements, with places for its figures."""
        beside = [_placed(part) for part in settings.side]
        if settings.listing[0]:
            beside.insert(0, '<div data-part="listing" class="code"></div>')
        shown = {
            "moving": is_moving,
            "several": len(self.scenes) > 1,
            "turned": settings.dials,
            "clicks": self.about,
            "keyed": hint,
        }
        most = max(frames for _, frames in self.scenes)
        return HTML.substitute(
            {name: "" if is_shown else "hidden" for name, is_shown in shown.items()},
            css=theme.minified(packaged("draw/player.css")),
            scenes=_buttons(name for name, _ in self.scenes),
            speeds=_speeds(most / settings.seconds),
            step=theme.escaped(settings.step),
            dials="".join(map(_dial, settings.dials)),
            picture="".join(map(_placed, picture)),
            side=f'<div class="side">{"".join(beside)}</div>' if beside else "",
            below="".join(map(_placed, settings.below)),
            hint=hint,
        )

    def _recording(self) -> dict:
        """What the script gets of the frames, and of what can be chosen in them."""
        firsts = np.cumsum([0, *(frames for _, frames in self.scenes)])
        return {
            "about": [[int(key), _words(words)] for key, words in self.about.items()],
            "figures": self.figures,
            "fitted": [list(text) for text in self._colors.fitted],
            "colors": [list(color) for color in self._colors.pairs],
            "firstFrame": self._first_frame(firsts),
            "scenes": [[int(first), frames] for first, (_, frames) in zip(firsts, self.scenes)],
            "stillFrame": self.still_frame,
            "tracks": [track.as_dict() for track in self.tracks],
        }

    def _first_frame(self, firsts: np.ndarray) -> int:
        """The frame that is shown before it is played: the still's, in the first scene."""
        scene = int(np.searchsorted(firsts, self.still_frame, "right")) - 1
        return min(self.still_frame - int(firsts[scene]), self.scenes[0][1] - 1)

    def _keyboard_help(self) -> str:
        """What the keys of a moving picture do."""
        keys = "Keys: space plays, arrows step, Home and End jump"
        return f"{keys}, up and down choose, Escape lets go" if self.about else keys

    def __len__(self) -> int:
        return len(self.captions)

    def __repr__(self) -> str:
        return self._text

    def still(self) -> str:
        """The most telling frame, ``still_frame``, as an SVG picture."""
        shown: dict[str, dict] = {}
        for track in self.tracks:
            named = shown.setdefault(track.source.id, {})
            values = track.frames[self.still_frame]
            named[track.column] = values
            if track.text:
                named[track.text] = [track.text_of(value) for value in values.tolist()]
        return svg_export.render(
            self.title, self.captions[self.still_frame], self.figures, shown, self._colors
        )

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        # What a `Document` would be saved as, which looks at all its models for each root
        roots = Serializer(deferred=False).encode(list(self.figures))
        document = {"version": bokeh.__version__, "title": self.title, "roots": roots}
        data = json.dumps({"document": document, "html": self.html})
        inside = still_image(self.still(), repr(self)) if still else ""
        return embed("player", data if links else theme.without_links(data), inside)


def _settings_fields(settings: Settings) -> dict:
    """What the script gets of a player's settings."""
    lines, current = settings.listing
    return {
        "dials": [
            [theme.readable(name), [theme.readable(value) for value in values]]
            for name, values in settings.dials
        ],
        "listing": {
            "lines": [theme.escaped(line.replace("    ", "  ")) for line in lines],
            "current": current,
        },
        "step": theme.readable(settings.step),
    }


def _words(words: About) -> str | list:
    """The words for a key, or for a key from certain frames on, as HTML."""
    if isinstance(words, str):
        return theme.html(words)
    return [[frame, theme.html(part)] for frame, part in words]


def _speeds(frames: float) -> str:
    """The choice of speeds; the middle one shows so many ``frames`` a second, but 1 to 30."""
    rate = min(max(frames, 1.0), 30.0)
    options = [(f"{rate * factor:g}", name) for name, factor in SPEEDS.items()]
    chosen = {"normal": " selected"}
    return "".join(
        f'<option value="{rate}"{chosen.get(name, "")}>{name} speed</option>'
        for rate, name in options
    )


def _buttons(labels: Iterable[str]) -> str:
    return "".join(f"<button>{theme.html(label)}</button>" for label in labels)


def _dial(dial: tuple[str, Sequence[str]]) -> str:
    name = theme.escaped(dial[0])
    most = len(dial[1]) - 1
    return (
        f'<label><span></span><input type="range" value="0" max="{most}"'
        f' aria-label="{name}"></label>'
    )


def _placed(part: Plot | str) -> str:
    """A place for a figure, or a text. Figures that stand side by side are equally high."""
    if isinstance(part, str):
        return f'<div class="text">{part}</div>'
    share = f"--share: {part.aspect_ratio:.3g}"
    return f'<div class="figure" role="img" id="{part.id}" style="{share}"></div>'


HTML = Template(packaged("draw/player.html"))


def cell_script() -> str:
    """What ``load`` does to a notebook's cells."""
    return f"(() => {{\n{joined('draw/il_colors.js', 'draw/cells.js')}}})()"


def load(frames: bool | None = None) -> None:
    """Load the players' scripts (0.5 MB) into a notebook: once, in a cell of its own. IL in cells
    gets colors, a running cell shows its seconds.

    With ``frames``, by default on Colab alone, every picture brings the scripts along, for
    notebooks that show each output in a frame of its own.

    What Python has loaded by then is taken out of its search for garbage (``gc.freeze``), unless
    something was before: that takes a twentieth of a lesson's time.
    """
    from IPython.display import HTML, display

    Displayable.framed = "google.colab" in sys.modules if frames is None else frames
    session.begin()
    if not gc.get_freeze_count():
        gc.freeze()
    # JupyterLab's breaks long lines in a word
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"
    code = f"<script>{scripts()}</script>{wrap}<script>{cell_script()}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
