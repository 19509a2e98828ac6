"""Colors, sizes and text formatting that all pictures share.

Colors are CSS variables named ``--ck-...``. They are defined once, in look.css, for light and for
dark pages; in JupyterLab the first four are those of the current theme. HTML uses them directly. A
canvas can't, so the player looks them up (``Sheet.paint``). Tints of cells are translucent and
serve both themes.

The hues are Okabe and Ito's, which readers with common kinds of color blindness can distinguish. A
picture must still say everything by shape or text as well.
"""

import re
from html import escape

from cypresskit.draw.scripts import read_packaged
from cypresskit.tables import elided

COLOR = r"(#\w+|rgba\([^)]*\))"
LOOK = read_packaged("draw/look.css")
#: For each variable, its first definition, as CSS; later ones are for high contrast.
DEFINED = dict(re.findall(r"--ck-(\w+): (.*);", LOOK)[::-1])
#: For each color: its value on light pages and on dark ones.
TOKENS: dict[str, tuple[str, str]] = {
    name: (light, dark)
    for name, light, dark in re.findall(rf"--ck-(\w+):.*?light-dark\({COLOR}, {COLOR}\)", LOOK)[
        ::-1
    ]
}
# Colors of similar things (rows of a matrix, blocks, wavefronts), visible on light and dark pages.
SERIES = ("#0072b2", "#56b4e9", "#009e73", "#e0cf30", "#e69f00", "#d55e00", "#cc79a7", "#909090")

#: CSS that hides a text from all but screen readers.
ONLY_HEARD = "position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%)"
LETTER = 6.7  # pixels: the width of most letters at 12 px

PLOT_CSS = ":host { --background-color: transparent; }"
# The height that a window leaves for a figure, below controls and captions. In an output frame that
# grows with its content, this would shrink: load() sets a height there.
ROOM = "calc(var(--ck-high, min(63vh, 484px, 100vh - 250px)) - var(--ck-room, 0px))"
# On a phone, a picture keeps this part of its own width, or has the phone's. Its text stays
# readable: player.js.
SMALLEST = 0.65
SMALL = 0.9  # of a stage that is as wide as a phone: its height there
MARKS = ((r"\*\*(.+?)\*\*", r"<b>\1</b>"), (r"`([^`]+)`", r"<code>\1</code>"), ("\n", "<br>"))


#: Characters that no page, picture or message may contain: lone surrogates and control characters.
UNREADABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e]"
)
#: Spaces of a quantity: after a number, "=" or a chip's name, before "=", and in "8 x 8".
TIES = re.compile(r"(?<=[\dA-Z=]) |(?<= x) | (?==)")
#: Longer words are cut.
LONG_WORD = re.compile(r"\S{201,}")


def make_readable(text: str) -> str:
    """Return a text that can be shown, whatever it contains.

    Characters that can't be encoded or change the text direction become U+FFFD. Words of more than
    200 letters are cut.
    """
    text = UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return LONG_WORD.sub(lambda word: elided(word[0], 200), text)


def escape_html(text: object) -> str:
    """Return text as HTML."""
    return escape(make_readable(str(text)))


def tied(text: str) -> str:
    """Return text as HTML, where no line ends inside of a quantity."""
    return escape_html(TIES.sub("\N{NO-BREAK SPACE}", text))


def minify(css: str) -> str:
    """Return a style sheet in one line, without comments: every player contains it."""
    return " ".join(re.sub(r"(?s)/\*.*?\*/", "", css).split())


def light(tint: str) -> str:
    """Return a tint on a light page, as CSS.

    A tint is a color's name with an optional alpha, as in ``"a 0.4"``. Text on a tint of at most
    0.45 is legible in both themes.
    """
    name, _, alpha = tint.partition(" ")
    red, green, blue = (int(TOKENS[name][0][n : n + 2], 16) for n in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha or 1})"


def definitions(drawn: str) -> str:
    """Return the rule that defines the colors which a drawing uses, as look.css has them."""
    used = {"ink", "page", *re.findall(r"var\(--ck-(\w+)\)", drawn)}
    return f".ck-chart{{{''.join(f'--ck-{n}:{v};' for n, v in DEFINED.items() if n in used)}}}"


def css(tint: str) -> str:
    """Return a tint as CSS, which follows the page's theme."""
    name, _, alpha = tint.partition(" ")
    color = f"var(--ck-{name})"
    return f"color-mix(in srgb, {color} {float(alpha):.0%}, transparent)" if alpha else color


def html(text: str) -> str:
    """Return text as HTML. ``**bold**``, `` `code` `` and line ends are marked up, the rest is
    escaped.
    """
    text = escape_html(text)
    for mark, tag in MARKS:
        text = re.sub(mark, tag, text)
    return text


def unmarked(text: str) -> str:
    """Return a text without the marks of ``html``."""
    return text.replace("**", "").replace("`", "")
