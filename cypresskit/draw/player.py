"""The player: a picture over many frames that plays in the browser without Python.

A ``Player`` holds Bokeh figures whose sources show one frame, and *tracks*: how a column of a
source changes from frame to frame, as changes only, so that a thousand frames of a hundred cells
weigh some kilobytes. ``player.js`` spreads them out in the browser and plays; what ``moves``
travels from one frame to the next.

A player is shown in a notebook by being a cell's value; until its script runs (or where none may) a
still stands there. Call ``load()`` once in a notebook before the first player. Left out: frames
computed on demand. What needs a new simulation is built anew, in Python (see ``controls``).
"""

import base64
import gc
import sys
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from html import escape
from pathlib import Path
from string import Template

import numpy as np
from bokeh.core.json_encoder import serialize_json
from bokeh.core.serialization import Serializer
from bokeh.document import Document
from bokeh.models import ColumnDataSource, Plot
from bokeh.resources import Resources

from cypresskit.draw import still, theme
from cypresskit.saving import save_file

SPEEDS = {"slowest": 0.125, "slow": 0.4, "normal": 1.0, "fast": 2.5, "fastest": 6.0}
About = str | Sequence[tuple[int, str]]
LASTS = 12.0  # seconds that a picture plays at normal speed, if that is 1 to 30 frames a second


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
        """The values that change from frame to frame, for ``player.js``, in order."""
        bits = np.ascontiguousarray(self.frames).view(f"u{self.frames.dtype.itemsize}")
        at, cell = np.nonzero(bits[1:] != bits[:-1])
        small = np.uint16 if max(self.frames.shape) < 1 << 16 else np.int32
        return {
            "frame": (at + 1).astype(small),
            "cell": cell.astype(small),
            "value": self.frames[1:][at, cell],
        }

    def written(self, value: float) -> str:
        """A number as the player writes it."""
        if self.names:
            return self.names[int(value)]
        if not self.prefix:
            return short(value)
        return f"{self.prefix}{value}" if value >= 0 else ""

    def told(self) -> dict:
        """The track as ``player.js`` takes it; every value that occurs comes with its text."""
        texts = (
            [(value, self.written(value)) for value in np.unique(self.frames).tolist()]
            if self.text
            else []
        )
        named = {name: getattr(self, name) for name in ("source", "column", "text", "moves")}
        return named | {"changes": self.changes(), "texts": texts}


@dataclass(frozen=True)
class Guess:
    """A question asked before the picture plays, its choices, and for the end the recorded answer:
    in words, and as the right choice.
    """

    question: str
    choices: Sequence[str]
    truth: str
    right: str


class Shown:
    """A picture that a notebook shows and that can be saved: a ``title``, a text form, a still, and
    HTML.
    """

    title: str
    framed = False  # each output has a frame of its own; see load()

    def still(self) -> str:
        """The most telling frame as an SVG picture."""
        raise NotImplementedError

    def _embedded(self, alone: bool = False) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        own = (
            f"<style>:root {{ --ck-high: 440px }}</style><script>{scripts()}</script>"
            if self.framed
            else ""
        )
        return {"text/plain": repr(self), "text/html": own + self._embedded()}

    def page(self, scripts: str, links: str = "") -> str:
        """The picture as an HTML page, with the elements that load the players' ``scripts`` and
        with ``links`` below it; without ``links`` none leads to a lesson. Its address may set frame
        and selection: see page.js.
        """
        parts = {"player": self._embedded(alone=not links), "address": theme.packaged("page.js")}
        return theme.PAGE.substitute(parts, title=escape(self.title), scripts=scripts, links=links)

    def save(self, path: str | Path) -> Path:
        """Write a page (.html) that plays from disk, without network, or a still (.svg), and return
        its path. A page begins where its address says (page.html#frame=120&at=7). Raises
        ``ValueError`` for other endings.
        """
        path = Path(path)
        if path.suffix == ".svg":
            save_file(path, self.still())
        elif path.suffix in (".html", ".htm"):
            save_file(path, self.page(f"<script>{scripts()}</script>"))
        else:
            raise ValueError(f"{path.name}: a player is saved as .html or .svg")
        return path


class Parts:
    """The parts of a picture that a view fills in for its player. ``title`` names it. ``about`` has
    the words for each key that can be chosen: a text, or pairs of a frame and the text from it on.
    ``goes``: keys that choose a scene, to the scene's number. ``picks``: clicks in a ``figure``
    choose cells of a ``source`` by the column ``key`` (whole numbers, negative for none); ``w`` and
    ``h`` are the cells' sizes, numbers or columns, and the column ``lit`` is ``on`` for the chosen
    ones and 0 for others. ``heads``: play heads, as a ``figure`` and a ``source`` whose x is that
    of each frame; a drag there goes to the nearest frame.
    """

    def __init__(self, title: str) -> None:
        self.title, self.inks = title, theme.Inks()
        self.tracks: list[Track] = []
        self.figures: list[Plot] = []
        self.picks: list[dict] = []
        self.about: dict[int, About] = {}
        self.goes: dict[int, int] = {}
        self.heads: list[dict] = []


