"""What a check says: whether an answer is right, what was found, and where to look."""

from dataclasses import dataclass


@dataclass(frozen=True, repr=False)
class Verdict:
    """``right``, one sentence of ``finding``, and a ``hint`` if the answer is not right yet. As a cell's value it shows
    its text."""

    right: bool
    finding: str
    hint: str = ""

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    __repr__ = __str__


def said(error: Exception) -> str:
    """An exception in one line or more, as a student should see it."""
    return f"{type(error).__name__}: {error}"


def stopped(name: str, error: Exception, hint: str) -> Verdict:
    """The verdict on a student's function ``name`` that raised ``error``, or returned what can't be used."""
    return Verdict(False, f"{name} stops with {said(error)}.", hint)
