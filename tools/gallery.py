"""The gallery: every lesson and every view as web pages in a folder, which work from disk and without network.

A view's page is what ``save`` writes. A lesson's page is its notebook as it is stored, with the outputs that it
holds; players play, results that are to be guessed first are folded, what needs a running kernel (sliders that compute)
stands still, and formulas are MathML, which needs no script. The same page is slides where its address ends in
``#slide-0``: a slide for each heading, and more where one is too small (arrows, space, Escape). A handout to print has
stills for players, lines for guesses, explanations unfolded, and no answers; what only a screen can do is told of as
"in the notebook". All share one file of scripts. Solutions are left out unless asked for.

    python -m tools.gallery gallery notebooks [--solutions]       or: make gallery
"""

import argparse
import ast
import re
from collections.abc import Callable
from contextlib import chdir
from copy import deepcopy
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from latex2mathml.converter import convert
from nbconvert import HTMLExporter

from cypresskit import draw, host
from cypresskit.draw.controls import TEXT
from cypresskit.draw.player import Shown, inline_resources
from cypresskit.teach import l01_register_block as register_block
from cypresskit.timing import simulate
from tools.book import CHECK

# File name: the page's line in the index, and the view.
VIEWS: dict[str, tuple[str, Callable[[], Shown]]] = {
    "explore": ("From the chip to the register, click by click", draw.explore),
    "register_block": ("A work-item's 8 x 8 block fills up", lambda: draw.register_block("sgemm_tn")),
    "register_block_dd": ("The same in double-double", lambda: draw.register_block("ddgemm_tn_fma")),
    "block_race": ("Blocks race: words per flop", lambda: draw.block_race(register_block.block_runs())),
    "texture_fetch": ("Lines and clocks of a wavefront's fetches: TN against NN", draw.texture_fetch),
    "texture_fetch_modes": (
        "Pixel against compute shader",
        lambda: draw.texture_fetch("sgemm_tn", "sgemm_tn_compute"),
    ),
    "texture_fetch_layouts": (
        "Rows against tiles in memory",
        lambda: draw.texture_fetch("sgemm_naive", "sgemm_naive", layouts=("linear", "tiled")),
    ),
    "waiting": ("The toy of lesson 04: computing, waiting and company", draw.waiting),
    "lds_transpose": ("A tile of A through the LDS, with and without bank conflicts", draw.lds_transpose),
    "lds_pitch": ("The same rows at other pitches: which banks they share", draw.lds_pitch),
    "reduction": ("Sixteen leaders and 48 helpers share the rows of a matrix", draw.reduction),
    "bundles": ("VLIW bundles of SGEMM", draw.bundles),
    "bundles_double": ("Bundles in double and double-double", lambda: draw.bundles("dgemm_tn", "ddgemm_tn_fma")),
    "packing": ("AMD's way to pack bundles against looking ahead", draw.packing),
    "bundle_game": ("The bundle game: pack the loop yourself", draw.bundle_game),
    "wavefronts": ("Wavefronts of an engine: 25 against 37 registers", draw.wavefronts),
    "dial": ("The dial: registers, latency, clauses, and the speed", draw.dial),
    "chip": ("The chip at work, over time", lambda: draw.chip(simulate("sgemm_tn", 1024))),
    "chip_sizes": ("The chip's average use as N grows", draw.chip),
    "roofline": (
        "Rooflines: Cypress against Fermi",
        lambda: draw.roofline([simulate(name, 1024) for name in ("sgemm_tn", "dgemm_tn", "dgemm_nn")]),
    ),
    "performance": ("Gflop/s against N", draw.performance),
    "bus": ("Bus and chip change places as N grows", draw.bus),
    "card_memory": (
        "What lies on the card while it multiplies larger matrices",
        lambda: draw.card_memory(host.blocked_time(5376, 5376, 3584, host.Machine(), block=1792)),
    ),
    "timeline": ("Four and five stages of a pipeline", draw.timeline),
    "exponents": ("Two-sum, bit by bit", draw.exponents),
    "contest": (
        "Speeds under their ceilings, and rounds of wavefronts",
        lambda: draw.contest([simulate(name, n) for name in ("sgemm_tn", "sgemm_tn_37") for n in (512, 1024)]),
    ),
}

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark; }}
body {{ max-width: 1120px; margin: 0 auto; padding: 12px; background: #fff; color: #1b1b1f;
font: 16px/1.5 sans-serif; }}
a {{ color: #0064a8; }} pre, code {{ font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }}
pre {{ overflow-x: auto; margin: 0; padding: 6px 10px; }} .input pre {{ background: #f2f2f5; }}
:not(pre) > code {{ overflow-wrap: anywhere; }} summary {{ cursor: pointer; }}
.anchor-link, .prompt, .bare .input {{ display: none; }} table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #8888; padding: 2px 8px; }}
@media (max-width: 500px) {{ td, th {{ padding: 2px 4px; overflow-wrap: anywhere; }} }} img {{ max-width: 100%; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #17171b; color: #ececf1; }} a {{ color: #6cc0f5; }}
.input pre {{ background: #2a2a31; }} }}
@media print {{ @page {{ size: A4; margin: 16mm; }} nav {{ display: none; }} body {{ font-size: 11pt; color: #000; }}
pre {{ white-space: pre-wrap; font-size: 8.5pt; }} h2 {{ break-after: avoid; }} img, table {{ break-inside: avoid; }} }}
{slides}</style>{head}</head><body><nav>{nav}</nav><main>{body}</main></body></html>
"""

# A section is a slide; what is higher than the window flows on into further columns, of which one is seen.
SLIDE = """body.slides { max-width: none; padding: 0; } .slides nav { display: none; }
.slides main > section { display: none; } .slides pre, .slides code { font-size: 18px; line-height: 1.35; }
.slides main > section.shown { display: block; box-sizing: border-box; height: 100vh; padding: 20px 28px; columns: 1;
column-gap: 28px; column-fill: auto; overflow: hidden; font-size: 22px; line-height: 1.4; }
.slides :is(p, li) { max-width: 58em; orphans: 2; widows: 2; }
.slides pre { overflow: visible; white-space: pre-wrap; }
.slides section > i:last-child { display: block; margin-top: -2em; }
.slides :is(h1, h2, summary) { break-after: avoid; margin-top: 0; }
.slides :is(tr, img, math, .cypresskit-player) { break-inside: avoid; } .slides img { max-height: calc(100vh - 48px); }
"""
SLIDES = """<script>{
  const slides = [...document.querySelectorAll("main > section")]
  const now = () => (/^#slide-(\\d+)(?:[.](\\d+))?$/.exec(location.hash) ?? []).slice(1).map(n => +(n ?? 0))
  const wide = slide => slide.clientWidth - 28  // a column and its gap
  const ends = slides.map(slide => slide.appendChild(document.createElement("i")))
  const end = at => ends[at].getBoundingClientRect().left + slides[at].scrollLeft
  const last = at => Math.round((end(at) - 28) / wide(slides[at]))
  const fit = () => {
    for (const player of document.querySelectorAll(".slides .shown .cypresskit-player")) {
      const high = player.getBoundingClientRect().height, room = innerHeight - 48
      const width = parseFloat(player.style.width) || 100
      if (high > room && width > 40) player.style.width = Math.max(40, Math.min(width - 2, width * room / high)) + "%"
    }
  }
  // Where the last part of a slide would hold but a line or two, what stands before them comes along.
  const join = at => {
    const all = [...slides[at].querySelectorAll("p, li, pre, table, summary, h2, .cypresskit-player")]
    const blocks = all.filter(block => block.checkVisibility() && block.getBoundingClientRect().height)
    for (const block of all) block.style.breakBefore = ""
    let moved = null
    for (const block of blocks.reverse()) {
      const left = ends[at].getBoundingClientRect().left - 2, [first] = block.getClientRects()
      const there = blocks.flatMap(each => [...each.getClientRects()]).filter(box => box.left > left)
      if (last(at) === 0 || Math.max(...there.map(box => box.bottom)) > innerHeight / 4) return
      if (first.left > left) continue
      if (first.top < innerHeight / 4) return
      if (moved) moved.style.breakBefore = ""
      block.style.breakBefore = "column"
      moved = block
    }
  }
  const show = () => {
    const [at] = now()
    document.body.classList.toggle("slides", at !== undefined)
    slides.forEach((slide, i) => slide.classList.toggle("shown", i === at))
    dispatchEvent(new Event("resize"))
    if (at === undefined) for (const player of document.querySelectorAll(".cypresskit-player")) player.style.width = ""
    turn()
  }
  const turn = () => {
    const [at, part] = now()
    if (!slides[at]) return
    join(at)
    slides[at].scrollLeft = Math.min(part, last(at)) * wide(slides[at])
    scrollTo(0, 0)
  }
  const go = step => {
    let [at, part] = now()
    const parts = last(at)
    part = Math.min(part, parts) + step
    if (part < 0 && at > 0) [at, part] = [at - 1, 999]
    else if (part > parts && at + 1 < slides.length) [at, part] = [at + 1, 0]
    location.hash = `slide-${at}` + (part > 0 ? `.${Math.min(part, 999)}` : "")
  }
  const sizes = new ResizeObserver(() => {  // a player has begun, and may be higher than its still
    fit()
    if (now().length) turn()
  })
  document.querySelectorAll(".cypresskit-player").forEach(player => sizes.observe(player))
  addEventListener("hashchange", show)
  addEventListener("keydown", event => {
    if (event.target !== document.body || !slides[now()[0]]) return
    const step = {ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1}[event.key]
    if (step) go(step)
    if (event.key === "Escape") location.hash = ""
    if (step) event.preventDefault()
  })
  show()
}</script>"""

KINDS = {"lesson": "to read", "handout": "to print"}
SCRIPTS = "cypresskit.js"
CODE_OR_FORMULA = re.compile(r"(?s)(```.*?```|`[^`]*`)|\$\$(.+?)\$\$|\$([^$]+?)\$")
MOVES = "<p><em>In the notebook these controls compute anew; this is what they show at first.</em></p>"
FOLDED = "<details><summary>The result: guess first, then open this</summary>{}</details>"
SOLUTION = re.compile(r"(?s)<details><summary>Solution</summary>.*?</details>\s*")
EXPLAINS = r"(?:Where|Why|How|What a|What the model|What the slides|The paper)\b[^<]*"  # the summary of a fold to print
EXPLAINED = re.compile(rf"(?s)<details><summary>({EXPLAINS})</summary>(.*?)</details>")
ANSWER = re.compile(r"(?s)<details>.*?</details>\s*")
WORDS = re.compile(r"(?s)<details><summary>All words</summary>(.*?)</details>")  # the glossary
LOADS = re.compile(r"The next cell puts the scripts .*? It shows nothing\.\s*")
# The first sentence of a paragraph or item that asks for what only a screen can do.
DOES = r"\*\*Play\*\*|Press|Click|Point at|Play it|Drag|Choose an?|Watch|Move|Try (any )?other|Try the|The picture asks"
DOES = DOES.replace(" ", r"\s+")  # lines may end there
ON_SCREEN = re.compile(rf"(\A(?:\d+\. )?|[.:;?!]\s+)({DOES})(?!\w)", re.I)
GUESS = re.compile(r" *\(Run this cell to enter it\.\)")
PLAYER = re.compile(r"(?s)<!-- player --><div[^>]*>(<img.*?>)</div>.*?<!-- /player -->")
JOURNEY = re.compile(r'(?s)<div class="cypresskit-journey".*?<section>(.*?)</section>.*?</script></div>')
NOTEBOOK = re.compile(r'href="(?:[^":]*/)?([^"/:]+)\.ipynb(#[^"]*)?"')


def lesson(notebook: Path, kind: str = "lesson", *, scripts: str = "", solutions: bool = True, nav: str = "") -> str:
    """A notebook as a page, with formulas as MathML; for controls stands what they show at first. ``kind`` is one of
    ``KINDS``; ``scripts`` is the file where the players' are, which otherwise stand in the page."""
    book = deepcopy(_held(notebook))
    book.cells = [cell for cell in book.cells if "nbval-ignore-output" not in cell.metadata.get("tags", ())]
    for cell in book.cells:
        if cell.cell_type == "markdown":
            text = LOADS.sub("", cell.source if solutions else SOLUTION.sub("", cell.source))
            cell.source = CODE_OR_FORMULA.sub(_formula, _printed(text) if kind == "handout" else text)
        elif kind == "handout" and CHECK.search(cell.source):
            cell.outputs = []
        for output in cell.get("outputs", ()):
            if (guess := output.get("data", {})).get("text/plain", "").startswith("Your guess"):
                blank = "____________" if kind == "handout" else "…"
                guess["text/plain"] = GUESS.sub("", guess["text/plain"]).replace("…", blank)
    body = "".join(_section(cells, kind) for cells in _sections(book))
    # Scrolling parts must be reachable by keyboard.
    body = NOTEBOOK.sub(r'href="lesson_\1.html\2"', body.replace("<pre>", '<pre tabindex="0">'))
    head = _scripts(scripts) * ("cypresskit-player" in body)
    title = _title(book) or notebook.stem
    return PAGE.format(
        title=escape(title),
        head=head,
        slides=SLIDE * (kind == "lesson"),
        nav=nav,
        body=body + SLIDES * (kind == "lesson"),
    )


def _printed(text: str) -> str:
    """Markdown for a handout: without answers, and with what a screen can do told of as the notebook's."""
    unfolded = EXPLAINED.sub(r"**\1**\2", WORDS.sub(r"\1", text))
    parts = re.split(r"(\n\n|\n(?=\d+\. |- ))", ANSWER.sub("", unfolded))
    return "".join(ON_SCREEN.sub(_in_the_notebook, part, count=1) for part in parts)


def _in_the_notebook(found: re.Match) -> str:
    before, does = found[1], found[2]
    return f"{before}{'in' if before.rstrip()[-1:] in (':', ';') else 'In'} the notebook, {does[:1].lower()}{does[1:]}"


def _title(book) -> str:
    return next((line[2:] for cell in book.cells for line in cell.source.splitlines() if line.startswith("# ")), "")


def _scripts(file: str = "") -> str:
    if file:
        return f'<script src="{file}"></script>'
    return "".join(f"<script>{code}</script>" for code in inline_resources().js_raw)


def _sections(book) -> list[list]:
    """The cells from heading to heading."""
    sections: list[list] = [[]]
    for cell in book.cells:
        parts = re.split(r"\n(?=## )", cell.source) if cell.cell_type == "markdown" else [""]
        for part in parts:
            if part.startswith("## "):
                sections.append([])
            sections[-1].append(nbformat.v4.new_markdown_cell(part) if len(parts) > 1 else cell)
    return sections


def _section(cells: list, kind: str) -> str:
    """Cells as HTML, with the outputs folded that are to be guessed first."""
    parts, open_ = [], []
    for cell in cells:
        open_.append(cell)
        if cell.cell_type == "code" and cell.metadata.get("jupyter", {}).get("outputs_hidden"):
            result = nbformat.v4.new_code_cell("", outputs=cell.outputs, metadata={})
            cell.outputs = []
            parts.append(_html(open_))
            if kind != "handout":
                parts.append(FOLDED.format(f'<div class="bare">{_html([result])}</div>'))
            open_ = []
    html = "".join([*parts, _html(open_)])
    if kind == "handout":
        html = JOURNEY.sub(r"\1", PLAYER.sub(r"\1", html))
    return f"<section>{html}</section>"


def _html(cells: list) -> str:
    return HTMLExporter(template_name="basic").from_notebook_node(nbformat.v4.new_notebook(cells=cells))[0]


def _formula(found: re.Match) -> str:
    """MathML for TeX between dollar signs, with nothing in it that Markdown would read; code stays as it is."""
    code, block, inline = found.groups()
    if code:
        return code
    math = convert(block or inline, display="block" if block else "inline")
    return math.replace("*", "&#42;").replace("_", "&#95;").replace("\n", " ")


def read_lesson(text: str, solutions: bool = False) -> nbformat.NotebookNode:
    """A notebook's text as the site shows it. Headings are linked in small letters there, and as written in Jupyter."""
    small = re.sub(r"(\]\([\w.]*#)([\w-]+)\)", lambda link: f"{link[1]}{link[2].lower()})", text)
    book = hold_controls(nbformat.reads(small, as_version=4), Path(__file__).parent.parent / "notebooks")
    for cell in book.cells:
        if cell.cell_type == "markdown" and not solutions:
            cell.source = SOLUTION.sub("", cell.source)
    return book


@cache
def _held(notebook: Path) -> nbformat.NotebookNode:
    return hold_controls(nbformat.read(notebook, as_version=4), notebook.parent)


def hold_controls(book: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Put in the place of controls what they show at first; that isn't stored, so they run, and what they need."""
    texts = [
        [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())] for cell in book.cells
    ]
    wanted = {number for number, outputs in enumerate(texts) if any(text.startswith(TEXT) for text in outputs)}
    shell = InteractiveShell.instance()
    shell.reset()
    with chdir(folder), capture_output():
        for number in _needed(book.cells, wanted):
            result = shell.run_cell(book.cells[number].source)
            result.raise_error()
            if number in wanted:
                html = _still(result.result) + MOVES
                book.cells[number].outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    return book


def _needed(cells: list, wanted: set[int]) -> list[int]:
    """The numbers of the code cells that set, one by another, what those ``wanted`` use."""
    needed, used = [], set[str]()
    for number in range(max(wanted, default=-1), -1, -1):
        if cells[number].cell_type == "code":
            sets, uses = _names(cells[number].source)
            if number in wanted or sets & used:
                needed.append(number)
                used |= uses
    return needed[::-1]


def _names(source: str) -> tuple[set[str], set[str]]:
    """Names that a cell may set or change, and those that it uses; locals of its functions are among them. A magic
    cell, which isn't Python, sets the name in its first line."""
    if magic := re.match(r"%%\w+ (\w+)", source):
        return {magic[1]}, set()
    sets, uses = set[str](), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Name):
            (uses if isinstance(node.ctx, ast.Load) else sets).add(node.id)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            sets.add(node.name)
        elif isinstance(node, ast.alias):
            sets.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            sets |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
    return sets, uses


def _still(widget) -> str:
    """A widget as it stands, in HTML: a choice with its name, a text, an output, or a box of such."""
    if hasattr(widget, "children"):
        return "".join(map(_still, widget.children))
    if hasattr(widget, "outputs"):
        shown = [output["data"] for output in widget.outputs]
        return "".join(data.get("text/html") or f"<pre>{escape(data['text/plain'])}</pre>" for data in shown)
    chosen = getattr(widget, "label", None) or widget.value
    return f"<p>{escape(widget.description)}: <b>{chosen}</b></p>" if widget.description else str(widget.value)


def gallery(site: Path, notebooks: Path, solutions: bool = False) -> list[Path]:
    """Write all pages and an index into ``site``; returns the pages. Lessons are the notebooks in ``notebooks``, with
    ``solutions`` also those below."""
    site.mkdir(parents=True, exist_ok=True)
    (site / SCRIPTS).write_text("\n".join(inline_resources().js_raw), encoding="utf-8")
    found = [path for path in sorted(notebooks.glob("*.ipynb")) if not path.name.startswith(".")]
    found += sorted((notebooks / "solutions").glob("*.ipynb")) if solutions else []
    pages, items = [], ""
    for number, notebook in enumerate(found):
        inside = "_".join(notebook.relative_to(notebooks).with_suffix("").parts)
        links = [f'<a href="{kind}_{inside}.html">{words}</a>' for kind, words in KINDS.items()]
        links.insert(1, f'<a href="lesson_{inside}.html#slide-0">slides</a>')
        near = [
            found[n] for n in (number - 1, number + 1) if 0 <= n < len(found) and found[n].parent == notebook.parent
        ]
        ways = [f'<a href="lesson_{path.stem}.html">{path.stem[:2]}</a>' for path in near if path.parent == notebooks]
        nav = " &ensp; ".join(['<a href="index.html">All lessons</a>', *ways, *links])
        for kind in KINDS:
            page = site / f"{kind}_{inside}.html"
            page.write_text(lesson(notebook, kind, scripts=SCRIPTS, solutions=solutions, nav=nav), encoding="utf-8")
            pages.append(page)
        print(inside, flush=True)
        title = escape(_title(nbformat.read(notebook, as_version=4)) or notebook.stem)
        title += ", solved" * (notebook.parent != notebooks)
        items += f'<li><a href="lesson_{inside}.html">{title}</a> &ensp; <small>{", ".join(links[1:])}</small></li>'
    body = f"<h1>cypresskit</h1><h2>Lessons</h2><ul>{items}</ul><h2>Pictures that move</h2><ul>"
    for name, (words, view) in VIEWS.items():
        print(f"{name}: {words}", flush=True)
        page = view().save(site / f"{name}.html")
        page.write_text(page.read_text(encoding="utf-8").replace(_scripts(), _scripts(SCRIPTS)), encoding="utf-8")
        pages.append(page)
        body += f'<li><a href="{name}.html">{escape(words)}</a></li>'
    index = site / "index.html"
    index.write_text(PAGE.format(title="cypresskit", head="", slides="", nav="", body=f"{body}</ul>"), encoding="utf-8")
    return [index, *pages]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tools.gallery", description="Lessons and views as web pages.")
    parser.add_argument("site", type=Path, help="the folder to write into")
    parser.add_argument("notebooks", type=Path, help="the folder of the lessons")
    parser.add_argument("--solutions", action="store_true", help="with the solutions")
    asked = parser.parse_args()
    made = gallery(asked.site, asked.notebooks, asked.solutions)
    size = sum(page.stat().st_size for page in [*made, asked.site / SCRIPTS])
    print(f"{len(made)} pages in {asked.site}, {size / 1e6:.1f} MB: open {made[0]}")
