"""Figures that respond to the reader. Each has its own script, and no frames or clock."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cypresskit.draw import svg, theme
from cypresskit.draw.display import Displayable, embed, still_image
from cypresskit.draw.scripts import join_modules

#: The modules that all such scripts share, each after those that it imports from.
SHARED = ("draw/shell.js", "draw/guess.js", "draw/interactive_figure.js")
#: The script of one kind of figure: ``picture.js`` calls its `begin` function.
SCRIPT = """<script>(() => {{
{modules}
globalThis.cypresskitFigures ??= {{}}
globalThis.cypresskitFigures[{kind}] = {begin}
window.dispatchEvent(new Event("cypresskit-loaded"))
}})()</script>"""


@dataclass(frozen=True, eq=False)
class InteractiveFigure(Displayable):
    """An interactive picture."""

    title: str
    keys: str  #: how the keyboard is used, for a screen reader
    text: str  #: the text form
    kind: str  #: the name under which its script is registered
    modules: tuple[str, ...]  #: its JavaScript modules
    begin: str  #: the function in the last module that starts the figure with ``data``
    marks: Sequence[str]  #: SVG elements of the static image; see ``svg``
    size: tuple[int, int]  #: of the static image, in pixels
    data: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return theme.make_readable(self.text)

    def still(self) -> str:
        style = "rect{stroke:var(--line)}text{fill:var(--ink)}"
        return svg.picture(self.marks, self.size, style=style, title=self.title)

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        own = {"title": self.title, "keys": self.keys, "series": theme.SERIES}
        inside = still_image(self.still(), repr(self)) if still else ""
        own_modules = join_modules(*SHARED, *self.modules)
        script = SCRIPT.format(modules=own_modules, kind=json.dumps(self.kind), begin=self.begin)
        return embed(self.kind, json.dumps(self.data | own), inside) + script
