"""Makes the README's pictures from the views themselves, light and dark: ``.venv/bin/python docs/pictures/make.py``.

It needs Chromium. The frames are reached by keys, as anybody would, so that no pointer lies over a picture.
"""

import shutil
import tempfile
from io import BytesIO
from pathlib import Path

from PIL import Image  # Bokeh needs it too
from playwright.sync_api import sync_playwright

import cypresskit as ck

# The view, and how often which key is pressed.
PICTURES = {
    "register_block": (lambda: ck.draw.register_block("sgemm_tn"), {"ArrowRight": 115}),
    "pipelines": (ck.draw.timeline, {"ArrowRight": 60}),
}


def main() -> None:
    here = Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (view, keys) in PICTURES.items():
            saved = view().save(Path(folder) / f"{name}.html")
            for scheme in ("light", "dark"):
                page = browser.new_page(viewport={"width": 1120, "height": 655}, color_scheme=scheme)
                page.goto(saved.as_uri())
                page.wait_for_selector("[data-ready]")
                for key, times in keys.items():
                    for _ in range(times):
                        page.keyboard.press(key)
                page.wait_for_timeout(500)
                picture = Image.open(BytesIO(page.screenshot(full_page=True)))
                picture.quantize(64).save(here / f"{name}_{scheme}.png", optimize=True)
                page.close()
        browser.close()


if __name__ == "__main__":
    main()
