"""A picture as a notebook, a page and a file show it: one element of HTML for all kinds.

The element holds a still, a sentence for places where no script may run, and the picture's data,
packed. Scripts bring it to life (``picture.js``): a notebook loads them once, by ``load()``; a
saved page brings them along. Data and scripts both name the format that they write and read. Left
out: what a kind of picture does with its data, which its own module in JavaScript says.
"""

import base64
import json
import zlib
from functools import cache
from pathlib import Path
from string import Template

from cypresskit.draw import theme
from cypresskit.draw.scripts import joined, packaged
from cypresskit.files.atomic import save_file

#: The scripts that pictures share, each after those that it imports from.
MODULES = (
    "draw/shell.js",
    "draw/guess.js",
    "draw/guess_page.js",
    "draw/tracks.js",
    "draw/into_view.js",
    "draw/picture.js",
    "draw/player.js",
    "draw/journey.js",
    "draw/start.js",
)
STYLES = ("draw/look.css", "draw/interactive_figure.css", "draw/journey.css")
#: The fields of a player's data, a track's among them: the number that stands for them changes with
#: them, and so pictures and scripts of two versions know each other.
FIELDS = (
    "about captions dials figures firstFrame fitted colors label labels "
    "listing picks sceneOfKey scenes step stillFrame tracks "
    "track.changes track.column track.moves track.source track.text track.texts "
    "pick.figure pick.h pick.marks pick.on pick.source pick.w"
)
FORMAT = f"{zlib.crc32(FIELDS.encode()):08x}"
ADVICE = (
    "This is a still. To see it move, trust the notebook and run its first cells, in a current"
    " browser; where each output has a frame of its own, run"
    " <code>ck.draw.load(frames=True)</code>, then this cell."
)
PAGE = Template(packaged("draw/page.html"))
UNPACK = Template(packaged("draw/unpack.js"))


@cache
def scripts() -> str:
    """Bokeh's scripts and the pictures' as one that unpacks them, once on a page: 0.5 MB instead of
    1.4.
    """
    from bokeh.resources import Resources  # here, since a picture may do without

    bokeh = Resources(mode="inline", components=["bokeh"]).js_raw
    own = joined(*MODULES).replace("$format", FORMAT).replace('"$look"', json.dumps(look()))
    text = "\n".join([*bokeh, f"(() => {{\n{own}\n}})()"])
    packed = zlib.compress(text.encode(), 6)
    return UNPACK.substitute(packed=base64.b64encode(packed).decode(), key=zlib.crc32(packed))


@cache
def look() -> str:
    """The style sheets of a page with pictures."""
    return "".join(map(packaged, STYLES))


def packed(data: str) -> str:
    """JSON as the scripts unpack it."""
    return base64.b64encode(zlib.compress(data.encode(), 9)).decode()


def embed(kind: str, data: str, inside: str) -> str:
    """A picture's element: its kind, its data as JSON, and what it has inside from the start."""
    return (
        f'<cypresskit-picture class="cypresskit cypresskit-{kind}" data-kind="{kind}"'
        f' data-format="{FORMAT}">{inside}'
        f'<script type="application/x-cypresskit">{packed(data)}</script></cypresskit-picture>'
    )


def still_image(svg: str, text: str) -> str:
    """A still as HTML, with ``text`` in place of it for those who can't see it."""
    image = base64.b64encode(svg.encode()).decode()
    return (
        f'<div class="cypresskit-still"><img alt="{theme.escaped(text)}"'
        f' src="data:image/svg+xml;base64,{image}" style="max-width: 100%"><p>{ADVICE}</p></div>'
    )


class Displayable:
    """A picture that a notebook shows and that can be saved: a ``title``, a text form, a still, and
    HTML, which ``plays`` if scripts bring it to life.
    """

    title: str
    plays = True
    framed = False  # each output has a frame of its own; see load()

    def still(self) -> str:
        """The most telling frame as an SVG picture."""
        raise NotImplementedError

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        """The picture as an element of HTML, with or without ``links`` to lessons, and with or
        without a still, which a picture that is redrawn all the time doesn't need.
        """
        raise NotImplementedError

    def bundle(self, *, still: bool = True) -> dict[str, str]:
        """What a notebook shows, by its MIME type."""
        own = (
            f"<style>:root {{ --ck-high: 440px }}</style><script>{scripts()}</script>"
            if self.framed
            else ""
        )
        return {"text/plain": repr(self), "text/html": own + self.to_html(still=still)}

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return self.bundle()

    def page(self, scripts: str, links: str = "") -> str:
        """The picture as an HTML page, with the elements that load the pictures' ``scripts`` and
        with ``links`` below it; without ``links`` none leads to a lesson. Its address may set frame
        and selection: see page.js.
        """
        return PAGE.substitute(
            title=theme.escaped(self.title),
            look=packaged("draw/look.css"),
            scripts=scripts,
            player=self.to_html(links=bool(links)),
            links=links,
            address=packaged("draw/page.js"),
        )

    def save(self, path: str | Path) -> Path:
        """Write a page (.html) that plays from disk, without network, or a still (.svg), and return
        its path. A page begins where its address says (page.html#frame=120&at=7). Raises
        ``ValueError`` for other endings, ``OSError`` if the file can't be written.
        """
        path = Path(path)
        if path.suffix == ".svg":
            save_file(path, self.still_on_paper())
        elif path.suffix in (".html", ".htm"):
            save_file(path, self.page(f"<script>{scripts()}</script>" if self.plays else ""))
        else:
            raise ValueError(f"{path.name}: a picture is saved as .html or .svg")
        return path

    def still_on_paper(self) -> str:
        """The still for light pages, in any program."""
        return self.still()
