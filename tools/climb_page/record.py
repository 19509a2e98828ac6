"""Record two taps at the page's top for README: ``python -m tools.climb_page.record SITE FOLDER``
writes ``film_light.webp`` and ``film_dark.webp`` from a built site.
"""

import io
import sys
from pathlib import Path
from typing import Literal

from PIL import Image

from tools.bench_page.browser import chromium

STEP_MS = 150  # between two images
IMAGES = 29
REST_MS = 3_000  # that its end is shown
TAPS = {8: 0, 22: 2}  # the candidate that is chosen, by the image before which it is


def record(site: Path, scheme: Literal["light", "dark"], folder: Path) -> None:
    """Write the film as an animated image into a folder, of a light or a dark page."""
    images: list[Image.Image] = []
    with chromium() as browser:
        page = browser.new_page(viewport={"width": 1366, "height": 768}, color_scheme=scheme)
        page.clock.install()
        page.goto((site / "index.html").absolute().as_uri())
        page.add_style_tag(content="* { animation: none !important; transition: none !important }")
        film = page.locator("#film")
        for number in range(IMAGES):
            if number in TAPS:
                film.locator("fieldset button").nth(TAPS[number]).evaluate("it => it.click()")
            page.clock.run_for(STEP_MS)
            images.append(Image.open(io.BytesIO(film.screenshot())).convert("RGB"))
    times = [STEP_MS] * (IMAGES - 1) + [REST_MS]
    first, *others = images
    file = folder / f"film_{scheme}.webp"
    first.save(
        file, save_all=True, append_images=others, duration=times, loop=0, lossless=True, method=4
    )


if __name__ == "__main__":
    site, folder = map(Path, sys.argv[1:])
    record(site, "light", folder)
    record(site, "dark", folder)
