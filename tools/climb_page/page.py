"""Write the page: the text of page.md, with what is computed from the kernels."""

import json
import re
import shutil
from collections.abc import Iterator
from html import escape
from math import log
from pathlib import Path
from string import Template
from typing import NamedTuple

from markdown_it import MarkdownIt

from cypresskit import draw
from cypresskit.draw.display import scripts
from cypresskit.draw.scripts import read_packaged
from cypresskit.gains import IDEAS
from tools import bench_page
from tools.climb_page import drawn, film, pictures
from tools.climb_page.kernels import KERNELS, LAST, code
from tools.climb_page.numbers import filled, gain, gauges, names, speed

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HEADING = re.compile(r"(?m)^(#+) (?:(\w+): )?(.+?)(?: \{#(\w+)\})?$")
PICTURE = re.compile(r"(?m)^!\[(.*)\]\((\w+)\)$")
BUTTON = re.compile(r"(?m)^\[(.+)\]\((starter|bench/\S+)\)$")
UP = list(KERNELS).index(LAST) + 1  # the steps that go up
RAIL = 150, 470  # pixels: width and height of the climb at the side
LEAST, MOST = 40, 2200  # Gflop/s at its foot and top


class Part(NamedTuple):
    """A part of the text, below a heading."""

    level: int  #: of the heading
    name: str  #: of a step, or of a part that links lead to
    title: str
    prose: str
    picture: str = ""
    caption: str = ""
    button: str = ""  #: the words of its button
    target: str = ""  #: where that leads


def read() -> list[Part]:
    """Return the parts of the text, with all numbers filled in."""
    text = filled((HERE / "page.md").read_text(encoding="utf-8"))
    _, *pieces = HEADING.split(text)
    parts = []
    for marks, step, title, anchor, body in zip(*(pieces[n::5] for n in range(5))):
        picture, button = PICTURE.search(body), BUTTON.search(body)
        prose = BUTTON.sub("", PICTURE.sub("", body)).strip()
        caption, shown = picture.groups() if picture else ("", "")
        words, target = button.groups() if button else ("", "")
        name = step or anchor or ""
        parts.append(Part(len(marks), name, title, prose, shown, caption, words, target))
    return parts


def html(text: str) -> str:
    """Return a paragraph's text as HTML. Sizes of blocks have a real sign."""
    return re.sub(r"(\d) x (\d)", r"\1 × \2", MarkdownIt().renderInline(" ".join(text.split())))


def sentence(text: str) -> str:
    """Return the first sentence of a text, without marks."""
    return re.sub(r"<[^>]+>", "", html(text.partition(". ")[0])) + "."


def bench_link(name: str) -> str:
    """Return the address of the workbench with a step's kernel."""
    shown = KERNELS[name]
    if shown.starter:
        return f"bench/index.html?step={shown.starter}"
    return f"bench/index.html?step={shown.launch.kernel}"


def lesson_of(name: str) -> str:
    """Return the name of the lesson that tells a step's whole story."""
    launches = {idea.before: idea for idea in IDEAS if not idea.is_step}
    launches |= {idea.launch: idea for idea in IDEAS if idea.launch.kernel != "sgemm_tn"}
    steps = {idea.step: idea for idea in IDEAS}
    idea = steps.get(name) or launches[KERNELS[name].launch]
    (lesson,) = (ROOT / "notebooks").glob(f"{idea.lesson:02}_*.ipynb")
    return lesson.stem


def stage(part: Part, made: dict[str, pictures.Made]) -> str:
    """Return a picture's figure: its caption, and its still, which its script replaces."""
    if part.picture in drawn.DRAWN:
        caption = f"<figcaption>{html(part.caption)}</figcaption>"
        return f"<figure>{caption}{drawn.picture(part.picture)}</figure>"
    if part.picture == "chart":
        return f'<figure class="chart">{draw.published("nakasato_4").to_html()}</figure>'
    shown = made[part.picture]
    sources = "".join(
        f'<source media="{query}" srcset="climb/{file}" width="{w}" height="{h}">'
        for query, file, w, h in shown.sources
    )
    file, w, h = shown.still
    image = f'<img src="climb/{file}" width="{w}" height="{h}" loading="lazy"'
    image += f' alt="{escape(shown.text)}">'
    inside = f"<picture>{sources}{image}</picture>" if file else f"<p>{escape(shown.text)}</p>"
    return (
        f'<figure style="--high:{shown.high}px"><figcaption>{html(part.caption)}</figcaption>'
        f'<div class="stage" data-picture="{part.picture}">{inside}</div></figure>'
    )


