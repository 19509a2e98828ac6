"""Take an image of each picture with Chromium, for places where no script runs: a lesson that was
opened without trust, a forge's preview, a list of pictures.
"""

import base64
import io
import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple, cast

from nbformat import NotebookNode
from PIL import Image

from cypresskit.draw.display import ADVICE, scripts
from tools.bench_page.browser import chromium, find_chromium

PAGE = (
    "<!DOCTYPE html><style>{style}</style>"
    '<body class="cypresskit" data-look="{scheme}"><div class="stage">{picture}</div></body>'
)
COLORS = 64  # of an image: all colors would take twice the bytes
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
    for (const root of roots)
        for (const part of root.querySelectorAll(".bar, nav, [data-part=chosen]")) part.remove()
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
            taken.append(Still(_small(shot), *map(round, sizes)))
            page.close()
    return taken


def _small(shot: bytes) -> bytes:
    """Return a screenshot as WebP, in few colors."""
    small = io.BytesIO()
    Image.open(io.BytesIO(shot)).quantize(COLORS).save(small, "webp", lossless=True, method=6)
    return small.getvalue()


def put_in(notebook: NotebookNode) -> None:
    """Put an image in the place of each picture's text, which describes it."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output.data for output in outputs if "<cypresskit-picture" in str(output)]
    for data, still in zip(shown, take([data["text/html"] for data in shown])):
        source = f"data:image/webp;base64,{base64.b64encode(still.image).decode()}"
        tag = rf'<img alt="\1" src="{source}" style="max-width: 100%">'
        data["text/html"] = TEXT.sub(tag, data["text/html"], count=1)
