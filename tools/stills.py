"""Take an image of each picture with Chromium, for places where no script runs: a lesson that was
opened without trust, a forge's preview, a list of pictures.
"""

import base64
import io
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, cast
from urllib.parse import quote

import numpy as np
from nbformat import NotebookNode
from PIL import Image

from cypresskit.draw import theme
from cypresskit.draw.display import ADVICE, scripts
from tools.bench_page.browser import chromium, find_chromium
from tools.gallery import LOOKS

PAGE = (
    "<!DOCTYPE html><style>{style}</style>"
    '<body class="cypresskit" data-look="{scheme}"><div class="stage">{picture}</div></body>'
)
BYTES = np.array([1 << 16, 1 << 8, 1])  # of a color's red, green and blue
COLORS = 128  # of an image: all colors would take twice the bytes
#: A still in both looks. As an image it follows the color scheme of its place: the system's, or
#: what a style sheet sets there (labconfig/custom.css).
BOTH = """<svg xmlns="http://www.w3.org/2000/svg" width="{0.width}" height="{0.height}"><style>
.dark{{display:none}}@media(prefers-color-scheme:dark){{.dark{{display:inline}}.light{{display:none}}}}
</style>{images}</svg>"""
IMAGE = '<image class="{}" width="100%" height="100%" href="data:image/webp;base64,{}"/>'
#: As a stage on a phone, it shrinks only as far as it is legible, and then it scrolls.
TAG = (
    r'<div style="overflow-x: auto" tabindex="0">'
    r'<img alt="\1" src="data:image/svg+xml,{}" width="{}"'
    r' style="max-width: 100%; min-width: {:.0f}px"></div>'
)
WIDTH = 1100  # pixels, of a page with one picture
#: Whether all pictures play that can be seen.
PLAYING = """() => [...document.querySelectorAll("cypresskit-picture")].every(
    (one) => one.querySelector(":scope > [data-ready]") || !one.getClientRects().length)"""
#: Shows a moment of the first scene, without controls. Returns the picture's place, and its height
#: with controls.
POSE = """async (share = 0.5) => {
    const painted = () =>
        new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    const players = [...document.querySelectorAll("cypresskit-picture [data-ready]")]
    const roots = players.map((player) => player.shadowRoot ?? player)
    const place = () => document.querySelector("cypresskit-picture").getBoundingClientRect()
    await document.fonts.ready
    const sliders = (root) => [...root.querySelectorAll("[data-part=slider]")]
    for (const slider of roots.flatMap(sliders)) {
        slider.value = Math.floor(slider.max * share)
        slider.dispatchEvent(new Event("input"))
    }
    await painted()
    const playing = place().height
    const controls = ".bar, nav, .hint, [data-part=chosen]"
    for (const root of roots) for (const part of root.querySelectorAll(controls)) part.remove()
    await painted()
    return {...place().toJSON(), playing}
}"""
TEXT = re.compile(rf"(?s)<pre>(.*?)</pre>(?=<p>{re.escape(ADVICE)})")


class Still(NamedTuple):
    """An image of a picture, and sizes in pixels."""

    image: bytes = b""  #: WebP; empty without Chromium
    width: int = 0
    height: int = 0
    playing: int = 0  #: the picture's height with its controls


def take(
    pictures: Sequence[str],
    shares: Sequence[float] = (),
    *,
    width: int = WIDTH,
    scheme: str = "light",
    style: str = "",
) -> list[Still]:
    """Return an image of each picture (HTML).

    Parameters
    ----------
    shares
        How much of each picture's first scene is over, from 0 to 1; half if it isn't given.
    width
        The page's width in pixels.
    scheme
        ``"light"`` or ``"dark"``.
    style
        A style sheet for the page.
    """
    if not find_chromium():
        return [Still()] * len(pictures)
    taken = []
    with chromium() as browser:
        for picture, share in zip_longest(pictures, shares, fillvalue=0.5):
            page = browser.new_page(
                viewport={"width": width, "height": 800}, color_scheme=cast(Any, scheme)
            )
            page.set_content(PAGE.format(style=style, scheme=scheme, picture=picture))
            page.add_script_tag(content=scripts())
            page.wait_for_function(PLAYING)
            place, before, shot = page.evaluate(POSE, share), b"", b"none"
            playing = place.pop("playing")
            while shot != before:  # until all is painted
                before, shot = shot, page.screenshot(clip=place, full_page=True)
            sizes = place["width"], place["height"], playing
            taken.append(Still(shrink(shot), *map(round, sizes)))
            page.close()
    return taken


def shrink(shot: bytes) -> bytes:
    """Return a screenshot as WebP, in few colors.

    Half of them are the most frequent, which large areas keep. The others are far from each other:
    so a thin red frame doesn't get the orange of something larger.
    """
    image = Image.open(io.BytesIO(shot)).convert("RGB")
    pixels = np.asarray(image, int) @ BYTES
    codes, places, counts = np.unique(pixels, return_inverse=True, return_counts=True)
    colors = codes[:, np.newaxis] // BYTES % 256
    palette = image.quantize(COLORS // 2, Image.Quantize.MAXCOVERAGE).getpalette() or []
    kept = [*colors[counts.argsort()[-COLORS // 2 :]], *np.reshape(palette, (-1, 3))]
    nearest = abs(colors[:, np.newaxis] - kept).sum(axis=2).argmin(axis=1)
    drawn = np.array(kept, np.uint8)[nearest][places.reshape(pixels.shape)]
    small = io.BytesIO()
    Image.fromarray(drawn).save(small, "webp", lossless=True, method=6)
    return small.getvalue()


def put_in(notebook: NotebookNode) -> None:
    """Put an image in the place of each picture's text, which describes it."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output.data for output in outputs if "<cypresskit-picture" in str(output)]
    taken = [take([data["text/html"] for data in shown], scheme=look) for look in LOOKS]
    for data, *looks in zip(shown, *taken):
        encoded = [base64.b64encode(still.image).decode() for still in looks]
        images = "".join(map(IMAGE.format, LOOKS, encoded))
        still = quote(BOTH.format(looks[0], images=images), safe="/:;,=+")
        tag = TAG.format(still, looks[0].width, theme.SMALLEST * looks[0].width)
        data["text/html"] = TEXT.sub(tag, data["text/html"], count=1)
