"""Files of the package for a page: modules of JavaScript as one script, style sheets, texts."""

import re
from importlib.resources import files


def packaged(path: str) -> str:
    """The text of a file of the package: ``draw/look.css``."""
    return files("cypresskit").joinpath(path).read_text(encoding="utf-8")


def joined(*paths: str) -> str:
    """Modules of JavaScript as one script, in which the last may export something; they import only
    from each other. Comments on lines of their own, and how deep lines are indented, are left out:
    both are for who reads the modules.
    """
    *inner, last = map(packaged, paths)
    text = "\n".join([re.sub(r"(?m)^export ", "", module) for module in inner] + [last])
    text = re.sub(r'(?ms)^import\b.*?from "\.[\w./]+\.js"\n', "", text)
    text = re.sub(r"(?ms)^ *//[^\n]*\n|^ */\*\*.*?\*/\n", "", text)
    return re.sub(r"(?m)^ +", " ", text)
