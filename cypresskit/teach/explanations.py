"""The place for a sentence below each exercise: a cell whose source holds what was written.

A sentence is between two lines of quotes, so it stays in the notebook whatever is run, restarted or
cleared. ``cypresskit grade`` and nbgrader's graders read it there.
"""

OPENS = 'ck.teach.explanation("""'
CLOSES = '""")'


class Noted:
    """What a notebook shows below a sentence."""

    def __init__(self, words: int) -> None:
        self.words = words

    def __repr__(self) -> str:
        if not self.words:
            return "Write your sentence between the two lines of quotes, then run this cell."
        noted = "1 word" if self.words == 1 else f"{self.words} words"
        return f"Noted: {noted}, which this cell keeps."


def explanation(text: str) -> Noted:
    """Note a sentence of explanation; the cell that calls this keeps it."""
    return Noted(len(str(text).split()))


def frame(text: str = "") -> str:
    """The source of a cell that holds a sentence."""
    return f"{OPENS}\n{text}\n{CLOSES}"


def written(source: str) -> str:
    """The sentence in a cell's source, on one line; of a cell that was changed beyond the place
    for it, all that it holds.
    """
    text = source.strip().removeprefix(OPENS).removesuffix(CLOSES)
    return " ".join(text.split())
