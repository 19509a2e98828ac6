"""The files of the workbench's page: its modules of JavaScript as one, and its style sheets."""

import re
from functools import cache
from importlib.resources import files

#: The modules, each after those that it imports from.
MODULES = (
    "draw/shell.js",
    "draw/il_colours.js",
    "editing/il_text.js",
    "editing/painted_lines.js",
    "editing/editor.js",
    "editing/bundle_table.js",
    "editing/figures.js",
    "editing/history.js",
    "editing/legend.js",
    "editing/workbench.js",
)
STYLES = ("draw/look.css", "editing/workbench.css")


def _packaged(path: str) -> str:
    return files("cypresskit").joinpath(path).read_text(encoding="utf-8")


def joined(*paths: str) -> str:
    """Modules as one script, in which the last may export something; they import only from each
    other. Comments on lines of their own, and how deep lines are indented, are left out: both are
    for who reads the modules.
    """
    *inner, last = map(_packaged, paths)
    text = "\n".join([re.sub(r"(?m)^export ", "", module) for module in inner] + [last])
    text = re.sub(r'(?ms)^import\b.*?from "\.[\w./]+\.js"\n', "", text)
    text = re.sub(r"(?ms)^ *//[^\n]*\n|^ */\*\*.*?\*/\n", "", text)
    return re.sub(r"(?m)^ +", " ", text)


@cache
def widget_module() -> str:
    """The ES module of the widget."""
    return joined(*MODULES, "editing/widget.js")


@cache
def style() -> str:
    """The style sheets of a page with a workbench."""
    return "".join(map(_packaged, STYLES))
