"""Make the README's moving picture, light and dark, and its stills from the views themselves:
``make clip``.

The journey of ``ck.draw.explore`` is played and clicked through in Chromium, as a reader would, and
photographed frame by frame. It needs Chromium and Playwright, which the tests bring.
"""

import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image  # Bokeh needs it too
from playwright.sync_api import Page, ViewportSize

import cypresskit as ck
from cypresskit.draw.climb_picture import Climb
from cypresskit.draw.display import Displayable
from cypresskit.files.atomic import save_file
from tools.bench_page.browser import chromium

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/pictures"


STILLS: dict[str, Callable[[], Displayable | Climb]] = {
    "climb": ck.draw.climb,
    "pipelines": ck.draw.timeline,
}
SIZE = ViewportSize(width=1120, height=655)
# Colours of a clip; milliseconds for a frame, and for one that has words to read
COLOURS, PACE, READ = (
    64,
    140,
    900,
)
# Of each level how often which key is pressed before each photograph, how many are taken, and the
# source and which of its cells is clicked at last.
STEPS = (
    (5, 12, "engines", 0),
    (5, 12, "computes sgemm_tn to come", 2),
    (1, 12, "slots", 10),
    (1, 26, "cells C", 10),
    (1, 16, "", 0),
)
PLACE = Path(__file__).with_name("place.js").read_text(encoding="utf-8")
POINTER = """([x, y]) => { document.querySelector("#pointer")?.remove()
    if (x >= 0) document.body.insertAdjacentHTML("beforeend",
      `<div id="pointer" style="position: fixed; width: 20px;
        height: 20px; left: ${x - 13}px; top: ${y - 13}px; border: 3px solid #d55e00;
          border-radius: 50%"></div>`) }"""


def photograph(page: Page) -> Image.Image:
    """A photograph of the page."""
    page.wait_for_timeout(60)
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def journey(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """The clip's frames, and how long each is shown."""
    for presses, count, name, which in STEPS:
        for n in range(count):
            yield photograph(page), PACE if n else READ
            for _ in range(presses):
                page.keyboard.press("ArrowRight")
            page.wait_for_timeout(260)  # what travels arrives
        if name:
            x, y = page.evaluate(PLACE, [name, which])
            page.evaluate(POINTER, [x, y])
            yield photograph(page), READ
            page.evaluate(POINTER, [-1, 0])
            page.mouse.click(x, y)
            page.mouse.move(1, 1)
            page.wait_for_timeout(1200)
    yield photograph(page), 2 * READ


def write_clip(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """Write a GIF in the colours of all frames."""
    pictures, times = zip(*frames)
    some = Image.fromarray(np.concatenate([np.asarray(picture) for picture in pictures[::6]]))
    # The other methods lose the pale greys to a red
    palette = some.quantize(COLOURS, Image.Quantize.FASTOCTREE)
    first, *rest = (
        picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
    )
    first.save(path, save_all=True, append_images=rest, duration=list(times), loop=0, optimize=True)


def main() -> None:
    for name, view in STILLS.items():
        save_file(FOLDER / f"{name}.svg", view().still())
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        saved = ck.draw.explore("sgemm_tn", 256).save(Path(folder) / "journey.html")
        for scheme in ("light", "dark"):
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(saved.as_uri())
            page.wait_for_selector("[data-ready]")
            write_clip(list(journey(page)), FOLDER / f"journey_{scheme}.gif")


if __name__ == "__main__":
    main()
