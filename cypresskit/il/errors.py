"""Faults in a kernel's text, said so that a student can mend them.

One ``ILError`` carries every fault of a file (``faults``), each with its line, column, the line
itself, and a sentence on what was expected. ``str(error)`` shows them in the manner of a compiler:
place, text, caret, advice.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

QUOTED = 60  # characters of something unknown that an error shows
SHOWN = 20  # faults printed before the rest are only counted
WIDTH = 160  # characters of a source line that are printed


@dataclass(frozen=True)
class Fault:
    """One fault: ``line`` and ``column`` count from 1; ``text`` is the source line."""

    line: int
    column: int
    message: str
    text: str

    def show(self, name: str) -> str:
        """The fault as ``name:line:column: message``, then the line (if it isn't blank) with a
        caret at the place.
        """
        return (
            f"{name}:{self.line}:{self.column}:"
            f" {_visible(self.message)}{pointed(self.text, self.column)}"
        )


def pointed(text: str, column: int) -> str:
    """A line of a kernel around a column, and a line with a caret under that; "" for a blank
    line.
    """
    start = max(0, column - 1 - WIDTH // 2)
    shown = text[start : start + WIDTH]
    return f"\n    {_visible(shown)}\n    {' ' * (column - 1 - start)}^" if shown.strip() else ""


def _visible(text: str) -> str:
    """``text`` with blanks for what no terminal shows (or refuses to)."""
    return "".join(c if c.isprintable() else " " for c in text)


class ILError(ValueError):
    """A kernel that can't be assembled: ``name`` of the file and all its ``faults``, in the order
    of their lines.

    ``line`` and ``column`` are those of the first fault.
    """

    def __init__(self, name: str, faults: list[Fault]):
        self.name = name
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.line, fault.column)))
        self.line, self.column = self.faults[0].line, self.faults[0].column
        shown = [fault.show(name) for fault in self.faults[:SHOWN]]
        if len(self.faults) > SHOWN:
            shown.append(f"... and {len(self.faults) - SHOWN} more")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[Any, ...]:  # so that an error crosses from one process to another
        return ILError, (self.name, list(self.faults))


def shortened(given: object) -> str:
    """Its ``repr``, cut off where it is long."""
    text = repr(given)
    return text if len(text) <= QUOTED else f"{text[:QUOTED]}..."


def check_options(caller: str, given: Iterable[str], taken: Iterable[str]) -> None:
    """Raise ``TypeError`` for the name of an option that ``caller`` doesn't take."""
    options = list(taken)
    for name in given:
        if name not in options:
            guess = nearest(name, options, 0.65)
            raise TypeError(f"{caller} takes no `{name}`.{guess} It takes {', '.join(options)}")


def nearest(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """`` Did you mean `x`?`` for the known name nearest to ``word``: the first that begins with its
    four letters or more; or of those as much alike as ``cutoff`` the one with the fewest slips,
    which prefers a missing or swapped letter to a wrong one; or none.
    """
    word = word.lower()[:64]
    names = list(known)
    begun = [name for name in names if len(word) > 3 and name.startswith(word)]
    alike = begun[:1] or get_close_matches(word, names, n=len(names) or 1, cutoff=cutoff)

    def far(name: str) -> tuple[int, bool]:
        return slips(word, name), len(name) == len(word) and sorted(name) != sorted(word)

    return f" Did you mean `{min(alike, key=far)}`?" if alike else ""


def slips(word: str, name: str) -> int:
    """How many letters are left out, added, changed, or exchanged with their neighbour between two
    words (the Damerau-Levenshtein distance, with no letter touched twice).
    """
    before: list[int] = []
    last = list(range(len(name) + 1))
    for n, letter in enumerate(word):
        row = [n + 1]
        for m, other in enumerate(name):
            row.append(min(last[m + 1] + 1, row[m] + 1, last[m] + (letter != other)))
            if n and m and letter == name[m - 1] and word[n - 1] == other:
                row[-1] = min(row[-1], before[m - 1] + 1)
        before, last = last, row
    return last[-1]
