"""Move through one line of IL text.

``Line`` is the cursor that the readers of statements, operands and declarations share. Faults in a
line are raised as ``FaultAt`` with their column.
"""

import re
from typing import NoReturn

from cypresskit.il.bits import ALL, Literals
from cypresskit.il.opcodes import find_opcode
from cypresskit.il.other_languages import suggest_operator

_COMMENT = re.compile(r";|//")
_WORD = re.compile(r"[^\s,]+|,")
_COMMA = re.compile(r"\s*,(?![^()]*\))")  # that separates operands
_INTEGER = re.compile(r"0[xX][0-9a-fA-F]+|[0-9]+")
BRACKETS = re.compile(r"\(([^()]*)\)")
COLORS = str.maketrans("rgba", "xyzw")


def strip_comment(line: str) -> str:
    """Return a line up to its comment, which begins with ``;`` or ``//``."""
    return _COMMENT.split(line, maxsplit=1)[0].rstrip()


def bare_line(line: str) -> str:
    """Return a line without its comment and needless spaces, and with one after each operand."""
    return " ".join(_COMMA.sub(", ", strip_comment(line)).split())


class FaultAt(Exception):
    """A fault at a column (from 1) of the line being read."""

    def __init__(self, column: int, message: str):
        super().__init__(message)
        self.column = column


class Line:
    """A cursor over one source line without its comment.

    Attributes
    ----------
    text
        The line, without comment and trailing blanks.
    number
        Its line number, from 1.
    literals
        The literals that it may read, as ``Program.literals``.
    at, start
        Index of the next character, and of the first.
    """

    def __init__(self, text: str, number: int, literals: Literals | None = None):
        self.literals = literals or {}
        self.text = strip_comment(text)
        self.number = number
        self.at = 0
        self.skip()
        self.start = self.at

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at] in " \t\r\f\v\ufeff":
            self.at += 1

    def take(self, pattern: re.Pattern) -> re.Match | None:
        """Match ``pattern`` at the cursor and move after it. Return the match, or None."""
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def accept(self, character: str) -> bool:
        """Move after ``character`` if it comes next, blanks skipped. Return whether it did."""
        self.skip()
        matches = self.text.startswith(character, self.at)
        self.at += len(character) if matches else 0
        return matches

    def expect(self, character: str, why: str) -> None:
        """Move after ``character``; raise ``FaultAt`` if it doesn't come next.

        ``why`` states what the character is for.
        """
        if not self.accept(character):
            self.fail(f"expected `{character}` {why}, found {self.rest()}")

    def rest(self) -> str:
        """Return the word at the cursor, quoted for a message."""
        self.skip()
        word = _WORD.match(self.text, self.at)
        return f"`{word.group()[:40]}`" if word else "the end of the line"

    def fail(self, message: str, at: int | None = None) -> NoReturn:
        """Raise ``FaultAt`` at index ``at``, by default at the cursor."""
        raise FaultAt((self.at if at is None else at) + 1, message)

    def integer(self, what: str) -> int:
        """Read an integer of 32 bits. ``what`` names it in a fault."""
        self.skip()
        start = self.at
        match = self.take(_INTEGER)
        if not match:
            self.fail(f"expected {what} (a whole number), found {self.rest()}", start)
        return parse_integer(match.group(), self, start)


def parse_integer(text: str, line: Line, at: int) -> int:
    """Return a decimal or hexadecimal integer; raise ``FaultAt`` if it exceeds 32 bits."""
    if len(text) > 10:
        line.fail(f"the number `{text[:16]}...` does not fit in 32 bits", at)
    value = int(text, 0) if text[:2].lower() == "0x" else int(text)
    if value > ALL:
        line.fail(f"the number `{text}` does not fit in 32 bits", at)
    return value


def count(text: str, line: Line, at: int) -> int:
    """Return the integer in an opcode's brackets; raise ``FaultAt`` for other text."""
    if not _INTEGER.fullmatch(text):
        word = re.match(r"\w*", line.text[at:])
        written = f"`{text}`" if text else "none"
        line.fail(
            f"`{word[0] if word else ''}`: expected a whole number in brackets, found {written}", at
        )
    return parse_integer(text, line, at)


def end_of_line(line: Line, form: str = "") -> None:
    """Raise ``FaultAt`` unless the line ends here. ``form`` says what a valid statement is."""
    line.skip()
    extra = line.text[line.at :]
    if extra and find_opcode(extra):
        line.fail(f"a line holds one instruction: move {line.rest()} to the next line")
    if extra:
        why = suggest_operator(extra) or form
        line.fail(f"expected the end of the line, found {line.rest()}{why and f': {why}'}")