def section(part: Part, number: int, made: dict[str, pictures.Made]) -> str:
    """Return a step as HTML."""
    name, title, gflops = part.name, html(part.title), speed(part.name)
    about = f'data-title="{title}" data-speed="{gflops:.1f}"'
    words = part.button or "Try it: change this kernel"
    lesson, (compared, kind) = lesson_of(name), gain(name)
    link = (
        f'<a class="no" href="?step={name}#{name}" aria-label="Link to step {number}">{number}</a>'
    )
    return f"""
<section class="step" id="{name}" aria-labelledby="{name}-title" {about}>
<header><div><h3 id="{name}-title">{link}{title}</h3>
<p class="ways"><a class="try" href="{bench_link(name)}">{html(words)}</a>
<a href="notebooks/{lesson}.html">The whole story: lesson {lesson[:2]}</a></p></div>
<p class="speed {kind}"><b data-count>{gflops:,.0f}</b> <span>Gflop/s</span>
<small>{compared}</small></p></header>
<div class="two"><div class="prose"><p>{html(part.prose)}</p>{gauges(name)}</div>
<div class="code"><p class="label">{"What changes" if KERNELS[name].before else "The loop"}</p>
{code(name)}</div></div>
{stage(part, made)}
</section>"""


def sections(parts: list[Part], made: dict[str, pictures.Made]) -> Iterator[str]:
    """Yield the page's parts as HTML, each with its steps."""
    number = 0
    for part in parts:
        if part.level == 2:
            if number or part.name:
                yield "</div>"
            yield f'<div class="part" id="{part.name or f"part{number}"}">'
            yield f'<h2>{html(part.title)}</h2><p class="intro">{html(part.prose)}</p>'
            if part.picture:
                yield stage(part, made)
            if part.button:
                yield f'<p class="start"><a class="try" href="{part.target}">{part.button}</a></p>'
        elif part.level == 3:
            number += 1
            yield section(part, number, made)
    yield "</div>"


def rail() -> str:
    """Return the climb at the side: a dot for each step, as high as its speed (logarithmic)."""
    w, h = RAIL
    heights = {name: _height(speed(name)) for name in KERNELS}
    across = [14 + (w - 28) * n / (len(KERNELS) - 1) for n in range(len(KERNELS))]
    places = list(zip(across, heights.values()))
    line = "M" + "L".join(f"{x:.1f},{y:.1f}" for x, y in places[:UP])
    below = max(y for _, y in places[UP:]) + 22
    top = _height(speed(LAST, 2048))
    falls = "".join(f'<path class="fall" d="M{x:.1f},{top:.1f}V{y:.1f}"/>' for x, y in places[UP:])
    dots = []
    for n, (name, (x, y)) in enumerate(zip(KERNELS, places)):
        is_low, gflops = n >= UP, f"{speed(name):,.0f}"
        if is_low or n == UP - 1:  # above the last one is the paper's line
            text = f'x="{x:.1f}" y="{below if is_low else y + 26:.1f}" class="mid"'
        else:
            dx, kind = (9, "start") if n < 2 else (-9, "end")
            text = f'x="{x + dx:.1f}" y="{y + 4:.1f}" class="{kind}"'
        named = ' class="named"' * (n < 3)
        dots.append(
            f'<a href="#{name}"{named} aria-label="Step {n + 1}, {gflops} Gflop/s">'
            f'<circle class="hit" cx="{x:.1f}" cy="{y:.1f}" r="12"/>'
            f'<circle class="dot{" low" * is_low}" cx="{x:.1f}" cy="{y:.1f}" r="4.5"/>'
            f"<text {text}>{gflops}</text></a>"
        )
    paper = names()["paper"]()
    y = _height(paper)
    return (
        f'<svg viewBox="0 0 {w} {h}"><line class="paper" x1="6" x2="{w - 6}" y1="{y:.1f}"'
        f' y2="{y:.1f}"/><text class="soft" x="6" y="{y - 6:.1f}">{paper:,} measured, 2010</text>'
        f'<path class="line" d="{line}"/>{falls}{"".join(dots)}</svg>'
    )


