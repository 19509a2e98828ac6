"""One look for every picture: colors that follow the page, and fonts.

Colors are CSS variables named ``--ck-...``, written once, in look.css, for a light page and for a
dark one; in JupyterLab the first four are the current theme's. HTML uses them directly. A canvas
can't, so a glyph that needs one is listed as an *color*: the player looks the color up in the
browser and hands it over, again whenever the theme changes. Cell tints are translucent and serve
both.

Hues are Okabe and Ito's, which people with the common kinds of color blindness tell apart; a
picture must still say everything by shape or text as well.
"""

import re
from html import escape

from cypresskit.draw.scripts import packaged
from cypresskit.tables import elided

COLOR = r"(#\w+|rgba\([^)]*\))"
#: Each color's name, and how it is on a light page and on a dark one.
TOKENS: dict[str, tuple[str, str]] = {}
for _name, _light, _dark in re.findall(
    rf"--ck-(\w+):.*?light-dark\({COLOR}, {COLOR}\)", packaged("draw/look.css")
):
    TOKENS.setdefault(_name, (_light, _dark))  # what follows is for high contrast
# One of several of a kind (rows of a matrix, blocks, wavefronts); each stands out on a light and on
# a dark page.
SERIES = ("#0072b2", "#56b4e9", "#009e73", "#e0cf30", "#e69f00", "#d55e00", "#cc79a7", "#909090")
LINES = ("read", "wrote", "green", "purple", "yellow", "soft")  # for one series after another
DASHES = ("solid", "dashed", "dotdash", "dotted", "dashdot", "solid")
SHAPES = ("circle", "square", "triangle", "diamond", "inverted_triangle", "plus")
# Tints of a number, from the most negative through none to the most positive.
ALPHAS = (0.1, 0.18, 0.26, 0.34, 0.42)
TINTS = [f"rgba(213,94,0,{alpha})" for alpha in ALPHAS[::-1]] + ["rgba(128,128,128,0.06)"]
TINTS += [f"rgba(0,130,200,{alpha})" for alpha in ALPHAS]

# Of letters of 12 pixels, in pixels: the width of one, a little more than most have; of a chart's
# legend: what stands beside a name, and a line.
LETTER, KEY, ENTRY = 6.7, 40, 23

PLOT_CSS = ":host { --background-color: transparent; }"
HIGH = 480  # pixels that a figure without axes takes at most in a still
# The height that a window leaves for a figure: the rest is for controls, words and what the page
# has around them. In a frame that is as high as what is in it that would shrink: load() gives it a
# height.
ROOM = "calc(var(--ck-high, min(63vh, 484px, 100vh - 250px)) - var(--ck-room, 0px))"
# On a phone a picture keeps a width at which its letters can be read, and is scrolled.
LEGIBLE = "clamp(0px, 999 * (640px - 100vw), {:.0f}px)"
LINK = r"\[(lesson \d\d)\]\((\w+)\)", r'<a href="\2.ipynb" target="_blank">\1</a>'
MARKS = (LINK, (r"\*\*(.+?)\*\*", r"<b>\1</b>"), (r"`([^`]+)`", r"<code>\1</code>"), ("\n", "<br>"))


#: What no page, picture or message may hold: halves of surrogates, and control letters.
UNREADABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|[\u202a-\u202e]"
)
#: A word that is longer is cut.
LONG_WORD = re.compile(r"\S{201,}")


def readable(text: str) -> str:
    """Text as it can be shown, whoever wrote it: what can't be encoded or would turn its
    surroundings around becomes the sign for an unknown letter, and words of more than 200 letters
    are cut.
    """
    text = UNREADABLE.sub("\N{REPLACEMENT CHARACTER}", text)
    return LONG_WORD.sub(lambda word: elided(word[0], 200), text)


def escaped(text: object) -> str:
    """Text as HTML."""
    return escape(readable(str(text)))


def minified(css: str) -> str:
    """A style sheet without comments, in one line: every player brings its own."""
    return " ".join(re.sub(r"(?s)/\*.*?\*/", "", css).split())


def light(tint: str) -> str:
    """How a tint is on a light page: a color's name and perhaps its alpha, as in ``"a 0.4"``. At
    0.45, words on it can still be read on a light and on a dark page.
    """
    name, _, alpha = tint.partition(" ")
    red, green, blue = (int(TOKENS[name][0][n : n + 2], 16) for n in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha or 1})"


def css(tint: str, prefix: str) -> str:
    """A tint in CSS, of variables whose names begin with ``prefix``."""
    name, _, alpha = tint.partition(" ")
    color = f"var({prefix}{name})"
    return f"color-mix(in srgb, {color} {float(alpha):.0%}, transparent)" if alpha else color


def html(text: str) -> str:
    """Text as HTML, escaped: the one place where names of kernels, files and boards are.
    ``**bold**``, `` `code` `` and line ends are marks.
    """
    text = escaped(text)
    for mark, tag in MARKS:
        text = re.sub(mark, tag, text)
    return text


def without_links(text: str) -> str:
    """HTML, or JSON of it, with links to lessons replaced by their names."""
    return re.sub(r"<a href=[^>]*>(lesson \d\d)</a>", r"\1", text)
