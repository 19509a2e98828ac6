"""Pictures that respond to the reader's hand: each has a script of its own in the browser, and no
frames or clock.
"""

import json
from dataclasses import dataclass, field

from cypresskit.draw import theme
from cypresskit.draw.shown import Shown, embed, still_image


@dataclass(frozen=True, eq=False)
class Toy(Shown):
    """An interactive picture. ``kind`` names what brings it to life, with ``data``: see start.js.
    ``keys``: the keyboard's use, for a screen reader. ``marks``:
    the still's SVG, in a box of ``size``, with the theme's colours as var(--ink) and so on.
    """

    title: str
    keys: str
    text: str
    kind: str
    marks: str
    size: tuple[int, int]
    data: dict = field(default_factory=dict)

    def __repr__(self) -> str:
        return theme.readable(self.text)

    def still(self) -> str:
        light, dark = (
            ";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)
        )
        width, height = self.size
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"'
            f' width="{width}"'
            ' font-size="14"'
            f' font-family="sans-serif"><style>svg{{{light};background:#fff}}'
            "rect{stroke:var(--line)}text{fill:var(--ink)}"
            f"@media(prefers-color-scheme:dark){{svg{{{dark};background:#17171b}}}}</style>"
            f"{self.marks}</svg>"
        )

    def embedded(self, *, links: bool = True, still: bool = True) -> str:
        own = {"title": self.title, "keys": self.keys, "series": theme.SERIES}
        inside = still_image(self.still(), repr(self)) if still else ""
        return embed(self.kind, json.dumps(self.data | own), inside)
