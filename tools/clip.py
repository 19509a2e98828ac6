"""The README's moving picture and its still ones, made from the views themselves, light and dark: ``make clip``.

The journey of ``ck.draw.explore`` is played and clicked through in Chromium, as anybody would, and photographed frame
by frame. It needs Chromium and Playwright, which the tests bring.
"""

import shutil
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from PIL import Image  # Bokeh needs it too
from playwright.sync_api import Page, ViewportSize, sync_playwright

import cypresskit as ck

FOLDER = Path(__file__).parents[1] / "docs/pictures"
SIZE = ViewportSize(width=1120, height=655)
COLOURS, PACE, READ = 64, 140, 900  # of a clip; milliseconds that a frame stands, and one that has words to read
# Of each level how often which key is pressed before each photograph, how many are taken, and the source and which of
# its cells is clicked at last.
STEPS = (
    (5, 12, "engines", 0),
    (5, 12, "ALU sgemm_tn to come", "w"),
    (1, 12, "slots", 10),
    (1, 26, "cells C", 10),
    (1, 16, "", 0),
)
PLACE = """([name, which]) => {
    const doc = Bokeh.documents.findLast(d => d.get_model_by_name(name)), {data} = doc.get_model_by_name(name)
    const at = which === "w" ? data.w.indexOf(Math.max(...data.w)) : which
    const drawn = (m) => m.type === "Figure" && m.renderers.some(r => r.data_source?.name === name)
    const view = Bokeh.index.get_one([...doc.all_models].find(drawn))
    const box = view.el.getBoundingClientRect(), {x_scale, y_scale} = view.frame
    return [box.x + x_scale.compute(data.x[at]), box.y + y_scale.compute(data.y[at])] }"""
POINTER = """([x, y]) => { document.querySelector("#pointer")?.remove()
    if (x >= 0) document.body.insertAdjacentHTML("beforeend", `<div id="pointer" style="position: fixed; width: 20px;
        height: 20px; left: ${x - 13}px; top: ${y - 13}px; border: 3px solid #d55e00; border-radius: 50%"></div>`) }"""


def photograph(page: Page) -> Image.Image:
    """What the page shows."""
    page.wait_for_timeout(60)
    return Image.open(BytesIO(page.screenshot())).convert("RGB")


def journey(page: Page) -> Iterator[tuple[Image.Image, int]]:
    """The clip's frames, and how long each stands."""
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
    wide, high = pictures[0].size
    some = pictures[::6]
    sheet = Image.new("RGB", (wide, high * len(some)))
    for n, picture in enumerate(some):
        sheet.paste(picture, (0, high * n))
    palette = sheet.quantize(COLOURS, Image.Quantize.MAXCOVERAGE)
    first, *rest = (picture.quantize(palette=palette, dither=Image.Dither.NONE) for picture in pictures)
    first.save(path, save_all=True, append_images=rest, duration=list(times), loop=0, optimize=True)


def main() -> None:
    ck.draw.road().save(FOLDER / "road.svg")
    views = {"journey": ck.draw.explore("sgemm_tn", 256), "pipelines": ck.draw.timeline()}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, view in views.items():
            saved = view.save(Path(folder) / f"{name}.html")
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport=SIZE, color_scheme=scheme)
                page.goto(saved.as_uri())
                page.wait_for_selector("[data-ready]")
                if name == "journey":
                    write_clip(list(journey(page)), FOLDER / f"{name}_{scheme}.gif")
                else:
                    for _ in range(60):
                        page.keyboard.press("ArrowRight")
                    page.wait_for_timeout(500)
                    photograph(page).quantize(256).save(FOLDER / f"{name}_{scheme}.png", optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
