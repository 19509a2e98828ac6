"""Write the page: the text of page.md, with what is computed from the kernels, in page.html."""

import re
import shutil
from math import log
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment
from markdown_it import MarkdownIt
from markupsafe import Markup

from cypresskit import draw, gains
from cypresskit.draw.display import scripts
from cypresskit.draw.scripts import read_packaged
from cypresskit.tables import quantity  # noqa: F401  # by page.html
from tools import bench_page
from tools.climb_page import kernels, numbers, pictures, riddles
from tools.climb_page.kernels import KERNELS, STEPS, N

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEADING = re.compile(r"(?m)^(#+) (?:(\w+): )?(.+?)(?: \{#(\w+)\})?$")
PICTURE = re.compile(r"(?m)^!\[(.*)\]\((\w+)\)$")
BUTTON = re.compile(r"(?m)^\[(.+)\]\((starter|bench/\S+)\)$")
CHARTS = {
    "compilers": lambda: draw.compilers("sgemm_tn"),
    "published": lambda: draw.published("nakasato_4"),
}
LEAST, MOST = 40, 2200  # Gflop/s at the foot and the top of the climb at the side


class Part(NamedTuple):
    """A part of the text, below a heading."""

    name: str  #: of a step, or of a part that links lead to
    title: str
    prose: str
    picture: str
    caption: str
    button: str  #: the words of its button
    target: str  #: where that leads
    steps: "list[Part]"  #: below smaller headings


def read() -> list[Part]:
    """Return the parts of the text, with all numbers filled in."""
    text = numbers.filled((HERE / "page.md").read_text(encoding="utf-8"))
    _, *pieces = HEADING.split(text)
    parts: list[Part] = []
    for marks, step, title, anchor, body in zip(*(pieces[n::5] for n in range(5))):
        picture, button = PICTURE.search(body), BUTTON.search(body)
        prose = BUTTON.sub("", PICTURE.sub("", body)).strip()
        caption, shown = picture.groups() if picture else ("", "")
        words, target = button.groups() if button else ("", "")
        name = step or anchor or ""
        part = Part(name, title, prose, shown, caption, words, target, [])
        (parts[-1].steps if marks == "###" else parts).append(part)
    return parts


def html(text: str) -> Markup:
    """Return a paragraph's text as HTML. Sizes have a real sign, and no line ends in them, before a
    percent sign or beside an equals sign.
    """
    marked = MarkdownIt().renderInline(" ".join(text.split()))
    signed = re.sub(r"(\d) x\b", r"\1 ×", marked)
    return Markup(re.sub(r"(?<=[N=×\d]) (?=[=×%\d])", "&nbsp;", signed))


def opened(name: str) -> gains.Timed:
    """Return what the workbench opens in a step's place: its kernel at the page's N, or its own
    step that goes on with this kernel, or else makes it.
    """
    shown = gains.Timed(KERNELS[name].kernel, N)
    goes_on = {row.get("previous_step"): step for step, row in gains.STEP_ROWS.items()}
    return shown if shown in bench_page.KERNELS else gains.Timed(goes_on.get(name, name))


def lesson_of(name: str) -> str:
    """Return the name of the lesson that tells a step's whole story."""
    launch = gains.Timed(KERNELS[name].kernel)
    ideas = gains.IDEAS
    idea = next(one for one in ideas if name == one.step or launch in (one.launch, one.before))
    (lesson,) = (ROOT / "notebooks").glob(f"{idea.lesson:02}_*.ipynb")
    return lesson.stem


def rail() -> list[float]:
    """Return the y of each step in the climb at the side, which is logarithmic."""
    shares = (log(numbers.speed(name) / LEAST) / log(MOST / LEAST) for name in STEPS)
    return [round(450 - 426 * share, 1) for share in shares]


def template() -> Environment:
    """Return what fills ``page.html``, which calls what has a name in these modules."""
    filling = bench_page.templates(HERE)
    filling.filters |= {
        "prose": html,
        "riddle_data": lambda frame: [*frame[2:]],
        "whole": "{:,.0f}".format,
    }
    filling.globals |= vars(riddles) | vars(kernels) | vars(numbers) | globals()
    return filling


def write(site: Path, address: str = "", source: str = "") -> None:
    """Write the page into a site, as ``index.html`` and ``climb/``. ``address`` is the site's, for
    previews of links, and ``source`` that of the repository.
    """
    folder = site / "climb"
    folder.mkdir(parents=True)
    shutil.copy(HERE / "page.js", folder)
    shutil.copytree(HERE / "fonts", folder / "fonts")
    (site / "_static").mkdir(exist_ok=True)
    (site / "_static/players.js").write_text(scripts(), encoding="utf-8")
    top, *parts = read()
    sheets = [read_packaged(f"draw/{name}.css") for name in ("look", "figure")]
    sheets += [(HERE / f"{name}.css").read_text(encoding="utf-8") for name in ("pictures", "page")]
    page = (
        template()
        .get_template("page.html")
        .render(
            description=html(top.prose.partition("\n\n")[0]).striptags(),
            address=address,
            from_file=bench_page.PROBLEMS["file"],
            is_built=lambda target: (site / target.partition("#")[0]).exists(),
            parts=parts,
            pictures=pictures.write(site),
            preview=pictures.PREVIEW,
            rail=rail(),
            source=source,
            style=Markup("".join(sheets)),
            top=top,
        )
    )
    (site / "index.html").write_text(page, encoding="utf-8")
    pictures.write_preview(site)
    files = [site / "index.html", site / "_static/players.js"]
    files += sorted(each for each in folder.rglob("*.*") if each.suffix not in (".json", ".png"))
    cached = [file.relative_to(site).as_posix() for file in files]
    script = bench_page.offline(f"climb-{bench_page.state('', *files)}", cached)
    (site / "offline.js").write_bytes(script)
