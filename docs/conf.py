"""The site that `make docs` builds with Sphinx: README, lessons and pages as they stand here, the
API as its docstrings tell it, and pictures. Lessons and pictures play: all pages share one script
with what players need. Solutions and the pages of answers for teachers are left out, unless the tag
`solutions` asks for them.
"""

import re
import sys
import tomllib
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import cypresskit  # noqa: E402
from cypresskit.draw.display import scripts  # noqa: E402
from cypresskit.editing.workbench import STILL_TEXT  # noqa: E402
from tools import gallery  # noqa: E402

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
project, release = "cypresskit", cypresskit.__version__
author = copyright = "The cypresskit developers"
root_doc = "README"
include_patterns = ["*.md", "docs/*.md", "notebooks/*.ipynb", "notebooks/README.md"]
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "site",
    "notebooks/source",
    "notebooks/solutions",
    "docs/package.md",  # which the package index shows
]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme, html_title = "furo", "cypresskit"
html_static_path, html_css_files = ["static"], ["site.css"]
html_favicon = "static/icon.svg"
html_copy_source = html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses from disk
html_math_renderer = "mathml"
solutions = tags.has("solutions")  # type: ignore[name-defined]  # noqa: F821
exclude_patterns += [] if solutions else ["docs/answers.md", "docs/questions.md"]
nb_custom_formats = {".ipynb": ("tools.gallery.read_lesson", {"solutions": solutions})}
nb_execution_mode = "off"
myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3
autodoc_default_options = {"members": True}
autodoc_typehints_format = "short"
default_role = "code"
python_display_short_literal_types = True
suppress_warnings = ["myst.header"]

# What README.md doesn't show on the forge: the order of the site's pages.
CONTENTS = """
```{toctree}
:hidden:
:caption: Lessons
:glob:
notebooks/[0-9]*
notebooks/glossary
docs/views
```
```{toctree}
:hidden:
:caption: Reference
docs/own_kernel
docs/il
docs/api
docs/model
docs/figures
docs/measured
docs/current_gpu
```
```{toctree}
:hidden:
:caption: For teachers and developers
docs/teaching
docs/questions
docs/answers
CONTRIBUTING
notebooks/README
CHANGELOG
SECURITY
CODE_OF_CONDUCT
```
"""


class Views(SphinxDirective):
    """The stills of all pictures. Each leads to a page with nothing but the picture."""

    def run(self):
        return [
            nodes.raw(
                "", gallery.write_pages(Path(self.env.app.outdir) / "pictures"), format="html"
            )
        ]


def formula(writer, node):
    """A formula as MathML, which needs no script."""
    block = isinstance(node, nodes.math_block)
    writer.body.append(convert(node.astext(), display="block" if block else "inline"))
    raise nodes.SkipNode


def end_sections(app, what, name, value, options, lines):
    """Two blank lines are what ends a list of parameters for napoleon; docstrings here have one."""
    lines[:] = [part for line in lines for part in ([line] if line else ["", ""])]


def add_contents(app, name, source):
    if name == root_doc:  # a badge would need the network
        source[0] = re.sub(r"!\[(.*?)\]\(https:.*?\)", r"\1", source[0]) + CONTENTS
        # The forge's pictures, the commands before them and the address are the first page's.
        for begin, end in (("front", "end"), ("PUBLIC ADDRESS", "END OF PUBLIC ADDRESS")):
            source[0] = re.sub(rf"(?s)<!-- {begin}\b.*?<!-- {end} -->", "", source[0])
    if not solutions:  # no link may lead to what is left out
        teachers = r"\[([^\]]*)\]\([\w/.]*(?:answers|questions)\.md\)|^docs/(?:answers|questions)\n"
        source[0] = re.sub(teachers, _left_out, source[0], flags=re.M)


def has(app, part):
    """Whether the site has this folder: see tools/site."""
    return (Path(app.outdir) / part / "index.html").exists()


def run_links(app, name, body):
    """A lesson's page with links that run it, and that edit its kernels."""
    lesson = re.fullmatch(r"notebooks/(\d\d)_.*", name)
    if lesson and has(app, "workbook"):
        link = f"../workbook/index.html?lesson={lesson[1]}"
        words = "This page shows the lesson. To work in it, "
        link = f'<p class="run">{words}<a href="{link}">run this lesson in your browser</a>.</p>'
        body = body.replace("</h1>", f"</h1>{link}", 1)
    return body if has(app, "bench") else re.sub('<a class="step".*?</a>', STILL_TEXT, body)


def _left_out(link):
    return f"`{link[1]}`, in the repository," if link[1] else ""


def amend(app, name, template, context, doctree):
    """Pages with pictures load what plays them. They go without a list of their headings, as the
    page of figures: pictures, or its table, take its place. Headings have a level, and boxes of
    code take the keys."""
    if pictures := "<cypresskit-picture" in context.get("body", ""):
        app.add_js_file("players.js", loading_method="async")
    context["furo_hide_toc"] = context.get("furo_hide_toc") or pictures or name == "docs/figures"
    if body := context.get("body"):  # wide lines and tables scroll, by keys, too
        body = re.sub(r"<pre\b", '<pre tabindex="0"', body)
        body = body.replace('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper')
        body = body.replace(' aria-label="Toggle hidden content"', "")  # a fold has a name already
        context["body"] = run_links(app, name, body)
    first = entry(f"{'../' * name.count('/')}index.html", "The climb: one page")
    tree = first + context.get("furo_navigation_tree", "")
    tree = tree.replace('role="heading"', 'role="heading" aria-level="2"')
    for part, title in (("bench", "The workbench"), ("workbook", "The workbook")):
        if has(app, part):
            tree += entry(f"{'../' * name.count('/')}{part}/index.html", f"{title}, running")
    if address := (PROJECT.get("urls") or {}).get("Source"):
        tree += entry(address, "The repository")
    context["furo_navigation_tree"] = tree


def entry(link, title):
    """A line of the list of pages."""
    item = f'<li class="toctree-l1"><a class="reference" href="{link}">{title}</a></li>'
    return f"<ul>{item}</ul>"


def finish(app, error):
    """The script that all players share."""
    if error is None:
        Path(app.outdir, "_static/players.js").write_text(scripts(), encoding="utf-8")


def setup(app):
    app.add_directive("views", Views)
    app.add_html_math_renderer("mathml", (formula, None), (formula, None))
    app.connect("autodoc-process-docstring", end_sections, priority=400)
    app.connect("source-read", add_contents)
    app.connect("html-page-context", amend, priority=900)  # after the theme
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
