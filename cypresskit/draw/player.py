"""The player: a picture over many frames that plays in the browser without Python.

A ``Player`` holds a Bokeh layout whose data sources show one frame, and *tracks*: how a column of a source changes from
frame to frame, kept as changes only, so that a thousand frames of a hundred cells weigh some kilobytes. The script in
``player.js`` spreads them out once in the browser and then plays, steps and scrubs; it also answers keys, follows light
and dark, honours "reduced motion" and speaks to screen readers. A player is shown in a notebook by being a cell's value
or by ``show()``, saved as a page that needs no network by ``save("x.html")``, and has a text form, ``str(player)``,
with the numbers that the picture shows. Call ``load()`` once in a notebook before the first player.

Left out: frames computed on demand. What needs a new simulation is built anew, in Python.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np
from bokeh.core.json_encoder import serialize_json
from bokeh.core.templates import get_env
from bokeh.document import Document
from bokeh.embed import file_html
from bokeh.embed.util import standalone_docs_json_and_render_items
from bokeh.models import Button, Column, ColumnDataSource, CustomJS, Div, LayoutDOM, Row, Select, Slider
from bokeh.resources import INLINE, Resources

from cypresskit.draw import theme

SPEEDS = ["1", "2", "5", "10", "20", "60"]


def short(value: float) -> str:
    """A number in about five characters, as the player writes it into a cell."""
    size = abs(value)
    if not np.isfinite(value):
        return "NaN" if np.isnan(value) else "inf" if value > 0 else "-inf"
    if float(value).is_integer() and size < 1e5:
        return str(int(value))
    if size >= 1e5 or size < 1e-3:
        digits, exponent = f"{value:.0e}".split("e")
        return f"{digits}e{int(exponent)}"
    places = 3 if size < 1 else 2 if size < 10 else 1 if size < 100 else 0
    text = str(Decimal(float(value)).quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP))
    return text.replace("0.", ".", 1) if size < 1 else text


@dataclass(frozen=True, eq=False)
class Track:
    """How ``source.data[column]`` changes: ``frames`` has shape (frames, cells), dtype float32, float64, int32, uint8
    or uint16. With ``text`` a second column of that name gets the numbers as text; with a ``prefix`` ("k = ") the
    numbers are indices, written after it, and a negative one is left blank; with ``names`` they say which of them.
    ``few`` then gets the cells whose text is not empty (x, y and the text): a browser takes its time over each text,
    even an empty one."""

    source: ColumnDataSource
    column: str
    frames: np.ndarray
    text: str = ""
    prefix: str = ""
    names: Sequence[str] = ()
    few: ColumnDataSource | None = None

    def changes(self) -> ColumnDataSource:
        """The changes in order of frames; puts the first frame into the source."""
        bits = np.ascontiguousarray(self.frames).view(f"u{self.frames.dtype.itemsize}")
        at, cell = np.nonzero(bits[1:] != bits[:-1])
        self.source.data[self.column] = self.frames[0].copy()
        if self.text:
            self.source.data[self.text] = [""] * self.frames.shape[1]
        value = self.frames[1:][at, cell]
        return ColumnDataSource({"frame": (at + 1).astype(np.int32), "cell": cell.astype(np.int32), "value": value})


@dataclass(frozen=True, eq=False)
class Listing:
    """The text of a kernel beside a picture, in ``place``: its ``lines`` and, for each frame, the ``current`` ones
    (counted from 1), shown with their neighbours, ``window`` lines at a time."""

    place: Div
    lines: Sequence[str]
    current: Sequence[Sequence[int]]
    window: int = 13


class Player:
    """A picture that plays; see the module. ``title`` names it. Controls and caption stand on top, where a low screen
    shows them; then ``picture`` with ``side`` beside it (or below, where there is no room), then ``below``. ``figures``
    are those in any of them, ``captions`` has HTML for each frame, ``marks`` are the frames that Page Up and Page Down
    jump to, ``text`` is the text form, ``step`` names what the slider moves along. With one frame there is nothing to
    play, and no controls."""

    def __init__(
        self,
        title: str,
        picture: LayoutDOM,
        side: Sequence[LayoutDOM],
        captions: Sequence[str],
        tracks: Sequence[Track],
        *,
        figures: Sequence[LayoutDOM],
        text: str,
        inks: theme.Inks,
        listings: Sequence[Listing] = (),
        marks: Sequence[int] = (),
        below: Sequence[LayoutDOM] = (),
        start: int = 0,
        step: str = "Step",
    ) -> None:
        if not captions or any(len(track.frames) != len(captions) for track in tracks):
            raise ValueError(f"a player needs as many frames in each track as captions: {len(captions)}")
        self.title, self.captions, self.tracks = title, list(captions), list(tracks)
        self._text = text
        count = len(self.captions)
        widget = {"stylesheets": [theme.WIDGET_CSS], "height": 32}
        self.play = Button(label="Play", width=68, **widget)
        self.back = Button(label="\N{LEFTWARDS ARROW} Back", width=68, **widget)
        self.forward = Button(label="Next \N{RIGHTWARDS ARROW}", width=68, **widget)
        rates = [(speed, f"{speed} per s") for speed in SPEEDS]
        self.speed = Select(options=rates, value="10", width=116, **widget)
        self.slider = Slider(
            start=0, end=max(count - 1, 1), step=1, value=start, show_value=False, tooltips=False, height=22,
            stylesheets=[theme.WIDGET_CSS], margin=(6, 14), styles={"flex": "1 1 220px"},
        )  # fmt: skip
        words = {"stylesheets": [theme.TEXT_CSS], "sizing_mode": "stretch_width"}
        self.caption = Div(**words)
        self.live = Div(stylesheets=[theme.HIDDEN_CSS], html_attributes={"aria-live": "polite", "role": "status"})
        wrap = {"sizing_mode": "stretch_width", "styles": {"flex-wrap": "wrap", "align-items": "center"}}
        controls = Row(self.back, self.play, self.forward, self.speed, self.slider, visible=count > 1, **wrap)
        keys = "Keys: space plays, arrows step, Page Up, Page Down, Home and End jump" if count > 1 else ""
        hint = f'<span class="soft">{keys}; in a notebook click the picture first.</span>'
        below = [*below, Div(text=hint, **words)] if keys else below
        # Side by side as long as both find room, else one below the other.
        parts = [Column(picture, sizing_mode="stretch_width")]
        parts += [Column(*side, sizing_mode="stretch_width")] if side else []
        for part, grow in zip(parts, (5, 4)):
            part.styles = {"flex": f"{grow} 1 {grow * 72}px", "min-width": "0"}
        wrap["styles"] = {"flex-wrap": "wrap", "gap": "4px 20px"}
        self.root = Column(
            controls, self.caption, Row(*parts, **wrap), *below, self.live,
            sizing_mode="stretch_width", stylesheets=[theme.ROOT_CSS],
            html_attributes={"tabindex": "0", "role": "group", "aria-label": f"{title}. {keys}".strip()},
        )  # fmt: skip
        self._script = CustomJS(
            code=files("cypresskit.draw").joinpath("player.js").read_text(encoding="utf-8"),
            args={
                "root": self.root, "play": self.play, "back": self.back, "forward": self.forward, "slider": self.slider,
                "speed": self.speed, "caption": self.caption, "live": self.live, "figures": list(figures),
                "count": count, "start": start, "captions": self.captions, "marks": [int(mark) for mark in marks],
                "tracks": [
                    {"source": t.source, "column": t.column, "changes": t.changes(), "text": t.text, "prefix": t.prefix,
                     "names": list(t.names), "few": t.few}
                    for t in self.tracks
                ],
                "listings": [
                    {"place": one.place, "lines": [escape(line.replace("    ", "  ")) for line in one.lines],
                     "current": one.current, "window": min(one.window, len(one.lines))}
                    for one in listings
                ],
                "inks": [list(ink) for ink in inks.pairs], "fitted": [list(pair) for pair in inks.fitted],
                "step": step,
            },
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self.captions)

    def __repr__(self) -> str:
        return self._text

    def big(self, factor: float = 1.6) -> "Player":
        """Make text, lines and controls larger, for a projector; returns the player itself."""
        theme.enlarge(self.root, factor)
        return self

    def _document(self) -> Document:
        document = Document(title=self.title)
        document.add_root(self.root)
        document.js_on_event("document_ready", self._script)
        return document

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        document = self._document()
        try:
            return {"text/plain": repr(self), "text/html": embed(self.root, repr(self))}
        finally:
            document.clear()

    def show(self) -> None:
        """Show the player in a notebook; elsewhere, print its text form."""
        from IPython.display import display

        display(self)

    def save(self, path: str | Path) -> Path:
        """Write a page with everything in it: it plays from disk, without network."""
        document = self._document()
        try:
            template, scale = get_env().from_string(theme.PAGE), self.root.styles.get("--ck-scale", "1")
            page = file_html(document, INLINE, self.title, template=template, template_variables={"scale": scale})
        finally:
            document.clear()
        path = Path(path)
        path.write_text(page, encoding="utf-8")
        return path


def inline_resources() -> Resources:
    """Bokeh's scripts as text: the two bundles that the players need."""
    return Resources(mode="inline", components=["bokeh", "bokeh-widgets"])


