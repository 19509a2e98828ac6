"""What a check says: whether an answer is right, what was found, and where to look."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True, repr=False)
class Verdict:
    """``right``, one sentence of ``finding``, and a ``hint`` if the answer is not right yet. Its text is all three.
    ``check`` names the module and the function that gave it."""

    right: bool
    finding: str
    hint: str = ""
    check: tuple[str, str] | None = field(default=None, compare=False)

    def __str__(self) -> str:
        head = "Right." if self.right else "Not yet."
        return f"{head} {self.finding}" + (f"\nWhere to look: {self.hint}" if self.hint else "")

    __repr__ = __str__


def a_type(value) -> str:
    """The type of a value with its article: ``an int``; ``None`` is itself."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIO' or name == 'ndarray' else 'a'} {name}"


def said(error: Exception) -> str:
    """An exception in one line or more, as a student should see it."""
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def stopped(name: str, error: Exception, hint: str) -> Verdict:
    """The verdict on a student's function ``name`` that raised ``error``, or returned what can't be used."""
    return Verdict(False, f"{name} stops with {said(error).rstrip('.')}.", hint)


def slip(got: np.ndarray, slips: Mapping[str, np.ndarray], otherwise: str) -> str:
    """The first of ``slips``, which map hints to what the mistake gives, that explains every element of ``got``."""
    return next((hint for hint, wrong in slips.items() if np.array_equal(got, wrong)), otherwise)
