"""Cases as data: each is a table of a TOML file, with what is said of it; see ``--accept``."""

import json
import re
import tomllib
from functools import cache


def edited(text, edits):
    """A text with edits: of each the first line, how many are taken out, and the new ones."""
    lines = text.split("\n")
    for first, count, *new in reversed(edits):
        lines[first - 1 : first - 1 + count] = new
    return "\n".join(lines)


@cache
def cases(text):
    """The cases of a file of this text, by name."""
    return tomllib.loads(text)


def agree(request, path, name, says):
    """Compare what is said of a case, a text or a list of them, with its file; ``--accept`` writes
    it there.
    """
    text = path.read_text()
    if request.config.getoption("accept"):
        head = f"[{json.dumps(name, ensure_ascii=False)}]"
        text = text if head in text else f"{text}\n{head}\n"
        before, mark, after = text.partition(head)
        own, gap, others = after.partition("\n[")
        written = json.dumps(says, ensure_ascii=False, indent=4)
        line, known = f"says = {written}", re.compile(r"^says = (\[.*?^\]|.*?$)", re.M | re.S)
        own, count = known.subn(lambda _: line, own, count=1)
        own = own if count else f"\n{line}{own}"
        path.write_text(before + mark + own + gap + others)
    else:
        assert says == cases(text)[name]["says"]
