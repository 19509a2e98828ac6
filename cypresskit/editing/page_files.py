"""The files of the workbench's page: its JavaScript modules, joined, and its style sheets."""

from functools import cache

from cypresskit.draw import theme
from cypresskit.draw.scripts import join_modules, read_packaged

#: The modules, each after those that it imports.
MODULES = (
    "draw/shell.js",
    "draw/il_colors.js",
    "editing/texts.js",
    "editing/il_text.js",
    "editing/painted_lines.js",
    "editing/undo.js",
    "editing/editor.js",
    "editing/key_list.js",
    "editing/numbers.js",
    "editing/terms.js",
    "editing/figures.js",
    "editing/bundle_table.js",
    "editing/history.js",
    "editing/silence.js",
    "editing/small_product.js",
    "editing/speed.js",
    "editing/step_head.js",
    "editing/panels.js",
    "editing/headline.js",
    "editing/line_help.js",
    "editing/cost_guess.js",
    "editing/workbench.js",
)
STYLES = ("draw/look.css", "editing/workbench.css")


@cache
def widget_module() -> str:
    """Return the widget's JavaScript as one ES module."""
    return join_modules(*MODULES, "draw/into_view.js", "editing/widget.js")


@cache
def style() -> str:
    """Return the style sheets of a page with a workbench, and the colors of lines."""
    colors = "".join(f"--ckw-{n}: {color};" for n, color in enumerate(theme.SERIES))
    return "".join(map(read_packaged, STYLES)) + f".ckw {{ {colors} }}\n"
