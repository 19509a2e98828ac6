"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` and nbgrader's graders read it there.
"""

import ast
import re

OPENS = 'ck.teach.explanation("""'
CLOSES = '""")'


class Noted:
    """The output below an explanation."""

    def __init__(self, words: int) -> None:
        self.words = words

    def __repr__(self) -> str:
        if not self.words:
            return "Write your sentence between the two lines of quotes, then run this cell."
        noted = "1 word" if self.words == 1 else f"{self.words} words"
        return f"Noted: {noted}, which this cell keeps."


def explanation(text: str) -> Noted:
    """Note an explanation, one sentence; the source of the cell that calls this contains it."""
    return Noted(len(str(text).split()))


def explanation_cell(text: str = "") -> str:
    """Return the source of a cell for an explanation."""
    return f"{OPENS}\n{text}\n{CLOSES}"


def extract_explanation(source: str) -> str | None:
    """Return the explanation in a cell's source, on one line; None if the cell calls none.

    The text may have any quotes. If the cell isn't valid Python, it is what stands between the
    call's brackets.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        found = re.search(r"\bexplanation\s*\((.*)", source, re.S)
        return " ".join(re.sub(r"^[\s\"']+|[\s\"')]+$", "", found[1]).split()) if found else None
    calls = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and "explanation" in (getattr(node.func, "attr", ""), getattr(node.func, "id", ""))
    ]
    texts = []
    for call in calls:
        for given in [*call.args, *(keyword.value for keyword in call.keywords)]:
            strings = [node.value for node in ast.walk(given) if isinstance(node, ast.Constant)]
            texts += [text for text in strings if isinstance(text, str)]
    return " ".join(" ".join(texts).split()) if calls else None
