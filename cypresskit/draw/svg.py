"""SVG in the theme's colors: words, boxes, and the picture around them.

The stills of toys and of the climb are written with it, and the frame of a player's. A color is
written as ``var(--ink)``, by its name in ``theme.TOKENS``. Nothing here needs Bokeh.
"""

import re
from collections.abc import Iterable

from cypresskit.draw import theme

FAMILY = "sans-serif"


def words(x: float, y: float, text: object, kind: str = "") -> str:
    """A line of text from a point on; ``kind`` are classes of the picture's style."""
    kinds = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kinds} xml:space="preserve">{theme.escaped(text)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, **more: object) -> str:
    """A box by its upper left corner; ``more`` are further attributes."""
    size = f'width="{round(width, 1):g}" height="{round(height, 1):g}" fill="{fill}"'
    attributes = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in more.items())
    return f'<rect x="{round(x, 1):g}" y="{round(y, 1):g}" {size}{attributes}/>'


def picture(
    parts: Iterable[str],
    size: tuple[float, float],
    *,
    style: str = "",
    title: str = "",
    on_paper: bool = False,
) -> str:
    """A picture of ``size``, width and height in pixels, for light pages and dark ones; or, to be
    shown by any program, ``on_paper``: light, without a variable.
    """
    width, height = (f"{side:g}" for side in size)
    light, dark = (
        ";".join(f"--{name}:{pair[n]}" for name, pair in theme.TOKENS.items()) for n in (0, 1)
    )
    both = f"svg{{{light}}}@media(prefers-color-scheme:dark){{svg{{{dark}}}}}"
    look = "" if on_paper else f"{both}svg{{background:var(--page)}}"
    text = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="{FAMILY}" font-size="14" role="img">'
        f"<title>{theme.escaped(title)}</title><style>{look}{style}</style>{''.join(parts)}</svg>"
    )
    if on_paper:
        return re.sub(r"var\(--(\w+)\)", lambda name: theme.TOKENS[name[1]][0], text)
    return text
