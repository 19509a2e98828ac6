"""Read the package's scripts, style sheets and texts, and join JavaScript modules for a page."""

import re
from functools import cache
from html import escape
from importlib.resources import files


def read_packaged(path: str) -> str:
    """Return the text of a file of the package, such as ``draw/look.css``."""
    return files("cypresskit").joinpath(path).read_text(encoding="utf-8")


def join_modules(*paths: str) -> str:
    """Join JavaScript modules into one script.

    Modules may import only from each other; only ``default`` exports stay exported. Whole-line
    comments and indentation are removed.
    """
    text = re.sub(r"(?m)^export (?!default)", "", "\n".join(map(read_packaged, paths)))
    text = re.sub(r'(?ms)^import\b.*?from "\.[\w./]+\.js"\n', "", text)
    text = re.sub(r"(?ms)^ *//[^\n]*\n|^ */\*\*.*?\*/\n", "", text)
    return re.sub(r"(?m)^ +", " ", text)


@cache
def handler(name: str) -> str:
    """Return a function of ``draw/handlers.js`` as the value of an HTML element's attribute."""
    script = join_modules("draw/handlers.js")
    code = re.search(rf"(?ms)^function {name}\b.*?^}}$", script)
    assert code, name
    return escape(f"({code[0]})(this, event)").replace("\n", "&#10;")
