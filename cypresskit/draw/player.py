"""The player: a picture over many frames that plays in the browser without Python.

A ``Player`` holds a Bokeh layout whose sources show one frame, and *tracks*: how a column of a source changes from
frame to frame, as changes only, so that a thousand frames of a hundred cells weigh some kilobytes. ``player.js``
spreads them out in the browser and plays; what ``moves`` travels from one frame to the next.

A player is shown in a notebook by being a cell's value; until its script runs (or where none may) a still stands there.
Call ``load()`` once in a notebook before the first player. Left out: frames computed on demand. What needs a new
simulation is built anew, in Python (see ``controls``).
"""

import base64
import gc
import json
import sys
import zlib
from collections.abc import Sequence
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
from bokeh.models import Button, Column, ColumnDataSource, Div, LayoutDOM, RadioButtonGroup, Row, Select, Slider
from bokeh.plotting import figure
from bokeh.resources import Resources

from cypresskit.draw import still, theme
from cypresskit.draw.followed import remember
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
    """How ``source.data[column]`` changes: ``frames`` has shape (frames, cells), dtype float32, float64, int32, uint8
    or uint16. ``text`` names a second column, which gets the numbers as text. With a ``prefix`` ("k = ") they are whole
    numbers written after it, blank if negative; ``names`` replaces each by a name. With ``moves`` a value glides from
    frame to frame, except from or to NaN, where it jumps."""

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
        return {"frame": (at + 1).astype(small), "cell": cell.astype(small), "value": self.frames[1:][at, cell]}

    def written(self, value: float) -> str:
        """A number as the player writes it."""
        if self.names:
            return self.names[int(value)]
        if not self.prefix:
            return short(value)
        return f"{self.prefix}{value}" if value >= 0 else ""


@dataclass(frozen=True)
class Guess:
    """A question asked before the picture plays, its choices, and for the end the recorded answer: in words, and as the
    right choice."""

    question: str
    choices: Sequence[str]
    truth: str
    right: str


class Shown:
    """A picture that a notebook shows and that can be saved: a ``title``, a text form, a still, and HTML."""

    title: str
    framed = False  # each output has a frame of its own; see load()

    def still(self) -> str:
        """The most telling frame as an SVG picture."""
        raise NotImplementedError

    def _embedded(self, alone: bool = False) -> str:
        raise NotImplementedError

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        own = f"<style>:root {{ --ck-high: 440px }}</style><script>{scripts()}</script>" if self.framed else ""
        return {"text/plain": repr(self), "text/html": own + self._embedded()}

    def page(self, scripts: str, links: str = "") -> str:
        """The picture as an HTML page, with the elements that load the players' ``scripts`` and with ``links`` below
        it; without ``links`` none leads to a lesson. Its address may set frame and selection: see page.js."""
        parts = {"player": self._embedded(alone=not links), "address": theme.packaged("page.js")}
        return theme.PAGE.substitute(parts, title=escape(self.title), scripts=scripts, links=links)

    def save(self, path: str | Path) -> Path:
        """Write a page (.html) that plays from disk, without network, or a still (.svg), and return its path. A page
        begins where its address says (page.html#frame=120&at=7). Raises ``ValueError`` for other endings."""
        path = Path(path)
        if path.suffix == ".svg":
            save_file(path, self.still())
        elif path.suffix in (".html", ".htm"):
            save_file(path, self.page(f"<script>{scripts()}</script>"))
        else:
            raise ValueError(f"{path.name}: a player is saved as .html or .svg")
        return path


class Parts:
    """The parts of a picture that a view fills in for its player. ``title`` names it. ``about`` has the words for each
    key that can be chosen: a text, or pairs of a frame and the text from it on. ``goes``: keys that choose a scene, to
    the scene's number. ``picks``: clicks in a ``figure`` choose cells of a ``source`` by the column ``key`` (whole
    numbers, negative for none); ``w`` and ``h`` are the cells' sizes, numbers or columns, and the column ``lit`` is
    ``on`` for the chosen ones and 0 for others. ``heads``: play heads, as a ``figure`` and a ``source`` whose x is that
    of each frame; a drag there goes to the nearest frame."""

    def __init__(self, title: str) -> None:
        self.title, self.inks = title, theme.Inks()
        self.tracks: list[Track] = []
        self.figures: list[figure] = []
        self.picks: list[dict] = []
        self.about: dict[int, About] = {}
        self.goes: dict[int, int] = {}
        self.heads: list[dict] = []
        self._stages: list[figure] = []


