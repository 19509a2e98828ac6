"""Cases as data: each is a table of a TOML file, with what is said of it; see ``--accept``.

The head of each file of ``cases`` says what its fields are. The rest is told where it is read:

- edits of a text: ``edit_text`` below
- rows, in ``cases/rows.toml``: ``from_rows`` (``sampling.py``)
- Python that is refused, in ``cases/refused.toml``: ``core/test_bad_input.py``
- bugs and near misses of ``zoo``: ``core/test_checks.py``; arrays and launches of its files and of
  ``programs``: ``core/kernel_files.py``
- forms of answers: ``answers/__init__.py``
- causes and numbers, in ``facts.toml``: ``book/test_facts.py``
"""

import json
import re
import tomllib
from functools import cache


def edit_text(text, edits):
    """A text with edits, a line for each: a line's number, what is done (- goes, + comes behind it,
    = is still there), and what stands there.
    """
    places = [[line] for line in text.split("\n")]
    for edit in edits.splitlines():
        number, sign, line = re.fullmatch(r"(\d+) ([-+=]) ?(.*)", edit).groups()
        place = places[int(number) - 1]
        if sign == "+":
            place.append(line)
        else:
            assert place[0].strip() == line.strip(), edit
            del place[: sign == "-"]
    return "\n".join(line for place in places for line in place)


@cache
def cases(text):
    """The cases of a file of this text, by name."""
    return tomllib.loads(text)


def compare_with_case(request, path, name, says):
    """Compare what is said of a case, a text or a list of them, with its file; ``--accept`` writes
    it there.
    """
    text = path.read_text()
    if request.config.getoption("accept"):
        head = f"[{json.dumps(name, ensure_ascii=False)}]"
        whole_line = re.compile(f"^{re.escape(head)}$", re.M)
        text = text if whole_line.search(text) else f"{text}\n{head}\n"
        before, after = whole_line.split(text, maxsplit=1)
        own, gap, others = after.partition("\n[")
        written = json.dumps(says, ensure_ascii=False, indent=4)
        line, known = f"says = {written}", re.compile(r"^says = (\[.*?^\]|.*?$)", re.M | re.S)
        own, count = known.subn(lambda _: line, own, count=1)
        own = own if count else f"\n{line}{own}"
        path.write_text(before + head + own + gap + others)
    else:
        assert says == cases(text)[name]["says"]