class Player(Shown):
    """A picture that plays; see the module. Controls and caption stand on top, where a low screen
    shows them; then ``picture``, one below the other, with ``side`` beside it (or below, on a
    narrow page), then ``below``. ``captions`` has words for each frame (see ``theme.html``),
    ``text`` is the text form, ``marks`` are the frames that Page Up and Page Down jump to, ``step``
    names what the slider moves along. ``listing``, a kernel's lines and for each frame the current
    one, counted from 1, stands on top of ``side``; a click on a line goes to the next frame in
    which it is current. ``dials`` in place of a clock: names and what can be set, the first turning
    fastest through the frames; nothing plays. ``scenes``: several recordings in one picture, a name
    and a number of frames each, one after another in all tracks. It plays in ``lasts`` seconds, and
    shows the frame ``begins`` first. A still shows the frame ``tells``: by default the last, or an
    early one if there is a guess, which the last would answer. With one frame there is nothing to
    play, and no controls.
    """

    def __init__(
        self,
        parts: Parts,
        picture: Sequence[Plot],
        captions: Sequence[str],
        text: str,
        *,
        side: Sequence[Plot | str] = (),
        listing: tuple[Sequence[str], Sequence[int]] = ((), ()),
        marks: Sequence[int] = (),
        below: Sequence[str] = (),
        scenes: Sequence[tuple[str, int]] = (),
        dials: Sequence[tuple[str, Sequence[str]]] = (),
        step: str = "Step",
        guess: Guess | None = None,
        lasts: float = LASTS,
        tells: int | None = None,
        begins: int = 0,
    ) -> None:
        self.title, self.tracks, self.figures, self.about = (
            parts.title,
            parts.tracks,
            parts.figures,
            parts.about,
        )
        self._text, self._inks = text, parts.inks
        if not captions or any(len(track.frames) != len(captions) for track in self.tracks):
            raise ValueError(
                f"a player needs as many frames in each track as captions: {len(captions)}"
            )
        self.captions, self.scenes = list(captions), list(scenes) or [("", len(captions))]
        usual = len(captions) // 3 if guess else -1
        self.tells = usual if tells is None else tells
        most = max(frames for _, frames in self.scenes)
        several = len(self.scenes) > 1
        moving = not dials and (most > 1 or several)
        keys = (
            "Keys: space plays, arrows step, Page Up, Page Down, Home and End jump"
            if moving
            else ""
        )
        keys += ", up and down choose, Escape lets go" if self.about and keys else ""
        hint = (
            f'<span class="soft">{keys}; in a notebook click the picture first.</span>'
            if keys
            else ""
        )
        lines, current = listing
        beside = ['<div data-part="listing" class="code"></div>'] * bool(lines) + [
            *map(_placed, side)
        ]
        question, choices = (guess.question, guess.choices) if guess else ("", ())
        shown = {
            "moving": moving,
            "several": several,
            "turned": dials,
            "asks": guess,
            "clicks": self.about,
        }
        self.html = HTML.substitute(
            {name: "" if there else "hidden" for name, there in shown.items()},
            css=theme.PLAYER_CSS,
            scenes=_buttons(name for name, _ in self.scenes),
            speeds=_speeds(most / lasts),
            step=step,
            dials="".join(map(_dial, dials)),
            answers=_buttons(choices),
            asked=theme.html(f"**Guess first:** {question}"),
            picture="".join(map(_placed, picture)),
            side=f'<div class="side">{"".join(beside)}</div>' * bool(beside),
            below="".join(map(_placed, [*below, hint] if hint and not self.about else below)),
        )
        firsts = np.cumsum([0, *(frames for _, frames in self.scenes)])
        # Not a figure's property: the script takes it from here.
        self.figures[0].tags = [
            {
                "label": f"{self.title}. {keys}".strip(),
                "figures": self.figures,
                "captions": [theme.html(caption) for caption in self.captions],
                "scenes": [[int(first), frames] for first, (_, frames) in zip(firsts, self.scenes)],
                "tracks": [track.told() for track in self.tracks],
                "inks": [list(ink) for ink in self._inks.pairs],
                "fitted": [list(text) for text in self._inks.fitted],
                "about": [
                    [
                        int(key),
                        (
                            theme.html(words)
                            if isinstance(words, str)
                            else [[frame, theme.html(part)] for frame, part in words]
                        ),
                    ]
                    for key, words in self.about.items()
                ],
                "listing": {
                    "lines": [escape(line.replace("    ", "  ")) for line in lines],
                    "current": current,
                },
                "dials": [[name, list(values)] for name, values in dials],
                "unguessed": theme.html(
                    f"**Without a guess (go back to the start to make one):** {question}"
                ),
                "truth": theme.html(guess.truth) if guess else "",
                "right": theme.html(guess.right) if guess else "",
                "choices": [theme.html(choice) for choice in choices],
                "picks": parts.picks,
                "heads": parts.heads,
                "tells": self.tells,
                "step": step,
                "hint": hint,
                "goes": list(parts.goes.items()),
                "marks": list(marks),
                "begins": begins,
            }
        ]

    def __len__(self) -> int:
        return len(self.captions)

    def __repr__(self) -> str:
        return self._text

    def still(self) -> str:
        """The most telling frame, ``tells``, as an SVG picture."""
        shown: dict[str, dict] = {}
        for track in self.tracks:
            named, values = shown.setdefault(track.source.id, {}), track.frames[self.tells]
            named[track.column] = values
            if track.text:
                named[track.text] = [track.written(value) for value in values.tolist()]
        return still.svg(self.title, self.captions[self.tells], self.figures, shown, self._inks)

    def _embedded(self, alone: bool = False) -> str:
        """The player as HTML for a page on which ``load()`` was called. Until the scripts run it is
        a still, with the text form as alternative text. If it is ``alone`` there are no lessons to
        link to.
        """
        # Figures are written beside an empty document: one that has them would look through all
        # models three times.
        document = Document(title=self.title).to_json(deferred=False)
        document["roots"] = Serializer(deferred=False).encode(self.figures)
        data = serialize_json({"document": document, "html": self.html})
        data = (theme.without_links(data) if alone else data).encode()
        image, packed = (
            base64.b64encode(part).decode()
            for part in (self.still().encode(), zlib.compress(data, 6))
        )
        return EMBED.substitute(text=escape(repr(self)), still=image, packed=packed)


