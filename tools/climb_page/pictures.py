"""The page's pictures: of each a script with its data, still images, and its height."""

import base64
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from cypresskit import draw, teach
from cypresskit.draw.display import ADVICE, Displayable
from cypresskit.draw.scripts import read_packaged
from cypresskit.kernels import Kernel
from cypresskit.timing import simulate
from tools import stills
from tools.bench_page import kept, state
from tools.bench_page.browser import chromium, find_chromium
from tools.climb_page.kernels import LAST, kernel

HERE = Path(__file__).parent
WIDE, NARROW = 1040, 358  # pixels, of a picture on a desktop and on a phone
#: What the pictures are made of.
SOURCES = """
    cypresskit tools/stills.py tools/climb_page/kernels.py tools/climb_page/pictures.css
    tools/climb_page/fonts tools/climb_page/pictures.py
""".split()
PHONE, DARK = "(max-width: 700px)", "(prefers-color-scheme: dark)"
#: The screens that a picture has an image for, each with its width and colors. The first counts
#: whose query is true.
SCREENS = {
    f"{PHONE} and {DARK}": (NARROW, "dark"),
    PHONE: (NARROW, "light"),
    DARK: (WIDE, "dark"),
    "": (WIDE, "light"),
}
PREVIEW = 1280, 672  # pixels, of the image where the page's link is sent
#: The style of that image: the riddle alone, before the first touch.
ALONE = """
    body > :not(main), main > :not(.top), .about, .gains, .start, fieldset {
        display: none !important }
    main, .top { display: block; margin: 0; max-width: none; padding: 0 }
    #film { border: 0; box-shadow: none; padding: 22px 30px; zoom: 1.3 }
"""


class Shown(NamedTuple):
    """A picture of the page."""

    make: Callable[[], Displayable]
    share: float = 0.5  #: of it that is over in its still


class Made(NamedTuple):
    """What the page shows of a picture."""

    text: str  #: for its image
    high: int  #: pixels: its height when it plays
    images: list[tuple[str, str, int, int]]  #: for each of ``SCREENS``: file, width and height


def named(name: str, words: str) -> Kernel:
    """Return a step's kernel with words for its file's name."""
    return replace(kernel(name), name=words)


PICTURES = {
    "race": Shown(teach.register_block.block_race, 0.3),
    "chip": Shown(lambda: draw.chip([simulate(kernel(LAST), n) for n in (4352, 2048, 1024)]), 0.45),
    "wavefronts": Shown(
        lambda: draw.wavefronts(named(LAST, "Unrolled"), named("37", "Old C first")),
        0.62,
    ),
    "compute": Shown(
        lambda: draw.texture_fetch(named(LAST, "Squares"), named("compute", "Rows of four"))
    ),
}


def style() -> str:
    """Return the style sheet of a page with one picture: the page's fonts, in the sheet."""
    page = (HERE / "pictures.css").read_text(encoding="utf-8")

    def inside(found: re.Match) -> str:
        data = (HERE / "fonts" / found[1]).read_bytes()
        return f"url(data:font/woff2;base64,{base64.b64encode(data).decode()})"

    look = read_packaged("draw/look.css") + read_packaged("draw/figure.css")
    page = re.sub(r"url\(climb/fonts/([\w.-]+)\)", inside, page)
    return f"{look}{page} :root {{ color-scheme: light dark }} body {{ margin: 0 }}"


def write(site: Path) -> dict[str, Made]:
    """Write scripts and images of pictures into ``climb/``. Return what the page shows of each.

    They are made once for each state of the sources, in a minute.
    """
    folder = kept(f"climb-{state(str(find_chromium()), *SOURCES)}", _make)
    shutil.copytree(folder, site / "climb", dirs_exist_ok=True)
    rows = json.loads((site / "climb/pictures.json").read_text(encoding="utf-8"))
    return {name: Made(*row) for name, row in rows.items()}


def _make(folder: Path) -> None:
    """Make the pictures' scripts and images, and ``pictures.json`` with what is made of each."""
    shares = [shown.share for shown in PICTURES.values()]
    drawn = {name: shown.make() for name, shown in PICTURES.items()}
    placed = []
    for name, picture in drawn.items():
        page = picture.to_html()
        script = f"climb.put({json.dumps(name)}, {json.dumps(page)})\n"
        (folder / f"{name}.js").write_text(script, encoding="utf-8")
        placed.append(f'<div class="stage" data-picture="{name}">{page}</div>')
    images: dict[str, list] = {name: [] for name in drawn}
    high = {}
    for query, (width, scheme) in SCREENS.items():
        taken = stills.take(placed, shares, width=width, scheme=scheme, style=style())
        for name, still in zip(drawn, taken):
            file = f"{name}_{width}_{scheme}.webp"
            if still.image:
                (folder / file).write_bytes(still.image)
                images[name].append((query, file, still.width, still.height))
            high[name] = still.playing  # on the last screen, at the end
    made = {}
    for name, picture in drawn.items():
        text = " ".join(repr(picture).replace(ADVICE, "").split())
        made[name] = Made(text, high[name], images[name])
    (folder / "pictures.json").write_text(json.dumps(made), encoding="utf-8")


def write_preview(site: Path) -> None:
    """Write the image for places where the site's link is sent: the riddle, before it is solved.
    None without Chromium.
    """
    if not find_chromium():
        return
    with chromium() as browser:
        width, height = PREVIEW
        page = browser.new_page(
            viewport={"width": width, "height": height}, reduced_motion="reduce"
        )
        page.goto((site / "index.html").absolute().as_uri())
        page.add_style_tag(content=ALONE)
        page.evaluate("document.fonts.ready.then(() => true)")
        page.screenshot(path=site / "climb/preview.png")