# The script finds its place by where it stands, so nothing here depends on a random name. Notebooks put outputs and
# scripts on the page in their own order: it waits for load()'s script.
EMBED = """<!-- player --><div class="cypresskit-player"><pre>{text}</pre></div>
<script>(() => {{
  const place = document.currentScript.previousElementSibling
  const docs = {docs}
  const [id] = Object.keys(docs)
  const items = [{{docid: id, roots: {{{root}: place}}, root_ids: [{root}]}}]
  let tries = 0
  const start = () => {{
    if (window.Bokeh && window.Bokeh.Widgets) {{
      place.textContent = ""
      window.Bokeh.embed.embed_items(docs, items)
      return
    }}
    if (tries++ === 30) place.insertAdjacentText("afterbegin", "To see the picture, run the notebook's first cells.")
    if (place.isConnected) setTimeout(start, 100)
  }}
  start()
}})()</script><!-- /player -->"""


def embed(root: LayoutDOM, text: str) -> str:
    """HTML that shows a layout (and its document's scripts) on a page where ``load()`` was called; ``text`` stands
    there until then."""
    docs, _ = standalone_docs_json_and_render_items([root])
    script = serialize_json({"document": next(iter(docs.values()))}).replace("</", "<\\/")
    return EMBED.format(text=escape(text), docs=script, root=json.dumps(root.id))


def load() -> None:
    """Put Bokeh's scripts on a notebook's page (1.7 MB): once, in a cell of its own."""
    from IPython.display import HTML, display

    scripts = "".join(f"<script>{code}</script>" for code in inline_resources().js_raw)
    wrap = "<style>.jp-OutputArea-output pre { word-break: normal }</style>"  # JupyterLab's breaks long lines in a word
    display(HTML(f'{scripts}{wrap}<span class="cypresskit-loaded"></span>'))
