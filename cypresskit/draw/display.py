"""Show a picture in a notebook, on a page, and in a file.

Every picture is one HTML element. It holds the picture's text, a sentence for readers without
scripts, and the packed data. ``picture.js`` plays it. A notebook loads the scripts once, by
``load()``; a saved page contains them. Data and scripts carry a format number, so that pictures
saved by another version are recognized. What a kind of picture does with its data is in its own
JavaScript module. In the delivered lessons an image takes the text's place (``tools/stills.py``).
"""

import base64
import json
import zlib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from string import Template

from cypresskit.draw import theme
from cypresskit.draw.scripts import join_modules, read_packaged
from cypresskit.files.atomic import save_file
from cypresskit.il.errors import shorten

#: The scripts that all pictures share, each after those that it imports from.
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
STYLES = ("draw/look.css", "draw/figure.css", "draw/journey.css")
#: The fields of a player's data. The format number is their checksum.
FIELDS = (
    "about captions figures fitted colors label labels "
    "listing picks sceneOfKey opens scenes squeezed step tracks "
    "track.changes track.column track.moves track.source track.text track.texts "
    "pick.figure pick.h pick.marks pick.on pick.source pick.w"
)
FORMAT = f"{zlib.crc32(FIELDS.encode()):08x}"
ADVICE = (
    "To play this picture, run the cell with ck.draw.load() and then this cell, in a current"
    " browser."
)
PAGE = Template(read_packaged("draw/page.html"))
UNPACK = Template(read_packaged("draw/unpack.js"))


@cache
def scripts() -> str:
    """Return Bokeh's scripts and the pictures' as one packed script that runs once per page.

    It has 0.5 MB instead of 1.4.
    """
    from bokeh.resources import Resources  # here: not all pictures need it

    bokeh = Resources(mode="inline", components=["bokeh"]).js_raw
    own = join_modules(*MODULES).replace("$format", FORMAT).replace('"$look"', json.dumps(look()))
    text = "\n".join([*bokeh, f"(() => {{\n{own}\n}})()"])
    packed = zlib.compress(text.encode(), 6)
    return UNPACK.substitute(packed=base64.b64encode(packed).decode(), key=zlib.crc32(packed))


@cache
def look() -> str:
    """Return the style sheets of a page with pictures."""
    return "".join(map(read_packaged, STYLES))


def embed(kind: str, data: str, inside: str) -> str:
    """Return a picture's element: its kind, its data as JSON, and its initial content."""
    packed = base64.b64encode(zlib.compress(data.encode(), 9)).decode()
    return (
        f'<cypresskit-picture class="cypresskit cypresskit-{kind}" data-kind="{kind}"'
        f' data-format="{FORMAT}">{inside}'
        f'<script type="application/x-cypresskit">{packed}</script></cypresskit-picture>'
    )


def text_form(text: str) -> str:
    """Return what a picture shows until its script runs: its text."""
    words = theme.escape_html(text)
    return f'<div class="cypresskit-still"><pre>{words}</pre><p>{ADVICE}</p></div>'


class Displayable:
    """A picture that a notebook shows and that can be saved."""

    title: str
    plays = True  #: whether its HTML needs scripts
    headed = False  #: whether it shows its own title

    def to_html(self) -> str:
        """Return the picture as an HTML element."""
        raise NotImplementedError

    def bundle(self) -> dict[str, str]:
        """Return the outputs for a notebook, by MIME type."""
        return {"text/plain": repr(self), "text/html": self.to_html()}

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return self.bundle()

    def page(self, scripts: str, links: str = "") -> str:
        """Return the picture as an HTML page.

        ``scripts`` are the elements that load the scripts. ``links`` are shown below the picture.
        The page's address may set frame and selection (page.js).
        """
        return PAGE.substitute(
            title=theme.escape_html(self.title),
            hidden="hidden" * self.headed,
            look=read_packaged("draw/look.css"),
            scripts=scripts,
            player=self.to_html(),
            links=links,
            address=read_packaged("draw/page.js"),
        )

    def save(self, path: str | Path) -> Path:
        """Write a page (.html).

        It plays offline, and starts at the frame in its address: ``page.html#frame=120&at=7``.

        Returns
        -------
        Path
            The path that was written.

        Raises
        ------
        ValueError
            For other file endings.
        OSError
            If the file can't be written.
        """
        path = Path(path)
        if path.suffix not in (".html", ".htm"):
            raise ValueError(f"{path.name}: pictures are saved as .html")
        save_file(path, self.page(f"<script>{scripts()}</script>" if self.plays else ""))
        return path


def require_nonempty(things, what: str, kind: type | tuple[type, ...] = object) -> list:
    """Return ``things`` as a list.

    Error messages end with ``what``: what to pass. Raises ``ValueError`` if the list is empty, and
    ``TypeError`` if an item isn't of a ``kind``.
    """
    parts = (
        list(things) if isinstance(things, Iterable) and not isinstance(things, str) else [things]
    )
    if not parts:
        raise ValueError(f"there is nothing to draw: {what}")
    for part in parts:
        if not isinstance(part, kind):
            raise TypeError(f"{shorten(part)} can't be drawn: {what}")
    return parts