class Player(Shown):
    """A picture that plays; see the module. Controls and caption stand on top, where a low screen shows them; then
    ``picture``, one below the other, with ``side`` beside it (or below, on a narrow page), then ``below``. ``captions``
    has words for each frame (see ``theme.html``), ``text`` is the text form, ``marks`` are the frames that Page Up and
    Page Down jump to, ``step`` names what the slider moves along. ``listing``, a kernel's lines and for each frame the
    current one, counted from 1, stands on top of ``side``; a click on a line goes to the next frame in which it is
    current. ``dials`` in place of a clock: names and what can be set, the first turning fastest through the frames;
    nothing plays. ``scenes``: several recordings in one picture, a name and a number of frames each, one after
    another in all tracks. It plays in ``lasts`` seconds, and shows the frame ``begins`` first. A still shows the frame
    ``tells``: by default the last, or an early one if there is a guess, which the last would answer. With one frame
    there is nothing to play, and no controls."""

    def __init__(
        self, parts: Parts, picture: Sequence[LayoutDOM], captions: Sequence[str], text: str, *,
        side: Sequence[LayoutDOM] = (), listing: tuple[Sequence[str], Sequence[int]] = ((), ()),
        marks: Sequence[int] = (), below: Sequence[LayoutDOM] = (), scenes: Sequence[tuple[str, int]] = (),
        dials: Sequence[tuple[str, Sequence[str]]] = (), step: str = "Step", guess: Guess | None = None,
        lasts: float = LASTS, tells: int | None = None, begins: int = 0,
    ) -> None:  # fmt: skip
        self.title, self.tracks, self.figures, self.about = parts.title, parts.tracks, parts.figures, parts.about
        self._text, self._inks = text, parts.inks
        if not captions or any(len(track.frames) != len(captions) for track in self.tracks):
            raise ValueError(f"a player needs as many frames in each track as captions: {len(captions)}")
        self.captions, self.scenes = list(captions), list(scenes) or [("", len(captions))]
        usual = len(captions) // 3 if guess else -1
        self.tells = usual if tells is None else tells
        moving = not dials and (max(frames for _, frames in self.scenes) > 1 or len(self.scenes) > 1)
        keys = "Keys: space plays, arrows step, Page Up, Page Down, Home and End jump" if moving else ""
        keys += ", up and down choose, Escape lets go" if self.about and keys else ""
        hint = f'<span class="soft">{keys}; in a notebook click the picture first.</span>' if keys else ""
        tag = _widgets(self.scenes, lasts) | _question(guess) | {"dials": [_dial(*dial) for dial in dials]}
        tag["chosen"].visible = bool(self.about)
        below = [tag["chosen"], *below, *([text_box(text=hint)] if keys and not self.about else [])]
        lines, current = listing
        place = [text_box()] * bool(lines)
        sides = [
            Column(*stack, sizing_mode="stretch_width", stylesheets=[theme.SCROLLED_CSS])
            for stack in (picture, [*place, *side])
            if stack
        ]
        for part, grow in zip(sides, (5, 4)):
            part.styles = {"flex": f"{grow} 1 {grow * 62}px", "min-width": "0"}
        controls = (tag[name] for name in ("scene", "back", "play", "forward", "speed", "slider"))
        asked = row(tag["asked"], tag["answers"], align="center", visible=guess is not None)
        controlled = row(*controls, align="center", visible=moving)
        turned = beside(*(Column(dial["label"], dial["slider"]) for dial in tag["dials"]), room=240)
        turned.visible = bool(dials)
        head = controlled, turned, asked, tag["caption"], row(*sides, gap="4px 20px")
        self.root = Column(
            *head, *below, tag["live"], sizing_mode="stretch_width", stylesheets=[theme.ROOT_CSS],
            styles={"--ck-room": "34px"} if guess else {},
            html_attributes={"tabindex": "0", "role": "group", "aria-label": f"{self.title}. {keys}".strip()},
        )  # fmt: skip
        # Not a model's property: the script takes it from here.
        shown = [escape(line.replace("    ", "  ")) for line in lines]
        firsts = np.cumsum([0, *(frames for _, frames in self.scenes)])
        self.root.tags = [tag | {
            "figures": self.figures, "captions": [theme.html(caption) for caption in self.captions],
            "scenes": [[int(first), frames] for first, (_, frames) in zip(firsts, self.scenes)],
            "tracks": [vars(t) | {"frames": None, "names": list(t.names), "changes": t.changes()} for t in self.tracks],
            "inks": [list(ink) for ink in self._inks.pairs], "fitted": [list(text) for text in self._inks.fitted],
            "about": [[int(key), theme.html(words) if isinstance(words, str) else
                       [[frame, theme.html(part)] for frame, part in words]] for key, words in self.about.items()],
            "listing": {"place": place[0], "lines": shown, "current": current} if lines else None,
            "picks": parts.picks, "heads": parts.heads, "tells": self.tells, "step": step, "hint": hint,
            "goes": list(parts.goes.items()), "marks": list(marks), "begins": begins,
        }]  # fmt: skip

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
        """The player as HTML for a page on which ``load()`` was called. Until the scripts run it is a still, with the
        text form as alternative text. If it is ``alone`` there are no lessons to link to."""
        # The root is written beside an empty document: one that has it would look through all models three times.
        document = Document(title=self.title).to_json(deferred=False)
        document["roots"] = Serializer(deferred=False).encode([self.root])
        data = serialize_json({"document": document})
        data = (theme.without_links(data) if alone else data).encode()
        image, packed = (base64.b64encode(part).decode() for part in (self.still().encode(), zlib.compress(data, 6)))
        return EMBED.substitute(text=escape(repr(self)), still=image, docs=packed, root=json.dumps(self.root.id))


