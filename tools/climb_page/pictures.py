"""The page's pictures: of each a script with its data, still images, and its height."""

import base64
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from cypresskit import draw, teach
from cypresskit.draw.display import ADVICE, Displayable
from cypresskit.draw.scripts import read_packaged
from cypresskit.timing import simulate
from tools import stills
from tools.bench_page import kept, state
from tools.bench_page.browser import chromium, find_chromium
from tools.climb_page.kernels import LAST, kernel

HERE = Path(__file__).parent
WIDE, NARROW = 1040, 358  # pixels, of a picture on a desktop and on a phone
#: What the pictures are made of.
SOURCES = """
    cypresskit tools/stills.py tools/climb_page/kernels.py tools/climb_page/page.css
    tools/climb_page/fonts tools/climb_page/pictures.py
""".split()
PHONE = "(max-width: 700px)"
PREVIEW = 1200, 630  # pixels, of the image where the page's link is sent
DARK = "(prefers-color-scheme: dark)"


class Shown(NamedTuple):
    """A picture of the page."""

    make: Callable[[], Displayable]
    share: float = 0.5  #: of it that is over in its still


class Made(NamedTuple):
    """What the page shows of a picture."""

    text: str  #: for its image
    still: tuple[str, int, int]  #: file, width and height of its image; file "": there is none
    sources: list[tuple[str, str, int, int]]  #: images for other screens, each after its query
    high: int  #: pixels: its height when it plays


PICTURES = {
    "two": Shown(lambda: teach.register_block.block_race((1, 2)), 0.3),
    "race": Shown(teach.register_block.block_race, 0.3),
    "chip": Shown(lambda: draw.chip([simulate(kernel(LAST), n) for n in (4352, 2048, 1024)]), 0.45),
    "wavefronts": Shown(draw.wavefronts, 0.62),
    "nn": Shown(lambda: draw.texture_fetch("sgemm_tn", "sgemm_nn")),
    "compute": Shown(lambda: draw.texture_fetch("sgemm_tn", "sgemm_tn_compute")),
}


def style() -> str:
    """Return the style sheet of a page with one picture: the page's fonts, in the sheet."""
    page = (HERE / "page.css").read_text(encoding="utf-8").partition("/* end of fonts */")[0]

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
    drawn = {name: shown.make() for name, shown in PICTURES.items()}
    pages = [picture.to_html() for picture in drawn.values()]
    shares = [shown.share for shown in PICTURES.values()]
    made = {}
    for name, page in zip(drawn, pages):
        script = f"climb.put({json.dumps(name)}, {json.dumps(page)})\n"
        (folder / f"{name}.js").write_text(script, encoding="utf-8")
    placed = [
        f'<div class="stage" data-picture="{name}">{page}</div>' for name, page in zip(drawn, pages)
    ]
    taken = {
        (width, scheme): list(
            stills.take(placed, shares, width=width, scheme=scheme, style=style())
        )
        for width in (WIDE, NARROW)
        for scheme in ("light", "dark")
    }
    for n, (name, picture) in enumerate(drawn.items()):
        files = {}
        for (width, scheme), images in taken.items():
            image = images[n]
            file = f"{name}_{width}_{scheme}.webp" if image.image else ""
            files[width, scheme] = file, image.width, image.height
            if file:
                (folder / file).write_bytes(image.image)
        still = files[WIDE, "light"]
        queries = {
            f"{PHONE} and {DARK}": (NARROW, "dark"),
            PHONE: (NARROW, "light"),
            DARK: (WIDE, "dark"),
        }
        sources = [(query, *files[key]) for query, key in queries.items()] if still[0] else []
        text = " ".join(repr(picture).replace(ADVICE, "").split())[:300]
        high = taken[WIDE, "light"][n].playing
        made[name] = Made(text, still, sources, high)
    (folder / "pictures.json").write_text(json.dumps(made), encoding="utf-8")


def card(title: str, words: str, climb: str) -> str:
    """Return the page of the preview's image: title, sentence and climb (HTML)."""
    page = (HERE / "page.css").read_text(encoding="utf-8").partition("/* end of fonts */")[2]
    inside = f'<div class="card"><div><h1>{title}</h1><p>{words}</p></div><nav>{climb}</nav></div>'
    return (
        f"<!DOCTYPE html><style>{style()}{page}</style>"
        f'<body class="cypresskit" data-look="light">{inside}</body>'
    )


def write_preview(file: Path, page: str) -> None:
    """Write the image of a ``card``, for where the page's link is sent; none without Chromium."""
    if not find_chromium():
        return
    with chromium() as browser:
        width, height = PREVIEW
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.set_content(page)
        tab.evaluate("document.fonts.ready.then(() => true)")
        file.write_bytes(tab.screenshot())
