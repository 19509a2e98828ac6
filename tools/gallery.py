"""The gallery: every lesson and every view as web pages in a folder, which work from disk and without network.

A view's page is what ``save`` writes. A lesson's page is its notebook as it is stored, with the outputs that it
holds; players play, what needs a running kernel (sliders that compute) stands still, and formulas are MathML, which
needs no script. Run as ``python -m tools.gallery site notebooks``, or by ``make gallery``.
"""

import re
import sys
from collections.abc import Callable
from contextlib import chdir
from html import escape
from pathlib import Path

import nbformat
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output
from latex2mathml.converter import convert
from nbconvert import HTMLExporter

from cypresskit import draw
from cypresskit.draw.player import Shown, inline_resources
from cypresskit.timing import simulate

# File name: the page's line in the index, and the view.
VIEWS: dict[str, tuple[str, Callable[[], Shown]]] = {
    "explore": ("From the chip to the register, click by click", draw.explore),
    "register_block": ("A work-item's 8 x 8 block fills up", lambda: draw.register_block("sgemm_tn")),
    "register_block_dd": ("The same in double-double", lambda: draw.register_block("ddgemm_tn_fma")),
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
    "wavefronts": ("Wavefronts of an engine: 25 against 37 registers", draw.wavefronts),
    "chip": ("The chip at work, over time", lambda: draw.chip(simulate("sgemm_tn", 1024))),
    "chip_sizes": ("The chip's average use as N grows", draw.chip),
    "roofline": (
        "Rooflines: Cypress against Fermi",
        lambda: draw.roofline([simulate(name, 1024) for name in ("sgemm_tn", "dgemm_tn", "dgemm_nn")]),
    ),
    "performance": ("Gflop/s against N", draw.performance),
    "timeline": ("Four and five stages of a pipeline", draw.timeline),
    "accuracy": ("Digits of three precisions", draw.accuracy),
    "score": ("Published against simulated", draw.score),
}

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>:root {{ color-scheme: light dark; }}
body {{ max-width: 1120px; margin: 0 auto; padding: 12px; background: #fff; color: #1b1b1f;
font: 16px/1.5 sans-serif; }}
a {{ color: #0064a8; }} pre, code {{ font: 13px/1.45 ui-monospace, "DejaVu Sans Mono", monospace; }}
pre {{ overflow-x: auto; margin: 0; padding: 6px 10px; }} .input pre {{ background: #f2f2f5; }}
:not(pre) > code {{ overflow-wrap: anywhere; }}
.anchor-link, .prompt {{ display: none; }} table {{ border-collapse: collapse; }}
td, th {{ border: 1px solid #8888; padding: 2px 8px; }}
@media (max-width: 500px) {{ td, th {{ padding: 2px 4px; overflow-wrap: anywhere; }} }} img {{ max-width: 100%; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #17171b; color: #ececf1; }} a {{ color: #6cc0f5; }}
.input pre {{ background: #2a2a31; }} }}</style>{head}</head><body><main>{body}</main></body></html>
"""


CODE_OR_FORMULA = re.compile(r"(?s)(```.*?```|`[^`]*`)|\$\$(.+?)\$\$|\$([^$]+?)\$")
MOVES = "<p><em>In the notebook these controls compute anew; this is what they show at first.</em></p>"


def lesson(notebook: Path) -> str:
    """A notebook as a page, with formulas as MathML; for controls stands what they show at first."""
    book = hold_controls(nbformat.read(notebook, as_version=4), notebook.parent)
    for cell in book.cells:
        if cell.cell_type == "markdown":
            cell.source = CODE_OR_FORMULA.sub(_formula, cell.source)
    body, _ = HTMLExporter(template_name="basic").from_notebook_node(book)
    # Scrolling parts must be reachable by keyboard.
    body = body.replace("<pre>", '<pre tabindex="0">')
    scripts = "".join(f"<script>{code}</script>" for code in inline_resources().js_raw)
    title = next((line[2:] for cell in book.cells for line in cell.source.splitlines() if line.startswith("# ")), "")
    return PAGE.format(title=escape(title or notebook.stem), head=scripts * ("cypresskit-player" in body), body=body)


def _formula(found: re.Match) -> str:
    """MathML for TeX between dollar signs, with nothing in it that Markdown would read; code stays as it is."""
    code, block, inline = found.groups()
    if code:
        return code
    math = convert(block or inline, display="block" if block else "inline")
    return math.replace("*", "&#42;").replace("_", "&#95;").replace("\n", " ")


def read_lesson(text: str) -> nbformat.NotebookNode:
    """A notebook's text as the site shows it."""
    return hold_controls(nbformat.reads(text, as_version=4), Path(__file__).parent.parent / "notebooks")


def hold_controls(book: nbformat.NotebookNode, folder: Path) -> nbformat.NotebookNode:
    """Put in the place of controls what they show at first; that isn't stored, so cells run up to the last of them."""
    texts = [
        [output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", ())] for cell in book.cells
    ]
    wanted = [number for number, outputs in enumerate(texts) if any(text.startswith("VBox(") for text in outputs)]
    shell = InteractiveShell.instance()
    shell.reset()
    with chdir(folder), capture_output():
        for number, cell in enumerate(book.cells[: wanted[-1] + 1] if wanted else ()):
            if cell.cell_type == "code":
                result = shell.run_cell(cell.source)
                result.raise_error()
                if number in wanted:
                    html = _still(result.result) + MOVES
                    cell.outputs = [nbformat.v4.new_output("display_data", {"text/html": html})]
    return book


def _still(widget) -> str:
    """A widget as it stands, in HTML: a choice with its name, a text, an output, or a box of such."""
    if hasattr(widget, "children"):
        return "".join(map(_still, widget.children))
    if hasattr(widget, "outputs"):
        return "".join(output["data"]["text/html"] for output in widget.outputs)
    chosen = getattr(widget, "label", None) or widget.value
    return f"<p>{escape(widget.description)}: <b>{chosen}</b></p>" if widget.description else str(widget.value)


def gallery(site: Path, notebooks: Path) -> list[Path]:
    """Write all pages and an index into ``site``; returns the pages. Lessons are the notebooks below ``notebooks``."""
    site.mkdir(parents=True, exist_ok=True)
    pages, lists = [], {"Lessons": ""}
    for notebook in sorted(notebooks.rglob("[!.]*.ipynb")):
        if ".ipynb_checkpoints" in notebook.parts:
            continue
        page = site / f"lesson_{'_'.join(notebook.relative_to(notebooks).with_suffix('').parts)}.html"
        page.write_text(lesson(notebook), encoding="utf-8")
        pages.append(page)
        folder = " ".join(notebook.relative_to(notebooks).parent.parts).capitalize() or "Lessons"
        name = escape(notebook.stem.replace("_", " "))
        lists[folder] = lists.get(folder, "") + f'<li><a href="{page.name}">{name}</a></li>'
    lists["Pictures that move"] = ""
    for name, (words, view) in VIEWS.items():
        print(f"{name}: {words}", flush=True)
        pages.append(view().save(site / f"{name}.html"))
        lists["Pictures that move"] += f'<li><a href="{name}.html">{escape(words)}</a></li>'
    body = "<h1>cypresskit</h1>" + "".join(f"<h2>{head}</h2><ul>{items}</ul>" for head, items in lists.items() if items)
    index = site / "index.html"
    index.write_text(PAGE.format(title="cypresskit", head="", body=body), encoding="utf-8")
    return [index, *pages]


if __name__ == "__main__":
    made = gallery(Path(sys.argv[1]), Path(sys.argv[2]))
    print(
        f"{len(made)} pages in {sys.argv[1]}, {sum(page.stat().st_size for page in made) / 1e6:.1f} MB: open {made[0]}"
    )
