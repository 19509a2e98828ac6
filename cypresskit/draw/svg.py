"""Write SVG in the theme's colors: text, boxes, and the document around them.

A color is written as ``var(--ink)``, by its name in ``theme.TOKENS``. Bokeh isn't needed.
"""

import re
from collections.abc import Iterable

from cypresskit.draw import theme

FAMILY = "sans-serif"


def text(x: float, y: float, text: object, kind: str = "") -> str:
    """Return a line of text that starts at a point. ``kind`` are its CSS classes."""
    kinds = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kinds} xml:space="preserve">{theme.escape_html(text)}</text>'


def box(x: float, y: float, width: float, height: float, fill: str, **more: object) -> str:
    """Return a rectangle by its upper left corner. ``more`` are further attributes."""
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
    """Return an SVG document of ``size`` (width and height in pixels).

    It follows the page's theme. With ``on_paper`` it has the light theme's colors and no CSS
    variables, for programs other than browsers.
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
        f"<title>{theme.escape_html(title)}</title><style>{look}{style}</style>{''.join(parts)}</svg>"
    )
    if on_paper:
        return re.sub(r"var\(--(\w+)\)", lambda name: theme.TOKENS[name[1]][0], text)
    return text