def _height(gflops: float) -> float:
    """Return the y of a speed in the climb at the side."""
    return RAIL[1] - 20 - (RAIL[1] - 44) * log(gflops / LEAST) / log(MOST / LEAST)


def menu(site: Path) -> str:
    """Return the links to the rest of the site, as far as it was built."""
    entries = [
        ("README.html", "The course"),
        ("workbook/index.html", "The course, running in your browser"),
        ("bench/index.html", "The workbench: one kernel"),
        ("docs/views.html", "Pictures that play"),
        ("docs/api.html", "Reference"),
        ("README.html#start", "Install it"),
        ("docs/teaching.html", "For teachers"),
    ]
    return "".join(
        f'<a href="{target}">{words}</a>'
        for target, words in entries
        if target.endswith("#start") or (site / target).exists()
    )


def preview(address: str, title: str, words: str) -> str:
    """Return the tags that make a preview where the page's link is sent."""
    tags = {
        "og:type": "article",
        "og:title": title,
        "og:description": words,
        "og:url": address,
        "og:image": f"{address}climb/preview.png",
        "og:image:width": str(pictures.PREVIEW[0]),
        "og:image:height": str(pictures.PREVIEW[1]),
        "twitter:card": "summary_large_image",
    }
    return "".join(
        f'<meta {"name" if name[0] == "t" else "property"}="{name}" content="{escape(value)}">\n'
        for name, value in tags.items()
    )


def write(site: Path, address: str = "") -> None:
    """Write the page into a site, as ``index.html`` and ``climb/``. ``address`` is the site's, for
    previews of links.
    """
    folder = site / "climb"
    folder.mkdir(parents=True)
    parts = read()
    top = parts[0]
    made = pictures.write(site)
    tape = film.recording()
    page = Template((HERE / "page.html").read_text(encoding="utf-8")).substitute(
        look=read_packaged("draw/look.css") + read_packaged("draw/figure.css"),
        style=(HERE / "page.css").read_text(encoding="utf-8"),
        title=html(top.title),
        lead=html(top.prose),
        about=escape(sentence(top.prose)),
        film_words=html(top.caption),
        film=film.still(tape),
        recording=json.dumps(tape, separators=(",", ":")).replace("<", "\\u003c"),
        rail=rail(),
        menu=menu(site),
        steps=len(KERNELS),
        paper=names()["paper"](),
        from_file=escape(bench_page.PROBLEMS["file"]),
        body="".join(sections(parts[1:], made)),
        preview=preview(address, html(top.title), sentence(top.prose)) if address else "",
    )
    card = pictures.card(html(top.title), sentence(top.prose), rail())
    pictures.write_preview(folder / "preview.png", card)
    (site / "index.html").write_text(page, encoding="utf-8")
    (site / "_static").mkdir(exist_ok=True)
    (site / "_static/players.js").write_text(scripts(), encoding="utf-8")
    shutil.copy(HERE / "page.js", folder)
    shutil.copytree(HERE / "fonts", folder / "fonts")
    files = [site / "index.html", site / "_static/players.js"]
    files += sorted(each for each in folder.rglob("*.*") if each.suffix not in (".json", ".png"))
    cached = [file.relative_to(site).as_posix() for file in files]
    script = bench_page.offline(f"climb-{bench_page.state('', *files)}", cached)
    (site / "offline.js").write_bytes(script)
