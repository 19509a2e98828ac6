"""Record the film at the page's top for README: ``python -m tools.climb_page.record SITE FOLDER``
writes ``film_light.webp`` and ``film_dark.webp`` from a built site.
"""

import argparse
import io
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page

from tools.bench_page.browser import chromium, served

STEP_MS = 100  # between two images
LONGEST_MS = 20_000  # of a film
REST_MS = 3_000  # that its end is shown


def frames(page: Page) -> list[tuple[bytes, int]]:
    """Return the film's images, each with the time in milliseconds that it is shown."""
    film = page.locator("#film")
    found: list[tuple[bytes, int]] = []
    for _ in range(0, LONGEST_MS, STEP_MS):
        page.clock.run_for(STEP_MS)
        shot = film.screenshot()
        if found and found[-1][0] == shot:
            found[-1] = shot, found[-1][1] + STEP_MS
        else:
            found.append((shot, STEP_MS))
        if "C is correct" in film.inner_text() and found[-1][1] >= REST_MS:
            break
    return found


def record(address: str, is_dark: bool, file: Path) -> None:
    """Write the film as an animated image, of a light or a dark page."""
    with chromium() as browser:
        page = browser.new_page(
            viewport={"width": 1366, "height": 768}, color_scheme="dark" if is_dark else "light"
        )
        page.clock.install()
        page.goto(address)
        page.add_style_tag(content="* { animation: none !important; transition: none !important }")
        taken = frames(page)
    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot, _ in taken]
    durations = [time for _, time in taken]
    images[0].save(
        file,
        save_all=True,
        append_images=images[1:],
        duration=durations,
        loop=0,
        lossless=True,
        method=4,
    )


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m tools.climb_page.record")
    parser.add_argument("site", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    with served(options.site) as address:
        for scheme in ("light", "dark"):
            record(
                f"{address}/index.html", scheme == "dark", options.folder / f"film_{scheme}.webp"
            )


if __name__ == "__main__":
    main()
