"""Files of the package for a page: modules of JavaScript as one script, style sheets, texts."""

import re
from importlib.resources import files


def packaged(path: str) -> str:
    """The text of a file of the package: ``draw/look.css``."""
    return files("cypresskit").joinpath(path).read_text(encoding="utf-8")


def joined(*paths: str) -> str:
    """Join modules of JavaScript into one script. They import only from each other, and only what
    is exported as ``default`` stays exported. Comments on lines of their own and indentation, both
    for readers of the modules, are left out.
    """
    text = re.sub(r"(?m)^export (?!default)", "", "\n".join(map(packaged, paths)))
    text = re.sub(r'(?ms)^import\b.*?from "\.[\w./]+\.js"\n', "", text)
    text = re.sub(r"(?ms)^ *//[^\n]*\n|^ */\*\*.*?\*/\n", "", text)
    return re.sub(r"(?m)^ +", " ", text)
