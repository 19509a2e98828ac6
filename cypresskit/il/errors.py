"""Report faults in a kernel's text.

``ILError`` carries all faults of a text. Each has its line, its column, the source line and a
message that says what was expected. ``str(error)`` prints them like a compiler: position, source
line, caret, advice. ``did_you_mean`` suggests a known name for a misspelled one.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from cypresskit.tables import elided

MAX_QUOTED = 60  # most characters of a value that an error quotes
SHOWN = 20  # most faults printed; the rest are counted
WIDTH = 160  # most characters printed of a source line


@dataclass(frozen=True)
class Fault:
    """One fault of a text.

    Attributes
    ----------
    line, column
        Its position, from 1.
    message
        What is wrong, and what was expected.
    text
        The source line.
    """

    line: int
    column: int
    message: str
    text: str

    def show(self, name: str) -> str:
        """Return ``name:line:column: message``, then the source line (if it isn't blank) with a
        caret.
        """
        return (
            f"{name}:{self.line}:{self.column}:"
            f" {_visible(self.message)}{point_at_column(self.text, self.column)}"
        )


def point_at_column(text: str, column: int) -> str:
    """Return the part of a source line around ``column``, and a line with a caret below it. Return
    "" for a blank line.
    """
    start = max(0, column - 1 - WIDTH // 2)
    shown = text[start : start + WIDTH]
    return f"\n    {_visible(shown)}\n    {' ' * (column - 1 - start)}^" if shown.strip() else ""


def _visible(text: str) -> str:
    """Replace characters that a terminal can't show by blanks."""
    return "".join(c if c.isprintable() else " " for c in text)


class ArgumentError(TypeError, ValueError):
    """A kernel, a board, a launch or a size that can't be: the caller's fault, not the package's.

    It is raised where arguments are checked, and is both of what Python's functions raise there.
    """


class ILError(ValueError):
    """A kernel that can't be assembled.

    Attributes
    ----------
    name
        The kernel's file or name.
    faults
        All faults (``Fault``), in the order of their lines.
    line, column
        The position of the first fault.
    """

    def __init__(self, name: str, faults: list[Fault]):
        self.name = name
        self.faults = tuple(sorted(faults, key=lambda fault: (fault.line, fault.column)))
        self.line, self.column = self.faults[0].line, self.faults[0].column
        shown = [fault.show(name) for fault in self.faults[:SHOWN]]
        if len(self.faults) > SHOWN:
            shown.append(f"... and {len(self.faults) - SHOWN} more")
        super().__init__("\n".join(shown))

    def __reduce__(self) -> tuple[Any, ...]:  # lets an error be pickled
        return ILError, (self.name, list(self.faults))


def last_line(error: Exception) -> str:
    """Return the last line of an error's message; without a message, the name of its type."""
    return (str(error).splitlines() or [type(error).__name__])[-1].strip()


def shorten(given: object) -> str:
    """Return ``repr(given)``, cut to ``MAX_QUOTED`` characters."""
    return elided(repr(given), MAX_QUOTED)


def check_options(caller: str, given: Iterable[str], taken: Iterable[str]) -> None:
    """Raise ``TypeError`` for a name in ``given`` that is not among the options ``taken``."""
    options = list(taken)
    for name in given:
        if name not in options:
            guess = did_you_mean(name, options, 0.65)
            raise ArgumentError(f"{caller} takes no `{name}`.{guess} It takes {', '.join(options)}")


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `` Did you mean `x`?`` for the known name that is most like ``word``, or "".

    The first known name that begins with ``word`` (of at least four letters) wins; otherwise the
    one of the greatest similarity (``difflib``), which is at least ``cutoff``.
    """
    word = word.lower()[:64]
    names = list(known)
    begun = [name for name in names if len(word) > 3 and name.startswith(word)]
    alike = begun or get_close_matches(word, names, n=1, cutoff=cutoff)
    return f" Did you mean `{alike[0]}`?" if alike else ""