def _widgets(scenes: Sequence[tuple[str, int]], lasts: float) -> dict:
    rate = min(max(max(frames for _, frames in scenes) / lasts, 1.0), 30.0)
    rates = [(f"{rate * factor:g}", f"{name} speed") for name, factor in SPEEDS.items()]
    css: dict = {"stylesheets": [theme.WIDGET_CSS]}
    names = {"back": "\N{LEFTWARDS ARROW} Back", "play": "Play", "forward": "Next \N{RIGHTWARDS ARROW}"}
    labels = [name for name, _ in scenes]
    return {name: Button(label=label, width=68, height=32, **css) for name, label in names.items()} | {
        "speed": Select(options=rates, value=f"{rate:g}", width=124, height=32, name="speed", **css),
        "slider": Slider(start=0, end=max(scenes[0][1] - 1, 1), step=1, value=0, show_value=False, tooltips=False,
                         height=22, margin=(6, 14), styles={"flex": "1 1 180px"}, **css),
        "scene": RadioButtonGroup(labels=labels, active=0, visible=len(labels) > 1, height=32, **css),
        "live": Div(stylesheets=[theme.HIDDEN_CSS], html_attributes={"aria-live": "polite", "role": "status"}),
        "caption": text_box(), "chosen": text_box(),
    }  # fmt: skip


def _dial(name: str, values: Sequence[str]) -> dict:
    """A labelled slider, and what the script needs to know of it."""
    slider = Slider(start=0, end=len(values) - 1, step=1, value=0, show_value=False, tooltips=False, margin=(4, 14),
                    sizing_mode="stretch_width", stylesheets=[theme.WIDGET_CSS])  # fmt: skip
    return {"slider": slider, "label": text_box(), "name": name, "values": list(values)}


def _question(guess: Guess | None) -> dict:
    """The widgets of a guess, and what the script needs to know of it."""
    labels = list(guess.choices) if guess else []
    answers = RadioButtonGroup(labels=labels, active=None, stylesheets=[theme.WIDGET_CSS], height=32)
    asked = Div(stylesheets=[theme.TEXT_CSS], text=theme.html(f"**Guess first:** {guess.question}") if guess else "")
    answer = {"truth": theme.html(guess.truth) if guess else "", "right": theme.html(guess.right) if guess else ""}
    return answer | {"answers": answers, "asked": asked, "choices": [theme.html(choice) for choice in labels]}


def text_box(**options) -> Div:
    """A text as wide as there is room."""
    return Div(stylesheets=[theme.TEXT_CSS], sizing_mode="stretch_width", **options)


def beside(*parts: LayoutDOM, room: int = 300) -> Row:
    """A row of parts, which wraps where a part would have less than ``room`` pixels."""
    for part in parts:
        part.styles = dict(part.styles) | {"flex": f"1 1 {room}px", "min-width": "0"}
    return row(*parts, gap="4px 16px", align="start")


def row(*parts: LayoutDOM, gap: str = "normal", align: str = "normal", **options) -> Row:
    """A row of parts, which wraps where there is no room."""
    styles = {"flex-wrap": "wrap", "gap": gap, "align-items": align}
    return Row(*parts, sizing_mode="stretch_width", styles=styles, **options)


@cache
def scripts() -> str:
    """Bokeh's scripts and the player's as one that unpacks them, once on a page: 0.6 MB instead of 1.7."""
    bokeh = Resources(mode="inline", components=["bokeh", "bokeh-widgets"]).js_raw
    play = f"window.cypresskitPlay = (root, index) => {{\n{theme.packaged('player.js')}\n}}"
    packed = zlib.compress("\n".join([*bokeh, play]).encode(), 6)
    return UNPACK.substitute(packed=base64.b64encode(packed).decode(), key=zlib.crc32(packed))


# The script finds its place as the first around it that no other has found, so nothing here depends on a random name:
# some notebooks run a script where it stands, some (VS Code) at the end of the whole output. They put outputs and
# scripts on the page in their own order: it waits for load()'s, and a second for those that are nearer to the reader.
# Nothing is evaluated from text, so a page may forbid that. A strict sanitizer leaves the image, its words, and the
# sentence.
EMBED, UNPACK = (Template(theme.packaged(name)) for name in ("embed.html", "unpack.js"))


def load(frames: bool | None = None) -> None:
    """Load the players' scripts (0.6 MB) into a notebook: once, in a cell of its own. IL in cells gets colours, a
    running cell shows its seconds, and pictures star the element of ``follow``. With ``frames``, by default on Colab
    alone, every picture brings the scripts along, for notebooks that show each output in a frame of its own."""
    from IPython.display import HTML, display

    Shown.framed = "google.colab" in sys.modules if frames is None else frames
    remember()
    if not gc.get_freeze_count():
        gc.freeze()  # modules stay: to look through them for garbage takes a tenth of a lesson's time
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"  # JupyterLab's breaks long lines in a word
    code = f"<script>{scripts()}</script>{wrap}<script>{theme.packaged('cells.js')}</script>"
    display(HTML(f'{code}<span class="cypresskit-loaded"></span>'))
