"""The place for an explanation, one sentence, below each exercise: a cell whose source contains it.

The sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted
or cleared. ``cypresskit grade`` and nbgrader's graders read it there.
"""

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


def extract_explanation(source: str) -> str:
    """Return the explanation in a cell's source, on one line; or the whole source if more than the
    explanation was changed.
    """
    text = source.strip().removeprefix(OPENS).removesuffix(CLOSES)
    return " ".join(text.split())
