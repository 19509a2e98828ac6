"""The page's pictures: of each a script with its data, still images, and its height."""

import base64
import hashlib
import json
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from cypresskit import draw, teach
from cypresskit.draw.display import ADVICE, Displayable
from cypresskit.draw.scripts import read_packaged
from cypresskit.timing import simulate
from tools import stills
from tools.bench_page import PACKAGE, kept
from tools.bench_page.browser import chromium, find_chromium
from tools.climb_page.kernels import LAST, kernel

HERE = Path(__file__).parent
WIDE, NARROW = 1040, 358  # pixels, of a picture on a desktop and on a phone
SUFFIXES = (".py", ".il", ".json", ".toml", ".css", ".html", ".js")
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
    inside: str = ""  #: its HTML, if it doesn't need scripts


def _race(sizes: Sequence[int]) -> Displayable:
    lesson = teach.register_block
    return lesson.block_race(lesson.block_runs(sizes))


PICTURES = {
    "two": Shown(lambda: _race((1, 2)), 0.3),
    "race": Shown(lambda: _race((1, 2, 4, 8)), 0.3),
    "chip": Shown(lambda: draw.chip([simulate(kernel(LAST), n) for n in (4352, 2048, 1024)]), 0.45),
    "wavefronts": Shown(draw.wavefronts, 0.62),
    "nn": Shown(lambda: draw.texture_fetch("sgemm_tn", "sgemm_nn")),
    "compute": Shown(lambda: draw.texture_fetch("sgemm_tn", "sgemm_tn_compute")),
    "chart": Shown(lambda: draw.published("nakasato_4")),
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


def write(site: Path, wanted: Sequence[str]) -> dict[str, Made]:
    """Write scripts and images of pictures into ``climb/``. Return what the page shows of each.

    They are made once for each state of the sources, in a minute.
    """
    made_of = hashlib.sha256(str((wanted, find_chromium())).encode())
    for source in (PACKAGE, HERE, Path(stills.__file__)):
        for file in sorted([source, *source.rglob("*.*")]):
            if file.is_file() and file.suffix in SUFFIXES:
                made_of.update(file.read_bytes())
    key = f"climb-{made_of.hexdigest()[:16]}"
    folder = kept(key, lambda fresh: _make(fresh, wanted))
    shutil.copytree(folder, site / "climb", dirs_exist_ok=True)
    rows = json.loads((site / "climb/pictures.json").read_text(encoding="utf-8"))
    return {name: Made(*row) for name, row in rows.items()}


def _make(folder: Path, wanted: Sequence[str]) -> None:
    """Make the pictures' scripts and images, and ``pictures.json`` with what is made of each."""
    drawn = {name: PICTURES[name].make() for name in wanted}
    written = {name: picture.to_html() for name, picture in drawn.items()}
    made = {
        name: Made("", ("", 0, 0), [], 0, page)
        for name, page in written.items()
        if "<cypresskit-picture" not in page
    }
    drawn = {name: picture for name, picture in drawn.items() if name not in made}
    pages = [written[name] for name in drawn]
    shares = [PICTURES[name].share for name in drawn]
    for name, page in zip(drawn, pages):
        script = f"climb.put({json.dumps(name)}, {json.dumps(page)})\n"
        (folder / f"{name}.js").write_text(script, encoding="utf-8")
    taken = {
        (width, scheme): list(stills.take(pages, shares, width=width, scheme=scheme, style=style()))
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


def write_preview(file: Path, title: str, words: str, climb: str) -> None:
    """Write the image that is shown where the page's link is sent: title, sentence, climb (HTML).
    Without Chromium there is none.
    """
    if not find_chromium():
        return
    page = (HERE / "page.css").read_text(encoding="utf-8").partition("/* end of fonts */")[2]
    card = f'<div class="card"><div><h1>{title}</h1><p>{words}</p></div><nav>{climb}</nav></div>'
    with chromium() as browser:
        width, height = PREVIEW
        tab = browser.new_page(viewport={"width": width, "height": height})
        tab.set_content(
            f"<!DOCTYPE html><style>{style()}{page}</style>"
            f'<body class="cypresskit" data-look="light">{card}</body>'
        )
        tab.evaluate("document.fonts.ready.then(() => true)")
        file.write_bytes(tab.screenshot())
