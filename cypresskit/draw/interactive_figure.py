"""Pictures that respond to the reader's hand: each has a script of its own in the browser, and no
frames or clock.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cypresskit.draw import svg, theme
from cypresskit.draw.display import Displayable, embed, still_image
from cypresskit.draw.scripts import joined

#: The modules that the scripts of toys share, each after those that it imports from.
SHARED = ("draw/shell.js", "draw/guess.js", "draw/interactive_figure.js")
#: A toy's own script: `begin` brings its kind to life, as ``picture.js`` calls it.
SCRIPT = """<script>(() => {{
{modules}
globalThis.cypresskitFigures ??= {{}}
globalThis.cypresskitFigures[{kind}] = {begin}
window.dispatchEvent(new Event("cypresskit-loaded"))
}})()</script>"""


@dataclass(frozen=True, eq=False)
class InteractiveFigure(Displayable):
    """An interactive picture. The function ``begin`` of the last of its ``modules`` in JavaScript
    brings its ``kind`` to life, with ``data``.
    ``keys``: the keyboard's use, for a screen reader. ``marks``:
    the parts of the still's SVG, in a box of ``size``; see ``svg``.
    """

    title: str
    keys: str
    text: str
    kind: str
    modules: tuple[str, ...]
    begin: str
    marks: Sequence[str]
    size: tuple[int, int]
    data: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return theme.readable(self.text)

    def still(self) -> str:
        style = "rect{stroke:var(--line)}text{fill:var(--ink)}"
        return svg.picture(self.marks, self.size, style=style, title=self.title)

    def to_html(self, *, links: bool = True, still: bool = True) -> str:
        own = {"title": self.title, "keys": self.keys, "series": theme.SERIES}
        inside = still_image(self.still(), repr(self)) if still else ""
        own_modules = joined(*SHARED, *self.modules)
        script = SCRIPT.format(modules=own_modules, kind=json.dumps(self.kind), begin=self.begin)
        return embed(self.kind, json.dumps(self.data | own), inside) + script
