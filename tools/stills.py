"""Take an image of each picture with Chromium, for places where no script runs: a lesson that was
opened without trust, a forge's preview, a list of pictures.
"""

import base64
import io
import re
from collections.abc import Iterator, Sequence

from nbformat import NotebookNode
from PIL import Image

from cypresskit.draw.display import ADVICE, scripts
from tools.bench_page.browser import chromium, find_chromium

PAGE = '<!DOCTYPE html><body class="cypresskit" data-look="light">{}</body>'
COLORS = 64  # of an image: all colors would take twice the bytes
#: Whether all pictures play that can be seen.
PLAYING = """() => [...document.querySelectorAll("cypresskit-picture")].every(
    (one) => one.querySelector(":scope > [data-ready]") || !one.getClientRects().length)"""
#: Shows a moment half-way through the first scene, without controls. Returns the picture's place.
POSE = """async () => {
    for (const box of document.querySelectorAll("cypresskit-picture [data-ready]")) {
        const root = box.shadowRoot ?? box
        for (const slider of root.querySelectorAll("[data-part=slider]")) {
            slider.value = Math.floor(slider.max / 2)
            slider.dispatchEvent(new Event("input"))
        }
        for (const part of root.querySelectorAll(".bar, nav, [data-part=chosen]"))
            part.remove()
    }
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))
    return document.querySelector("cypresskit-picture").getBoundingClientRect().toJSON()
}"""
TEXT = re.compile(rf"(?s)<pre>(.*?)</pre>(?=<p>{re.escape(ADVICE)})")


def take(pictures: Sequence[str]) -> Iterator[bytes]:
    """Yield an image (WebP) of each picture (HTML). Without Chromium, images are empty."""
    if not find_chromium():
        yield from [b""] * len(pictures)
        return
    with chromium() as browser:
        for picture in pictures:
            page = browser.new_page(viewport={"width": 1100, "height": 800})
            page.set_content(PAGE.format(picture))
            page.add_script_tag(content=scripts())
            page.wait_for_function(PLAYING)
            place, before, shot = page.evaluate(POSE), b"", b"none"
            while shot != before:  # until all is painted
                before, shot = shot, page.screenshot(clip=place)
            small = io.BytesIO()
            Image.open(io.BytesIO(shot)).quantize(COLORS).save(
                small, "webp", lossless=True, method=6
            )
            yield small.getvalue()


def put_in(notebook: NotebookNode) -> None:
    """Put an image in the place of each picture's text, which describes it."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    shown = [output.data for output in outputs if "<cypresskit-picture" in str(output)]
    for data, image in zip(shown, take([data["text/html"] for data in shown])):
        source = f"data:image/webp;base64,{base64.b64encode(image).decode()}"
        tag = rf'<img alt="\1" src="{source}" style="max-width: 100%">'
        data["text/html"] = TEXT.sub(tag, data["text/html"], count=1)
