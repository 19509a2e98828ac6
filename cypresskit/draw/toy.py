"""Pictures that respond to the reader's hand: each has a script of its own in the browser, and no
frames or clock.
"""

import base64
import json
from dataclasses import dataclass, field
from html import escape
from string import Template

from cypresskit.draw import theme
from cypresskit.draw.player import Shown

TOY = Template(theme.packaged("toy.html"))
LIGHT, DARK = (
    "".join(f"--ck-{name}:{pair[n]};" for name, pair in theme.TOKENS.items()) for n in (0, 1)
)
CSS = f"""
.cypresskit-toy {{
 {LIGHT} color: var(--ck-ink); font: 13px sans-serif; max-width: 1250px; outline-offset: -1px }}
@media (prefers-color-scheme: dark) {{
  body:not([data-jp-theme-light], [data-theme="light"]) .cypresskit-toy {{ {DARK} }}
}}
:is([data-jp-theme-light="false"], [data-theme="dark"], [data-vscode-theme-kind*="dark"])
 .cypresskit-toy {{ {DARK} }}
"""


@dataclass(frozen=True, eq=False)
class Toy(Shown):
    """An interactive picture. ``scripts``: files in this folder, which get their element as
    ``host`` and Python's ``data``. ``keys``: the keyboard's use, for a screen reader. ``marks``:
    the still's SVG, in a box of ``size``, with the theme's colours as var(--ink) and so on.
    """

    title: str
    keys: str
    text: str
    scripts: tuple[str, ...]
    marks: str
    size: tuple[int, int]
    data: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return self.text

    def still(self) -> str:
        colours = (
            ";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)
        )
        light, dark = (
            f"svg{{{some};background:{page}}}" for some, page in zip(colours, ("#fff", "#17171b"))
        )
        wide, high = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}"'
            ' font-size="14"'
            f' font-family="sans-serif"><style>{light}'
            "rect{stroke:var(--line)}text{fill:var(--ink)}"
            f"@media(prefers-color-scheme:dark){{{dark}}}</style>{self.marks}</svg>"
        )

    def _embedded(self, alone: bool = False) -> str:
        script = "".join(map(theme.packaged, ("toy.js", *self.scripts)))
        still = base64.b64encode(self.still().encode()).decode()
        data = json.dumps(self.data | {"series": theme.SERIES}).replace("<", "\\u003c")
        words = {"title": self.title, "keys": self.keys, "text": escape(repr(self))}
        return TOY.substitute(
            words, data=data, still=still, script=script, css=CSS + theme.packaged("toy.css")
        )