def _speeds(frames: float) -> str:
    """The choice of speeds; the middle one shows so many ``frames`` a second, but 1 to 30."""
    rate = min(max(frames, 1.0), 30.0)
    options = [(f"{rate * factor:g}", name) for name, factor in SPEEDS.items()]
    return "".join(
        f'<option value="{r}"{" selected" * (n == "normal")}>{n} speed</option>' for r, n in options
    )


def _buttons(labels: Iterable[str]) -> str:
    return "".join(f"<button>{theme.html(label)}</button>" for label in labels)


def _dial(dial: tuple[str, Sequence[str]]) -> str:
    name, most = escape(dial[0]), len(dial[1]) - 1
    return (
        f'<label><span></span><input type="range" value="0" max="{most}"'
        f' aria-label="{name}"></label>'
    )


def _placed(part: Plot | str) -> str:
    """A place for a figure, or a text."""
    return (
        f'<div class="text">{part}</div>'
        if isinstance(part, str)
        else f'<div class="figure" id="{part.id}"></div>'
    )


@cache
def scripts() -> str:
    """Bokeh's scripts and the player's as one that unpacks them, once on a page: 0.5 MB instead of
    1.4.
    """
    bokeh = Resources(mode="inline", components=["bokeh"]).js_raw
    play = f"window.cypresskitPlay = (el, told, index) => {{\n{theme.packaged('player.js')}\n}}"
    packed = zlib.compress("\n".join([*bokeh, play]).encode(), 6)
    return UNPACK.substitute(packed=base64.b64encode(packed).decode(), key=zlib.crc32(packed))


# The script finds its place as the first around it that no other has found, so nothing here depends
# on a random name: some notebooks run a script where it stands, some (VS Code) at the end of the
# whole output. They put outputs and scripts on the page in their own order: it waits for load()'s,
# and a second for those that are nearer to the reader. Nothing is evaluated from text, so a page
# may forbid that. A strict sanitizer leaves the image, its words, and the sentence.
EMBED, UNPACK, HTML = (
    Template(theme.packaged(name)) for name in ("embed.html", "unpack.js", "player.html")
)


def load(frames: bool | None = None) -> None:
    """Load the players' scripts (0.5 MB) into a notebook: once, in a cell of its own. IL in cells
    gets colours, a running cell shows its seconds, and pictures star the element of ``follow``.
    With ``frames``, by default on Colab alone, every picture brings the scripts along, for
    notebooks that show each output in a frame of its own.
    """
    from IPython.display import HTML, display

    Shown.framed = "google.colab" in sys.modules if frames is None else frames
    if not gc.get_freeze_count():
        # modules stay: to look through them for garbage takes a tenth of a lesson's time
        gc.freeze()
    # JupyterLab's breaks long lines in a word
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"
    code = f"<script>{scripts()}</script>{wrap}<script>{theme.packaged('cells.js')}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
