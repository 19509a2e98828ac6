"""Make the README's pictures: ``make clip``.

Chromium plays ``ck.draw.explore`` and clicks through its levels like a reader; each frame is
photographed, light and dark. The workbench's page is photographed, too. This needs Chromium, and
Playwright, which is installed with the test tools.
"""

import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Literal

import numpy as np
from PIL import Image  # Bokeh needs it too
from playwright.sync_api import Browser, Page, ViewportSize

import cypresskit as ck
from cypresskit.draw.climb_picture import Climb
from cypresskit.draw.display import Displayable
from cypresskit.files.atomic import save_file
from tools import bench_page
from tools.bench_page.browser import chromium, open_bench, served

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/pictures"
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")

STILLS: dict[str, Callable[[], Displayable | Climb]] = {
    "climb": ck.draw.climb,
    "pipelines": ck.draw.timeline,
}
SIZE = ViewportSize(width=1120, height=655)
BENCH_SIZE = ViewportSize(width=1180, height=1000)
COLORS = 64  # in a picture's palette
FRAME_MS = 140  # duration of a frame
READ_MS = 900  # duration of a frame with text to read
# Per level: key presses before each photograph, photographs, and the source and the number of the
# cell that is clicked at the end.
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
    """Return a photograph of the page."""
    page.wait_for_timeout(60)
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def journey(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """Yield the clip's frames and their durations in milliseconds."""
    for presses, count, name, which in STEPS:
        for n in range(count):
            yield photograph(page), FRAME_MS if n else READ_MS
            for _ in range(presses):
                page.keyboard.press("ArrowRight")
            page.wait_for_timeout(260)  # until the animation has ended
        if name:
            x, y = page.evaluate(PLACE, [name, which])
            page.evaluate(POINTER, [x, y])
            yield photograph(page), READ_MS
            page.evaluate(POINTER, [-1, 0])
            page.mouse.click(x, y)
            page.mouse.move(1, 1)
            page.wait_for_timeout(1200)
    yield photograph(page), 2 * READ_MS


def write_clip(frames: list[tuple[Image.Image, int]], path: Path) -> None:
    """Write a GIF with one palette for all frames."""
    pictures, times = zip(*frames)
    some = Image.fromarray(np.concatenate([np.asarray(picture) for picture in pictures[::6]]))
    # Other methods would replace pale grays by a red
    palette = some.quantize(COLORS, Image.Quantize.FASTOCTREE)
    first, *rest = (
        picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures
    )
    first.save(path, save_all=True, append_images=rest, duration=list(times), loop=0, optimize=True)


def photograph_bench(browser: Browser) -> None:
    """Photograph the workbench's page, with the costs of the first step's kernel."""
    with tempfile.TemporaryDirectory() as folder:
        bench_page.write_page(Path(folder))
        with served(Path(folder)) as address:
            for scheme in SCHEMES:
                page = browser.new_page(viewport=BENCH_SIZE, color_scheme=scheme)
                open_bench(page, address, "costs")
                page.get_by_text("Which line costs the most?").wait_for()
                page.locator(".ckw-number", has_text="16").last.click()
                page.wait_for_timeout(1000)
                picture = Image.open(BytesIO(page.locator("#bench").screenshot())).convert("RGB")
                small = picture.quantize(2 * COLORS, Image.Quantize.FASTOCTREE)
                small.save(FOLDER / f"bench_{scheme}.png", optimize=True)
                page.close()


def main() -> None:
    for name, view in STILLS.items():
        save_file(FOLDER / f"{name}.svg", view().still())
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        photograph_bench(browser)
        saved = ck.draw.explore("sgemm_tn", 256).save(Path(folder) / "journey.html")
        for scheme in SCHEMES:
            page = browser.new_page(viewport=SIZE, color_scheme=scheme)
            page.goto(saved.as_uri())
            page.wait_for_selector("[data-ready]")
            write_clip(list(journey(page)), FOLDER / f"journey_{scheme}.gif")


if __name__ == "__main__":
    main()
