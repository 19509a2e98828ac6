"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` reads it there.
"""

import re

OPENS = 'ck.teach.explanation("""'
CLOSES = '""")'
QUOTED = re.compile(r"\bexplanation\s*\(\s*(\"{3}|'{3})(.*?)(?:\1|\Z)", re.S)


class Noted:
    """The output below an explanation."""

    def __init__(self, words: int) -> None:
        self.words = words

    def __repr__(self) -> str:
        if not self.words:
            return "Write your sentence between the two lines of quotes, then run this cell."
        noted = "1 word" if self.words == 1 else f"{self.words} words"
        return f"Noted ({noted}). The cell keeps your sentence."


def explanation(text: str) -> Noted:
    """Note an explanation, one sentence; the source of the cell that calls this contains it."""
    return Noted(len(str(text).split()))


def explanation_cell(text: str = "") -> str:
    """Return the source of a cell for an explanation."""
    return f"{OPENS}\n{text}\n{CLOSES}"


def extract_explanation(source: str) -> str | None:
    """Return the explanation in a cell's source, on one line; None if the cell calls none.

    It is what stands between the call's three quotes, or up to the cell's end if the last ones are
    lost; without three quotes, all between the brackets.
    """
    if quoted := QUOTED.search(source):
        return " ".join(quoted[2].split())
    found = re.search(r"\bexplanation\s*\((.*)", source, re.S)
    return " ".join(found[1].strip("\"') \n\t").split()) if found else None
